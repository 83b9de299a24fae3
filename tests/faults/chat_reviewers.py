"""Reviewers of a chat agent under fault injection, and a second process that advances its threads."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from interlock.app.bootstrap import AppServices
from interlock.core.approval.approval import Approval
from interlock.core.call import QUESTION_TOOL
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Error
from interlock.core.ports import ApprovalQuery
from tests.faults.chat_agent import ANN, POLICY, ExternalLog, build_chat
from tests.faults.chat_invariants import read_threads
from tests.faults.processes import Scenario

BOB = Reviewer("bob", "admin", via="test")


async def prepare(services: AppServices, scenario: Scenario) -> None:
    await services.put_policy(scenario.workspace, POLICY, "ada", {})
    await services.store.put_user(scenario.workspace, ANN, "ada")


async def review(services: AppServices, scenario: Scenario) -> None:
    """Decides all that waits: yes, no, otherwise, or an answer."""
    while True:
        async with services.store.watch(scenario.workspace) as watch:
            page = await services.store.list(scenario.workspace, ApprovalQuery(statuses=("pending",), payload="whole"))
            for stored in page.items:
                with suppress(Error):
                    decision = decision_on(stored.approval, stored.payload.args or b"")
                    await services.inbox.decide(scenario.workspace, stored.approval.id, decision, BOB)
            if not page.items:
                await watch.wait(1)


def decision_on(approval: Approval, args: bytes) -> Decision:
    seen = Acknowledgement(approval.args_sha256)
    if approval.subject.tool == QUESTION_TOOL:
        return Respond("Blue.", seen=seen)
    if b"refused" in args:
        return Reject("No.", seen)
    return Edit({"k": "edited"}, seen) if approval.subject.tool == "save" else Approve(seen)


async def run_second_loop(services: AppServices, scenario: Scenario) -> None:
    """As another server would."""
    await build_chat(services.store, ExternalLog(scenario.folder), Scenario.lease).loop.run(asyncio.Event())


async def wait_until_quiet(services: AppServices, scenario: Scenario) -> None:
    """Waits until no thread is leased: those of a stopped process were taken over."""
    async with asyncio.timeout(30):
        while True:
            found = [thread.status async for thread in read_threads(services.store, scenario.workspace)]
            if not {"running", "ready"} & set(found):
                return
            await asyncio.sleep(0.02)
