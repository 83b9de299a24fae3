"""`TestInterlock`: scripted people and a clock that is moved, over the real policy, store and states."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    Acknowledgement,
    Approve,
    CallAnswered,
    CallRefused,
    Interlock,
    Misconfigured,
    Refused,
    ToolSpec,
    Waiting,
    propose,
)
from interlock.core.errors import Forbidden
from interlock.sdk.agent import Executed
from interlock.testing import TestInterlock, UnexpectedApproval

POLICY = """
version: 1
rules:
  - {name: never, tools: [drop_*], then: deny, reason: Never.}
  - {name: two of finance, tools: [pay], then: ask, approvers: {teams: [finance]}, quorum: 2, exclude: [requester]}
  - {name: only ann, tools: [sign], then: ask, approvers: {users: [ann]}, decisions: [approve, reject]}
  - {name: silence is consent, tools: [tidy], then: ask, on_expiry: approve, expires_in: 1h}
"""


@pytest.fixture
def lock() -> Iterator[TestInterlock]:
    with TestInterlock(policy=POLICY, user="rita") as lock:
        yield lock


def tool(lock: Interlock, name: str, effect: str = "write") -> Any:
    """A tool that gives back what it was run with."""

    def body(to: str, amount: int = 1) -> str:
        return f"{to} {amount}"

    return lock.tool(body, name=name, effect=effect)


def test_the_first_answer_that_matches_decides(lock: TestInterlock) -> None:  # R36 R64
    send = tool(lock, "send")
    lock.auto_reject("send", {"to": "eve"}, reason="Not to eve.")
    lock.auto_edit("se*", {"amount": 7}, {"to": "bob"}, times=1)
    lock.answer("Ask ann first.", tool="send", times=1)
    lock.auto_approve("send")
    assert send("bob", 2) == "bob 7"
    with pytest.raises(CallAnswered, match="Ask ann first"):
        send("bob", 2)
    assert send("bob", 2) == "bob 2"
    with pytest.raises(CallRefused, match=r"rejected.*Not to eve"):
        send("eve")
    kinds = [(decision.kind, decision.args["to"], decision.reason) for decision in lock.decisions]
    assert kinds == [
        ("edit", "bob", ""),
        ("respond", "bob", ""),
        ("approve", "bob", ""),
        ("reject", "eve", "Not to eve."),
    ]


def test_the_policy_is_obeyed_and_recorded(lock: TestInterlock) -> None:  # R36
    lock.auto_approve()
    assert tool(lock, "look", "read")("x") == "x 1"
    assert tool(lock, "pay")("ann", 5) == "ann 5"
    with pytest.raises(CallRefused, match="Never"):
        tool(lock, "drop_table", "destructive")("users")
    assert [(call.tool, call.verdict) for call in lock.calls] == [
        ("look", "allow"),
        ("pay", "ask"),
        ("drop_table", "deny"),
    ]
    assert [decision.by for decision in lock.decisions] == ["reviewer-1", "reviewer-2"]
    assert lock.calls[-1].reason == "Never."


def test_people_who_may_not_decide_do_not(lock: TestInterlock) -> None:  # R36
    sign = tool(lock, "sign")
    lock.add_person("bob", teams=["finance"])
    lock.auto_approve("sign", {"to": "bob"}, by="bob")
    lock.auto_edit("sign", {"amount": 2}, {"to": "me"})
    lock.auto_approve("sign")
    with pytest.raises(Forbidden):
        sign("bob")
    with pytest.raises(UnexpectedApproval, match=r"Nobody can edit sign\(amount=1, to='me'\)"):
        sign("me")
    assert sign("x") == "x 1"
    assert lock.decisions[-1].by == "ann"
    lock.unexpected.clear()  # the error above is what the test is about


def test_fewer_people_than_the_rule_needs_are_too_few(lock: TestInterlock) -> None:  # R36
    lock.add_person("carol", teams=["finance"])
    lock.auto_approve("pay", by="carol")
    with pytest.raises(UnexpectedApproval, match="needs 2 approvals by the rule 'two of finance'"):
        tool(lock, "pay")("ann")
    lock.unexpected.clear()


def test_a_call_that_is_not_expected_fails_even_if_the_agent_catches_it() -> None:  # R36
    lock = TestInterlock(agent="mailer")
    with pytest.raises(UnexpectedApproval, match=r"send\(amount=1, to='bob'\) asks people"), lock:
        call_and_catch(tool(lock, "send"), "bob")
    assert lock.calls[0].verdict == "ask"


def call_and_catch(function: Any, *args: object) -> None:
    """As an agent does that tells every error to its model."""
    with suppress(Exception):
        function(*args)


def test_a_question_is_answered_by_its_text_and_checked_by_its_schema(lock: TestInterlock) -> None:  # R36
    lock.auto_approve()  # answers no question
    lock.answer("blue", question="Which colour*")
    lock.answer({"copies": 3}, question="How many*")
    schema = {"type": "object", "properties": {"copies": {"type": "integer"}}, "required": ["copies"]}
    assert asyncio.run(lock.ask("Which colour?", choices=["red", "blue"])) == "blue"
    assert asyncio.run(lock.ask("How many copies?", schema=schema)) == {"copies": 3}
    with pytest.raises(UnexpectedApproval, match="no answer to the question 'What now"):
        asyncio.run(lock.ask("What now?"))
    lock.unexpected.clear()


def test_alarms_are_acknowledged_by_those_who_approve(lock: TestInterlock) -> None:
    lock.auto_approve()
    assert tool(lock, "send")("bob\u202egnp.exe") == "bob\u202egnp.exe 1"


def test_time_passes_only_when_the_test_says_so(lock: TestInterlock) -> None:  # R36
    send, began = tool(lock, "send"), lock.now
    lock.auto_reject("send", {"to": "eve"})
    lock.let_expire("send")
    with pytest.raises(CallRefused, match="rejected"):
        send("eve")
    assert timedelta(seconds=8) <= lock.now - began < timedelta(seconds=9)
    with pytest.raises(CallRefused, match="timed out"):
        send("bob")
    assert lock.now - began > timedelta(hours=24)
    lock.let_expire("tidy")
    assert tool(lock, "tidy")("desk") == "desk 1"  # its rule takes silence for consent


async def test_a_lease_lapses_and_a_pending_call_expires_when_the_clock_moves(lock: TestInterlock) -> None:  # R36
    lock.auto_approve("send", times=1)
    lock.leave_pending()
    outcome = await lock.check(propose("send", {"to": "bob"}, "run", "1"), ToolSpec("send", "write"))
    await lock.start(outcome.approval_id)
    left = await lock.check(propose("send", {"to": "eve"}, "run", "2"), ToolSpec("send", "write"))
    assert isinstance(left, Waiting)
    lock.advance("2m")
    assert (await lock.approval(outcome.approval_id)).status == "unknown"
    lock.advance("24h")
    assert isinstance(await lock.wait(left.approval_id, 0), Refused)
    assert [record.status async for record in lock.approvals()] == ["expired", "unknown"]


async def test_async_tools_and_agents_of_frameworks_are_decided_too(lock: TestInterlock) -> None:  # R36 R54
    @lock.tool(effect="write")
    async def publish(title: str) -> str:
        return title.upper()

    lock.auto_approve()
    assert await publish("news") == "NEWS"
    agent = lock.agent("helper")
    told = await agent.result(agent.call("send", {"to": "x"}, "talk", "1"), ToolSpec("send", "write"), lambda to: to)
    assert told == "x"
    assert (await lock.approval(lock.calls[-1].approval_id)).agent == "helper"


async def test_a_run_that_pauses_is_resumed_after_the_test_decided(lock: TestInterlock) -> None:  # R36
    agent, spec = lock.agent(), ToolSpec("send", "write")
    lock.leave_pending("send")

    async def body(args: Any) -> str:
        return f"sent to {args['to']}"

    call = agent.call("send", {"to": "bob"}, "talk", "1")
    outcome = await agent.attempt(call, spec, body)
    assert isinstance(outcome, Waiting)
    await agent.pause("talk")
    record = await lock.approval(outcome.approval_id)
    await lock.decide(record.id, Approve(Acknowledgement(record.args_sha256)), reviewer="ann")
    [pause] = await agent.acquire_ready_pauses(timeout=0)
    assert await agent.attempt(call, spec, body) == Executed("sent to bob")
    await agent.complete_pause(pause)
    assert len(lock.calls) == 1


async def test_an_agent_of_pydantic_ai_runs_without_people(lock: TestInterlock) -> None:  # R36 R54
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.models.test import TestModel

    from interlock.integrations.pydantic_ai import Gate

    sent: list[str] = []

    def send_mail(to: str) -> str:
        sent.append(to)
        return f"sent to {to}"

    lock.auto_edit("send_mail", {"to": "bob"})
    agent = Agent(
        TestModel(),
        tools=[send_mail],
        output_type=[str, DeferredToolRequests],
        capabilities=[Gate(lock.agent("mailer"))],
    )
    result = await agent.run("Mail the weather.")
    assert isinstance(result.output, str)
    assert sent == ["bob"]


def test_a_lock_of_a_program_is_replaced_for_a_test_and_given_back(tmp_path: Path) -> None:  # R36
    url = f"sqlite:///{tmp_path / 'real.db'}"
    real = Interlock(url, policy=POLICY, agent="mailer", user="rita", tool_approvals={"look": True})
    look, drop = tool(real, "look", "read"), tool(real, "drop_table", "destructive")
    backend = real._backend
    with TestInterlock() as lock:
        lock.stand_in_for(real)
        lock.auto_approve("look")
        assert look("x") == "x 1"
        with pytest.raises(CallRefused, match="Never"):
            drop("users")
        assert [(record.agent, record.requester) for record in lock.approvals_sync()] == [("mailer", "rita")]
        with pytest.raises(Misconfigured, match="in use"):
            TestInterlock().stand_in_for(real)
    assert real._backend is backend
    assert not real.is_open
    assert not (tmp_path / "real.db").exists()


def test_a_program_of_a_server_needs_none_in_its_tests() -> None:  # R36
    remote = Interlock("https://interlock.example", key="ilk_x", agent="mailer")
    send = tool(remote, "send")
    with TestInterlock(policy=POLICY) as lock:
        lock.stand_in_for(remote)
        lock.auto_approve("send")
        assert send("bob") == "bob 1"


def test_nothing_is_left_of_a_closed_lock() -> None:
    with TestInterlock() as lock:
        folder = Path(lock._url.removeprefix("sqlite:///")).parent
        assert (folder / "interlock.db").is_file()
    assert not folder.exists()


SUITE = """
import pytest


def send(lock):
    return lock.tool(lambda to: to, name="send", effect="write")


@pytest.fixture
def interlock_policy():
    return {"version": 1, "rules": [{"name": "free", "tools": ["free"], "then": "allow"}]}


def test_passes(interlock_lock):
    interlock_lock.auto_approve("send")
    assert send(interlock_lock)("bob") == "bob"
    assert interlock_lock.tool(lambda to: to, name="free", effect="write")("x") == "x"


def test_fails_once(interlock_lock):
    send(interlock_lock)("bob")


def test_catches(interlock_lock):
    try:
        send(interlock_lock)("bob")
    except AssertionError:
        pass
"""


def test_the_fixtures_are_there_without_an_import_and_report_what_was_not_expected(tmp_path: Path) -> None:  # R36
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "interlock.testing", "-p", "no:cacheprovider", "-rA", "test_suite.py"],
        cwd=tmp_path,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    summary = [
        line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED", "ERR"))
    ]
    assert sorted(summary) == [
        "ERROR test_suite.py::test_catches",
        "FAILED test_suite.py::test_fails_once",
        "PASSED test_suite.py::test_catches",
        "PASSED test_suite.py::test_passes",
    ], done.stdout + done.stderr
    assert "Add: lock.auto_approve('send')" in done.stdout


def test_the_plugin_loads_neither_the_library_nor_the_store() -> None:  # R36
    """Pytest imports it in every run, in environments that may use nothing of it."""
    text = "import sys, interlock.testing; print([n for n in sys.modules if n.startswith('interlock')])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['interlock', 'interlock.testing']"
