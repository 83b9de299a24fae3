"""Timers of an approval: reminders, escalation, expiry of deadlines and leases, as a pure schedule."""

from __future__ import annotations

from typing import NamedTuple

from interlock.core.approval import execute
from interlock.core.approval.approval import Approval, expire, make_change
from interlock.core.fast_dataclasses import next_version
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Moment


class Timer(NamedTuple):
    at: int
    action: str  # remind | escalate | expire | expire_start | lease_expired


def pending_timers(approval: Approval) -> tuple[Timer, ...]:
    """All timers of this approval that are still to fire if nothing else happens, in order."""
    match approval.status:
        case "pending":
            return _decision_timers(approval)
        case "approved":
            return (Timer(approval.deadlines.start_by or 0, "expire_start"),)
        case "running":
            return (Timer(_unknown_at(approval), "lease_expired"),)
        case _:
            return ()


def next_timer_at(approval: Approval) -> int | None:
    """When the worker has to process it next; None if no timer is left."""
    match approval.status:
        case "pending":
            return _first_timer_at(approval)
        case "approved":
            return approval.deadlines.start_by or 0
        case "running":
            return _unknown_at(approval)
        case _:
            return None


def fire_next_timer(approval: Approval, moment: Moment, *, runner_is_dead: bool = False) -> Change[Approval]:
    """Fire the first due timer; a Change without events if none is due."""
    if runner_is_dead and approval.status == "running" and not execute.may_restart(approval, moment.now):
        return execute.mark_unknown(approval, moment)
    if approval.status == "pending" and moment.now >= approval.deadlines.expires_at:
        return expire(approval, moment)  # reminders and escalations that are overdue as well are dropped
    plan = pending_timers(approval)
    if not plan or moment.now < plan[0].at:
        return Change(approval)
    match plan[0].action:
        case "expire_start":
            return execute.expire_unstarted(approval, moment)
        case "lease_expired":
            return execute.mark_unknown(approval, moment)
        case "escalate":
            return _escalate(approval)
        case _:
            return _remind(approval)


def _decision_timers(approval: Approval) -> tuple[Timer, ...]:
    end = approval.deadlines.expires_at
    reminders, steps = _reminder_and_escalation_times(approval)
    early = [Timer(at, "remind") for at in reminders if at < end] + [Timer(at, "escalate") for at in steps if at < end]
    return (*sorted(early), Timer(end, "expire"))


def _first_timer_at(approval: Approval) -> int:
    """The earliest of `_decision_timers`, without sorting them."""
    first, terms = approval.deadlines.expires_at, approval.terms
    created = approval.created_at + approval.deadlines.deferred
    for after in terms.remind[approval.timers.reminded :]:
        first = min(first, created + (after or (approval.deadlines.expires_at - created) // 2))
    for step in terms.escalation_steps[approval.timers.escalated :] if terms.escalation_steps else ():
        first = min(first, created + step.after)
    return first


def _reminder_and_escalation_times(approval: Approval) -> tuple[list[int], list[int]]:
    """Times of the remaining reminders and escalation steps; some may lie after expiry."""
    created, terms = approval.created_at + approval.deadlines.deferred, approval.terms
    half = (approval.deadlines.expires_at - created) // 2
    reminders = [created + (after or half) for after in terms.remind[approval.timers.reminded :]]
    return reminders, [
        created + step.after for step in terms.escalation_steps[approval.timers.escalated :]
    ] if terms.escalation_steps else []


def _unknown_at(approval: Approval) -> int:
    """When a running call becomes unknown: an idempotent one may be started again until its start deadline."""
    lease_until, start_by = approval.lease.until or 0, approval.deadlines.start_by or 0
    return max(lease_until, start_by) if approval.subject.idempotent else lease_until


def _escalate(approval: Approval) -> Change[Approval]:
    step = approval.terms.escalation_steps[approval.timers.escalated]
    progress = approval.timers
    escalated = next_version(approval, timers=progress._replace(escalated=progress.escalated + 1))
    content = {"users": sorted(step.to.users), "teams": sorted(step.to.teams), "channels": list(step.channels)}
    return make_change(escalated, "escalated", SYSTEM_ACTOR, {"rung": escalated.timers.escalated}, content)


def _remind(approval: Approval) -> Change[Approval]:
    progress = approval.timers
    reminded = next_version(approval, timers=progress._replace(reminded=progress.reminded + 1))
    return make_change(reminded, "reminded", SYSTEM_ACTOR, {"reminder": reminded.timers.reminded})
