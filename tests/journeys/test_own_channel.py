"""A channel of one's own, as its user sets it up: a class in the working folder, named in interlock.yaml."""

from __future__ import annotations

import asyncio
import hmac
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.http_receiver import Receiver, run_receiver
from tests.interlock_server import run_server
from tests.journeys.shell import Shell, wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMED = ("--config", "interlock.yaml")  # code is imported only from a file that is named
SECRET = "the pager's own secret"
CALL = {"tool": "restart", "args": {"service": "billing"}, "run_id": "run", "call_id": "call1", "effect": "write"}

EVENT = json.dumps(
    {
        "session_id": "5b1e8f0c-session",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make deploy"},
        "tool_use_id": "use1",
        "transcript_path": "t.jsonl",
        "cwd": "/tmp",
        "permission_mode": "default",
    }
)


def configure(shell: Shell, kind: str = "mycompany.pager:Pager", **settings: object) -> None:
    pager = {"kind": kind, **settings}
    file = shell.folder / "interlock.yaml"
    file.write_text(json.dumps({"channels": {"pager": pager}, "routing": {"default_channel": "pager"}}))
    shutil.copytree(EXAMPLES / "mycompany", shell.folder / "mycompany", dirs_exist_ok=True)


def pages(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(heard.body) for heard in receiver.requests]


def sign(body: bytes) -> dict[str, str]:
    at = str(time.time_ns() // 1_000_000)
    proof = hmac.new(SECRET.encode(), at.encode() + b"." + body, "sha256").hexdigest()
    return {"pager-time": at, "pager-signature": proof, "content-type": "application/json"}


async def test_people_are_paged_and_answer_through_a_class_of_the_working_folder(shell: Shell) -> None:  # R25 R64
    async with run_receiver() as receiver:
        configure(shell, url=receiver.url, secret=SECRET, acts_as="bob", allow_private=True)
        await asyncio.to_thread(assert_paged_and_answered, shell, receiver)
        assert len(receiver.requests) >= 2


def assert_paged_and_answered(shell: Shell, receiver: Receiver) -> None:
    assert shell("users", "add", "bob", "--role", "reviewer").code == 0
    key = shell("keys", "create", "--name", "bot", "--role", "agent").out.split()[-1]
    with run_server(shell.url, shell.folder) as server, server.client(key) as agent, server.client() as pager:
        told = agent.post("/api/calls", json=CALL).json()
        assert told["status"] == "pending"
        wait_until(lambda: bool(receiver.requests), "the first page")
        [page] = pages(receiver)
        assert (page["status"], page["approval_id"]) == ("pending", told["approval_id"])
        assert page["arguments"] == ['service: "billing"']
        decision = {"kind": "approve", "args_sha256": page["args_sha256"]}
        body = json.dumps({"approval_id": page["approval_id"], "decision": decision}).encode()
        forged = pager.post("/channels/pager/callback", content=body, headers={"pager-time": "1"})
        assert forged.status_code == 401
        unseen = json.dumps({"approval_id": page["approval_id"], "decision": {"kind": "approve"}}).encode()
        assert pager.post("/channels/pager/callback", content=unseen, headers=sign(unseen)).status_code == 422
        kinds = [entry["kind"] for entry in shell("approvals", "show", told["approval_id"], "--json").json["timeline"]]
        assert kinds[-1] == "decision_refused", "an answer of the wrong form is recorded"
        answered = pager.post("/channels/pager/callback", content=body, headers=sign(body))
        assert (answered.status_code, answered.json()["status"]) == (200, "approved")
        assert agent.get(f"/api/calls/{told['approval_id']}").json()["outcome"] == "proceed"
        shown = shell("approvals", "show", told["approval_id"], "--json").json
        assert (shown["decision"]["by"], shown["decision"]["via"]) == ("bob", "pager")
        wait_until(lambda: pages(receiver)[-1]["status"] == "approved", "the page to be updated")
        assert {page["page"] for page in pages(receiver)} == {pages(receiver)[0]["page"]}


@pytest.mark.smoke
async def test_the_shell_lists_tests_and_explains_it(shell: Shell) -> None:  # R25 R26
    async with run_receiver() as receiver:
        configure(shell, url=receiver.url, secret=SECRET, allow_private=True)
        await asyncio.to_thread(shell, "migrate")
        done = await asyncio.to_thread(shell.process, "channels", "test", "pager", *NAMED)
        assert (done.code, done.out, done.err) == (0, "Sent a test through pager.\n", "")
        assert pages(receiver)[0]["title"].startswith("Test message from Interlock")
    configure(shell, "mycompany.pager:Pgr")
    failed = shell.process("channels", "list", *NAMED)
    assert failed.code == 2
    assert 'The channel "pager": mycompany.pager has no Pgr; did you mean "Pager"?' in failed.err


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [
        ("mycompany.pager:Pgr", 'mycompany.pager has no Pgr; did you mean "Pager"?'),
        ("nowhere:Pager", "there is no module nowhere in {folder} or among the installed packages."),
    ],
)
def test_the_doctor_reports_its_mistake_once(shell: Shell, kind: str, mistake: str) -> None:  # R26
    configure(shell, kind)
    shell("migrate")
    checks = shell.process("doctor", "--json", *NAMED).json["checks"]
    assert [(check["what"], check["found"]) for check in checks if check["state"] == "fail"] == [
        ("channels", f'The channel "pager": {mistake.format(folder=shell.folder)}')
    ]
    assert "ok" in [check["state"] for check in checks if check["what"] == "policy"]
    broken = {"version": 1, "rules": [{"name": "x", "then": "perhaps"}]}
    (shell.folder / "policy.yaml").write_text(json.dumps(broken))
    file = shell.folder / "interlock.yaml"
    file.write_text(json.dumps({**json.loads(file.read_text()), "policy": "policy.yaml"}))
    checks = shell.process("doctor", "--json", *NAMED).json["checks"]
    assert [check["what"] for check in checks if check["state"] == "fail"] == ["policy", "channels"]


@pytest.mark.parametrize("command", [("hook",), ("mcp-gate", "--", sys.executable, "-c", "pass")], ids=lambda c: c[0])
def test_programs_that_run_in_other_peoples_folders_import_nothing_from_there(
    shell: Shell, command: tuple[str, ...]
) -> None:  # R66
    """Neither by the configuration of the folder, nor by the one that is named. Other commands want it to be named."""
    shell("migrate")
    denied = {"version": 1, "rules": [{"name": "no", "tools": ["*"], "then": "deny", "reason": "Not here."}]}
    (shell.folder / "policy.yaml").write_text(json.dumps(denied))
    assert shell("policy", "put", str(shell.folder / "policy.yaml")).code == 0
    configure(shell, "planted:Channel")
    (shell.folder / "planted.py").write_text("open('was_imported', 'w').close()\n")
    file = shell.folder / "interlock.yaml"
    done = [shell.process(command[0], *more, *command[1:], stdin=EVENT) for more in ((), ("--config", str(file)))]
    assert command[0] != "hook" or all("Not here." in each.out for each in done)
    assert not (shell.folder / "was_imported").exists()
    found = shell.process("channels", "list")
    assert (found.code, "only found in the working folder" in found.err) == (2, True)
    assert not (shell.folder / "was_imported").exists()
    assert shell.process("channels", "list", *NAMED).code == 2
    assert (shell.folder / "was_imported").exists()
