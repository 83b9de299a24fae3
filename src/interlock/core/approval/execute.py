"""Execution of an approved call: start with a fence, lease and heartbeat while the tool runs, finish, unknown outcome.

One runner wins the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from interlock.core.approval.approval import Approval, Lease, already_decided_error, cancel, make_change
from interlock.core.call import stored_caller
from interlock.core.canonical import digest
from interlock.core.errors import (
    AlreadyStarted,
    BindingBroken,
    ClockBehind,
    Conflict,
    DeniedNow,
    Error,
    Expired,
    Frozen,
    LeaseLost,
    NotApproved,
)
from interlock.core.fast_dataclasses import next_version
from interlock.core.ledger.event import SYSTEM_ACTOR, Change, Event, Moment, Payload, Stored

DEFAULT_LEASE = 60_000
MAX_STARTS = 100  # per call: each start leaves a ledger entry
MAX_LATE_REPORTS = 5  # late reports per call that leave a ledger entry
POLICY_ACTOR = "policy"  # the actor of what a rule did automatically
# prefix of a runner name that stands for one start, not for a process: it is unique and never reused
START_TOKEN_PREFIX = "attempt:"  # noqa: S105  the beginning of a name, not a secret


class LateReport(NamedTuple):
    """A report of a runner that no longer owns the call."""

    fence: int
    ok: bool
    error: str | None
    result_sha256: str | None

    @property
    def content(self) -> dict[str, object]:
        return {"ok": self.ok, "error": self.error, "result_sha256": self.result_sha256}


def start(
    stored: Stored,
    runner: str,
    lease: int,
    spec_sha256: str,
    moment: Moment,
    *,
    runner_is_dead: bool,
    start_error: Frozen | DeniedNow | None = None,
) -> Change[Approval]:
    """Commit `running` with a fence before the effect; on any doubt raise an error, and nothing runs.

    `start_error` is why nothing may start now, even if approved; it does not apply to a resent start, which has started
    already.
    """
    approval = stored.approval
    if approval.status == "approved" and moment.now >= (approval.deadlines.start_by or 0):
        return expire_unstarted(approval, moment)._replace(error=_start_expired_error(approval))
    repeated = not runner_is_dead and _is_resent_start(approval, runner, moment)
    if not repeated and not is_startable(approval, moment.now, runner_is_dead=runner_is_dead):
        raise _not_startable_error(approval)
    if start_error is not None and not repeated:
        return _refuse_start(approval, start_error, moment)
    if moment.is_clock_behind:
        raise ClockBehind("The clock is behind the ledger's last entry. Nothing starts until it is corrected.")
    _check_binding(stored, spec_sha256)
    if repeated:
        return Change(approval)
    fence = approval.lease.fence + 1
    running = next_version(approval, status="running", lease=Lease(fence, moment.now + lease, runner))
    return make_change(running, "started", runner, {"fence": fence})


def _refuse_start(approval: Approval, start_error: Frozen | DeniedNow, moment: Moment) -> Change[Approval]:
    """Refuse a start: a freeze is temporary, a denial by the policy cancels the call unless it is already running."""
    if isinstance(start_error, Frozen) or approval.status != "approved":
        raise start_error
    return cancel(approval, POLICY_ACTOR, str(start_error.ids["reason"]), moment)._replace(error=start_error)


def is_startable(approval: Approval, now: int, *, runner_is_dead: bool) -> bool:
    """Whether it may start: approved, or idempotent with a lost runner, retried under the same key and in time."""
    if approval.status == "running":
        return may_restart(approval, now) and (runner_is_dead or now >= (approval.lease.until or 0))
    return approval.status == "approved"


def may_restart(approval: Approval, now: int) -> bool:
    """Whether a call may start again: idempotent, before its start deadline, and below the limit of starts."""
    return (
        approval.subject.idempotent and now < (approval.deadlines.start_by or 0) and approval.lease.fence < MAX_STARTS
    )


def renew(approval: Approval, fence: int, lease: int, moment: Moment) -> Change[Approval]:
    """Renew the lease; a heartbeat leaves no event.

    A runner that shows the fence has received the response to its start, so its start token becomes an ordinary runner
    name.
    """
    if _holds_lease(approval, fence, moment):
        runner = approval.lease.runner
        heard = f"runner:{runner.removeprefix(START_TOKEN_PREFIX)}" if runner.startswith(START_TOKEN_PREFIX) else runner
        return Change(next_version(approval, lease=Lease(fence, moment.now + lease, heard)))
    raise LeaseLost("The lease has lapsed: this runner no longer owns the call.", approval_id=approval.id)


def finish(
    approval: Approval,
    fence: int,
    payload: Payload,
    moment: Moment,
    *,
    ok: bool,
    late: Callable[[LateReport], bool] = lambda _: True,
) -> Change[Approval]:
    """Finish a call; a late report is refused, and kept as evidence for its resolution if `late` says so."""
    status = "succeeded" if ok else "failed"
    if approval.status == status and approval.lease.fence == fence:
        return Change(approval)  # a duplicate report, for instance because the first response got lost
    if not 1 <= fence <= approval.lease.fence:
        raise Conflict("This call was not started under this fence.", approval_id=approval.id, status=approval.status)
    if not _holds_lease(approval, fence, moment):
        report = LateReport(fence, ok, payload.error, digest(payload.result) if payload.result else None)
        return _refuse_late_report(approval, report, moment, is_new=late(report))
    content: dict[str, object] = {"result_sha256": digest(payload.result)} if payload.result else {}
    content |= {"error": payload.error} if payload.error else {}
    runner = approval.lease.runner
    done = next_version(approval, status=status, lease=Lease(fence, None, runner))
    return make_change(done, status, runner, {"fence": fence}, content, payload)


def abandon(approval: Approval, fence: int, moment: Moment) -> Change[Approval]:
    """Abandon a run whose outcome the runner does not know: the same as a lost lease, only sooner."""
    if approval.lease.fence != fence or approval.status != "running":
        return Change(approval)
    if may_restart(approval, moment.now):  # it may be started again at once
        return Change(next_version(approval, lease=approval.lease._replace(until=moment.now)))
    return mark_unknown(approval, moment)


def report_unknown(approval: Approval, fence: int, moment: Moment) -> Change[Approval]:
    """Record that the tool does not know whether it took effect, so that a retry would not tell either."""
    return mark_unknown(approval, moment) if approval.lease.fence == fence else Change(approval)


def mark_unknown(approval: Approval, moment: Moment) -> Change[Approval]:
    """Mark the outcome unknown: shown to people, never silently run again."""
    if approval.status != "running":
        return Change(approval)
    unknown = next_version(approval, status="unknown", lease=approval.lease._replace(until=None))
    return make_change(unknown, "lost", SYSTEM_ACTOR, {"fence": approval.lease.fence})


def expire_unstarted(approval: Approval, moment: Moment) -> Change[Approval]:
    """Expire an approved call that was not started in time: an approval does not last."""
    if approval.status != "approved":
        return Change(approval)
    return make_change(next_version(approval, status="expired"), "lapsed", SYSTEM_ACTOR, {})


def _is_resent_start(approval: Approval, runner: str, moment: Moment) -> bool:
    """Whether the start token that holds the call starts it again: the response got lost, and nothing has run."""
    return (
        runner.startswith(START_TOKEN_PREFIX)
        and runner == approval.lease.runner
        and _holds_lease(approval, approval.lease.fence, moment)
    )


def _holds_lease(approval: Approval, fence: int, moment: Moment) -> bool:
    lives = moment.now < (approval.lease.until or 0)
    return approval.status == "running" and approval.lease.fence == fence and lives


def _refuse_late_report(approval: Approval, report: LateReport, moment: Moment, *, is_new: bool) -> Change[Approval]:
    error = LeaseLost(
        "Too late: the lease had lapsed. What you reported is kept as evidence; a person has to resolve it.",
        approval_id=approval.id,
        status=approval.status,
    )
    evidence = Event("finished_late", approval.lease.runner, {"fence": report.fence}, approval.id, report.content)
    kept = (evidence,) if is_new else ()
    repeats = may_restart(approval, moment.now)
    overdue = approval.status == "running" and approval.lease.fence == report.fence and not repeats
    if not overdue:
        return Change(approval, kept, error=error)
    lost = mark_unknown(approval, moment)
    return lost._replace(events=(*lost.events, *kept), error=error)


def _not_startable_error(approval: Approval) -> Error:
    match approval.status:
        case "running" | "succeeded" | "failed" | "unknown":
            message = f"This call was started already; it is {approval.status}."
            return AlreadyStarted(message, approval_id=approval.id, status=approval.status)
        case "pending":
            return NotApproved("This call still waits for a decision.", approval_id=approval.id, status="pending")
        case "expired":
            return already_decided_error(approval)
        case status:
            return NotApproved(f"This call may not run: it is {status}.", approval_id=approval.id, status=status)


def _start_expired_error(approval: Approval) -> Expired:
    return Expired("The approval lapsed: it was not started in time. Propose the call again.", approval_id=approval.id)


def _check_binding(stored: Stored, spec_sha256: str) -> None:
    """Check that what runs is what was approved: the stored bytes, the terms and the tool's definition."""
    approval, args, shown = stored.approval, stored.payload.args, stored.payload.shown
    secret_args = None if shown is None else args
    whole = (
        args is not None
        and digest(args if shown is None else shown) == approval.args_sha256
        and approval.subject.binding(approval.args_sha256, approval.terms.sha256, secret_args) == approval.binding
    )
    if not whole:
        raise BindingBroken("What is stored is not what was approved. Nothing was run.", approval_id=approval.id)
    if spec_sha256 and spec_sha256 != approval.subject.spec_sha256 and spec_sha256 != _declared_spec_sha256(approval):
        message = "The tool's definition changed after the approval. Propose the call again."
        raise BindingBroken(message, approval_id=approval.id)


def _declared_spec_sha256(approval: Approval) -> str:
    """The digest of the tool definition that the program proposed with, if the server's own definition counts."""
    caller = stored_caller(approval.subject)
    return "" if caller is None else caller.spec_sha256
