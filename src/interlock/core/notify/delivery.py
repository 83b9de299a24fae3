"""One message through one channel, about one approval: what it has to say, and what became of it.

A delivery says the newest and nothing in between: what is `wanted` is compared with what was `said`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal, NamedTuple

from interlock.core.approval.approval import Approval
from interlock.core.call import PRIORITIES
from interlock.core.card import Card
from interlock.core.errors import Conflict

Status = Literal["due", "sending", "sent", "parked", "dropped", "grouped"]
Reason = Literal["asked", "escalated", "expired", "woken", "group", "test"]

LEASE = 60_000  # milliseconds; longer than a channel may take for one message
GIVE_UP_AFTER = 24 * 3_600_000  # what could not be said for so long is parked
RETRY_DELAYS = (1, 2, 5, 10, 20, 30, 60)  # seconds before the next try
MINUTE = 60_000


class DeliveryTarget(NamedTuple):
    """Where something is told: to one person, or at a place, which is the channel's own one if it is empty."""

    channel: str
    destination: str = ""
    person: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """`due_at` is None when all is said; `pending_since` is when there was something new to say.

    `ref` is what the channel gave for the message, and is given back to change it.
    """

    workspace: str
    id: str
    approval_id: str
    target: DeliveryTarget
    reason: Reason
    priority: str
    status: Status
    desired_state: str
    created_at: int
    pending_since: int
    due_at: int | None
    sent_state: str = ""
    reminders_due: int = 0  # how often those who were told are to be disturbed again, and how often they were
    reminders_sent: int = 0
    ref: str = ""
    attempts: int = 0
    fence: int = 0
    runner: str = ""
    sent_at: int | None = None  # when it last made a noise, or may have made one
    error: str = ""
    used_at: int | None = None  # when its link was used to decide

    @property
    def message_id(self) -> str:
        """The same for every try to say the same thing."""
        return f"{self.id}.{sha256(f'{self.desired_state}/{self.reminders_due}'.encode()).hexdigest()[:12]}"

    @property
    def is_notifying(self) -> bool:
        """Whether somebody is disturbed by it; changing a message that is there disturbs nobody, nor does waking."""
        return self.reason != "woken" and (not self.sent_state or self.reminders_due > self.reminders_sent)

    @property
    def is_possibly_sent(self) -> bool:
        """Whether somebody was told, or may have been: a try whose end nobody knows."""
        return bool(self.sent_state) or self.sent_at is not None


def is_revised(delivery: Delivery) -> bool:
    """Whether the arguments are others than those that were told."""
    return (
        bool(delivery.sent_state and delivery.approval_id)
        and _parse_fingerprint(delivery.sent_state).args != _parse_fingerprint(delivery.desired_state).args
    )


class ApprovalFingerprint(NamedTuple):
    """What a message shows of an approval: while it stays the same, there is nothing to say."""

    status: str
    args: str
    votes: int
    delegations: int
    escalated: int
    reminded: int

    @property
    def text(self) -> str:
        return "/".join(map(str, self))

    def needs_renotification(self, earlier: ApprovalFingerprint, escalation_level: int) -> bool:
        """Whether those who were told have to look again: a reminder, other arguments, or a rung that names them."""
        return self.reminded > earlier.reminded or self.args != earlier.args or escalation_level > earlier.escalated


def new_delivery(
    target: DeliveryTarget, delivery_id: str, approval: Approval, reason: Reason, now: int, due_at: int
) -> Delivery:
    """Reminders from before it are not made up for."""
    return Delivery(
        workspace=approval.subject.workspace,
        id=delivery_id,
        approval_id=approval.id,
        target=target,
        reason=reason,
        priority=approval.terms.priority,
        status="due",
        desired_state=approval_fingerprint(approval).text,
        created_at=now,
        pending_since=now,
        due_at=due_at,
    )


def approval_fingerprint(approval: Approval) -> ApprovalFingerprint:
    status = "approved" if approval.status == "running" else approval.status
    progress = (len(approval.votes), len(approval.delegations), approval.escalated, approval.reminded)
    return ApprovalFingerprint(status, approval.args_sha256[:12], *progress)


def update_delivery(
    delivery: Delivery, approval: Approval, now: int, notify_at: int, escalation_level: int | None
) -> Delivery:
    """After its approval changed. `escalation_level` is the last one that names its way, 0 if it was told from the
    beginning.

    Without one nobody there has to do anything: what was said is kept right, and what was not is dropped.
    """
    if delivery.reason == "expired":
        return delivery
    if delivery.reason == "woken":
        return _update_wakeup(delivery, approval, now)
    before, after = _parse_fingerprint(delivery.desired_state), approval_fingerprint(approval)
    if approval.status != "pending" or escalation_level is None:
        return _update_silently(delivery, before, after, now)
    more = after.needs_renotification(before, escalation_level)
    match delivery.status:
        case "dropped":
            return _notify_again(delivery, after, now, notify_at)
        case "grouped":
            return _notify_again(delivery, after, now, notify_at) if more else delivery
        case _:
            reminders_due = delivery.reminders_due + (1 if more and delivery.sent_state else 0)
            return _set_desired(delivery, after.text, reminders_due, now, notify_at)


def decision_final_at(approval: Approval, now: int) -> int:
    """From when on a decision stands: a rejection can be taken back for a while."""
    return max(now, approval.release_at or 0) if approval.status == "rejected" else now


def drop(delivery: Delivery) -> Delivery:
    """There is nobody to tell any more; what is being sent is looked at when it was."""
    if delivery.due_at is None or delivery.status == "sending":
        return delivery
    return replace(delivery, status="dropped", due_at=None)


def lease(delivery: Delivery, runner: str, now: int) -> Delivery:
    """In the hands of a runner, who has it alone until the lease ends. Who had it before may have told it."""
    before = release_unconfirmed(delivery, now) if delivery.status == "sending" else delivery
    return replace(before, status="sending", runner=runner, fence=delivery.fence + 1, due_at=now + LEASE)


def mark_sent(delivery: Delivery, claimed: Delivery, ref: str, now: int) -> Delivery:
    """`claimed` is what was claimed and is said now; meanwhile there may be more to say."""
    updated = replace(
        delivery,
        sent_state=claimed.desired_state,
        reminders_sent=claimed.reminders_due,
        ref=ref,
        attempts=0,
        error="",
        runner="",
        due_at=now,
        sent_at=now if claimed.is_notifying else delivery.sent_at,
    )
    return _refresh_status(updated, now)


def mark_failed(
    delivery: Delivery,
    error: str,
    now: int,
    *,
    retry_after: int = 0,
    jitter: float = 1.0,
    retry_delays: Sequence[int] = (),
) -> Delivery:
    """Tried again; `retry_after` are milliseconds that the channel asked for, and `retry_delays` the channel's own.

    It is parked when those are over; without them, when it has waited too long. What has ended before anybody heard
    of it needs no other try.
    """
    asks = delivery.reason in ("asked", "escalated")
    if asks and not delivery.is_possibly_sent and _parse_fingerprint(delivery.desired_state).status != "pending":
        return replace(drop_obsolete(delivery), error=error)
    if delivery.attempts >= len(retry_delays) if retry_delays else now - delivery.pending_since >= GIVE_UP_AFTER:
        return mark_dead(delivery, error)
    seconds = (retry_delays or RETRY_DELAYS)[min(delivery.attempts, len(retry_delays or RETRY_DELAYS) - 1)]
    due_at = now + max(retry_after, round(seconds * 1000 * jitter))
    return replace(delivery, status="due", runner="", attempts=delivery.attempts + 1, error=error, due_at=due_at)


def mark_dead(delivery: Delivery, error: str) -> Delivery:
    """Given up, until somebody says to send it again."""
    return replace(
        delivery, status="parked", runner="", due_at=None, attempts=delivery.attempts + 1, error=error or "unknown"
    )


def release_unconfirmed(delivery: Delivery, now: int) -> Delivery:
    """Out of the hands of a runner who died, stands still or got no answer: perhaps it was told."""
    return replace(release(delivery, now), sent_at=now if delivery.is_notifying else delivery.sent_at)


def drop_obsolete(delivery: Delivery) -> Delivery:
    """There is nothing to decide any more, and nobody was asked."""
    return replace(delivery, status="dropped", runner="", due_at=None)


def postpone_wakeup(delivery: Delivery, now: int) -> Delivery:
    """A wake-up whose decision does not stand. Whoever follows the ledger may not know yet: then it is looked again."""
    if _parse_fingerprint(delivery.desired_state).status == "pending":
        return drop_obsolete(delivery)
    return replace(release(delivery, now), due_at=now + RETRY_DELAYS[0] * 1000)


def release(delivery: Delivery, now: int) -> Delivery:
    """Out of the hands of a runner who did not try."""
    return replace(delivery, status="due", runner="", due_at=now)


def retry(delivery: Delivery, now: int) -> Delivery:
    if delivery.status not in ("parked", "due"):
        raise Conflict(f"Only what waits or was given up can be sent again; this is {delivery.status}.")
    return replace(delivery, status="due", attempts=0, error="", pending_since=now, due_at=now)


class RateLimitPlan(NamedTuple):
    """What may go by itself, what becomes one message, and what waits for the next minute."""

    send_now: Sequence[Delivery]
    batch: Sequence[Delivery] = ()
    deferred: Sequence[Delivery] = ()


def plan_rate_limit(due: Sequence[Delivery], recent_count: int, rate_per_minute: int) -> RateLimitPlan:
    """Of what is due for one person or place, of whom `recent_count` were told within a minute; the most urgent go
    first.

    Only what asks becomes one message: a notice needs no answer, and can wait.
    """
    silent = [each for each in due if not each.is_notifying or each.reason == "test"]
    notifying = sorted((each for each in due if each.is_notifying and each.reason != "test"), key=_urgency)
    requests = [each for each in notifying if each.reason != "expired"]
    notices = [each for each in notifying if each.reason == "expired"]
    remaining = max(0, rate_per_minute - recent_count)
    if remaining == 0:
        return RateLimitPlan(silent, (), notifying)
    if len(requests) > remaining:
        return RateLimitPlan([*silent, *requests[: remaining - 1]], requests[remaining - 1 :], notices)
    free_slots = remaining - len(requests)
    return RateLimitPlan([*silent, *requests, *notices[:free_slots]], (), notices[free_slots:])


def mark_batched(delivery: Delivery) -> Delivery:
    """Told as one of many; there is no message of its own that could be changed."""
    return replace(delivery, status="grouped", runner="", due_at=None)


def make_batch_delivery(deliveries: Sequence[Delivery], delivery_id: str, now: int) -> Delivery:
    """One message in the place of many: how many wait. One that was not sent yet can become part of another."""
    first = deliveries[0]
    count = str(sum(int(each.desired_state) if each.reason == "group" else 1 for each in deliveries))
    return Delivery(
        workspace=first.workspace,
        id=delivery_id,
        approval_id="",
        target=first.target,
        reason="group",
        priority=first.priority,
        status="due",
        desired_state=count,
        created_at=now,
        pending_since=now,
        due_at=now,
    )


def make_test_delivery(workspace: str, delivery_id: str, target: DeliveryTarget, by: str, now: int) -> Delivery:
    """A message that shows that the channel works; `by` wanted to know."""
    return Delivery(
        workspace=workspace,
        id=delivery_id,
        approval_id="",
        target=target,
        reason="test",
        priority="low",
        status="due",
        desired_state=by,
        created_at=now,
        pending_since=now,
        due_at=now,
    )


def group_by_target(deliveries: Iterable[Delivery]) -> Mapping[tuple[str, DeliveryTarget], list[Delivery]]:
    found: dict[tuple[str, DeliveryTarget], list[Delivery]] = {}
    for each in deliveries:
        found.setdefault((each.workspace, each.target), []).append(each)
    return found


def _parse_fingerprint(text: str) -> ApprovalFingerprint:
    status, args, *numbers = text.split("/")
    return ApprovalFingerprint(status, args, *map(int, numbers))


def _update_wakeup(delivery: Delivery, approval: Approval, now: int) -> Delivery:
    """A decision that was taken back wakes nobody; the next one does, also if somebody was quick and woken before."""
    after = approval_fingerprint(approval).text
    if delivery.status == "sending":  # whoever sends it looks again afterwards
        was_taken_back = "pending" in (approval.status, _parse_fingerprint(delivery.desired_state).status)
        return replace(delivery, desired_state=after) if was_taken_back else delivery
    if approval.status == "pending":
        return replace(delivery, status="dropped", due_at=None, desired_state=after)
    if delivery.status != "dropped":
        return delivery
    reminders_due = delivery.reminders_due + (1 if delivery.sent_state else 0)
    updated = replace(delivery, status="due", desired_state=after, reminders_due=reminders_due, attempts=0, error="")
    return replace(updated, pending_since=now, due_at=decision_final_at(approval, now))


def _update_silently(delivery: Delivery, before: ApprovalFingerprint, after: ApprovalFingerprint, now: int) -> Delivery:
    """Nobody there has to do anything: no noise any more, and no message that was not there yet."""
    if delivery.status in ("dropped", "grouped"):
        return delivery
    is_known = delivery.sent_state or (delivery.is_possibly_sent and after.status != "pending")
    if not is_known and delivery.status != "sending":
        return replace(delivery, status="dropped", due_at=None, desired_state=after.text)
    desired_state = delivery.desired_state if before._replace(reminded=after.reminded) == after else after.text
    return _set_desired(delivery, desired_state, delivery.reminders_sent, now, now)


def _set_desired(delivery: Delivery, desired_state: str, reminders_due: int, now: int, notify_at: int) -> Delivery:
    if (desired_state, reminders_due) == (delivery.desired_state, delivery.reminders_due):
        return delivery
    changed = replace(delivery, desired_state=desired_state, reminders_due=reminders_due, attempts=0)
    if delivery.status == "sending":
        return changed  # whoever sends it looks again afterwards
    return _refresh_status(replace(changed, due_at=notify_at if changed.is_notifying else now), now)


def _notify_again(delivery: Delivery, after: ApprovalFingerprint, now: int, notify_at: int) -> Delivery:
    """Those who were not to be told, or were told as one of many, have to hear of it now."""
    reminders_due = delivery.reminders_due + (1 if delivery.sent_state else 0)
    updated = replace(
        delivery, status="due", desired_state=after.text, reminders_due=reminders_due, attempts=0, error=""
    )
    return replace(updated, pending_since=now, due_at=notify_at)


def _refresh_status(delivery: Delivery, now: int) -> Delivery:
    """Due if something is left to say; `due_at` says when it may be said."""
    if (delivery.desired_state, delivery.reminders_due) == (delivery.sent_state, delivery.reminders_sent):
        return replace(delivery, status="sent", due_at=None)
    return replace(delivery, status="due", pending_since=now, due_at=delivery.due_at or now)


def _urgency(delivery: Delivery) -> tuple[int, int]:
    return -PRIORITIES.index(delivery.priority), delivery.pending_since


Purpose = Literal["ask", "escalate", "remind", "changed", "ended", "expired", "woken", "group", "test"]


@dataclass(frozen=True, slots=True)
class Recipient:
    """A person with an address, or a place that many look at; both are empty for the channel's own place."""

    person: str = ""
    email: str = ""
    destination: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """One approval as people see it. `status` is by the clock; `schema` is the tool's, for those who can edit.

    `args` are the arguments as they are shown, canonical, with marks in the place of secrets; `secret_pointers` says
    where these are.
    """

    approval: Approval
    status: str
    card: Card
    schema: Mapping[str, object] | None = None
    result: str = ""  # what came of it, in one line; made visible
    args: bytes = b""
    secret_pointers: tuple[str, ...] = ()
    declared: bool = False  # only the agent's program says what the tool is

    @property
    def is_open(self) -> bool:
        return self.status == "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """`id` is the same for every try, `thread` for all messages of one delivery; `link` leads to the page.

    `approval_view` is missing from a test and from a message for many, of which there are `count`. `requested_by`
    wanted a test. `revised`: the arguments are others than those that were told before.
    """

    id: str
    thread: str
    workspace: str
    purpose: Purpose
    to: Recipient
    link: str
    at: int
    approval_view: ApprovalView | None = None
    count: int = 0
    requested_by: str = ""
    revised: bool = False
