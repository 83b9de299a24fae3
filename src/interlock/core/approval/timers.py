"""Time's part: when to remind, when to escalate, when a deadline or a lease has passed. A pure timetable."""

from __future__ import annotations

from typing import NamedTuple

from interlock.core._fast import moved
from interlock.core.approval import execute
from interlock.core.approval.approval import Approval, changed, expire
from interlock.core.ledger.event import TIME, Change, Moment


class Due(NamedTuple):
    at: int
    what: str  # remind | escalate | expire | lapse | lose


def timetable(approval: Approval) -> tuple[Due, ...]:
    """Everything that time will still do to this approval if nobody else does anything, in order."""
    match approval.status:
        case "pending":
            return _pending(approval)
        case "approved":
            return (Due(approval.start_by or 0, "lapse"),)
        case "running":
            return (Due(_given_up(approval), "lose"),)
        case _:
            return ()


def due_at(approval: Approval) -> int | None:
    """When the worker has to look at it next; None when time has nothing to do with it any more."""
    match approval.status:
        case "pending":
            return _first_due(approval)
        case "approved":
            return approval.start_by or 0
        case "running":
            return _given_up(approval)
        case _:
            return None


def tick(approval: Approval, moment: Moment, *, runner_is_dead: bool = False) -> Change[Approval]:
    """Does the first thing that is due; a Change without events when nothing is."""
    if runner_is_dead and approval.status == "running" and not execute.may_repeat(approval, moment.now):
        return execute.lose(approval, moment)
    if approval.status == "pending" and moment.now >= approval.expires_at:
        return expire(approval, moment)  # a reminder or a step that nobody was in time for does not come any more
    plan = timetable(approval)
    if not plan or moment.now < plan[0].at:
        return Change(approval)
    match plan[0].what:
        case "lapse":
            return execute.lapse(approval, moment)
        case "lose":
            return execute.lose(approval, moment)
        case "escalate":
            return _escalate(approval)
        case _:
            return _remind(approval)


def _pending(approval: Approval) -> tuple[Due, ...]:
    end = approval.expires_at
    reminders, rungs = _times(approval)
    early = [Due(at, "remind") for at in reminders if at < end] + [Due(at, "escalate") for at in rungs if at < end]
    return (*sorted(early, key=lambda due: (due.at, due.what)), Due(end, "expire"))


def _first_due(approval: Approval) -> int:
    """The first of a timetable that nobody needs to see in order."""
    first, terms = approval.expires_at, approval.terms
    created = approval.created_at + approval.deferred
    for after in terms.remind[approval.reminded :]:
        first = min(first, created + (after or (approval.expires_at - created) // 2))
    for rung in terms.ladder[approval.escalated :] if terms.ladder else ():
        first = min(first, created + rung.after)
    return first


def _times(approval: Approval) -> tuple[list[int], list[int]]:
    """Of the reminders and of the steps of the ladder that are left; some may lie after the end."""
    created, terms = approval.created_at + approval.deferred, approval.terms
    half = (approval.expires_at - created) // 2
    reminders = [created + (after or half) for after in terms.remind[approval.reminded :]]
    return reminders, [created + rung.after for rung in terms.ladder[approval.escalated :]] if terms.ladder else []


def _given_up(approval: Approval) -> int:
    """An idempotent call waits for somebody to start it again, but not for ever."""
    lease_until, start_by = approval.lease_until or 0, approval.start_by or 0
    return max(lease_until, start_by) if approval.subject.idempotent else lease_until


def _escalate(approval: Approval) -> Change[Approval]:
    rung = approval.terms.ladder[approval.escalated]
    climbed = moved(approval, escalated=approval.escalated + 1)
    content = {"users": sorted(rung.to.users), "teams": sorted(rung.to.teams), "channels": list(rung.channels)}
    return changed(climbed, "escalated", TIME, {"rung": climbed.escalated}, content)


def _remind(approval: Approval) -> Change[Approval]:
    reminded = moved(approval, reminded=approval.reminded + 1)
    return changed(reminded, "reminded", TIME, {"reminder": reminded.reminded})
