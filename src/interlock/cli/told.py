"""What a person is told after a decision: what it led to, and what to do if it was a mistake."""

from __future__ import annotations

from interlock.app.inbox import View
from interlock.cli.cards import votes_of
from interlock.cli.output import clock_time, print_json, say, short_id, span
from interlock.cli.shared import Desk
from interlock.core.approval import Approval
from interlock.core.card import visible
from interlock.core.decision import Reviewer
from interlock.core.policy import People
from interlock.core.voting import quorum
from interlock.presenters.approval import seats, view_json
from interlock.presenters.text import counted, who


async def decided(desk: Desk, before: View, after: Approval) -> None:
    if desk.json:
        print_json(view_json(await desk.parts.inbox.show(desk.workspace, after.id), desk.now()))
    else:
        say(result_of(before.stored.approval, after, desk.now()))


async def delegated(desk: Desk, view: View, people: People, person: Reviewer) -> None:
    if desk.json:
        print_json(view_json(await desk.parts.inbox.show(desk.workspace, view.stored.approval.id), desk.now()))
    else:
        say(f"{who(people)} may now decide this in place of {visible(person.name)}.")


def result_of(before: Approval, after: Approval, now: int) -> str:
    tool, name = visible(after.subject.tool), visible(short_id(after.id))
    match after.status:
        case "approved":
            edited = " with your changes" if before.args_sha256 != after.args_sha256 else ""
            until = after.start_by or now
            return f"Approved{edited}: {tool} may start until {clock_time(until)} (for {span(until - now)})."
        case "rejected":
            until = after.release_at or now
            return (
                f"Rejected: {tool} will not run. The agent is told at {clock_time(until)} (in {span(until - now)}); "
                f"until then: interlock approvals undo {name}"
            )
        case "pending":
            return _still_pending(before, after, tool)
        case "responded":
            return f"Answered: {tool} will not run; the agent gets what you said."
        case status:
            return f"Recorded: {tool} {status}."


def _still_pending(before: Approval, after: Approval, tool: str) -> str:
    if before.status == "rejected":
        return f"Undone: {tool} waits for a decision again."
    if before.version == after.version:
        return f"You had approved this already, so nothing changed: {votes_of(after)} approvals."
    missing = counted(quorum(after) - seats(after), "more person", "more people")
    if before.args_sha256 != after.args_sha256:
        return f"Changed: the new arguments wait for {missing}; earlier approvals no longer count."
    return f"Your approval counts: {votes_of(after)}. It waits for {missing}."
