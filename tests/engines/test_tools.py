"""One look at a call, as every engine takes it: what may be tried again is raised, all else is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from interlock import Interlock
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.errors import EffectUnknown, Misconfigured, StoreUnavailable
from interlock.integrations.temporal import CallRequest
from interlock.integrations.temporal import Tools as TemporalTools
from interlock.integrations.workflow_tools import CallSnapshot, WorkflowTools, spec_options
from interlock.sdk.agent import Agent

WRITE = spec_options("write", "", (), ())
READ = spec_options("read", "", (), ())


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Interlock]:
    with Interlock(f"sqlite:///{tmp_path / 'approvals.db'}") as made:
        yield made


@pytest.fixture
def tools(lock: Interlock) -> WorkflowTools:
    return WorkflowTools(lock.agent("refunds"))


async def approve_call(
    lock: Interlock, tools: WorkflowTools, tool: str, args: dict[str, Any], call_id: str = "1"
) -> str:
    look = await tools.take_snapshot(tool, args, "run", call_id)
    assert look["state"] == "waiting"
    seen = Acknowledgement((await lock.check(lock.agent("refunds").call(tool, args, "run", call_id))).args_sha256)
    await lock.decide(look["approval_id"], Approve(seen), reviewer=Reviewer("ann"))
    return look["approval_id"]


async def test_concurrent_attempts_run_once_and_get_the_same_result(
    lock: Interlock, tools: WorkflowTools
) -> None:  # R24
    ran: list[int] = []

    async def refund(amount: int) -> str:
        ran.append(amount)
        await asyncio.sleep(0)
        return f"refunded {amount}"

    tools.add(refund, **WRITE)
    await approve_call(lock, tools, "refund", {"amount": 40})
    looks = await asyncio.gather(*[tools.take_snapshot("refund", {"amount": 40}, "run", "1") for _ in range(5)])
    assert ([(look["state"], look["result"]) for look in looks], ran) == ([("done", "refunded 40")] * 5, [40])


async def test_other_arguments_under_a_known_id_run_nothing(lock: Interlock, tools: WorkflowTools) -> None:  # R12 R47
    ran: list[int] = []

    def refund(amount: int) -> None:
        ran.append(amount)

    tools.add(refund, **WRITE)
    await approve_call(lock, tools, "refund", {"amount": 40})
    look = await tools.take_snapshot("refund", {"amount": 4_000}, "run", "1")
    assert (look["state"], look["code"], ran) == ("not_run", "call_mismatch", [])


@pytest.mark.parametrize("result", [None, "", 0, False, {}, [], "true", {"state": "waiting"}], ids=repr)
async def test_any_result_is_a_result_also_from_the_record(lock: Interlock, tools: WorkflowTools, result: Any) -> None:
    tools.add(lambda: result, "give", **WRITE)
    await approve_call(lock, tools, "give", {})
    for _ in range(2):
        look = await tools.take_snapshot("give", {}, "run", "1")
        assert (look["state"], look["result"]) == ("done", result)


async def test_what_a_tool_raised_is_told_as_the_record_has_it_without_secrets(
    lock: Interlock, tools: WorkflowTools
) -> None:
    async def pay(token: str) -> None:
        raise ValueError(f"{token} is over")

    tools.add(pay, **spec_options("write", "", ("/token",), ()))
    await approve_call(lock, tools, "pay", {"token": "planted"})
    for _ in range(2):
        look = await tools.take_snapshot("pay", {"token": "planted"}, "run", "1")
        assert (look["state"], look["code"]) == ("not_run", "failed")
        assert ("planted" in str(look), "[hidden] is over" in look["message"]) == (False, True)


async def test_a_tool_that_does_not_know_how_it_ended_is_unknown(lock: Interlock, tools: WorkflowTools) -> None:  # R24
    def pay() -> None:
        raise EffectUnknown("It hung up.")

    tools.add(pay, **WRITE)
    await approve_call(lock, tools, "pay", {})
    for _ in range(2):
        look = await tools.take_snapshot("pay", {}, "run", "1")
        assert (look["state"], look["code"]) == ("not_run", "unknown")


async def test_what_a_read_raises_is_the_engines_to_try_again(tools: WorkflowTools) -> None:
    tries: list[int] = []

    def look_up() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("busy")
        return "paid"

    tools.add(look_up, **READ)
    with pytest.raises(ValueError, match="busy"):
        await tools.take_snapshot("look_up", {}, "run", "1")
    assert (await tools.take_snapshot("look_up", {}, "run", "1"))["result"] == "paid"


async def test_without_a_store_nothing_runs_and_the_engine_tries_again(tmp_path: Path) -> None:  # R34
    ran: list[int] = []
    away = Interlock(f"sqlite:///{tmp_path / 'nowhere' / 'approvals.db'}")
    tools = WorkflowTools(Agent(away, ("refunds",)))
    tools.add(lambda: ran.append(1), "refund", **WRITE)
    with pytest.raises((StoreUnavailable, Misconfigured)):
        await tools.take_snapshot("refund", {}, "run", "1")
    assert ran == []


async def test_a_tool_that_there_is_not_is_said_with_those_that_there_are(tools: WorkflowTools) -> None:
    tools.add(lambda: None, "refund", **WRITE)
    with pytest.raises(Misconfigured, match="There are: refund"):
        await tools.take_snapshot("refnud", {}, "run", "1")
    with pytest.raises(Misconfigured, match="already"):
        tools.add(lambda: None, "refund", **WRITE)


def test_what_is_a_tool_cannot_be_called_past_the_gate(lock: Interlock) -> None:  # R34
    @TemporalTools(lock.agent("refunds")).tool(effect="write")
    def refund() -> None: ...

    with pytest.raises(Misconfigured, match="nobody would be asked"):
        refund()


# Temporal's activity, in an environment of its SDK


async def test_an_activity_that_is_tried_again_gives_the_same_and_runs_nothing_again(lock: Interlock) -> None:  # R24
    ran: list[str] = []
    made = TemporalTools(lock.agent("refunds"))

    @made.tool(effect="write")
    def refund(order: str) -> str:
        ran.append(order)
        return "refunded"

    asked = CallRequest("refund", "run:1", {"order": "A7"})
    first: CallSnapshot = await ActivityEnvironment().run(made.check_call, asked)
    assert first["state"] == "waiting"
    call = lock.agent("refunds").call("refund", {"order": "A7"}, "temporal:test", "run:1")
    seen = Acknowledgement((await lock.check(call)).args_sha256)
    await lock.decide(first["approval_id"], Approve(seen), reviewer=Reviewer("ann"))
    looks = [await ActivityEnvironment().run(made.check_call, asked) for _ in range(3)]
    assert ([look["result"] for look in looks], ran) == (["refunded"] * 3, ["A7"])
    await ActivityEnvironment().run(made.withdraw, first["approval_id"])  # too late, and no error
    assert (await ActivityEnvironment().run(made.check_call, asked))["result"] == "refunded"
