"""A fake model server that speaks OpenAI's and Anthropic's wire formats and replies by script.

`python -m tests.fakes.model_server --port 8399` runs it in its own process and prints its address. Every request and
every event is checked by the vendor's schema; what does not fit is answered with 400 and recorded.
Faults are ordered by `POST /control`, or by the name of the model: `any!cut` is cut off every time.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from interlock.core.chat.transcript import ModelReply, Prompt
from interlock.demo.scripted_model import make_reply as scripted
from tests.fakes.anthropic_wire_format import Messages
from tests.fakes.openai_wire_format import Chat, Responses
from tests.fakes.wire_format import Event, Json, ScriptedResponse, WireFormat, truncate, with_ids

TOP = Path(__file__).resolve().parents[2]
ReplyFunction = Callable[[Prompt], ModelReply]
WIRE_FORMATS: tuple[WireFormat, ...] = (Chat(), Responses(), Messages())


class Fault(NamedTuple):
    """`kind` is a status, or hang_before, hang_after, cut, end, error, empty, length, refused, same_ids, no_ids."""

    kind: str
    retry_after: int = 0


class RawAnswer(NamedTuple):
    """An answer sent as it is, in these pieces; `ending` is empty, cut, hang, or reset, which sends nothing at all."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = {}
    ending: str = ""


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: Json


@dataclass
class Turn:
    """One request for a turn; `prompt` is the digest of the model's input, `is_complete` if all of it was sent."""

    wire: str
    model: str
    prompt: str
    fault: str = ""
    is_complete: bool = False
    was_closed: bool = False  # the other side closed the connection before the end


@dataclass
class ModelServer:
    """`bodies` are the requests as they came. `think` puts signed thoughts before every reply."""

    reply: ReplyFunction = scripted
    think: bool = False
    pause: float = 0.0
    url: str = ""
    turns: list[Turn] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    raw_answers: deque[RawAnswer] = field(default_factory=deque)  # sent first, before any scripted reply

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read_request(reader)
            if request is not None:
                await self._answer(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side is gone
        finally:
            writer.close()

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if request.path == "/control":
            await _send(writer, 200, self._control(request))
            return
        wire = next((wire for wire in WIRE_FORMATS if wire.path == request.path), None)
        if wire is None:
            await _send(writer, 404, {"error": {"message": f"Unknown address {request.path}"}})
            return
        if not wire.has_key(request.headers):
            await _send(writer, 401, wire.error(401, "Incorrect API key provided: wr***ng."))
            return
        if refused := list(wire.refusals(request.body, request.headers)):
            self.violations += [f"{request.path}: {each}" for each in refused]
            await _send(writer, 400, wire.error(400, "; ".join(refused)[:2000]))
            return
        await self._turn(wire, request.body, reader, writer)

    async def _turn(
        self, wire: WireFormat, body: Json, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.bodies.append(body)
        prompt, fault = wire.prompt(body), self._next_fault(body["model"])
        told = hashlib.sha256(repr([(*each,) for each in prompt.messages]).encode()).hexdigest()
        turn = Turn(wire.path, body["model"], told, fault.kind)
        self.turns.append(turn)
        if self.raw_answers:
            await _send_raw(self.raw_answers.popleft(), turn, reader, writer)
            return
        if fault.kind.isdigit():
            status = int(fault.kind)
            extra = {"retry-after": str(fault.retry_after)} if fault.retry_after else {}
            shown = 400 if status == 413 else status  # a conversation that is too long is a bad request to both
            await _send(writer, shown, wire.error(status, "Told to fail."), extra)
            return
        if fault.kind == "hang_before":
            turn.was_closed = await _wait_closed(reader)
            return
        answer = _apply_fault(
            ScriptedResponse(self.reply(prompt), len(self.turns), "c2lnbmVk" if self.think else ""), fault.kind
        )
        events = list(wire.events(body, answer))
        if fault.kind not in ("no_ids", "none"):
            self.violations += [
                f"event: {each}" for event in events if event.data for each in wire.schema_errors(event)
            ]
        await self._stream(wire, events, turn, reader, writer)

    async def _stream(
        self,
        wire: WireFormat,
        events: list[Event],
        turn: Turn,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        _begin(writer)
        stop = max(2, len(events) // 2) if turn.fault in ("cut", "end", "error", "hang_after") else len(events)
        try:
            for event in events[:stop]:
                await _chunk(writer, event)
                await asyncio.sleep(self.pause)
                if reader.at_eof():
                    raise ConnectionResetError
        except ConnectionError:
            turn.was_closed = True
            return
        if turn.fault == "hang_after":
            turn.was_closed = await _wait_closed(reader)
        elif turn.fault == "cut":
            writer.transport.abort()
        else:
            if turn.fault == "error" and (failure := wire.error_event()):
                await _chunk(writer, failure)
            turn.is_complete = not turn.fault
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    def _next_fault(self, model: str) -> Fault:
        named = model.partition("!")[2]
        if named:
            return Fault(named)
        return self.faults.popleft() if self.faults else Fault("")

    def _control(self, request: Request) -> Json:
        """`{"kind", "times", "retry_after"}` orders faults; what it answers is all that happened."""
        if request.method == "POST":
            order = request.body
            self.faults.extend([Fault(str(order["kind"]), order.get("retry_after", 0))] * order.get("times", 1))
        return {"turns": [asdict(turn) for turn in self.turns], "violations": self.violations}


def _apply_fault(answer: ScriptedResponse, fault: str) -> ScriptedResponse:
    reply = answer.reply
    match fault:
        case "empty":
            return replace(answer, reply=ModelReply(""))
        case "length" if reply.tool_requests:
            return truncate(answer)
        case "length":
            return replace(answer, ending="length")
        case "refused":
            return replace(answer, reply=ModelReply(""), ending="content_filter")
        case "none":
            return replace(truncate(answer), ending="none")
        case "same_ids":
            return replace(answer, reply=with_ids(reply, ["call_same"] * len(reply.tool_requests)))
        case "no_ids":
            return replace(answer, reply=with_ids(reply, [""] * len(reply.tool_requests)))
        case _:
            return answer


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path.partition("?")[0], headers, json.loads(body or b"{}"))


async def _send(writer: asyncio.StreamWriter, status: int, body: Any, extra: Mapping[str, str] | None = None) -> None:
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json", "content-length": len(data), "connection": "close", **(extra or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data)
    await writer.drain()


async def _send_raw(answer: RawAnswer, turn: Turn, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if answer.ending != "reset":
        headers = {"content-type": answer.content_type, "transfer-encoding": "chunked", **answer.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {answer.status} X\r\n{lines}connection: close\r\n\r\n".encode())
        for piece in answer.pieces:
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
    if answer.ending in ("cut", "reset"):
        writer.transport.abort()
    elif answer.ending == "hang":
        turn.was_closed = await _wait_closed(reader)
    else:
        turn.is_complete = True
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _begin(writer: asyncio.StreamWriter) -> None:
    headers = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n"
    writer.write(f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode())


async def _chunk(writer: asyncio.StreamWriter, event: Event) -> None:
    if event.name == "[DONE]":
        text = "data: [DONE]\n\n"
    else:
        text = f"event: {event.name}\n" * bool(event.name) + f"data: {json.dumps(event.data)}\n\n"
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


async def _wait_closed(reader: asyncio.StreamReader) -> bool:
    """Waits until the other side has gone."""
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


@asynccontextmanager
async def run_models(
    brain: ReplyFunction = scripted, *, port: int = 0, think: bool = False
) -> AsyncIterator[ModelServer]:
    """In this process and loop."""
    stand_in = ModelServer(brain, think)
    server = await asyncio.start_server(stand_in.serve, "127.0.0.1", port)
    stand_in.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield stand_in


@contextmanager
def run_models_process(port: int = 0) -> Iterator[str]:
    """In a process of its own; gives its address. `/v1` behind it is OpenAI's base, the address itself Anthropic's."""
    command = [sys.executable, "-m", "tests.fakes.model_server", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TOP) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def _main(port: int, *, think: bool) -> None:
    async with run_models(port=port, think=think) as stand_in:
        print(stand_in.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--think", action="store_true")
    given = options.parse_args()
    asyncio.run(_main(given.port, think=given.think))
