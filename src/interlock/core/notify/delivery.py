"""Deliveries: one message through one channel about one approval, with retries, lease, rate limit and dead letters.

A delivery sends the newest state only: `desired_state` is compared with `sent_state`. A dead letter has the status
`parked`.
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
GIVE_UP_AFTER = 24 * 3_600_000  # a delivery that failed for so long becomes a dead letter
RETRY_DELAYS = (1, 2, 5, 10, 20, 30, 60)  # seconds before the next retry


class DeliveryTarget(NamedTuple):
    """The target of a delivery: one person, or a destination, which is the channel's own one if it is empty."""

    channel: str
    destination: str = ""
    person: str = ""


class ReminderCounts(NamedTuple):
    """How often the recipients are to be notified again, and how often they were."""

    due: int = 0
    sent: int = 0


NO_REMINDERS = ReminderCounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery; `due_at` is None if nothing is left to send; `pending_since` is when there was something new to send.

    `ref` is the channel's reference to the message, needed to update it.
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
    reminders: ReminderCounts = NO_REMINDERS
    ref: str = ""
    attempts: int = 0
    fence: int = 0
    runner: str = ""
    sent_at: int | None = None  # when it last notified somebody, or may have done so
    error: str = ""
    used_at: int | None = None  # when its link was used to decide

    @property
    def message_id(self) -> str:
        """The same for every attempt to send the same state: an idempotency key."""
        return f"{self.id}.{sha256(f'{self.desired_state}/{self.reminders.due}'.encode()).hexdigest()[:12]}"

    @property
    def is_notifying(self) -> bool:
        """Whether sending it notifies somebody; updating an existing message does not, nor does a wake-up."""
        return self.reason != "woken" and (not self.sent_state or self.reminders.due > self.reminders.sent)

    @property
    def is_possibly_sent(self) -> bool:
        """Whether it was sent, or may have been: an attempt with an unknown outcome."""
        return bool(self.sent_state) or self.sent_at is not None


def is_revised(delivery: Delivery) -> bool:
    """Whether the arguments differ from those that were sent."""
    return (
        bool(delivery.sent_state and delivery.approval_id)
        and _parse_fingerprint(delivery.sent_state).args != _parse_fingerprint(delivery.desired_state).args
    )


class ApprovalFingerprint(NamedTuple):
    """What a message shows of an approval: while it stays the same, there is nothing to send."""

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
        """Whether to notify recipients again: a reminder, other arguments, or an escalation that names them."""
        return self.reminded > earlier.reminded or self.args != earlier.args or escalation_level > earlier.escalated


def new_delivery(
    target: DeliveryTarget, delivery_id: str, approval: Approval, reason: Reason, now: int, due_at: int
) -> Delivery:
    """A new delivery; earlier reminders are not sent."""
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
    progress = (len(approval.votes), len(approval.delegations), approval.timers.escalated, approval.timers.reminded)
    return ApprovalFingerprint(status, approval.args_sha256[:12], *progress)


def update_delivery(
    delivery: Delivery, approval: Approval, now: int, notify_at: int, escalation_level: int | None
) -> Delivery:
    """Update a delivery after its approval changed.

    `escalation_level` is the last one that names its target, 0 for one notified from the beginning. With None nobody
    there has to act: a sent message is kept up to date, and an unsent one is dropped.
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
            reminders_due = delivery.reminders.due + (1 if more and delivery.sent_state else 0)
            return _set_desired(delivery, after.text, reminders_due, now, notify_at)


def decision_final_at(approval: Approval, now: int) -> int:
    """The time from which a decision is final: a rejection can be undone for a while."""
    return max(now, approval.deadlines.release_at or now) if approval.status == "rejected" else now


def drop(delivery: Delivery) -> Delivery:
    """Drop a delivery without a recipient; one that is being sent is checked afterwards."""
    if delivery.due_at is None or delivery.status == "sending":
        return delivery
    return replace(delivery, status="dropped", due_at=None)


def lease(delivery: Delivery, runner: str, now: int) -> Delivery:
    """Lease the delivery to one runner until the lease ends. A previous runner may have sent it."""
    before = release_unconfirmed(delivery, now) if delivery.status == "sending" else delivery
    return replace(before, status="sending", runner=runner, fence=delivery.fence + 1, due_at=now + LEASE)


def mark_sent(delivery: Delivery, claimed: Delivery, ref: str, now: int) -> Delivery:
    """Mark as sent; `claimed` is the delivery as it was leased and sent, since then there may be more to send."""
    updated = replace(
        delivery,
        sent_state=claimed.desired_state,
        reminders=delivery.reminders._replace(sent=claimed.reminders.due),
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
    """Schedule a retry; `retry_after` are milliseconds that the channel asked for, `retry_delays` the channel's own.

    It becomes a dead letter when those are used up; without them, when it has waited too long. A request that ended
    before anybody was notified is not retried.
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
    """Give up: a dead letter, until somebody retries it."""
    return replace(
        delivery, status="parked", runner="", due_at=None, attempts=delivery.attempts + 1, error=error or "unknown"
    )


def release_unconfirmed(delivery: Delivery, now: int) -> Delivery:
    """Release a delivery whose runner died, stopped responding or got no response: it may have been sent."""
    return replace(release(delivery, now), sent_at=now if delivery.is_notifying else delivery.sent_at)


def drop_obsolete(delivery: Delivery) -> Delivery:
    """Drop a request that needs no decision any more and was not sent."""
    return replace(delivery, status="dropped", runner="", due_at=None)


def postpone_wakeup(delivery: Delivery, now: int) -> Delivery:
    """Postpone a wake-up whose decision is not final; the ledger follower may be behind, so it is checked again."""
    if _parse_fingerprint(delivery.desired_state).status == "pending":
        return drop_obsolete(delivery)
    return replace(release(delivery, now), due_at=now + RETRY_DELAYS[0] * 1000)


def release(delivery: Delivery, now: int) -> Delivery:
    """Release a delivery that the runner did not try to send."""
    return replace(delivery, status="due", runner="", due_at=now)


def retry(delivery: Delivery, now: int) -> Delivery:
    if delivery.status not in ("parked", "due"):
        raise Conflict(f"Only due deliveries and dead letters can be retried; this one is {delivery.status}.")
    return replace(delivery, status="due", attempts=0, error="", pending_since=now, due_at=now)


class RateLimitPlan(NamedTuple):
    """Deliveries to send singly, to batch into one message, and to defer to the next minute."""

    send_now: Sequence[Delivery]
    batch: Sequence[Delivery] = ()
    deferred: Sequence[Delivery] = ()


def plan_rate_limit(due: Sequence[Delivery], recent_count: int, rate_per_minute: int) -> RateLimitPlan:
    """Plan what is due for one recipient, who got `recent_count` messages within a minute; most urgent first.

    Only requests are batched into one message: a notice needs no answer, and can wait.
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
    """Mark as sent within a batch; it has no message of its own that could be updated."""
    return replace(delivery, status="grouped", runner="", due_at=None)


def make_batch_delivery(deliveries: Sequence[Delivery], delivery_id: str, now: int) -> Delivery:
    """One message instead of many, with their number. An unsent batch can become part of another."""
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
    """A test message for a channel, requested by `by`."""
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
    """Update a wake-up: an undone decision wakes nothing; the next one does, even after an earlier wake-up."""
    after = approval_fingerprint(approval).text
    if delivery.status == "sending":  # the sender checks it afterwards
        was_taken_back = "pending" in (approval.status, _parse_fingerprint(delivery.desired_state).status)
        return replace(delivery, desired_state=after) if was_taken_back else delivery
    if approval.status == "pending":
        return replace(delivery, status="dropped", due_at=None, desired_state=after)
    if delivery.status != "dropped":
        return delivery
    updated = replace(
        delivery, status="due", desired_state=after, reminders=_one_more_reminder(delivery), attempts=0, error=""
    )
    return replace(updated, pending_since=now, due_at=decision_final_at(approval, now))


def _update_silently(delivery: Delivery, before: ApprovalFingerprint, after: ApprovalFingerprint, now: int) -> Delivery:
    """Nobody there has to act: no notification any more, and no new message."""
    if delivery.status in ("dropped", "grouped"):
        return delivery
    is_known = delivery.sent_state or (delivery.is_possibly_sent and after.status != "pending")
    if not is_known and delivery.status != "sending":
        return replace(delivery, status="dropped", due_at=None, desired_state=after.text)
    desired_state = delivery.desired_state if before._replace(reminded=after.reminded) == after else after.text
    return _set_desired(delivery, desired_state, delivery.reminders.sent, now, now)


def _set_desired(delivery: Delivery, desired_state: str, reminders_due: int, now: int, notify_at: int) -> Delivery:
    if (desired_state, reminders_due) == (delivery.desired_state, delivery.reminders.due):
        return delivery
    reminders = delivery.reminders._replace(due=reminders_due)
    changed = replace(delivery, desired_state=desired_state, reminders=reminders, attempts=0)
    if delivery.status == "sending":
        return changed  # the sender checks it afterwards
    return _refresh_status(replace(changed, due_at=notify_at if changed.is_notifying else now), now)


def _notify_again(delivery: Delivery, after: ApprovalFingerprint, now: int, notify_at: int) -> Delivery:
    """Notify recipients who were not to be notified, or only got a batch message."""
    updated = replace(
        delivery, status="due", desired_state=after.text, reminders=_one_more_reminder(delivery), attempts=0, error=""
    )
    return replace(updated, pending_since=now, due_at=notify_at)


def _one_more_reminder(delivery: Delivery) -> ReminderCounts:
    """A message that was sent is not sent again unless another reminder is due."""
    return delivery.reminders._replace(due=delivery.reminders.due + (1 if delivery.sent_state else 0))


def _refresh_status(delivery: Delivery, now: int) -> Delivery:
    """Due if something is left to send; `due_at` is when it may be sent."""
    if (delivery.desired_state, delivery.reminders.due) == (delivery.sent_state, delivery.reminders.sent):
        return replace(delivery, status="sent", due_at=None)
    return replace(delivery, status="due", pending_since=now, due_at=delivery.due_at or now)


def _urgency(delivery: Delivery) -> tuple[int, int]:
    return -PRIORITIES.index(delivery.priority), delivery.pending_since


Purpose = Literal["ask", "escalate", "remind", "changed", "ended", "expired", "woken", "group", "test"]


@dataclass(frozen=True, slots=True)
class Recipient:
    """A person with an address, or a shared destination; both are empty for the channel's own destination."""

    person: str = ""
    email: str = ""
    destination: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """One approval as people see it; `status` is by the clock, `schema` is the tool's, for editors.

    `args` are the redacted arguments, canonical; `secret_pointers` says where the secrets are.
    """

    approval: Approval
    status: str
    card: Card
    schema: Mapping[str, object] | None = None
    result: str = ""  # the result, in one line, escaped
    args: bytes = b""
    secret_pointers: tuple[str, ...] = ()
    declared: bool = False  # only the agent's program declares the tool

    @property
    def is_open(self) -> bool:
        return self.status == "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message; `id` is the same for every attempt, `thread` for all messages of one delivery.

    `link` opens the web app. `approval_view` is missing from a test and from a batch of `count` approvals.
    `requested_by` asked for a test. `revised`: the arguments differ from those that were sent before.
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
