"""In-process hooks of the Claude Agent SDK: the same answers as the command, without a process for each call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from interlock import Acknowledgement, Edit, Interlock, Reject
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Stored
from interlock.core.ports import ApprovalQuery
from interlock.integrations.claude_code import GRACE, hooks
from tests.databases import Database

COMMAND = {"command": "make deploy"}
T = TypeVar("T")


@dataclass
class FakeMatcher:
    """As the SDK's own: what it is made of is all that it has."""

    matcher: str | None = None
    hooks: list[Callable[..., Any]] = field(default_factory=list)
    timeout: float | None = None
    on_failure: str | None = None


@dataclass
class FakeSession:
    """What the SDK does with the hooks; `parts` look at the same database."""

    lock: Interlock
    services: AppServices
    result: dict[str, list[FakeMatcher]]

    async def send_event(self, name: str, use: str, **more: Any) -> dict[str, Any]:
        event = {"hook_event_name": name, "session_id": "s-1", "tool_name": "Bash", "tool_input": COMMAND}
        ((before,),) = ([hook for matcher in self.result[name] for hook in matcher.hooks],)
        result = await before(event | {"tool_use_id": use} | more, use, {"signal": None})
        return dict(result.get("hookSpecificOutput", {}))

    async def wait_for_approval(self) -> Stored:
        async def look() -> Stored | None:
            return next(iter((await self.services.store.list("default", ApprovalQuery(("pending",)))).items), None)

        return await wait_for(look)

    async def decide(self, decision: Any) -> None:
        approval = (await self.wait_for_approval()).approval
        await self.lock.decide(approval.id, decision(Acknowledgement(approval.args_sha256)), "bob")


@pytest.fixture
async def session(database: Database) -> AsyncIterator[FakeSession]:
    lock = Interlock(database.url, policy={"version": 1, "defaults": {"undo_window": "0s"}}, lease_seconds=6)
    services = build_services(database.url)
    await services.store.open()
    yield FakeSession(lock, services, hooks(FakeMatcher, lock.agent("coder"), reads="Read", wait=60))
    await asyncio.to_thread(lock.close)
    await services.store.close()


async def wait_for(look: Callable[[], Awaitable[T]]) -> T:
    """What is looked for, once it is there."""
    async with asyncio.timeout(60):
        while True:
            found = await look()
            if found:
                return found
            await asyncio.sleep(0.01)


def test_a_hook_that_fails_or_takes_too_long_is_set_up_to_block() -> None:
    (before,) = hooks(FakeMatcher, Interlock("sqlite:///unused.db").agent("coder"), wait=20)["PreToolUse"]
    assert (before.on_failure, before.timeout) == ("block", 20 + GRACE)
    with pytest.raises(InvalidRequest, match="undecided is one of"):
        hooks(FakeMatcher, Interlock("sqlite:///unused.db").agent("coder"), undecided="allow")


# R54, R46
async def test_what_was_approved_runs_and_its_lease_is_kept_while_it_runs(session: FakeSession) -> None:
    asked = asyncio.create_task(session.send_event("PreToolUse", "toolu_1"))
    edited = {"command": "make deploy DRY=1"}
    await session.decide(lambda seen: Edit(edited, seen))
    result = await asked
    assert (result["permissionDecision"], result["updatedInput"]) == ("allow", edited)
    again = await session.send_event("PreToolUse", "toolu_1")
    assert (again["permissionDecision"], "already started" in again["permissionDecisionReason"]) == ("deny", True)
    approval_id = result["permissionDecisionReason"].split()[-1]
    first = (await session.services.store.get("default", approval_id)).approval.lease.until or 0

    async def is_later() -> bool:
        lease = (await session.services.store.get("default", approval_id)).approval.lease.until or 0
        return lease > first  # renewed, after a third of it

    assert await wait_for(is_later)
    assert await session.send_event("PostToolUse", "toolu_1", tool_input=edited, tool_response={"stdout": "ok"}) == {}
    stored = await session.services.store.get("default", approval_id)
    assert (stored.approval.status, stored.payload.result) == ("succeeded", b'{"stdout":"ok"}')
    assert stored.approval.subject.agent_path == ("coder",)


# R35
async def test_a_rejection_is_reported_and_a_read_passes(session: FakeSession) -> None:
    asked = asyncio.create_task(session.send_event("PreToolUse", "toolu_1"))
    await session.decide(lambda seen: Reject("Not today", seen))
    result = await asked
    assert (result["permissionDecision"], result["permissionDecisionReason"]) == ("deny", "Access denied: Not today")
    read = await session.send_event("PreToolUse", "toolu_2", tool_name="Read", tool_input={"file_path": "a.txt"})
    assert read == {"hookEventName": "PreToolUse", "permissionDecision": "allow"}


# R34
async def test_every_error_denies_the_call(session: FakeSession) -> None:
    bad = await session.send_event("PreToolUse", "toolu_1", tool_input="rm")
    assert (bad["permissionDecision"], bad["permissionDecisionReason"]) == (
        "deny",
        "The event PreToolUse has no tool_input.",
    )
    other = await session.send_event("PreToolUse", "toolu_1", tool_input={"command": 7})
    assert other["permissionDecision"] == "deny"
    nowhere = hooks(FakeMatcher, Interlock("sqlite:////nowhere/at/all.db").agent("coder"))
    session.result = nowhere
    gone = await session.send_event("PreToolUse", "toolu_2")
    assert gone["permissionDecision"] == "deny"
    assert "does not exist" in gone["permissionDecisionReason"]
