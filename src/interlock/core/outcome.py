"""Outcomes of a call: everything that an integration has to handle."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from interlock.core.approval.approval import Approval
from interlock.core.approval.execute import may_restart
from interlock.core.canonical import read_canonical
from interlock.core.ledger.event import Payload


@dataclass(frozen=True, slots=True)
class Proceed:
    """Run the call. Without an approval id it is an allowed read; with one it has to be started and finished."""

    args: bytes
    approval_id: str = ""
    args_sha256: str = field(default="", compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """The call ran, or its outcome is unknown; `status` is succeeded, failed or unknown."""

    status: str
    result: object = None
    error: str = ""
    approval_id: str = ""
    args_sha256: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Answered:
    message: object
    approval_id: str = ""
    args_sha256: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """The call must not run; `status` is denied, rejected, expired or cancelled."""

    reason: str
    status: str = "denied"
    approval_id: str = ""
    args_sha256: str = field(default="", compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Wait; `until` is when the clock alone may change the outcome; `questions` are the numbers of open ones."""

    approval_id: str
    status: str = "pending"
    _: KW_ONLY
    until: int | None = None
    args_sha256: str = field(default="", compare=False)
    questions: tuple[int, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)


Outcome = Proceed | Finished | Answered | Refused | Waiting


def status_at(approval: Approval, now: int) -> str:
    """The status of the row, corrected by the clock: the worker only writes it down later."""
    status = approval.status
    if status == "pending" and now >= approval.deadlines.expires_at:
        by_rule = approval.terms.on_expiry == "approve" and not approval.findings.alarms
        return status if by_rule else "expired"
    if status == "approved" and now >= (approval.deadlines.start_by or 0):
        return "expired"
    if status == "running" and now >= (approval.lease.until or 0) and not may_restart(approval, now):
        return "unknown"
    return status


def approval_outcome(approval: Approval, payload: Payload, now: int) -> Outcome:
    status, sha256 = status_at(approval, now), approval.args_sha256
    match status:
        case "approved":
            return Proceed(payload.args or b"{}", approval.id, sha256)
        case "pending":
            return Waiting(
                approval.id,
                status,
                until=approval.deadlines.expires_at,
                args_sha256=sha256,
                questions=approval.discussion.open_questions,
            )
        case "running" if now >= (approval.lease.until or 0):
            return Proceed(
                payload.args or b"{}", approval.id, sha256
            )  # idempotent, and its runner is lost: start it again
        case "running":
            return Waiting(approval.id, status, until=approval.lease.until, args_sha256=sha256)
        case "rejected" if now < (approval.deadlines.release_at or 0):
            return Waiting(approval.id, status, until=approval.deadlines.release_at, args_sha256=sha256)
        case "responded":
            return Answered(_result(payload), approval.id, sha256)
        case "succeeded" | "failed" | "unknown":
            return Finished(status, _result(payload), payload.error or "", approval.id, sha256)
        case _:
            return Refused(_reason(approval, status), status, approval.id, sha256)


def _result(payload: Payload) -> object:
    return None if payload.result is None else read_canonical(payload.result)


def _reason(approval: Approval, status: str) -> str:
    if status == "expired":
        return "The call timed out: nobody decided or started it in time."
    decision_record = approval.decision
    given = decision_record.reason if decision_record else ""
    words = {"rejected": "A person rejected this call.", "cancelled": "The call was cancelled."}
    return given or words.get(status, "")
