"""Queue of one channel in one workspace: claims deliveries with a lease, sends them, retries, and backs off.

A limited number of messages is sent concurrently, and none while the service is down. A result is recorded at once,
together with others; a delivery whose lease is about to end is released. After a crash in between, the message is sent
again with the same id.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from interlock.core.errors import DeliveryFailed, Error, NotFound, Stale, StoreUnavailable
from interlock.core.notify import delivery as deliveries
from interlock.core.notify.delivery import ApprovalView, Delivery, Notification
from interlock.core.notify.routing import ChannelCapabilities
from interlock.core.ports import Clock, IsRunnerDead
from interlock.notify.channel import Channel, ChannelGone, DeliveryDelayed, DeliveryRejected, DeliveryUnknown
from interlock.storage.tables.deliveries import DeliveryStep, SqlDeliveries

POLL_SECONDS = 1.0  # seconds: a wake-up is only a hint, and other processes write to the same database
MAX_CONCURRENT = 8  # messages sent concurrently through a channel
CLAIM_BATCH = 64  # deliveries claimed together
SEND_TIMEOUT = 20  # seconds for one message; the lease is longer
MAX_UNEXPECTED_ERRORS = 5  # attempts that ended in an unexpected error, before a delivery becomes a dead letter
MAX_BACKOFF = 30_000  # milliseconds of back-off while a channel is down
MAX_RECORD_TRIES = 100  # attempts to record a result, while the lease lasts
RECORD_RETRY_SECONDS = 0.2  # seconds between them

ComposeMessage = Callable[[Delivery], Awaitable[Notification]]


class DispatchLog(Protocol):
    def write(self, level: Literal["info", "warning", "error"], event: str, **facts: object) -> None: ...
    def write_exception(self, event: str, error: BaseException, **facts: object) -> None: ...


@dataclass(frozen=True, kw_only=True)
class DispatchContext:
    """Shared by all queues; `compose` builds the message of a delivery."""

    store: SqlDeliveries
    clock: Clock
    runner: str
    compose: ComposeMessage
    log: DispatchLog
    is_dead: IsRunnerDead = lambda _: False


class ChannelQueue:
    """Sends the deliveries of one channel. While it is down, the back-off grows up to half a minute.

    Then a few messages are tried; once one is accepted, the others follow.
    """

    def __init__(
        self, workspace: str, name: str, channel: Channel, capabilities: ChannelCapabilities, context: DispatchContext
    ) -> None:
        self.workspace = workspace
        self.name = name
        self.wake_event = asyncio.Event()
        self._channel = channel
        self._capabilities = capabilities
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._stop = asyncio.Event()
        self._failures = 0
        self._backoff_until = 0
        self._is_blocked = False  # nothing could be claimed: the channel is disabled, or the database is down

    async def run(self, stop: asyncio.Event) -> None:
        self._stop = stop
        while not stop.is_set():
            self.wake_event.clear()
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001  a bug in one queue must not end the others
                self._context.log.write_exception("lane_failed", error, workspace=self.workspace, channel=self.name)
                self._is_blocked = True
            await self._pause(stop)

    async def sweep(self) -> int:
        """Send what is due, up to `MAX_CONCURRENT` at a time; return how many were sent."""
        waiting: deque[Delivery] = deque()
        in_flight: set[asyncio.Task[int]] = set()
        sent_count = 0
        try:
            while True:
                if not waiting and len(in_flight) < MAX_CONCURRENT:
                    waiting.extend(await self._claim())
                while waiting and self._can_send and len(in_flight) < MAX_CONCURRENT:
                    in_flight.add(asyncio.create_task(self._process(waiting.popleft())))
                if not in_flight:
                    break
                completed, in_flight = await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
                sent_count += sum(task.result() for task in completed)
        finally:
            for task in in_flight:
                task.cancel()
            await asyncio.gather(*in_flight, *map(self._release, waiting), return_exceptions=True)
        return sent_count

    @property
    def _key(self) -> tuple[str, str]:
        return self.workspace, self.name

    @property
    def _can_send(self) -> bool:
        return self._clock() >= self._backoff_until and not self._stop.is_set()

    async def _claim(self) -> Sequence[Delivery]:
        """Claim deliveries; only a few while the channel may still be down."""
        self._is_blocked = False
        if not self._can_send:
            return ()
        try:
            self._is_blocked = any(each[:2] == self._key for each in await self._store.disabled_channels())
            if self._is_blocked:
                return ()
            limit = MAX_CONCURRENT if self._failures else CLAIM_BATCH
            return await self._store.lease(*self._key, self._context.runner, limit, self._capabilities.rate_per_minute)
        except Error:  # the database is down; deliveries stay due
            self._is_blocked = True
            return ()

    # One message

    async def _process(self, delivery: Delivery) -> int:
        """Release a delivery whose lease is about to end, since another runner may claim it; else try it."""
        if self._clock() + SEND_TIMEOUT * 1000 > (delivery.due_at or 0):
            await self._release(delivery)
            return 0
        return await self._try(delivery)

    async def _try(self, delivery: Delivery) -> int:
        """Send a delivery and record the result. If it cannot be recorded, the lease ends."""
        try:
            async with asyncio.timeout(SEND_TIMEOUT):
                ref = await self._send(delivery)
        except DeliveryDelayed as error:
            self._back_off(error.retry_after)
            await self._record_failure(
                delivery, error.message, round(error.retry_after * 1000), is_unsure=isinstance(error, DeliveryUnknown)
            )
        except TimeoutError:
            self._back_off(0)
            await self._record_failure(delivery, f"No response within {SEND_TIMEOUT} seconds.", is_unsure=True)
        except StoreUnavailable:
            await self._record_failure(delivery, "The database did not respond.")
        except ChannelGone as error:
            await self._switch_off(error.message)
            await self._record_dead(delivery, error.message)
        except (DeliveryRejected, NotFound, DeliveryFailed) as error:
            await self._record_dead(delivery, error.message)
        except Exception as error:  # noqa: BLE001  one message must not end the queue
            self._context.log.write_exception("delivery_failed", error)
            await self._record_unexpected_error(delivery, type(error).__name__)
        else:
            return await self._record_result(delivery, ref)
        return 0

    async def _send(self, delivery: Delivery) -> str | None:
        """Send it; None for a call decided before anybody was notified, or a wake-up whose decision is not final."""
        message = await self._context.compose(delivery)
        if message.purpose == "ended" and not delivery.is_possibly_sent:
            return None
        if message.purpose == "woken" and not _is_final(message.approval_view, self._clock()):
            return None
        return await self._send_or_update(delivery, message)

    async def _send_or_update(self, delivery: Delivery, message: Notification) -> str:
        """Send a first message, or update the one that was sent before; a channel may forget to return a reference."""
        if delivery.sent_state:
            return await self._channel.update(message, delivery.ref) or ""
        return await self._channel.send(message) or ""

    # Recording the result

    async def _record_result(self, claimed: Delivery, ref: str | None) -> int:
        if ref is None and claimed.reason == "woken":
            await self._record(claimed, deliveries.postpone_wakeup)
            return 0
        if ref is None:
            await self._record(claimed, lambda stored, _: deliveries.drop_obsolete(stored))
            return 0
        self._failures = 0
        return int(await self._record_sent(claimed, ref))

    async def _record_sent(self, claimed: Delivery, ref: str) -> bool:
        finished = await self._record(claimed, lambda stored, now: deliveries.mark_sent(stored, claimed, ref, now))
        return finished is not None

    async def _record_failure(
        self, claimed: Delivery, error: str, retry_after: int = 0, *, is_unsure: bool = False
    ) -> None:
        jitter = random.uniform(0.5, 1.0)  # noqa: S311  failures at the same time must not retry at the same time
        self._context.log.write(
            "warning", "delivery_failed", workspace=self.workspace, channel=self.name, delivery=claimed.id, note=error
        )
        retry_delays = self._capabilities.retry_delays

        def step(stored: Delivery, now: int) -> Delivery:
            tried = deliveries.release_unconfirmed(stored, now) if is_unsure else stored
            return deliveries.mark_failed(
                tried, error, now, retry_after=retry_after, jitter=jitter, retry_delays=retry_delays
            )

        await self._record(claimed, step)

    async def _record_dead(self, claimed: Delivery, error: str) -> None:
        self._context.log.write(
            "error", "delivery_parked", workspace=self.workspace, channel=self.name, delivery=claimed.id, note=error
        )
        await self._record(claimed, lambda stored, _: deliveries.mark_dead(stored, error))

    async def _record_unexpected_error(self, claimed: Delivery, name: str) -> None:
        error = f"Unexpected error ({name}); see the log."
        if claimed.attempts + 1 >= MAX_UNEXPECTED_ERRORS:
            await self._record_dead(claimed, error)
        else:
            await self._record_failure(claimed, error)

    async def _release(self, delivery: Delivery) -> None:
        with suppress(Error):  # else the lease ends
            await self._store.finish(delivery, deliveries.release)

    async def _switch_off(self, why: str) -> None:
        with suppress(Error):  # the next message gets the same answer
            await self._store.disable_channel(*self._key, why)

    async def _record(self, claimed: Delivery, step: DeliveryStep) -> Delivery | None:
        """Record a result; retried within the lease while the database is down, so that nothing is sent twice."""
        for _ in range(MAX_RECORD_TRIES):
            try:
                return await self._store.finish(claimed, step)
            except (StoreUnavailable, Stale):
                if self._clock() >= (claimed.due_at or 0):
                    break
                await asyncio.sleep(RECORD_RETRY_SECONDS)
        self._context.log.write(
            "error", "delivery_not_recorded", workspace=self.workspace, channel=self.name, delivery=claimed.id
        )
        return None

    # Waiting

    def _back_off(self, seconds: float) -> None:
        """Back off; failures at the same time count as one."""
        now = self._clock()
        if now >= self._backoff_until or not self._failures:
            self._failures += 1
        pause = min(1000 * 2 ** min(self._failures - 1, 5), MAX_BACKOFF)
        self._backoff_until = max(self._backoff_until, now + max(pause, round(seconds * 1000)))

    async def _pause(self, stop: asyncio.Event) -> None:
        """Wait until something is due or `wake_event` is set."""
        due = None
        with suppress(Error):
            due = await self._store.next_due(*self._key)
        now = self._clock()
        wait = POLL_SECONDS if due is None or self._is_blocked else min(POLL_SECONDS, max(0.01, (due - now) / 1000))
        if now < self._backoff_until:
            wait = min(POLL_SECONDS, max(0.01, (self._backoff_until - now) / 1000))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await wait_or_stop(stop, self.wake_event.wait())


def _is_final(approval_view: ApprovalView | None, now: int) -> bool:
    """Return whether it is decided, and can no longer be undone."""
    return approval_view is None or (
        not approval_view.is_open and deliveries.decision_final_at(approval_view.approval, now) <= now
    )


async def wait_or_stop(stop: asyncio.Event, until: Coroutine[Any, Any, object]) -> None:
    """Wait for `until` or for `stop`."""
    tasks = {asyncio.ensure_future(until), asyncio.ensure_future(stop.wait())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
