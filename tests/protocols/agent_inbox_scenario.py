"""A real server with pending approvals, and Agent Inbox's client."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.frameworks.framework_program import EffectServer
from tests.interlock_server import RunningServer, create_keys, run_server
from tests.journeys.shell import wait_until
from tests.protocols.node_client import TIMEOUT, start_node_client

SCRIPT = Path(__file__).parent / "agent_inbox.mjs"
ORIGIN = "https://dev.agentinbox.example"
THEIRS, EMPTY = "zebra", "page"
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "count": {"type": "integer"}, "urgent": {"type": "boolean"}},
    "required": ["to", "count"],
    "additionalProperties": False,
}
ARGS = {"to": "ann", "count": 3, "urgent": False}
SETTINGS = f"""
server: {{origins: ['{ORIGIN}']}}
policy:
  version: 1
  defaults: {{undo_window: 0s, expires_in: 30m}}
  rules:
    - {{name: gone in a moment, tools: [blink], then: ask, expires_in: 1s}}
    - {{name: for ada alone, tools: [wipe], then: ask, approvers: {{users: [ada]}}}}
    - {{name: two people, tools: [pay], then: ask, quorum: 2}}
    - {{name: yes or no, tools: [deploy], then: ask, decisions: [approve, reject]}}
"""
# Proposes what it is told to, waits for people, and does it where it can be counted.
AGENT = """
import json, os, sys
from urllib.request import Request, urlopen
from interlock import Interlock, NotRun

lock = Interlock(os.environ["SERVER"], key=os.environ["KEY"], agent=sys.argv[1])

@lock.tool(effect="write")
def send(to: str, count: int, urgent: bool = False) -> str:
    did = json.dumps({"tool": "send", "args": {"to": to, "count": count, "urgent": urgent}}).encode()
    urlopen(Request(os.environ["EFFECTS"], did, {"content-type": "application/json"}, method="POST"))
    return f"sent to {to}"

try:
    print(send("ann", 3, urgent=False))
except NotRun as error:
    print(error.message)
"""


@dataclass
class AgentInboxScenario:
    server: RunningServer
    keys: dict[str, str]
    other_keys: dict[str, str]
    empty_keys: dict[str, str]  # of a workspace in which nothing waits but what one test proposes
    folder: Path
    inbox: subprocess.Popen[str] | None = None  # Agent Inbox's client, kept running

    def propose(self, tool: str = "send", args: object = None, keys: dict[str, str] | None = None, **more: Any) -> str:
        """A call that waits."""
        body = {"tool": tool, "args": ARGS if args is None else args, "run_id": str(uuid4()), "call_id": "1", **more}
        schema = {} if tool != "send" or args is not None else {"schema": SCHEMA}
        return self._propose("/api/calls", {**schema, **body}, keys or self.keys)

    def ask(self, question: str, **more: Any) -> str:
        body = {"question": question, "run_id": str(uuid4()), "call_id": "1", **more}
        return self._propose("/api/questions", body, self.keys)

    def run_client(self, *steps: tuple[Any, ...], role: str = "reviewer") -> list[Any]:
        """What came of each step of a new client."""
        assert self.inbox
        assert self.inbox.stdin
        assert self.inbox.stdout
        self.inbox.stdin.write(json.dumps({"key": self.keys.get(role, ""), "steps": steps}) + "\n")
        self.inbox.stdin.flush()
        results = json.loads(self.inbox.stdout.readline())
        assert isinstance(results, list), results
        return results

    def show_approval(self, approval_id: str) -> dict[str, Any]:
        with self.server.client(self.keys["viewer"]) as viewer:
            told: dict[str, Any] = viewer.get(f"/api/approvals/{approval_id}").raise_for_status().json()
        return told

    def decide(self, approval_id: str, role: str = "admin", **decision: Any) -> dict[str, Any]:
        """As on our own page."""
        with self.server.client(self.keys[role]) as person:
            body = {"args_sha256": self.show_approval(approval_id)["args_sha256"], **decision}
            told: dict[str, Any] = person.post(f"/api/approvals/{approval_id}/decision", json=body).json()
        return told

    def can_start(self, approval_id: str, keys: dict[str, str] | None = None) -> bool:
        with self.server.client((keys or self.keys)["agent"]) as agent:
            return agent.post(f"/api/calls/{approval_id}/start", json={}).status_code == 200

    @contextmanager
    def agent(self, effects: EffectServer) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        """A program that waits for people; gives the approval that it waits for."""
        name = f"agent-{uuid4()}"
        env = {**os.environ, "SERVER": self.server.url, "KEY": self.keys["agent"], "EFFECTS": effects.url}
        command = [sys.executable, "-c", AGENT, name]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, cwd=self.folder) as process:
            try:
                wait_until(lambda: bool(self._pending(name)), "the agent asks", TIMEOUT)
                yield self._pending(name)[0]["id"], process
            finally:
                process.kill()

    def _pending(self, agent: str) -> list[dict[str, Any]]:
        with self.server.client(self.keys["viewer"]) as viewer:
            items: list[dict[str, Any]] = viewer.get("/api/approvals/pending", params={"agent": agent}).json()["items"]
        return items

    def _propose(self, path: str, body: dict[str, Any], keys: dict[str, str]) -> str:
        with self.server.client(keys["agent"]) as agent:
            told = agent.post(path, json=body).json()
        assert told["status"] == "pending", told
        return str(told["approval_id"])


@contextmanager
def open_agent_inbox_scenario(folder: Path) -> Iterator[AgentInboxScenario]:
    database = f"sqlite:///{folder}/interlock.db"
    (folder / "interlock.yaml").write_text(SETTINGS)
    keys, theirs, empty = (asyncio.run(create_keys(database, workspace)) for workspace in ("default", THEIRS, EMPTY))
    with run_server(database, folder) as served:
        yield AgentInboxScenario(served, keys, theirs, empty, folder)


@contextmanager
def run_inbox(scenario: AgentInboxScenario) -> Iterator[AgentInboxScenario]:
    with start_node_client(SCRIPT, scenario.folder, {"url": scenario.server.url}) as process:
        try:
            yield replace(scenario, inbox=process)
        finally:
            process.kill()


def answer(kind: str, args: object = None) -> dict[str, Any]:
    """As the web app sends it."""
    return {"command": {"resume": [{"type": kind, "args": args}]}}


def edit_answer(**args: object) -> dict[str, Any]:
    """The web app sends all arguments; those that somebody typed into are texts."""
    return answer("edit", {"action": "send", "args": {**ARGS, **args}})
