"""AG-UI's own client on Node against a real server; every event is validated a second time here."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

from ag_ui.core import Event
from pydantic import BaseModel, TypeAdapter

from interlock.core.chat.transcript import ModelReply, Prompt
from interlock.demo.scripted_model import make_reply as scripted
from tests.databases import Database
from tests.fakes.model_server import ModelServer
from tests.journeys.chat_client import ChatServer
from tests.journeys.chat_server import policy, run_chat_server
from tests.journeys.shell import wait_until
from tests.protocols.node_client import start_node_client

SCRIPT = Path(__file__).with_name("ag_ui.mjs")
EVENT: TypeAdapter[Any] = TypeAdapter(Event)
NUMBERS = itertools.count(1)
PAIR = """\
    - name: two people
      tools: [okr_create_objective]
      when: args.title.startsWith("Pair ")
      then: ask
      quorum: 2
"""
Json = dict[str, Any]


class RunResult(NamedTuple):
    """Events, messages and interrupts of one run."""

    events: list[Json]
    error: Json | None
    raw: str
    messages: list[Json]
    state: Any
    interrupts: list[Json]
    console: list[list[str]]
    sent: Json | None

    @property
    def kinds(self) -> list[str]:
        """Pieces of a text in a row count as one."""
        names = [event["type"] for event in self.events]
        repeated = "TEXT_MESSAGE_CONTENT"
        return [name for n, name in enumerate(names) if name != repeated or names[n - 1] != repeated]

    def events_of_kind(self, kind: str) -> list[Json]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def outcome(self) -> str:
        return str(self.events_of_kind("RUN_FINISHED")[-1]["outcome"]["type"])

    @property
    def results(self) -> list[Any]:
        """JSON, or plain text where a result is text."""
        return [_read_result(event["content"]) for event in self.events_of_kind("TOOL_CALL_RESULT")]

    @property
    def text(self) -> str:
        return "".join(event["delta"] for event in self.events_of_kind("TEXT_MESSAGE_CONTENT"))

    def refusal(self) -> tuple[int, str]:
        """By the server, before anything was told."""
        assert self.error is not None, self
        assert self.events == []
        return self.error["status"], (self.error["payload"] or {}).get("error", self.error["message"])

    def client_error(self) -> str:
        """Of the client itself, which sent nothing."""
        assert self.error is not None, self
        assert self.error["status"] is None
        return str(self.error["message"])


class AgUiClient:
    """Each `name` is a client of its own; each test has a thread of its own."""

    def __init__(self, process: Popen[str], server: ChatServer) -> None:
        self.server = server
        self._process = process
        self._names = itertools.count(1)
        self._shared: tuple[str, RunResult] | None = None
        self.thread = ""

    def begin(self) -> None:
        self.thread = f"t-{next(NUMBERS)}"
        self.server.models.reply = scripted
        self.server.models.pause = 0.0
        self.server.models.faults.clear()

    def set_model(self, mind: Callable[[Prompt], ModelReply]) -> None:
        """Of the agent `openai`."""
        self.server.models.reply = mind

    def count_titled(self, word: str) -> int:
        """How often it was done: counted in the records, not in what anybody says."""
        return self.server.count_titled(f"{word} {self.thread}")

    def run(self, name: str = "", **more: Any) -> RunResult:
        """Whatever is told is right by the published schema, of this version and without a warning of the client."""
        command = {"name": f"{self.thread} {name}", "threadId": self.thread, **more}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        told = RunResult(**json.loads(self._process.stdout.readline()))
        if told.error is None:
            assert told.console == []
            assert_valid_events(told)
        return told

    def run_new_client(self, **more: Any) -> RunResult:
        """By a client that knows nothing of the thread but its name, and so holds nothing back."""
        return self.run(f"fresh {next(self._names)}", **more)

    def ask(self, word: str = "Fix", kind: str = "issue", **more: Any) -> RunResult:
        told = self.run(say=f'create an {kind} titled "{word} {self.thread}"', **more)
        assert told.outcome == "interrupt", told
        return told

    def ask_twice(self) -> RunResult:
        told = self.run(say=f'create issues titled "Fix {self.thread}" and "Also {self.thread}"')
        assert len(told.interrupts) == 2, told
        return told

    def shared(self) -> RunResult:
        """One that waits, for all the tests in which nothing may come of it."""
        if self._shared is None:
            self._shared = self.thread, self.ask()
        self.thread = self._shared[0]
        return self._shared[1]

    def post(self, **body: Any) -> tuple[int, str]:
        """Without a client, for what no client would send."""
        whole = {"threadId": self.thread, "runId": "run", "messages": [], **body}
        answer = self.server.bob.client.post("/ag-ui/scripted", json=whole)
        return answer.status_code, answer.json()["error"]

    @contextmanager
    def stream(self, path: str = "/ag-ui/scripted", say: str = "", **body: Any) -> Iterator[Iterator[str]]:
        """The frames as they come, of a connection that may be closed before its end."""
        messages = [{"id": "m1", "role": "user", "content": say}] if say else []
        whole = {"threadId": self.thread, "runId": "run", "messages": messages, **body}
        with (
            self.server.server.client(self.server.keys["reviewer"]) as connection,
            connection.stream("POST", path, json=whole) as answer,
        ):
            assert answer.status_code == 200
            yield (line for line in answer.iter_lines() if line.startswith("data: "))

    def answer(self, payload: Any, told: RunResult, **more: Any) -> RunResult:
        """The same answer to all of its interrupts."""
        return self.run(resume=resolve_interrupts(payload, told), **more)

    def approval(self, interrupt: Json) -> Json:
        return dict(self.server.bob.approval(interrupt["metadata"]["approvalId"]))

    def wait_for(self, interrupt: Json, status: str) -> None:
        wait_until(lambda: self.approval(interrupt)["status"] == status, f"it is {status}")

    def assert_untouched(self, told: RunResult) -> None:
        """Nothing of it was decided, and nothing ran."""
        assert [self.approval(each)["status"] for each in told.interrupts] == ["pending"] * len(told.interrupts)
        assert self.count_titled("Fix") == 0


def resolve_interrupts(payload: Any, told: RunResult) -> list[Json]:
    return [{"interruptId": each["id"], "status": "resolved", "payload": payload} for each in told.interrupts]


def cancel_interrupts(told: RunResult) -> list[Json]:
    return [{"interruptId": each["id"], "status": "cancelled"} for each in told.interrupts]


def assert_valid_events(told: RunResult) -> None:
    """By the types of the Python package too, with no field that they do not know, and nothing lost on the way."""
    frames = [json.loads(frame[6:]) for frame in told.raw.split("\n\n") if frame.startswith("data: ")]
    assert [frame["type"] for frame in frames] == [event["type"] for event in told.events]
    for frame in frames:
        event = EVENT.validate_python(frame, strict=False)
        assert unknown_fields(event) == [], frame
        assert event.model_dump(by_alias=True, mode="json") == frame


def _read_result(content: str) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content


def unknown_fields(value: Any) -> list[str]:
    match value:
        case BaseModel():
            inside = [unknown_fields(getattr(value, name)) for name in type(value).model_fields]
            return [*(value.model_extra or {}), *itertools.chain(*inside)]
        case list():
            return list(itertools.chain(*map(unknown_fields, value)))
        case _:
            return []


@contextmanager
def server_with_two_reviewers(database: Database, folder: Path, models: ModelServer) -> Iterator[ChatServer]:
    """With a rule that wants two people besides those of the chat's journeys."""
    with run_chat_server(database, folder, models) as ground:
        rules = "".join(line.removeprefix("  ") for line in (policy() + PAIR).splitlines(keepends=True))
        headers = {"content-type": "application/yaml"}
        answer = ground.ada.client.put("/api/policy", content=rules, headers=headers)
        assert answer.status_code == 200, answer.text
        yield ground


@contextmanager
def run_client(server: ChatServer, folder: Path) -> Iterator[AgUiClient]:
    job = {"url": server.server.url, "key": server.keys["reviewer"]}
    with start_node_client(SCRIPT, folder, job) as process:
        try:
            yield AgUiClient(process, server)
        finally:
            process.kill()
