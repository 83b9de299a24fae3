"""A real server with a chat agent, and a browser with AI SDK pages."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.databases import SqliteFile
from tests.interlock_server import create_keys, run_server
from tests.journeys.chat_client import ChatUser
from tests.journeys.shell import wait_until
from tests.protocols.node_client import start_node_client

Json = dict[str, Any]
SCRIPT = Path(__file__).with_name("ai_sdk_browser.mjs")
NUMBERS = count(1)

# How the title of an objective begins says what happens to it.
CONFIGURATION = """\
policy:
  version: 1
  defaults: {expires_in: 10m, undo_window: 0s}
  rules:
    - {name: reads are free, effect: read, then: allow}
    - {name: free, when: 'args.title.startsWith("Free ")', tools: [okr_create_objective], then: allow}
    - {name: never, when: 'args.title.startsWith("Never ")', tools: [okr_create_objective], then: deny,
       reason: Not this one.}
    - {name: quick, when: 'args.title.startsWith("Quick ")', tools: [okr_create_objective], then: ask, expires_in: 2s}
    - {name: theirs, when: 'args.title.startsWith("Theirs ")', tools: [okr_create_objective], then: ask,
       exclude: [requester]}
    - {name: undo, when: 'args.title.startsWith("Undo ")', tools: [okr_create_objective], then: ask, undo_window: 1h}
    - {name: soon, when: 'args.title.startsWith("Soon ")', tools: [okr_create_objective], then: ask, undo_window: 1s}
    - {name: staged, when: 'args.title.startsWith("Staged ")', tools: [okr_create_objective], then: ask,
       stages: [{approvers: {users: [bob]}}, {approvers: {users: [ada]}}]}
    - {name: two, when: 'args.title.startsWith("Two ")', tools: [okr_create_objective], then: ask, quorum: 2}
"""


@dataclass
class AiSdkScenario:
    """Bob chats, ada is an admin at her inbox. Effects are counted in the database."""

    database: SqliteFile
    folder: Path
    url: str
    keys: Mapping[str, str]
    bob: ChatUser
    ada: ChatUser

    def count_made(self, title: str) -> int:
        kinds = ("linear_issue", "objective")
        rows = [row for kind in kinds for row in self.database.sql("select body from records where kind = ?", kind)]
        return sum(json.loads(bytes(body))["title"] == title for (body,) in rows)

    def post(self, body: object, key: str = "") -> Any:
        """As any program can: the whole stream, or why not."""
        headers = {"authorization": f"Bearer {key or self.keys['reviewer']}", "content-type": "application/json"}
        return self.bob.client.post("/ai-sdk/chat", content=json.dumps(body), headers=headers)

    def send_message(self, chat: str, text: str, message: str = "m1") -> list[Json]:
        answer = self.post({"id": chat, "messages": [user(text, message)], "trigger": "submit-message"})
        assert answer.status_code == 200, answer.text
        return stream_parts(answer.text)

    def open_approval(self, chat: str, text: str) -> Json:
        """An approval that waits in a new chat, as its page has it: the whole message."""
        return message_from_parts(self.send_message(chat, text))

    def status(self, approval_id: str) -> str:
        return str(self.bob.approval(approval_id)["status"])


@contextmanager
def open_ai_sdk_scenario(folder: Path) -> Iterator[AiSdkScenario]:
    database = SqliteFile(folder / "interlock.db")
    (folder / "interlock.yaml").write_text(CONFIGURATION)
    keys = asyncio.run(create_keys(database.url))
    with ExitStack() as stack:
        served = stack.enter_context(run_server(database.url, folder, "--demo"))
        bob, ada = (ChatUser(stack.enter_context(served.client(keys[role]))) for role in ("reviewer", "admin"))
        yield AiSdkScenario(database, folder, served.url, keys, bob, ada)


def user(text: str, message: str = "m1") -> Json:
    return {"id": message, "role": "user", "parts": [{"type": "text", "text": text}]}


def stream_parts(stream: str) -> list[Json]:
    frames = [block[6:] for block in stream.split("\n\n") if block.startswith("data: ")]
    assert frames[-1] == "[DONE]", stream
    return [json.loads(frame) for frame in frames[:-1]]


def message_from_parts(parts: list[Json]) -> Json:
    """As a client would keep it, as far as calls go."""
    calls: dict[str, Json] = {}
    for part in parts:
        match part["type"]:
            case "tool-input-available":
                calls[part["toolCallId"]] = {"type": "dynamic-tool", "state": "input-available", **_tool_name(part)}
            case "tool-approval-request":
                approval = {"id": part["approvalId"], "descriptor": part["approvalDescriptor"]}
                calls[part["toolCallId"]] |= {"state": "approval-requested", "approval": approval}
    return {"id": parts[0]["messageId"], "role": "assistant", "parts": list(calls.values())}


def answer_parts(message: Json, approved: object, **more: object) -> Json:
    """The same with an answer to everything that is open."""
    parts = [
        {**part, "state": "approval-responded", "approval": {**part["approval"], "approved": approved, **more}}
        if part["state"] == "approval-requested"
        else part
        for part in message["parts"]
    ]
    return {**message, "parts": parts}


def _tool_name(part: Json) -> Json:
    return {name: part[name] for name in ("toolCallId", "toolName", "input")}


class Browser:
    def __init__(self, process: subprocess.Popen[str], scenario: AiSdkScenario) -> None:
        self._process = process
        self.scenario = scenario

    def do(self, what: str, page: str, **more: object) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"do": what, "page": page, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr
            raise AssertionError(self._process.stderr.read())
        told = json.loads(line)
        assert not (isinstance(told, dict) and "failed" in told), told
        return told

    def page(self, chat: str = "", role: str = "reviewer", **more: object) -> Page:
        name = f"page {next(NUMBERS)}"
        chat = chat or f"chat {name}"
        self.do("open", name, chat=chat, key=self.scenario.keys[role], **more)
        return Page(self, name, chat)


@dataclass
class Page:
    """One tab. `until` looks until what is shown is as expected."""

    browser: Browser
    name: str
    chat: str

    def do(self, what: str, **more: object) -> Any:
        return self.browser.do(what, self.name, **more)

    def wait_until(self, true: Callable[[Json], object], what: str) -> Json:
        shown: list[Json] = []

        def is_so() -> bool:
            shown[:] = [self.do("look")]
            return bool(true(shown[0]))

        try:
            wait_until(is_so, what)
        except AssertionError:
            raise AssertionError(f"{what}: {json.dumps(shown[0], indent=1)}") from None
        return shown[0]

    def say(self, text: str, **more: object) -> None:
        self.do("say", text=text, **more)

    def wait_for_approvals(self, n: int = 1) -> list[Json]:
        """The calls that wait for an answer here, once there are so many and the stream is over."""
        told = self.wait_until(
            lambda shown: shown["status"] == "ready" and len(in_state(shown, "approval-requested")) == n,
            f"{n} approvals are open",
        )
        return in_state(told, "approval-requested")

    def wait_ended(self, *states: str) -> Json:
        """Once the calls of the newest message are in these states and all is told."""
        return self.wait_until(
            lambda shown: shown["status"] == "ready" and [call["state"] for call in calls(shown)] == list(states),
            f"calls are {states}",
        )

    def wait_failed(self) -> Json:
        return self.wait_until(lambda shown: shown["status"] == "error", "the page shows an error")


def calls(shown: Json) -> list[Json]:
    newest = shown["messages"][-1] if shown["messages"] else {"parts": []}
    return [part for part in newest["parts"] if part["type"] == "dynamic-tool"]


def in_state(shown: Json, state: str) -> list[Json]:
    return [call for call in calls(shown) if call["state"] == state]


def text_parts(shown: Json) -> str:
    return " ".join(part["text"] for part in shown["messages"][-1]["parts"] if part["type"] == "text")


@contextmanager
def run_browser(scenario: AiSdkScenario) -> Iterator[Browser]:
    with start_node_client(SCRIPT, scenario.folder, {"url": scenario.url}) as process:
        try:
            yield Browser(process, scenario)
        finally:
            process.kill()
