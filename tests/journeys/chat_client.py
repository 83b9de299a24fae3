"""A chat as people have it: a stream that is read event by event, cards that are decided, and a model behind a wire."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx2

from interlock.core.chat.transcript import ModelReply, Prompt, PromptUserMessage, ToolRequest, ToolResult
from interlock.demo.scripted_model import make_reply as scripted
from tests.databases import Place
from tests.fakes.model_server import Models, models
from tests.interlock_server import Served
from tests.journeys.shell import Shell, wait_until

Json = dict[str, Any]
LAST = ("done", "error")
WIRES = ("openai", "anthropic")
ON_WIRES = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


class Event(NamedTuple):
    id: str
    name: str
    data: Json


class Talk:
    """One open stream of a thread. What was read is in `seen`; leaving it closes the connection."""

    def __init__(self, client: httpx2.Client, method: str, path: str, **request: Any) -> None:
        self._context = client.stream(method, path, **request)
        self._response = self._context.__enter__()
        if self._response.status_code != 200:
            self._response.read()
            raise AssertionError(f"{method} {path}: {self._response.status_code} {self._response.text}")
        self.thread = self._response.headers["x-thread-id"]
        self.seen: list[Event] = []
        self.last_id = ""
        self._events = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.drop()

    def drop(self) -> None:
        """As a browser does that is closed."""
        self._context.__exit__(None, None, None)

    def next(self) -> Event:
        return next(self._events)

    def until(self, *names: str) -> Event:
        """The next event of one of these names; everything before it is in `seen`."""
        for event in self._events:
            if event.name in names:
                return event
        raise AssertionError(f"The stream ended without {' or '.join(names)}: {self.names}")

    def rest(self) -> list[Event]:
        """All events of this turn, those that were read before included."""
        if not self.seen or self.seen[-1].name not in LAST:
            self.until(*LAST)
        return self.seen

    @property
    def names(self) -> list[str]:
        """Pieces of text in a row count as one."""
        return squeezed(self.seen)

    @property
    def text(self) -> str:
        return "".join(event.data["content"] for event in self.seen if event.name == "delta")

    def of(self, name: str) -> list[Json]:
        return [event.data for event in self.seen if event.name == name]

    @property
    def results(self) -> list[Any]:
        return [data["tool_call"]["result"] for data in self.of("tool_call_result")]

    def _read(self) -> Iterator[Event]:
        fields: dict[str, str] = {}
        for line in self._response.iter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
                continue
            self.last_id = fields.get("id", self.last_id)
            if "event" in fields:
                event = Event(fields["id"], fields["event"], json.loads(fields["data"]))
                assert (event.data["type"], event.data["thread_id"]) == (event.name, self.thread)
                self.seen.append(event)
                yield event
            fields = {}


def squeezed(events: list[Event]) -> list[str]:
    names = [event.name for event in events]
    return [name for n, name in enumerate(names) if name != "delta" or n == 0 or names[n - 1] != "delta"]


class Person:
    """Somebody with a key, in front of the chat or the inbox."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client

    def say(self, text: str, agent: str = "", thread: str = "") -> Talk:
        body = {"message": text, "agent": agent, "thread_id": thread}
        return Talk(self.client, "POST", "/api/chat", json={name: value for name, value in body.items() if value})

    def follow(self, thread: str, after: str = "") -> Talk:
        headers = {"last-event-id": after} if after else {}
        return Talk(self.client, "GET", f"/api/threads/{thread}/events", headers=headers)

    def decide(self, approval: Json, kind: str, **more: object) -> Json:
        body = {"kind": kind, "args_sha256": approval["args_sha256"], **more}
        return self.post(f"/api/approvals/{approval['id']}/decision", body)

    def approval(self, approval_id: str) -> Json:
        return self.get(f"/api/approvals/{approval_id}")

    def pending(self, thread: str) -> list[Json]:
        found: list[Json] = self.get(f"/api/approvals?status=pending&thread_id={thread}")["items"]
        return found

    def thread(self, thread: str) -> Json:
        return self.get(f"/api/threads/{thread}")

    def lines(self, thread: str, kind: str) -> list[Json]:
        return [line["body"] for line in self.thread(thread)["lines"] if line["kind"] == kind]

    def stop(self, thread: str) -> Json:
        return self.post(f"/api/threads/{thread}/stop", {})

    def get(self, path: str) -> Any:
        return told(self.client.get(path))

    def post(self, path: str, body: Json) -> Any:
        return told(self.client.post(path, json=body))


def told(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, f"{answer.request.method} {answer.request.url}: {answer.text}"
    return answer.json()


@dataclass
class Mind:
    """What thinks behind the wires, and what it was told each time, as the wire brought it."""

    think: Callable[[Prompt], ModelReply] = scripted
    prompts: list[Prompt] = field(default_factory=list)

    def __call__(self, prompt: Prompt) -> ModelReply:
        self.prompts.append(prompt)
        return self.think(prompt)

    @property
    def told(self) -> list[Any]:
        """The results that the last prompt ends with."""
        messages = self.prompts[-1].messages
        behind = max(n for n, each in enumerate(messages) if isinstance(each, ModelReply))
        return [each.content for each in messages[behind:] if isinstance(each, ToolResult)]


def calls(*wanted: tuple[str, Mapping[str, object]], text: str = "I try.") -> ModelReply:
    return ModelReply(
        text, tuple(ToolRequest(f"call_{n}", tool, json.dumps(args)) for n, (tool, args) in enumerate(wanted))
    )


def plays(*replies: ModelReply) -> Callable[[Prompt], ModelReply]:
    """A mind that says these one after another, whatever it is told; in the end it has nothing more to do."""

    def think(prompt: Prompt) -> ModelReply:
        turn = sum(isinstance(message, ModelReply) for message in prompt.messages)
        return replies[turn] if turn < len(replies) else ModelReply("That is all.")

    return think


def last_said(prompt: Prompt) -> str:
    return next(message.text for message in reversed(prompt.messages) if isinstance(message, PromptUserMessage))


@contextmanager
def models_beside() -> Iterator[Models]:
    """The stand-in in a thread of its own, so that a test can change its mind while a server talks to it."""
    ready: Future[tuple[Models, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with models() as stand_in:
            ready.set_result((stand_in, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="models")
    thread.start()
    stand_in, loop, stop = ready.result(timeout=30)
    try:
        yield stand_in
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@dataclass
class Ground:
    """A server with its database, its people and the stand-in that its models are at."""

    place: Place
    folder: Path
    served: Served
    models: Models
    bob: Person
    ada: Person
    keys: dict[str, str]

    def records(self, kind: str) -> dict[str, Json]:
        rows = self.place.sql("select id, body from records where workspace = 'default' and kind = ?", kind)
        return {name: json.loads(bytes(body)) for name, body in rows}

    def put(self, kind: str, name: str, body: Json) -> None:
        text = "insert into records (workspace, kind, id, body, at) values ('default', ?, ?, ?, 0)"
        self.place.sql(text, kind, name, json.dumps(body).encode())

    def titled(self, title: str) -> int:
        """How many issues and objectives there are of this title: effects, counted where they are."""
        kept = [*self.records("linear_issue").values(), *self.records("objective").values()]
        return sum(body["title"] == title for body in kept)

    def assert_valid_ledger(self) -> None:
        shell = Shell(self.folder)
        shell.url = self.place.url
        done = shell("audit", "verify")
        assert (done.code, done.out.partition(":")[0]) == (0, "valid"), done


@dataclass
class World:
    """One test's view: `agent` is whom it chats with, over a wire of its own; `name` is in all that it makes."""

    ground: Ground
    agent: str
    name: str
    mind: Mind
    threads: list[str] = field(default_factory=list)
    cut_off: int = 0  # turns that a stop at the same moment may have cut off, so that no reply is kept
    unrecorded: int = 0  # turns that leave no reply in a thread: answers to reviewers, and failures that ended a turn
    begun: int = 0

    @property
    def bob(self) -> Person:
        return self.ground.bob

    @property
    def ada(self) -> Person:
        return self.ground.ada

    def say(self, text: str, thread: str = "", agent: str = "") -> Talk:
        talk = self.bob.say(text, "" if thread else agent or self.agent, thread)
        if talk.thread not in self.threads:
            self.threads.append(talk.thread)
        return talk

    def titled(self, word: str) -> int:
        return self.ground.titled(f"{word} {self.name}")

    def wait_for_rest(self, thread: str) -> Json:
        found: list[Json] = []

        def at_rest() -> bool:
            found[:] = [self.ada.thread(thread)]
            return bool(found[0]["status"] == "idle")

        wait_until(at_rest, "the thread is at rest")
        return found[0]

    def assert_sound(self) -> None:
        """Every call has exactly one result, and every turn at the model is a line of a thread."""
        lines = [line for thread in self._all_threads() for line in self.wait_for_rest(thread)["lines"]]
        wishes = [call["id"] for line in lines if line["kind"] == "replied" for call in line["body"]["calls"]]
        results = [line["body"]["call"] for line in lines if line["kind"] == "resulted"]
        assert sorted(wishes) == sorted(results)
        assert self.ground.models.violations == []
        if self.agent in ON_WIRES:
            turns = self.ground.models.turns[self.begun :]
            assert {turn.wire for turn in turns} <= {ON_WIRES[self.agent]}
            counted = sum(line["kind"] in ("replied", "failed") for line in lines)
            assert counted + self.unrecorded <= len(turns) <= counted + self.unrecorded + self.cut_off
        assert [self.ada.pending(thread) for thread in self.threads] == [[] for _ in self.threads]

    def _all_threads(self) -> list[str]:
        found, todo = list[str](), list(self.threads)
        while todo:
            found.append(todo.pop())
            todo += [body["thread"] for body in self.ada.lines(found[-1], "delegated")]
        return found
