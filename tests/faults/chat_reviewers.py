"""The people around an agent that is hit, and a second process that works at its threads."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from interlock.app.bootstrap import AppServices
from interlock.core.approval.approval import Approval
from interlock.core.call import QUESTION_TOOL
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, Reviewer
from interlock.core.errors import Error
from interlock.core.ports import ApprovalQuery
from tests.faults.chat_agent import ANN, POLICY, Outside, chat_of
from tests.faults.chat_invariants import every_thread
from tests.faults.processes import Life

BOB = Reviewer("bob", "admin", via="test")


async def prepare(parts: AppServices, life: Life) -> None:
    await parts.put_policy(life.workspace, POLICY, "ada", {})
    await parts.store.put_user(life.workspace, ANN, "ada")


async def review(parts: AppServices, life: Life) -> None:
    """Decides all that waits: yes, no, otherwise, or an answer."""
    while True:
        async with parts.store.watch(life.workspace) as watch:
            page = await parts.store.list(life.workspace, ApprovalQuery(statuses=("pending",), payload="whole"))
            for stored in page.items:
                with suppress(Error):
                    decision = decision_on(stored.approval, stored.payload.args or b"")
                    await parts.inbox.decide(life.workspace, stored.approval.id, decision, BOB)
            if not page.items:
                await watch.wait(1)


def decision_on(approval: Approval, args: bytes) -> Decision:
    seen = Acknowledgement(approval.args_sha256)
    if approval.subject.tool == QUESTION_TOOL:
        return Respond("Blue.", seen=seen)
    if b"refused" in args:
        return Reject("No.", seen)
    return Edit({"k": "edited"}, seen) if approval.subject.tool == "save" else Approve(seen)


async def work(parts: AppServices, life: Life) -> None:
    """As another server would."""
    await chat_of(parts.store, Outside(life.folder), Life.lease).loop.run(asyncio.Event())


async def quiet(parts: AppServices, life: Life) -> None:
    """Until nobody is at work: what the one that stands still had in hand was taken over."""
    async with asyncio.timeout(30):
        while True:
            found = [thread.status async for thread in every_thread(parts.store, life.workspace)]
            if not {"running", "ready"} & set(found):
                return
            await asyncio.sleep(0.02)
