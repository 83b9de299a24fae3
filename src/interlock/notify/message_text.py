"""The words of a message, the same in every channel: what is asked, what became of it, and why somebody is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from interlock.core.approval.approval import Approval
from interlock.core.approval.vote import next_approvers_text, total_quorum
from interlock.core.call import QUESTION_TOOL
from interlock.core.card import CardField, head_and_tail, visible
from interlock.core.errors import Misconfigured
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.core.notify.delivery import ApprovalView, Notification

MAX_NAME = 100  # characters of an argument's name
MAX_WARNING = 500
MAX_VALUE = 300  # characters of an argument; the page shows all of them


def title(message: Notification, limit: int = 150) -> str:
    """One line: what this is about."""
    return shorten(_title(message), limit)


def status_sentence(topic: ApprovalView) -> str:
    """One sentence: how it stands now, and who made it so."""
    approval, decided = topic.approval, topic.approval.decision
    if topic.status == "pending":
        return approvers_sentence(approval)
    if decided is None:
        return f"This is {topic.status}."
    by = "Interlock" if decided.by == SYSTEM_ACTOR else visible(decided.by)
    via = f" through {visible(decided.via)}" if decided.via else ""
    why = (
        f" They wrote: {shorten(visible(decided.reason or decided.comment), MAX_VALUE)}"
        if _has_comment(approval)
        else ""
    )
    return f"{_ENDED.get(topic.status, topic.status.capitalize())} {_decision_sentence(topic, by, via)}{why}".replace(
        "  ", " "
    )


def approvers_sentence(approval: Approval) -> str:
    """Who has to say yes, how many of them, and until when."""
    have, need = len({vote.seat for vote in approval.votes}), total_quorum(approval)
    votes = f" {have} of {need} have agreed." if need > 1 else ""
    return f"It waits for {next_approvers_text(approval)} until {utc_time(approval.expires_at)}.{votes}"


def arguments(topic: ApprovalView, limit: int = 20) -> list[tuple[str, str]]:
    """Names and values of what the call would be made with; a last line counts what is left out."""
    fields = [field for field in topic.card.fields if field.type not in ("object", "array") or not field.length]
    shown = [(field.pointer.removeprefix("/") or field.name, _value(field)) for field in fields[:limit]]
    more = len(fields) - len(shown)
    return [
        *((shorten(visible(name), MAX_NAME), value) for name, value in shown),
        *([("…", f"{more} more on the page")] if more > 0 else []),
    ]


def claims(topic: ApprovalView, limit: int = MAX_VALUE) -> list[tuple[str, str]]:
    """What only the agent's program says of the call, under names that say so."""
    said = {
        "The agent's description, unverified": topic.card.agent_description,
        "The agent's preview, unverified": topic.card.agent_preview,
    }
    return [(label, shorten(text, limit)) for label, text in said.items() if text]


def warnings(topic: ApprovalView) -> list[str]:
    """What may deceive, in the words of the card."""
    return [shorten(visible(each.message), MAX_WARNING) for each in topic.card.findings if each.level == "alarm"]


def utc_time(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def shorten(text: str, limit: int) -> str:
    """A visible text, cut in its middle, never inside an escape."""
    if len(text) <= limit:
        return text
    head, tail = head_and_tail(text, limit - 5)
    return f"{head} … {tail}"


def _title(message: Notification) -> str:
    topic = message.topic
    if topic is None:
        if message.purpose == "group":
            return f"{message.count} more calls wait for you"
        return f"A test from Interlock, sent for {visible(message.by)}"
    asks = topic.approval.subject.tool == QUESTION_TOOL  # whose sentence is the agent's question
    sentence = f"The agent asks: {topic.card.sentence}" if asks else topic.card.sentence
    match message.purpose:
        case "remind":
            return f"{'Changed' if message.revised else 'Reminder'}: {sentence}"
        case "escalate":
            return f"Escalated: {sentence}"
        case "expired":
            return f"Nobody decided in time: {sentence}"
        case "ended":
            return f"{_ENDED.get(topic.status, topic.status.capitalize()).rstrip('.')}: {sentence}"
        case _:
            return sentence


_ENDED = {
    "approved": "Approved.",
    "rejected": "Rejected.",
    "responded": "Answered.",
    "expired": "Expired.",
    "cancelled": "Withdrawn.",
    "succeeded": "Done.",
    "failed": "Failed.",
    "unknown": "Nobody knows whether it ran.",
}


def _decision_sentence(topic: ApprovalView, by: str, via: str) -> str:
    decided = topic.approval.decision
    match decided.kind if decided else "":
        case "approve":
            return f"{by} approved it{via}."
        case "edit":
            return f"{by} changed and approved it{via}."
        case "respond":
            return f"{by} answered it{via}."
        case "reject":
            return f"{by} rejected it{via}."
        case "cancel":
            return f"{by} withdrew it."
        case "expire":
            return "Nobody decided in time."
        case _:
            return ""


def _has_comment(approval: Approval) -> bool:
    decided = approval.decision
    return decided is not None and decided.by != SYSTEM_ACTOR and bool(decided.reason or decided.comment)


def _value(field: CardField) -> str:
    """What is cut says how long it is."""
    text = field.text
    return text if len(text) <= MAX_VALUE else f"{shorten(text, MAX_VALUE)} ({field.length:,} characters)"


NO_APPROVAL = "told"  # of what is about no call
DIGITS = 12
NEEDS_ATTENTION = ("failed", "unknown")


def follow_up_setting(settings: Mapping[str, object]) -> bool:
    """The setting `follow_up`: whether people are told what became of a call."""
    wanted = settings.get("follow_up", True)
    if not isinstance(wanted, bool):
        raise Misconfigured("follow_up is true or false")
    return wanted


def sent_state(message: Notification) -> str:
    topic = message.topic
    return NO_APPROVAL if topic is None else f"{topic.status}/{topic.approval.args_sha256[:DIGITS]}"


def needs_new_message(message: Notification, ref: str) -> bool:
    """A reminder, the first end, an end that somebody has to look at, other arguments, or that it waits again."""
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
