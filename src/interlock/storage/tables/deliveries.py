"""Deliveries of notifications: routed from the ledger, claimed with a lease, retried, rate limited, or dead-lettered.

The ledger is the transactional outbox: an event is its own outbox row, numbered in commit order, so a reader of the
ledger misses none. Deliveries are planned outside of the transactions that change approvals, and stored together with a
mark: the number of the last routed event.

It is long because routing, claiming and recording read and write the same rows, under one lock for each workspace.
"""

from __future__ import annotations

import uuid
from asyncio import Future, Lock, get_running_loop, sleep
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, cast

from interlock.core.approval.approval import Approval
from interlock.core.call import PRIORITIES
from interlock.core.errors import Conflict, NotFound, StoreUnavailable
from interlock.core.ledger.event import SYSTEM_ACTOR, Event
from interlock.core.notify import delivery as deliveries
from interlock.core.notify.delivery import Delivery, DeliveryTarget, ReminderCounts, group_by_target
from interlock.core.ports import IsRunnerDead
from interlock.runtime.durations import MINUTE
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem, NamedRead

CONSUMER = "deliveries"
EVENTS_PER_BATCH = 500  # read for one batch
BATCH_SIZE = 50  # approvals whose deliveries are planned in one transaction
MAX_UNMARKED_ENTRIES = 5_000  # entries without a delivery, after which the mark is written anyway
COALESCE_DELAY = 0.005  # seconds in which more results may arrive, to be recorded together
MAX_WORKSPACES = 1_000
MAX_SENDING = 1_000
DELIVERY_KINDS = frozenset(
    {"delivered", "delivery_parked", "delivery_again"}
)  # ledger entries about deliveries themselves

NOTIFIED_STATUSES = ("pending", "expired")  # a call in any other status needs no first notification
DeliveryStep = Callable[[Delivery, int], Delivery]
UndeliverableReason = Callable[[str, str], str]  # for a workspace and a channel
PreparedRoute = tuple[int, object]  # the approval's version, and what was prepared for it
PendingFinish = tuple[Delivery, DeliveryStep, Future[Delivery | None]]


class RoutingBacklog(NamedTuple):
    """A workspace whose ledger has unrouted entries; a mark of -1 means that none was ever routed."""

    workspace: str
    mark: int
    head: int


DeliveryCursor = tuple[int, str]  # time and id of the last delivery on the page before
FROM_NEWEST: DeliveryCursor = (2**62, "")


class DeliveryPage(NamedTuple):
    items: Sequence[Delivery]
    next: DeliveryCursor | None


class DeliveryPlannerPort(Protocol):
    """Plans the deliveries of an approval: new ones, without an id, or changed ones."""

    def wakes_workflow(self, run_id: str) -> bool:
        """Return whether a workflow waits for calls of this run: it is notified even if nobody else was."""

    def prepare(self, approval: Approval) -> object:
        """Do the slow part outside of the transaction; the result is valid while the approval is unchanged."""

    def __call__(
        self, approval: Approval, known: Sequence[Delivery], now: int, prepared: object
    ) -> Iterable[Delivery]: ...


class ChannelIdentity(NamedTuple):
    channel: str
    external_id: str
    person: str
    at: int


class DisabledChannel(NamedTuple):
    """A disabled channel of a workspace, since when and why."""

    workspace: str
    channel: str
    disabled_at: int
    reason: str


class SqlDeliveries:
    """Deliveries. The steps of one workspace take turns: two in one batch could not see each other's changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._locks: dict[str, Lock] = defaultdict(Lock)
        self._pending_finishes: dict[str, list[PendingFinish]] = defaultdict(list)
        self._routed_up_to: dict[str, int] = {}  # nothing to route up to here: the stored mark costs a write

    # Routing from the ledger

    async def find_backlog(self, workspaces: Collection[str]) -> Sequence[RoutingBacklog]:
        """Return the backlogs of these workspaces; other ledgers are not read, since they have no channels."""
        names = f",{','.join(workspaces)},"
        found = [RoutingBacklog(*row) for row in await self._database.fetch("unrouted", names, MAX_WORKSPACES)]
        there = [each for each in found if each.workspace in workspaces]
        return [each for each in there if each.head > self._routed_up_to.get(each.workspace, -1)]

    async def start_routing(self, backlog: RoutingBacklog) -> None:
        """Set the first mark: of what happened before there was a channel, only pending approvals are notified."""
        first = await self._database.fetch("first_pending", backlog.workspace, backlog.workspace)
        start = first[0][0] - 1 if first else backlog.head

        def run(tx: Transaction) -> None:
            require_own_batch(tx, backlog.workspace)
            if not tx.fetch("consumer_offset", backlog.workspace, CONSUMER):
                tx.write("write_consumer_offset", backlog.workspace, CONSUMER, start)

        await self._write(backlog.workspace, run, ("consumer_offset", backlog.workspace, CONSUMER))

    async def route(self, backlog: RoutingBacklog, plan: DeliveryPlannerPort) -> RoutingBacklog | None:
        """Route one batch; return the rest, or None. If another process routed it first, that is just as good.

        A call that was decided before anybody was notified of it is skipped, without a transaction.
        """
        workspace, mark, head = backlog
        order: dict[str, None] = {}
        end = since = max(mark, self._routed_up_to.get(workspace, -1))
        found = await self._database.fetch("events_after_offset", workspace, since, since + EVENTS_PER_BATCH)
        for seq, approval_id, kind, status, known, run_id in found:
            if len(order) == BATCH_SIZE and approval_id not in order:
                break
            matters = known or status in NOTIFIED_STATUSES or (run_id and plan.wakes_workflow(run_id))
            order.update({approval_id: None} if kind not in DELIVERY_KINDS and matters else {})
            end = seq
        if not order and end - mark < MAX_UNMARKED_ENTRIES:
            self._routed_up_to[workspace] = end
            return backlog if since < end < head else None

        prepared = await self._prepare_routes(workspace, order, plan)

        def run(tx: Transaction) -> bool:
            require_own_batch(tx, workspace)
            found = tx.fetch("consumer_offset", workspace, CONSUMER)
            if (found[0][0] if found else -1) != mark:
                return False
            for approval_id in order:
                _route_approval(tx, workspace, approval_id, plan, prepared[approval_id])
            tx.write("write_consumer_offset", workspace, CONSUMER, end)
            return True

        reads = (
            ("consumer_offset", workspace, CONSUMER),
            *((name, workspace, each) for each in order for name in _ROUTE_READS),
        )
        async with self._locks[workspace]:
            went_on = await self._database.write(BatchItem(run, workspace, reads, is_short=False))
        return backlog._replace(mark=end) if went_on and end < head else None

    async def _prepare_routes(
        self, workspace: str, ids: Iterable[str], plan: DeliveryPlannerPort
    ) -> dict[str, PreparedRoute]:
        """Prepare outside of the transaction: there may be thousands of people, and decisions must not wait."""
        reads = tuple(("approval", workspace, each) for each in ids)
        look = BatchItem(lambda tx: [tx.approval(*key) for _, *key in reads], workspace, reads)
        found = await self._database.write(look)
        prepared = {}
        for approval in cast(list[Approval], found):
            prepared[approval.id] = (approval.version, plan.prepare(approval))
            await sleep(0)
        return prepared

    # Sending

    async def lease(
        self, workspace: str, channel: str, runner: str, limit: int, rate_per_minute: int
    ) -> Sequence[Delivery]:
        """Claim up to `limit` due deliveries for this runner; `rate_per_minute` limits messages per person or place."""
        item = claim(workspace, channel, runner, ClaimLimits(limit, rate_per_minute))
        while True:
            async with self._locks[workspace]:
                taken = cast(ClaimedDeliveries, await self._database.write(item))
            if taken.deliveries or not taken.has_more:
                return taken.deliveries

    async def next_due(self, workspace: str, channel: str) -> int | None:
        found: int | None = (await self._database.fetch("next_delivery", channel, workspace))[0][0]
        return found

    async def dead_letter_stranded(
        self, channels: Collection[tuple[str, str]], before: int, why: UndeliverableReason
    ) -> int:
        """Dead-letter deliveries due before that time whose workspace lacks their channel; return how many."""
        count = 0
        for (channel,) in await self._database.fetch("due_channels"):
            for workspace, due_at in await self._database.fetch("due_workspaces", channel, MAX_WORKSPACES):
                if due_at <= before and (workspace, channel) not in channels:
                    item = dead_letter_undeliverable(workspace, channel, before, why(workspace, channel))
                    async with self._locks[workspace]:
                        count += cast(int, await self._database.write(item))
        return count

    async def finish(self, delivery: Delivery, step: DeliveryStep) -> Delivery | None:
        """Record the result of an attempt, unless its lease was lost; results that arrive meanwhile share the write."""
        waiting: PendingFinish = (delivery, step, get_running_loop().create_future())
        self._pending_finishes[delivery.workspace].append(waiting)
        async with self._locks[delivery.workspace]:
            await sleep(COALESCE_DELAY if delivery.workspace in self._pending_finishes else 0)
            batch = self._pending_finishes.pop(delivery.workspace, [])
            if batch:
                await self._finish(delivery.workspace, batch)
        return await waiting[2]

    async def _finish(self, workspace: str, batch: Sequence[PendingFinish]) -> None:
        """Record a batch; a second result of the same delivery sees the first one."""

        def run(tx: Transaction) -> list[Delivery | None]:
            require_own_batch(tx, workspace)
            seen: dict[str, Delivery] = {}
            return [_finish_delivery(tx, claimed, step, seen) for claimed, step, _ in batch]

        results: list[Delivery | None] = []
        error: Exception = StoreUnavailable("It was not recorded because the program is stopping.")
        try:
            reads = tuple(("delivery", workspace, claimed.id) for claimed, _, _ in batch)
            results = await self._database.write(BatchItem(run, workspace, reads))
        except Exception as raised:  # noqa: BLE001  every waiter gets the error
            error = raised
        finally:
            for place, (_, _, future) in enumerate(batch):
                if future.done():
                    continue
                if results:
                    future.set_result(results[place])
                else:
                    future.set_exception(error)

    async def release_dead_runners(self, is_dead: IsRunnerDead) -> int:
        """Release the leases of dead runners at once."""
        released = 0
        for workspace, delivery_id, runner in await self._database.fetch("sending_deliveries", MAX_SENDING):
            held = await self.get(workspace, delivery_id) if is_dead(runner) else None
            if held is not None and held.status == "sending" and held.runner == runner:
                released += await self.finish(held, deliveries.release_unconfirmed) is not None
        return released

    # Lists and actions for people

    async def get(self, workspace: str, delivery_id: str) -> Delivery:
        return require_delivery(await self._database.fetch("delivery", workspace, delivery_id), delivery_id)

    async def for_approval(self, workspace: str, approval_id: str) -> Sequence[Delivery]:
        return [read_delivery(row) for row in await self._database.fetch("deliveries_of", workspace, approval_id)]

    async def list_deliveries(
        self, workspace: str, status: str, before: DeliveryCursor = FROM_NEWEST, limit: int = 100
    ) -> Sequence[Delivery]:
        """Return deliveries, the newest first."""
        at, last = before
        found = await self._database.fetch("listed_deliveries", workspace, status, at, at, last, limit)
        return [read_delivery(row) for row in found]

    async def page(self, workspace: str, status: str, channel: str, before: DeliveryCursor, limit: int) -> DeliveryPage:
        """Return a page, newest first. With a channel, the next 1,000 are scanned: a short page may not be the last."""
        look_at = 1_000 if channel else limit
        found = await self.list_deliveries(workspace, status, before, look_at)
        items = [each for each in found if not channel or each.target.channel == channel][:limit]
        if len(items) == limit:
            return DeliveryPage(items, _delivery_cursor(items[-1]))
        return DeliveryPage(items, _delivery_cursor(found[-1]) if len(found) == look_at else None)

    async def add(self, delivery: Delivery) -> Delivery:
        """Add a delivery without an event, such as a test message."""
        await self._write(delivery.workspace, lambda tx: save_delivery(tx, delivery))
        return delivery

    async def retry(self, workspace: str, delivery_id: str, by: str) -> Delivery:
        def run(tx: Transaction) -> Delivery:
            require_own_batch(tx, workspace)
            stored = require_delivery(tx.fetch("delivery", workspace, delivery_id), delivery_id)
            changed = deliveries.retry(stored, tx.moment(workspace).now)
            tx.append_events(workspace, [delivery_event("delivery_again", changed, stored, by)])
            save_delivery(tx, changed)
            return changed

        return cast(Delivery, await self._write(workspace, run, ("delivery", workspace, delivery_id)))

    async def use_link(self, workspace: str, delivery_id: str) -> bool:
        """Mark a delivery's link as used; return False if it was used before."""

        def run(tx: Transaction) -> bool:
            require_own_batch(tx, workspace)
            stored = require_delivery(tx.fetch("delivery", workspace, delivery_id), delivery_id)
            if stored.used_at is None:
                save_delivery(tx, replace(stored, used_at=tx.moment(workspace).now))
            return stored.used_at is None

        return cast(bool, await self._write(workspace, run, ("delivery", workspace, delivery_id)))

    # Identities on channels

    async def find_person(self, workspace: str, channel: str, external_id: str) -> str:
        found = await self._database.fetch("identity", workspace, channel, external_id)
        return str(found[0][0]) if found else ""

    async def identities(self, workspace: str) -> Sequence[ChannelIdentity]:
        return [ChannelIdentity(*row) for row in await self._database.fetch("identities", workspace)]

    async def bind(self, workspace: str, channel: str, external_id: str, person: str, by: str) -> None:
        """Link `external_id` of the channel to this person. Raises Conflict if it is linked to another one."""

        def run(tx: Transaction) -> None:
            require_own_batch(tx, workspace)
            found = tx.fetch("identity", workspace, channel, external_id)
            if found and found[0][0] != person:
                raise Conflict("This account belongs to somebody else here. They, or an admin, can remove it first.")
            tx.write("write_identity", workspace, channel, external_id, person, tx.moment(workspace).now)
            tx.append_events(
                workspace, [Event("identity_bound", by, {"channel": channel, "user": person}, "", {"is": external_id})]
            )

        await self._write(workspace, run)

    async def unbind(self, workspace: str, channel: str, external_id: str, by: str) -> None:
        def run(tx: Transaction) -> None:
            require_own_batch(tx, workspace)
            found = tx.fetch("identity", workspace, channel, external_id)
            if found:
                data = {"channel": channel, "user": found[0][0]}
                tx.write("drop_identity", workspace, channel, external_id)
                tx.append_events(workspace, [Event("identity_unbound", by, data, "", {"was": external_id})])

        await self._write(workspace, run, ("identity", workspace, channel, external_id))

    # Disabled channels

    async def disabled_channels(self) -> Sequence[DisabledChannel]:
        return [DisabledChannel(*row) for row in await self._database.fetch("disabled_channels")]

    async def disable_channel(self, workspace: str, channel: str, why: str, by: str = SYSTEM_ACTOR) -> bool:
        """Disable a channel; return False if it was disabled already."""

        def run(tx: Transaction) -> bool:
            if tx.fetch("disabled_channel", workspace, channel):
                return False
            tx.write("write_disabled_channel", workspace, channel, tx.moment(workspace).now, why)
            tx.append_events(workspace, [Event("channel_off", by, {"channel": channel}, "", {"why": why})])
            return True

        return cast(bool, await self._write(workspace, run, ("disabled_channel", workspace, channel)))

    async def enable_channel(self, workspace: str, channel: str, by: str) -> bool:
        """Enable a channel; return False if it was enabled already."""

        def run(tx: Transaction) -> bool:
            require_own_batch(tx, workspace)
            was_off = any(tuple(row[:2]) == (workspace, channel) for row in tx.fetch("disabled_channels"))
            if was_off:
                tx.write("delete_disabled_channel", workspace, channel)
                tx.append_events(workspace, [Event("channel_on", by, {"channel": channel})])
            return was_off

        return cast(bool, await self._write(workspace, run))

    async def _write(self, workspace: str, run: Callable[[Transaction], object], *reads: NamedRead) -> object:
        async with self._locks[workspace]:
            return await self._database.write(BatchItem(run, workspace, reads))


_ROUTE_READS = ("approval", "deliveries_of")


def _finish_delivery(
    tx: Transaction, delivery: Delivery, step: DeliveryStep, seen: dict[str, Delivery]
) -> Delivery | None:
    found = seen.get(delivery.id) or next(
        map(read_delivery, tx.fetch("delivery", delivery.workspace, delivery.id)), None
    )
    if found is None or found.fence != delivery.fence:
        return None
    changed = seen[delivery.id] = step(found, tx.moment(delivery.workspace).now)
    if changed.status == "parked":
        tx.append_events(delivery.workspace, [delivery_event("delivery_parked", changed, delivery)])
    elif (changed.sent_state, changed.reminders.sent) != (found.sent_state, found.reminders.sent):
        tx.append_events(delivery.workspace, [delivery_event("delivered", changed, delivery)])
    save_delivery(tx, changed)
    return changed


def _route_approval(
    tx: Transaction, workspace: str, approval_id: str, plan: DeliveryPlannerPort, prepared: PreparedRoute
) -> None:
    known = [read_delivery(row) for row in tx.fetch("deliveries_of", workspace, approval_id)]
    approval, now = tx.approval(workspace, approval_id), tx.moment(workspace).now
    version, worked_out = prepared
    for each in plan(approval, known, now, worked_out if version == approval.version else None):
        save_delivery(tx, each if each.id else replace(each, id=str(uuid.uuid4())))


def _delivery_cursor(delivery: Delivery) -> DeliveryCursor:
    return delivery.created_at, delivery.id


DUE_WINDOW = 200  # due deliveries of each priority that are read
FORCE_READ = ("consumer_offset", "", "")  # forces a read of the rows: the cache of approvals does not hold deliveries
MAX_COUNTED_ATTEMPTS = (
    3  # failed attempts move a delivery back in the queue, up to so many: the channel may work, and the message not
)


class ClaimLimits(NamedTuple):
    """Claim at most `limit` messages at once, and `rate_per_minute` for one person or place."""

    limit: int
    rate_per_minute: int


class ClaimedDeliveries(NamedTuple):
    """`has_more`: there are more due deliveries than were read."""

    deliveries: Sequence[Delivery]
    has_more: bool


def claim(workspace: str, channel: str, runner: str, bounds: ClaimLimits) -> BatchItem:
    """Claim due deliveries: some are sent, many are batched into one, and those above the rate limit wait a minute."""

    def run(tx: Transaction) -> ClaimedDeliveries:
        require_own_batch(tx, workspace)
        now = tx.moment(workspace).now
        due = _due_deliveries(tx, workspace, channel, now)
        more = any(sum(each.priority == priority for each in due) >= DUE_WINDOW for priority in PRIORITIES)
        go = _apply_rate_limit(tx, due, _recent_counts(tx, workspace, channel, now), bounds.rate_per_minute, now)
        able = [each for each in go if not (more and each.reason == "group")]  # a group grows until all are read
        taken = [deliveries.lease(each, runner, now) for each in sorted(able, key=_send_order)[: bounds.limit]]
        for each in taken:
            save_delivery(tx, each)
        return ClaimedDeliveries(taken, more)

    return BatchItem(run, workspace, (FORCE_READ,), is_short=False)


def dead_letter_undeliverable(workspace: str, channel: str, before: int, why: str) -> BatchItem:
    """Dead-letter deliveries due before that time, up to `DUE_WINDOW` of each priority; return how many."""

    def run(tx: Transaction) -> int:
        require_own_batch(tx, workspace)
        found = _due_deliveries(tx, workspace, channel, before)
        for each in found:
            given_up = deliveries.mark_dead(each, why)
            save_delivery(tx, given_up)
            tx.append_events(workspace, [delivery_event("delivery_parked", given_up, each)])
        return len(found)

    return BatchItem(run, workspace, (FORCE_READ,), is_short=False)


def require_own_batch(tx: Transaction, workspace: str) -> None:
    """Keep two of these steps out of one batch: each reads rows that the other may have changed."""
    tx.require_own_batch(f"deliveries of {workspace}")


def _due_deliveries(tx: Transaction, workspace: str, channel: str, now: int) -> list[Delivery]:
    values = [value for priority in PRIORITIES for value in (channel, workspace, priority, now, DUE_WINDOW)]
    return [read_delivery(row) for row in tx.fetch("due_deliveries", *values)]


def _recent_counts(tx: Transaction, workspace: str, channel: str, now: int) -> dict[DeliveryTarget, int]:
    """Count the messages of the last minute for each target, with those being sent."""
    found = tx.fetch("recent_send_counts", workspace, channel, now - MINUTE, workspace, channel, now)
    return {DeliveryTarget(channel, place, person): count for place, person, count in found}


def _apply_rate_limit(
    tx: Transaction, due: Sequence[Delivery], recent_counts: dict[DeliveryTarget, int], rate_per_minute: int, now: int
) -> list[Delivery]:
    sendable: list[Delivery] = []
    for (_, target), target_deliveries in group_by_target(due).items():
        rate_limit_plan = deliveries.plan_rate_limit(target_deliveries, recent_counts.get(target, 0), rate_per_minute)
        sendable += rate_limit_plan.send_now
        if rate_limit_plan.batch:
            group = deliveries.make_batch_delivery(rate_limit_plan.batch, str(uuid.uuid4()), now)
            save_delivery(tx, group)
            sendable.append(group)
        for each in rate_limit_plan.batch:
            save_delivery(tx, deliveries.mark_batched(each))
        for each in rate_limit_plan.deferred:
            save_delivery(tx, replace(each, status="due", due_at=now + MINUTE))
    return sendable


def _send_order(delivery: Delivery) -> tuple[int, int, bool, int]:
    return (
        min(delivery.attempts, MAX_COUNTED_ATTEMPTS),
        -PRIORITIES.index(delivery.priority),
        not delivery.is_notifying,
        delivery.pending_since,
    )


def delivery_event(kind: str, delivery: Delivery, previous: Delivery, actor: str = SYSTEM_ACTOR) -> Event:
    """Make the event: the channel, and whether it is a first message; the recipient is content, which can be erased."""
    data: dict[str, object] = {"delivery": delivery.id, "channel": delivery.target.channel, "reason": delivery.reason}
    data["what"] = "sent" if not previous.sent_state else "reminded" if previous.is_notifying else "changed"
    to = {"person": delivery.target.person, "place": delivery.target.destination, "error": delivery.error}
    return Event(kind, actor, data, delivery.approval_id, {key: text for key, text in to.items() if text} or None)


def save_delivery(tx: Transaction, d: Delivery) -> None:
    tx.write(
        "write_delivery",
        *(
            d.workspace,
            d.id,
            d.approval_id,
            *d.target,
            d.reason,
            d.priority,
            d.status,
            d.desired_state,
            d.sent_state,
            d.reminders.due,
            d.reminders.sent,
        ),
        *(d.ref, d.attempts, d.fence, d.runner, d.error, d.created_at, d.pending_since, d.due_at, d.sent_at, d.used_at),
    )


def require_delivery(found: Sequence[Row], delivery_id: str) -> Delivery:
    if not found:
        raise NotFound("There is no delivery with this id.", delivery_id=delivery_id)
    return read_delivery(found[0])


def read_delivery(row: Row) -> Delivery:
    workspace, delivery_id, approval_id, channel, place, person, reason, priority, status, wanted, said = row[:11]
    nudge, nudged, ref, attempts, fence, runner, error, created_at, since, due_at, sent_at, spent_at = row[11:]
    return Delivery(
        workspace=workspace,
        id=delivery_id,
        approval_id=approval_id,
        target=DeliveryTarget(channel, place, person),
        reason=reason,
        priority=priority,
        status=status,
        desired_state=wanted,
        created_at=created_at,
        pending_since=since,
        due_at=due_at,
        sent_state=said,
        reminders=ReminderCounts(nudge, nudged),
        ref=ref,
        attempts=attempts,
        fence=fence,
        runner=runner,
        sent_at=sent_at,
        error=error,
        used_at=spent_at,
    )
