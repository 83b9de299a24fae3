"""A chat client: streams read event by event, decisions, and a scripted model behind a wire format."""

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

from interlock.core.canonical import canonical
from interlock.core.chat.transcript import ModelReply, Prompt, PromptUserMessage, ToolRequest, ToolResult
from interlock.demo.scripted_model import make_reply as scripted
from tests.databases import Database
from tests.fakes.model_server import ModelServer, run_models
from tests.interlock_server import RunningServer
from tests.journeys.shell import Shell, wait_until

Json = dict[str, Any]
LAST_REPLY = ("done", "error")
WIRE_FORMATS = ("openai", "anthropic")
ON_WIRE_FORMATS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


class Event(NamedTuple):
    id: str
    name: str
    data: Json


class ThreadStream:
    """One open stream of a thread; `seen` holds the events read so far."""

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
        self.close()

    def close(self) -> None:
        """As a browser does that is closed."""
        self._context.__exit__(None, None, None)

    def next_event(self) -> Event:
        return next(self._events)

    def read_until(self, *names: str) -> Event:
        """The next event of one of these names; everything before it is in `seen`."""
        for event in self._events:
            if event.name in names:
                return event
        raise AssertionError(f"The stream ended without {' or '.join(names)}: {self.names}")

    def read_all(self) -> list[Event]:
        """All events of this turn, those that were read before included."""
        if not self.seen or self.seen[-1].name not in LAST_REPLY:
            self.read_until(*LAST_REPLY)
        return self.seen

    @property
    def names(self) -> list[str]:
        """Pieces of text in a row count as one."""
        return merge_deltas(self.seen)

    @property
    def text(self) -> str:
        return "".join(event.data["content"] for event in self.seen if event.name == "delta")

    def events_named(self, name: str) -> list[Json]:
        return [event.data for event in self.seen if event.name == name]

    @property
    def results(self) -> list[Any]:
        return [data["tool_call"]["result"] for data in self.events_named("tool_call_result")]

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


def merge_deltas(events: list[Event]) -> list[str]:
    names = [event.name for event in events]
    return [name for n, name in enumerate(names) if name != "delta" or n == 0 or names[n - 1] != "delta"]


class ChatUser:
    """A person with a key, in the chat or the inbox."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client

    def say(self, text: str, agent: str = "", thread: str = "") -> ThreadStream:
        body = {"message": text, "agent": agent, "thread_id": thread}
        return ThreadStream(
            self.client, "POST", "/api/chat", json={name: value for name, value in body.items() if value}
        )

    def follow(self, thread: str, after: str = "") -> ThreadStream:
        headers = {"last-event-id": after} if after else {}
        return ThreadStream(self.client, "GET", f"/api/threads/{thread}/events", headers=headers)

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

    def entries(self, thread: str, kind: str) -> list[Json]:
        return [line["body"] for line in self.thread(thread)["lines"] if line["kind"] == kind]

    def stop(self, thread: str) -> Json:
        return self.post(f"/api/threads/{thread}/stop", {})

    def get(self, path: str) -> Any:
        return read_json(self.client.get(path))

    def post(self, path: str, body: Json) -> Any:
        return read_json(self.client.post(path, json=body))


def read_json(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, f"{answer.request.method} {answer.request.url}: {answer.text}"
    return answer.json()


@dataclass
class ScriptedModel:
    """The model behind the wire formats, with every prompt that it got."""

    reply: Callable[[Prompt], ModelReply] = scripted
    prompts: list[Prompt] = field(default_factory=list)

    def __call__(self, prompt: Prompt) -> ModelReply:
        self.prompts.append(prompt)
        return self.reply(prompt)

    @property
    def tool_results(self) -> list[Any]:
        """The results that the last prompt ends with."""
        messages = self.prompts[-1].messages
        behind = max(n for n, each in enumerate(messages) if isinstance(each, ModelReply))
        return [each.content for each in messages[behind:] if isinstance(each, ToolResult)]


def calls(*wanted: tuple[str, Mapping[str, object]], text: str = "I try.") -> ModelReply:
    return ModelReply(
        text, tuple(ToolRequest(f"call_{n}", tool, json.dumps(args)) for n, (tool, args) in enumerate(wanted))
    )


def scripted_replies(*replies: ModelReply) -> Callable[[Prompt], ModelReply]:
    """A mind that says these one after another, whatever it is told; in the end it has nothing more to do."""

    def think(prompt: Prompt) -> ModelReply:
        turn = sum(isinstance(message, ModelReply) for message in prompt.messages)
        return replies[turn] if turn < len(replies) else ModelReply("That is all.")

    return think


def last_user_text(prompt: Prompt) -> str:
    return next(message.text for message in reversed(prompt.messages) if isinstance(message, PromptUserMessage))


@contextmanager
def run_models_in_thread() -> Iterator[ModelServer]:
    """Run the fake model server in a thread, so that a test can change its replies."""
    ready: Future[tuple[ModelServer, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with run_models() as model_server:
            ready.set_result((model_server, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="models")
    thread.start()
    model_server, loop, stop = ready.result(timeout=30)
    try:
        yield model_server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@dataclass
class ChatServer:
    """A server with its database, its users and its fake model server."""

    database: Database
    folder: Path
    server: RunningServer
    models: ModelServer
    bob: ChatUser
    ada: ChatUser
    keys: dict[str, str]

    def items(self, kind: str) -> dict[str, Json]:
        rows = self.database.sql("select id, body from records where workspace = 'default' and kind = ?", kind)
        return {name: json.loads(bytes(body)) for name, body in rows}

    def put(self, kind: str, name: str, body: Json) -> None:
        text = "insert into records (workspace, kind, id, body, at) values ('default', ?, ?, ?, 0)"
        self.database.sql(text, kind, name, canonical(body))  # as the store writes them

    def count_titled(self, title: str) -> int:
        """How many issues and objectives there are of this title: effects, counted where they are."""
        kept = [*self.items("linear_issue").values(), *self.items("objective").values()]
        return sum(body["title"] == title for body in kept)

    def assert_valid_ledger(self) -> None:
        shell = Shell(self.folder)
        shell.url = self.database.url
        done = shell("audit", "verify")
        assert (done.code, done.out.partition(":")[0]) == (0, "valid"), done


@dataclass
class ChatScenario:
    """One test on a chat server: `agent` is its agent, `name` is in everything that it creates."""

    server: ChatServer
    agent: str
    name: str
    model: ScriptedModel
    threads: list[str] = field(default_factory=list)
    interrupted: int = 0  # turns that a stop at the same moment may have cut off, so that no reply is kept
    unrecorded: int = 0  # turns that leave no reply in a thread: answers to reviewers, and failures that ended a turn
    started: int = 0

    @property
    def bob(self) -> ChatUser:
        return self.server.bob

    @property
    def ada(self) -> ChatUser:
        return self.server.ada

    def say(self, text: str, thread: str = "", agent: str = "") -> ThreadStream:
        talk = self.bob.say(text, "" if thread else agent or self.agent, thread)
        if talk.thread not in self.threads:
            self.threads.append(talk.thread)
        return talk

    def count_titled(self, word: str) -> int:
        return self.server.count_titled(f"{word} {self.name}")

    def wait_idle(self, thread: str) -> Json:
        found: list[Json] = []

        def at_rest() -> bool:
            found[:] = [self.ada.thread(thread)]
            return bool(found[0]["status"] == "idle")

        wait_until(at_rest, "the thread is at rest")
        return found[0]

    def assert_sound(self) -> None:
        """Every call has exactly one result, and every turn at the model is a line of a thread."""
        lines = [line for thread in self._all_threads() for line in self.wait_idle(thread)["lines"]]
        wishes = [call["id"] for line in lines if line["kind"] == "replied" for call in line["body"]["calls"]]
        results = [line["body"]["call"] for line in lines if line["kind"] == "resulted"]
        assert sorted(wishes) == sorted(results)
        assert self.server.models.violations == []
        if self.agent in ON_WIRE_FORMATS:
            turns = self.server.models.turns[self.started :]
            assert {turn.wire for turn in turns} <= {ON_WIRE_FORMATS[self.agent]}
            counted = sum(line["kind"] in ("replied", "failed") for line in lines)
            assert counted + self.unrecorded <= len(turns) <= counted + self.unrecorded + self.interrupted
        assert [self.ada.pending(thread) for thread in self.threads] == [[] for _ in self.threads]

    def _all_threads(self) -> list[str]:
        found, todo = list[str](), list(self.threads)
        while todo:
            found.append(todo.pop())
            todo += [body["thread"] for body in self.ada.entries(found[-1], "delegated")]
        return found
