"""Texts of notifications, shared by all channels: the request, the outcome, arguments and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from interlock.core.approval.approval import Approval
from interlock.core.approval.vote import next_approvers_text, total_quorum
from interlock.core.call import QUESTION_TOOL
from interlock.core.card import CardField, escape_invisible, head_and_tail
from interlock.core.errors import Misconfigured
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.core.notify.delivery import ApprovalView, Notification

MAX_NAME = 100  # characters of an argument's name
MAX_WARNING = 500
MAX_FIELDS = 20  # arguments of a call; the page shows the others
MAX_VALUE = 300  # characters of an argument; the page shows it in full


def title(message: Notification, limit: int = 150) -> str:
    """Return one line: the subject."""
    return shorten(_title(message), limit)


def status_sentence(approval_view: ApprovalView) -> str:
    """Return one sentence: the current status, and who caused it."""
    approval, decision_record = approval_view.approval, approval_view.approval.decision
    if approval_view.status == "pending":
        return approvers_sentence(approval)
    if decision_record is None:
        return f"This is {approval_view.status}."
    by = "Interlock" if decision_record.by == SYSTEM_ACTOR else escape_invisible(decision_record.by)
    via = f" through {escape_invisible(decision_record.via)}" if decision_record.via else ""
    why = (
        f" They wrote: {shorten(escape_invisible(decision_record.reason or decision_record.comment), MAX_VALUE)}"
        if _has_comment(approval)
        else ""
    )
    status = _ENDED.get(approval_view.status, approval_view.status.capitalize())
    return f"{status} {_decision_sentence(approval_view, by, via)}{why}".replace("  ", " ")


def approvers_sentence(approval: Approval) -> str:
    """Return who has to approve, how many of them, and until when."""
    have, need = len({vote.on_behalf_of for vote in approval.votes}), total_quorum(approval)
    votes = f" {have} of {need} have approved." if need > 1 else ""
    return f"It waits for {next_approvers_text(approval)} until {utc_time(approval.deadlines.expires_at)}.{votes}"


def arguments(approval_view: ApprovalView, limit: int = 20) -> list[tuple[str, str]]:
    """Return names and values of the arguments; a last line counts those left out."""
    fields = [field for field in approval_view.card.fields if field.type not in ("object", "array") or not field.length]
    shown = [(field.pointer.removeprefix("/") or field.name, _value(field)) for field in fields[:limit]]
    more = len(fields) - len(shown)
    return [
        *((shorten(escape_invisible(name), MAX_NAME), value) for name, value in shown),
        *([("…", f"{more} more in the web app")] if more > 0 else []),
    ]


def claims(approval_view: ApprovalView, limit: int = MAX_VALUE) -> list[tuple[str, str]]:
    """Return unverified claims of the agent's program, labelled as such."""
    said = {
        "Agent's description (not verified)": approval_view.card.agent_description,
        "Agent's preview (not verified)": approval_view.card.agent_preview,
    }
    return [(label, shorten(text, limit)) for label, text in said.items() if text]


def warnings(approval_view: ApprovalView) -> list[str]:
    """Return the card's alarms."""
    return [
        shorten(escape_invisible(each.message), MAX_WARNING)
        for each in approval_view.card.findings
        if each.level == "alarm"
    ]


def utc_time(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def shorten(text: str, limit: int) -> str:
    """Shorten a visible text in its middle, never inside an escape."""
    if len(text) <= limit:
        return text
    head, tail = head_and_tail(text, limit - 5)
    return f"{head} … {tail}"


def _title(message: Notification) -> str:
    approval_view = message.approval_view
    if approval_view is None:
        if message.purpose == "group":
            return f"{message.count} more calls need your decision"
        return f"Test message from Interlock, sent by {escape_invisible(message.requested_by)}"
    asks = approval_view.approval.subject.tool == QUESTION_TOOL  # its sentence is the agent's question
    sentence = f"The agent asks: {approval_view.card.sentence}" if asks else approval_view.card.sentence
    match message.purpose:
        case "remind":
            return f"{'Changed' if message.revised else 'Reminder'}: {sentence}"
        case "escalate":
            return f"Escalated: {sentence}"
        case "expired":
            return f"Expired: {sentence}"
        case "ended":
            return f"{_ENDED.get(approval_view.status, approval_view.status.capitalize()).rstrip('.')}: {sentence}"
        case _:
            return sentence


_ENDED = {
    "approved": "Approved.",
    "rejected": "Rejected.",
    "responded": "Answered.",
    "expired": "Expired.",
    "cancelled": "Cancelled.",
    "succeeded": "Done.",
    "failed": "Failed.",
    "unknown": "Outcome unknown.",
}


def _decision_sentence(approval_view: ApprovalView, by: str, via: str) -> str:
    decision_record = approval_view.approval.decision
    match decision_record.kind if decision_record else "":
        case "approve":
            return f"{by} approved it{via}."
        case "edit":
            return f"{by} changed and approved it{via}."
        case "respond":
            return f"{by} answered it{via}."
        case "reject":
            return f"{by} rejected it{via}."
        case "cancel":
            return f"{by} cancelled it."
        case "expire":
            return "Nobody decided in time."
        case _:
            return ""


def _has_comment(approval: Approval) -> bool:
    decision_record = approval.decision
    return (
        decision_record is not None
        and decision_record.by != SYSTEM_ACTOR
        and bool(decision_record.reason or decision_record.comment)
    )


def _value(field: CardField) -> str:
    """Return the value; one that is cut ends with its length."""
    text = field.text
    return text if len(text) <= MAX_VALUE else f"{shorten(text, MAX_VALUE)} ({field.length:,} characters)"


NO_APPROVAL = "told"  # for a message about no call
DIGITS = 12
NEEDS_ATTENTION = ("failed", "unknown")


def follow_up_setting(settings: Mapping[str, object]) -> bool:
    """Return the setting `follow_up`: whether the outcome of a call is sent."""
    enabled = settings.get("follow_up", True)
    if not isinstance(enabled, bool):
        raise Misconfigured("follow_up must be true or false")
    return enabled


def sent_state(message: Notification) -> str:
    approval_view = message.approval_view
    return (
        NO_APPROVAL
        if approval_view is None
        else f"{approval_view.status}/{approval_view.approval.args_sha256[:DIGITS]}"
    )


def needs_new_message(message: Notification, ref: str) -> bool:
    """Return whether to send a reminder, a first outcome, one that needs attention, new arguments, or pending again."""
    (before, _, digest), (now, _, digest_now) = ref.partition("/"), sent_state(message).partition("/")
    match message.purpose:
        case "remind":
            return True
        case "ended":
            return now != before and (before == "pending" or now in NEEDS_ATTENTION)
        case "changed":
            return (before, digest) != ("pending", digest_now)
        case _:
            return False
