"""Scenarios under fault injection: programs that continue where an earlier process was killed."""

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
from tests.faults.processes import Scenario, append_line

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
CLAIM_TIMEOUT = 3_000  # milliseconds: what a worker took before it died is due again by then
PAY = ToolSpec("pay", "write", describe="Pay {amount}")
PERSON_NUMBERS = count(1)
FILE_EVENTS = ("open", "os.rename", "os.remove", "os.chmod", "sqlite3.connect", "tempfile.mkstemp")
OTHER_TOOL = ToolSpec("aside", "write")


def run(victim: str, scenario: Scenario, plan: str) -> None:
    if victim in chat_scenarios.SCENARIOS:
        chat_scenarios.run_scenario(victim, scenario, plan)
    else:
        SCENARIOS[victim](scenario, plan)


# An agent that uses the library


def program(scenario: Scenario, plan: str) -> None:
    """A read, a call that must run once, and an idempotent one; its effects are lines in a file."""
    if hit := points.parse_fault_plan(plan):
        points.add_library_points(hit)
    lock = Interlock(
        scenario.url,
        policy=POLICY,
        agent="victim",
        workspace=scenario.workspace,
        user="ann",
        lease_seconds=scenario.lease / 1000,
    )
    asyncio.run(agent(scenario, lock))


async def agent(scenario: Scenario, lock: Interlock) -> None:
    ids: dict[str, str] = {}

    def ran(tool: str) -> str:
        execution = lock.execution()
        assert execution is not None
        ids[tool] = execution.approval_id
        append_line(scenario.effects, execution.approval_id, tool, execution.args.decode())
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
        record_result(scenario, ids, await send("a"))
    except (CallUnknown, CallFailed) as error:
        append_line(scenario.acknowledgements, "heard", type(error).__name__)
    record_result(scenario, ids, await put("b"))
    append_line(scenario.acknowledgements, "finished")
    lock.close()


def record_result(scenario: Scenario, ids: dict[str, str], tool: str) -> None:
    """A result means that the end is recorded; that of an earlier process was written by that process."""
    if tool in ids:
        append_line(scenario.acknowledgements, "done", ids[tool])


# Two people and an agent on the services


def reviewers_and_agent(scenario: Scenario, plan: str) -> None:
    """An edit and a second vote, a cancelled call, and a rejection that is undone."""

    async def work(scenario: Scenario, services: AppServices) -> None:
        await services.put_policy(scenario.workspace, DESK_POLICY, "ada", {})
        await pay_until_done(scenario, services, "edited", edit_then_approve)
        await cancel_call(scenario, services)
        await pay_until_done(scenario, services, "undone", reject_undo_approve)
        append_line(scenario.acknowledgements, "finished")

    run_with_services(scenario, plan, work)


DecideStep = Callable[[Scenario, AppServices, str], Awaitable[None]]


async def pay_until_done(scenario: Scenario, services: AppServices, name: str, deciding: DecideStep) -> None:
    """Looks where the call stands, does the next thing, and looks again."""
    while True:
        outcome = await services.gate.check(payment(scenario, name), PAY)
        match outcome:
            case Waiting(approval_id):
                await deciding(scenario, services, approval_id)
            case Proceed(_, approval_id):
                await execute_payment(scenario, services, approval_id)
            case _:
                return


async def execute_payment(scenario: Scenario, services: AppServices, approval_id: str) -> None:
    execution = await services.gate.start(scenario.workspace, approval_id, make_runner_id(), scenario.lease, PAY.sha256)
    points.with_fault_points(scenario.point, "the tool", append_line)(
        scenario.effects, approval_id, "pay", execution.args.decode()
    )
    try:
        await services.gate.finish(
            scenario.workspace, approval_id, execution.fence, ok=True, payload=Payload(result=b'"paid"')
        )
    except LeaseLost:
        return
    append_line(scenario.acknowledgements, "done", approval_id)


async def edit_then_approve(scenario: Scenario, services: AppServices, approval_id: str) -> None:
    approval = (await services.store.get(scenario.workspace, approval_id)).approval
    seen = Acknowledgement(approval.args_sha256)
    if approval.editors:
        await decide_and_record(scenario, services, approval_id, Approve(seen), person("bob"))
    else:
        await decide_and_record(scenario, services, approval_id, Edit({"amount": 20}, seen), person("ann"))


async def reject_undo_approve(scenario: Scenario, services: AppServices, approval_id: str) -> None:
    approval = (await services.store.get(scenario.workspace, approval_id)).approval
    seen = Acknowledgement(approval.args_sha256)
    kinds = [entry.kind for entry in await services.store.timeline(scenario.workspace, approval_id)]
    if approval.status == "rejected":
        admin = Reviewer(f"ada{os.getpid()}", "admin")
        await services.inbox.undo(scenario.workspace, approval_id, admin)
        append_line(scenario.acknowledgements, "decided", approval_id, "undone", admin.name)
    elif "rejected" not in kinds:
        await decide_and_record(scenario, services, approval_id, Reject("no", seen), person("bob"))
    else:
        await decide_and_record(
            scenario, services, approval_id, Approve(seen), person("bob" if approval.votes else "ann")
        )


async def cancel_call(scenario: Scenario, services: AppServices) -> None:
    outcome = await services.gate.check(payment(scenario, "cancelled"), PAY)
    if isinstance(outcome, Waiting):
        actor = f"agent{os.getpid()}"
        await services.gate.cancel(scenario.workspace, outcome.approval_id, actor, "not needed")
        append_line(scenario.acknowledgements, "decided", outcome.approval_id, "cancelled", actor)


async def decide_and_record(
    scenario: Scenario, services: AppServices, approval_id: str, decision: Any, reviewer: Reviewer
) -> None:
    """Records the acknowledgement: from then on the decision must not be lost."""
    await services.inbox.decide(scenario.workspace, approval_id, decision, reviewer)
    kind = {"approve": "voted,approved", "edit": "edited", "reject": "rejected"}[decision.kind]
    append_line(scenario.acknowledgements, "decided", approval_id, kind, reviewer.name)


def person(name: str) -> Reviewer:
    """Another one each time, so that a decision that was lost is not hidden by the one that follows."""
    return Reviewer(f"{name}{os.getpid()}.{next(PERSON_NUMBERS)}", teams=frozenset({"finance"}))


def payment(scenario: Scenario, name: str) -> ToolCall:
    return propose("pay", {"amount": 10}, "run", name, workspace=scenario.workspace)


# A person, and time


def reviewer(scenario: Scenario, plan: str) -> None:
    """Approves all that waits."""

    async def work(scenario: Scenario, services: AppServices) -> None:
        while (page := await services.store.list(scenario.workspace, ApprovalQuery(statuses=("pending",)))).items:
            for stored in page.items:
                approval = stored.approval
                try:
                    await decide_and_record(
                        scenario, services, approval.id, Approve(Acknowledgement(approval.args_sha256)), person("bob")
                    )
                except AlreadyDecided:
                    continue
        append_line(scenario.acknowledgements, "finished")

    run_with_services(scenario, plan, work)


def worker(scenario: Scenario, plan: str) -> None:
    """Does all that is due, as often as it takes until nothing is."""

    async def work(scenario: Scenario, services: AppServices) -> None:
        while await services.worker.sweep() or await is_due(services):  # noqa: ASYNC110  time sets no event
            await asyncio.sleep(0.05)
        append_line(scenario.acknowledgements, "finished")

    run_with_services(scenario, plan, work)


async def is_due(services: AppServices) -> bool:
    due = await services.store.next_due()
    return due is not None and due < services.clock() + CLAIM_TIMEOUT


# A first start, and files


def opener(scenario: Scenario, plan: str) -> None:
    """Makes the database and does one call in it."""

    async def work(scenario: Scenario, services: AppServices) -> None:
        await services.put_policy(scenario.workspace, POLICY, "ada", {})
        await pay_until_done(scenario, services, "first", approve_as_bob)
        append_line(scenario.acknowledgements, "finished")

    run_with_services(scenario, plan, work)


async def approve_as_bob(scenario: Scenario, services: AppServices, approval_id: str) -> None:
    approval = (await services.store.get(scenario.workspace, approval_id)).approval
    await decide_and_record(
        scenario, services, approval_id, Approve(Acknowledgement(approval.args_sha256)), person("bob")
    )


def files(scenario: Scenario, plan: str) -> None:
    """An export of the ledger, and a backup where the database is a file. Every touch of a file is a point."""
    hit = points.parse_fault_plan(plan) or (lambda _: None)

    def touch(event: str, args: tuple[object, ...]) -> None:
        if event in FILE_EVENTS and str(scenario.folder) in (path := str(args[0])) and "told.txt" not in path:
            hit(f"before {event}")

    async def work(scenario: Scenario, services: AppServices) -> None:
        await export_ledger(scenario, services, hit)
        source, target = database_file(scenario.url), scenario.folder / "copy.db"
        if source is not None and not target.exists():
            make_backup(source, target, lambda *_: hit("before some pages"))
        hit("before the end")
        append_line(scenario.acknowledgements, "finished")

    sys.addaudithook(touch)
    run_with_services(scenario, "", work)


async def export_ledger(scenario: Scenario, services: AppServices, hit: FaultPoint) -> None:
    with _atomic_file(scenario.folder / "ledger.txt") as file:
        async for block in ledger_file.export(services.store, scenario.workspace, 0, SignedHead, lambda *_: None):
            hit("before a block")
            file.write(block)


def run_with_services(scenario: Scenario, plan: str, work: Callable[[Scenario, AppServices], Awaitable[None]]) -> None:
    async def live() -> None:
        hit = points.parse_fault_plan(plan)
        services = points.build_services_with_points(scenario.url, hit)
        await services.store.open()
        await work(replace(scenario, point=hit), services)
        await services.store.close()

    asyncio.run(live())


SCENARIOS: dict[str, Callable[[Scenario, str], None]] = {
    "program": program,
    "desk": reviewers_and_agent,
    "reviewer": reviewer,
    "worker": worker,
    "opener": opener,
    "files": files,
}
