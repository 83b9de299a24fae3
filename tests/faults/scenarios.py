"""The programs that are hit: each does its work from wherever an earlier life of it was cut off."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from typing import Any

from interlock import CallUnknown, Interlock
from interlock.app import ledger_file
from interlock.app.bootstrap import AppServices, database_file
from interlock.cli.commands.audit import _atomic_file
from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, Reviewer
from interlock.core.errors import AlreadyDecided, CallFailed, LeaseLost
from interlock.core.ledger.chain import SignedHead
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Proceed, Waiting
from interlock.core.ports import ApprovalQuery
from interlock.runtime.process_identity import make_runner_id
from interlock.storage.sqlite.database import make_backup
from tests.faults import chat_scenarios, points
from tests.faults.points import FaultPoint
from tests.faults.processes import Life, note

POLICY = "version: 1\ndefaults: {expires_in: 1h}\n"
DESK_POLICY = (
    "version: 1\ndefaults: {expires_in: 1h, undo_window: 30m}\n"
    "rules:\n  - {name: two, tools: [pay], then: ask, approvers: {teams: [finance]}, quorum: 2}\n"
)
WORKER_POLICY = (
    "version: 1\nrules:\n"
    "  - {name: climbs, tools: [climb], then: ask, expires_in: 1h, remind: [1ms],"
    " escalate: [{after: 2ms, to: {users: [ada]}}]}\n"
    "  - {name: short, tools: [expire], then: ask, expires_in: 3ms}\n"
    "  - {name: lapses, tools: [lapse], then: ask, expires_in: 1h, start_within: 1ms}\n"
    "  - {name: others, tools: ['*'], then: ask, expires_in: 1h}\n"
)
CLAIMED = 3_000  # milliseconds: what a worker took before it died is due again by then
PAY = ToolSpec("pay", "write", describe="Pay {amount}")
PEOPLE = count(1)
TOUCHES = ("open", "os.rename", "os.remove", "os.chmod", "sqlite3.connect", "tempfile.mkstemp")
ASIDE = ToolSpec("aside", "write")


def run(victim: str, life: Life, plan: str) -> None:
    if victim in chat_scenarios.SCENES:
        chat_scenarios.play(victim, life, plan)
    else:
        SCENES[victim](life, plan)


# An agent that uses the library


def program(life: Life, plan: str) -> None:
    """A read, a call that must run once, and an idempotent one; its effects are lines in a file."""
    if hit := points.parse_fault_plan(plan):
        points.add_library_points(hit)
    lock = Interlock(
        life.url, policy=POLICY, agent="victim", workspace=life.workspace, user="ann", lease_seconds=life.lease / 1000
    )
    asyncio.run(agent(life, lock))


async def agent(life: Life, lock: Interlock) -> None:
    ids: dict[str, str] = {}

    def ran(tool: str) -> str:
        execution = lock.execution()
        assert execution is not None
        ids[tool] = execution.approval_id
        note(life.effects, execution.approval_id, tool, execution.args.decode())
        return tool

    @lock.tool(effect="read")
    async def look() -> str:
        return "seen"

    @lock.tool(effect="write")
    async def send(to: str) -> str:
        return ran("send")

    @lock.tool(effect="write", idempotent=True)
    async def put(key: str) -> str:
        return ran("put")

    await look()
    try:
        heard(life, ids, await send("a"))
    except (CallUnknown, CallFailed) as error:
        note(life.told, "heard", type(error).__name__)
    heard(life, ids, await put("b"))
    note(life.told, "finished")
    lock.close()


def heard(life: Life, ids: dict[str, str], tool: str) -> None:
    """A result means that the end of the call is recorded; one from an earlier life was written down there."""
    if tool in ids:
        note(life.told, "done", ids[tool])


# Two people and an agent behind the doors


def desk(life: Life, plan: str) -> None:
    """An edit and a second vote, a cancelled call, and a rejection that is undone."""

    async def work(life: Life, parts: AppServices) -> None:
        await parts.put_policy(life.workspace, DESK_POLICY, "ada", {})
        await paid(life, parts, "edited", edit_then_approve)
        await cancelled(life, parts)
        await paid(life, parts, "undone", reject_undo_approve)
        note(life.told, "finished")

    opened(life, plan, work)


Deciding = Callable[[Life, AppServices, str], Awaitable[None]]


async def paid(life: Life, parts: AppServices, name: str, deciding: Deciding) -> None:
    """Looks where the call stands, does the next thing, and looks again."""
    while True:
        outcome = await parts.gate.check(payment(life, name), PAY)
        match outcome:
            case Waiting(approval_id):
                await deciding(life, parts, approval_id)
            case Proceed(_, approval_id):
                await carry_out(life, parts, approval_id)
            case _:
                return


async def carry_out(life: Life, parts: AppServices, approval_id: str) -> None:
    execution = await parts.gate.start(life.workspace, approval_id, make_runner_id(), life.lease, PAY.sha256)
    points.with_fault_points(life.point, "the tool", note)(life.effects, approval_id, "pay", execution.args.decode())
    try:
        await parts.gate.finish(
            life.workspace, approval_id, execution.fence, ok=True, payload=Payload(result=b'"paid"')
        )
    except LeaseLost:
        return
    note(life.told, "done", approval_id)


async def edit_then_approve(life: Life, parts: AppServices, approval_id: str) -> None:
    approval = (await parts.store.get(life.workspace, approval_id)).approval
    seen = Acknowledgement(approval.args_sha256)
    if approval.editors:
        await decided(life, parts, approval_id, Approve(seen), person("bob"))
    else:
        await decided(life, parts, approval_id, Edit({"amount": 20}, seen), person("ann"))


async def reject_undo_approve(life: Life, parts: AppServices, approval_id: str) -> None:
    approval = (await parts.store.get(life.workspace, approval_id)).approval
    seen = Acknowledgement(approval.args_sha256)
    kinds = [entry.kind for entry in await parts.store.timeline(life.workspace, approval_id)]
    if approval.status == "rejected":
        admin = Reviewer(f"ada{os.getpid()}", "admin")
        await parts.inbox.undo(life.workspace, approval_id, admin)
        note(life.told, "decided", approval_id, "undone", admin.name)
    elif "rejected" not in kinds:
        await decided(life, parts, approval_id, Reject("no", seen), person("bob"))
    else:
        await decided(life, parts, approval_id, Approve(seen), person("bob" if approval.votes else "ann"))


async def cancelled(life: Life, parts: AppServices) -> None:
    outcome = await parts.gate.check(payment(life, "cancelled"), PAY)
    if isinstance(outcome, Waiting):
        actor = f"agent{os.getpid()}"
        await parts.gate.cancel(life.workspace, outcome.approval_id, actor, "not needed")
        note(life.told, "decided", outcome.approval_id, "cancelled", actor)


async def decided(life: Life, parts: AppServices, approval_id: str, decision: Any, reviewer: Reviewer) -> None:
    """Writes down what it was told: from then on that must not be lost."""
    await parts.inbox.decide(life.workspace, approval_id, decision, reviewer)
    kind = {"approve": "voted,approved", "edit": "edited", "reject": "rejected"}[decision.kind]
    note(life.told, "decided", approval_id, kind, reviewer.name)


def person(name: str) -> Reviewer:
    """Another one each time, so that a decision that was lost is not hidden by the one that follows."""
    return Reviewer(f"{name}{os.getpid()}.{next(PEOPLE)}", teams=frozenset({"finance"}))


def payment(life: Life, name: str) -> ToolCall:
    return propose("pay", {"amount": 10}, "run", name, workspace=life.workspace)


# A person, and time


def reviewer(life: Life, plan: str) -> None:
    """Approves all that waits."""

    async def work(life: Life, parts: AppServices) -> None:
        while (page := await parts.store.list(life.workspace, ApprovalQuery(statuses=("pending",)))).items:
            for stored in page.items:
                approval = stored.approval
                try:
                    await decided(
                        life, parts, approval.id, Approve(Acknowledgement(approval.args_sha256)), person("bob")
                    )
                except AlreadyDecided:
                    continue
        note(life.told, "finished")

    opened(life, plan, work)


def worker(life: Life, plan: str) -> None:
    """Does all that is due, as often as it takes until nothing is."""

    async def work(life: Life, parts: AppServices) -> None:
        while await parts.worker.sweep() or await is_due(parts):  # noqa: ASYNC110  time sets no event
            await asyncio.sleep(0.05)
        note(life.told, "finished")

    opened(life, plan, work)


async def is_due(parts: AppServices) -> bool:
    due = await parts.store.next_due()
    return due is not None and due < parts.clock() + CLAIMED


# A first start, and files


def opener(life: Life, plan: str) -> None:
    """Makes the database and does one call in it."""

    async def work(life: Life, parts: AppServices) -> None:
        await parts.put_policy(life.workspace, POLICY, "ada", {})
        await paid(life, parts, "first", approve_as_bob)
        note(life.told, "finished")

    opened(life, plan, work)


async def approve_as_bob(life: Life, parts: AppServices, approval_id: str) -> None:
    approval = (await parts.store.get(life.workspace, approval_id)).approval
    await decided(life, parts, approval_id, Approve(Acknowledgement(approval.args_sha256)), person("bob"))


def files(life: Life, plan: str) -> None:
    """An export of the ledger, and a backup where the database is a file. Every touch of a file is a point."""
    hit = points.parse_fault_plan(plan) or (lambda _: None)

    def touch(event: str, args: tuple[object, ...]) -> None:
        if event in TOUCHES and str(life.folder) in (path := str(args[0])) and "told.txt" not in path:
            hit(f"before {event}")

    async def work(life: Life, parts: AppServices) -> None:
        await exported(life, parts, hit)
        source, target = database_file(life.url), life.folder / "copy.db"
        if source is not None and not target.exists():
            make_backup(source, target, lambda *_: hit("before some pages"))
        hit("before the end")
        note(life.told, "finished")

    sys.addaudithook(touch)
    opened(life, "", work)


async def exported(life: Life, parts: AppServices, hit: FaultPoint) -> None:
    with _atomic_file(life.folder / "ledger.txt") as file:
        async for block in ledger_file.export(parts.store, life.workspace, 0, SignedHead, lambda *_: None):
            hit("before a block")
            file.write(block)


def opened(life: Life, plan: str, work: Callable[[Life, AppServices], Awaitable[None]]) -> None:
    async def live() -> None:
        hit = points.parse_fault_plan(plan)
        parts = points.build_services_with_points(life.url, hit)
        await parts.store.open()
        await work(replace(life, point=hit), parts)
        await parts.store.close()

    asyncio.run(live())


SCENES: dict[str, Callable[[Life, str], None]] = {
    "program": program,
    "desk": desk,
    "reviewer": reviewer,
    "worker": worker,
    "opener": opener,
    "files": files,
}
