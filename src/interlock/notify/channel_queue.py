"""The way out through one channel of one workspace: so many messages at once, and none while the other side is down.

A message that was handed over is recorded at once, with others that are through; one whose lease is about to end is
given back. Whoever dies in between leaves a message that is sent again, with the same id.
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
from interlock.runtime.faults import FaultPoint
from interlock.storage.tables.deliveries import DeliveryStep, SqlDeliveries

POLL_SECONDS = 1.0  # seconds: a wake-up is only a hint, and others write to the same database
MAX_CONCURRENT = 8  # messages that a channel is given at the same time
CLAIM_BATCH = 64  # that are claimed together
SEND_TIMEOUT = 20  # that one message may take; the lease is longer
MAX_UNEXPECTED_ERRORS = 5  # tries that ended in a way which nobody foresaw, before a message is parked
MAX_BACKOFF = 30_000  # milliseconds that a channel is left alone when it is down
MAX_RECORD_TRIES = 100  # times that it is tried to record something, while the lease lasts
RECORD_RETRY_SECONDS = 0.2  # seconds between them

ComposeMessage = Callable[[Delivery], Awaitable[Notification]]


class DispatchLog(Protocol):
    def tell(self, level: Literal["info", "warning", "error"], event: str, **facts: object) -> None: ...
    def failed(self, event: str, error: BaseException, **facts: object) -> None: ...


@dataclass(frozen=True, kw_only=True)
class DispatchContext:
    """What all lanes share; `compose` makes the message of a delivery."""

    store: SqlDeliveries
    clock: Clock
    runner: str
    compose: ComposeMessage
    log: DispatchLog
    point: FaultPoint = lambda _: None
    is_dead: IsRunnerDead = lambda _: False


class ChannelQueue:
    """When the channel is down it is left alone for a while, and longer each time, up to half a minute.

    Then a few messages are tried; once one is taken, the others follow.
    """

    def __init__(
        self, workspace: str, name: str, channel: Channel, means: ChannelCapabilities, office: DispatchContext
    ) -> None:
        self.workspace = workspace
        self.name = name
        self.woken = asyncio.Event()
        self._channel = channel
        self._means = means
        self._office = office
        self._store = office.store
        self._clock = office.clock
        self._stop = asyncio.Event()
        self._failures = 0
        self._closed_until = 0
        self._is_stuck = False  # nothing could be claimed: the channel is off, or the database is away

    async def run(self, stop: asyncio.Event) -> None:
        self._stop = stop
        while not stop.is_set():
            self.woken.clear()
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001  a fault of ours in one lane must not end the others
                self._office.log.failed("lane_failed", error, workspace=self.workspace, channel=self.name)
                self._is_stuck = True
            await self._pause(stop)

    async def sweep(self) -> int:
        """Does what is due; whoever is through makes room for the next. Gives how many were handed over."""
        waiting: deque[Delivery] = deque()
        flying: set[asyncio.Task[int]] = set()
        done = 0
        try:
            while True:
                if not waiting and len(flying) < MAX_CONCURRENT:
                    waiting.extend(await self._claim())
                while waiting and self._may_go and len(flying) < MAX_CONCURRENT:
                    flying.add(asyncio.create_task(self._turn(waiting.popleft())))
                if not flying:
                    break
                landed, flying = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
                done += sum(task.result() for task in landed)
        finally:
            for task in flying:
                task.cancel()
            await asyncio.gather(*flying, *map(self._give_back, waiting), return_exceptions=True)
        return done

    @property
    def _key(self) -> tuple[str, str]:
        return self.workspace, self.name

    @property
    def _may_go(self) -> bool:
        return self._clock() >= self._closed_until and not self._stop.is_set()

    async def _claim(self) -> Sequence[Delivery]:
        """A few only, while it is not known whether the channel is back."""
        self._is_stuck = False
        if not self._may_go:
            return ()
        try:
            self._is_stuck = any(each[:2] == self._key for each in await self._store.switches())
            if self._is_stuck:
                return ()
            limit = MAX_CONCURRENT if self._failures else CLAIM_BATCH
            taken = await self._store.claim(*self._key, self._office.runner, limit, self._means.most)
        except Error:  # the database is away; what is due stays due
            self._is_stuck = True
            return ()
        self._office.point("after claim")
        return taken

    # One message

    async def _turn(self, delivery: Delivery) -> int:
        """Whose lease is about to end may be in other hands before it is sent."""
        if self._clock() + SEND_TIMEOUT * 1000 > (delivery.due_at or 0):
            await self._give_back(delivery)
            return 0
        return await self._try(delivery)

    async def _try(self, delivery: Delivery) -> int:
        """Everything that can go wrong ends in a record; only the record itself may fail, and the lease ends then."""
        try:
            async with asyncio.timeout(SEND_TIMEOUT):
                ref = await self._tell(delivery)
        except DeliveryDelayed as error:
            self._leave_alone(error.after)
            await self._failed(
                delivery, error.message, round(error.after * 1000), is_unsure=isinstance(error, DeliveryUnknown)
            )
        except TimeoutError:
            self._leave_alone(0)
            await self._failed(delivery, f"There was no answer within {SEND_TIMEOUT} seconds.", is_unsure=True)
        except StoreUnavailable:
            await self._failed(delivery, "The database did not answer.")
        except ChannelGone as error:
            await self._switch_off(error.message)
            await self._parked(delivery, error.message)
        except (DeliveryRejected, NotFound, DeliveryFailed) as error:
            await self._parked(delivery, error.message)
        except Exception as error:  # noqa: BLE001  one message must not end the lane
            self._office.log.failed("delivery_failed", error)
            await self._surprised(delivery, type(error).__name__)
        else:
            return await self._told(delivery, ref)
        return 0

    async def _tell(self, delivery: Delivery) -> str | None:
        """None if it was decided before anybody was asked, or if what should wake somebody does not stand."""
        message = await self._office.compose(delivery)
        if message.purpose == "ended" and not delivery.is_perhaps_known:
            return None
        if message.purpose == "woken" and not _is_final(message.topic, self._clock()):
            return None
        self._office.point("before send")
        if delivery.said:
            ref = await self._channel.update(message, delivery.ref)
        else:
            ref = await self._channel.send(message)
        self._office.point("after send")
        return ref

    # What became of it

    async def _told(self, done: Delivery, ref: str | None) -> int:
        if ref is None and done.reason == "woken":
            await self._record(done, deliveries.postpone_wakeup)
            return 0
        if ref is None:
            await self._record(done, lambda stored, _: deliveries.drop_obsolete(stored))
            return 0
        self._failures = 0
        return int(await self._sent(done, ref))

    async def _sent(self, done: Delivery, ref: str) -> bool:
        finished = await self._record(done, lambda stored, now: deliveries.mark_sent(stored, done, ref, now))
        self._office.point("after record")
        return finished is not None

    async def _failed(self, done: Delivery, error: str, after: int = 0, *, is_unsure: bool = False) -> None:
        jitter = random.uniform(0.5, 1.0)  # noqa: S311  many that failed together are not to come back together
        self._office.log.tell(
            "warning", "delivery_failed", workspace=self.workspace, channel=self.name, delivery=done.id, note=error
        )
        waits = self._means.waits

        def step(stored: Delivery, now: int) -> Delivery:
            tried = deliveries.release_unconfirmed(stored, now) if is_unsure else stored
            return deliveries.mark_failed(tried, error, now, after=after, jitter=jitter, waits=waits)

        await self._record(done, step)

    async def _parked(self, done: Delivery, error: str) -> None:
        self._office.log.tell(
            "error", "delivery_parked", workspace=self.workspace, channel=self.name, delivery=done.id, note=error
        )
        await self._record(done, lambda stored, _: deliveries.mark_dead(stored, error))

    async def _surprised(self, done: Delivery, name: str) -> None:
        error = f"It failed in a way that is not foreseen ({name}); the log says more."
        if done.attempts + 1 >= MAX_UNEXPECTED_ERRORS:
            await self._parked(done, error)
        else:
            await self._failed(done, error)

    async def _give_back(self, delivery: Delivery) -> None:
        with suppress(Error):  # else the lease ends
            await self._store.finish(delivery, deliveries.release)

    async def _switch_off(self, why: str) -> None:
        with suppress(Error):  # the next message is told the same
            await self._store.switch_off(*self._key, why)

    async def _record(self, done: Delivery, step: DeliveryStep) -> Delivery | None:
        """A database that is back within the lease hears of it: what was sent is then not sent again."""
        for _ in range(MAX_RECORD_TRIES):
            try:
                return await self._store.finish(done, step)
            except (StoreUnavailable, Stale):
                if self._clock() >= (done.due_at or 0):
                    break
                await asyncio.sleep(RECORD_RETRY_SECONDS)
        self._office.log.tell(
            "error", "delivery_not_recorded", workspace=self.workspace, channel=self.name, delivery=done.id
        )
        return None

    # Waiting

    def _leave_alone(self, seconds: float) -> None:
        """What fails together is one failure."""
        now = self._clock()
        if now >= self._closed_until or not self._failures:
            self._failures += 1
        pause = min(1000 * 2 ** min(self._failures - 1, 5), MAX_BACKOFF)
        self._closed_until = max(self._closed_until, now + max(pause, round(seconds * 1000)))

    async def _pause(self, stop: asyncio.Event) -> None:
        """Until something is due; `woken` says that there is something new."""
        due = None
        with suppress(Error):
            due = await self._store.next_due(*self._key)
        now = self._clock()
        wait = POLL_SECONDS if due is None or self._is_stuck else min(POLL_SECONDS, max(0.01, (due - now) / 1000))
        if now < self._closed_until:
            wait = min(POLL_SECONDS, max(0.01, (self._closed_until - now) / 1000))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await wait_or_stop(stop, self.woken.wait())


def _is_final(topic: ApprovalView | None, now: int) -> bool:
    """Whether it is decided, and nobody can take it back any more."""
    return topic is None or (not topic.is_open and deliveries.decision_final_at(topic.approval, now) <= now)


async def wait_or_stop(stop: asyncio.Event, until: Coroutine[Any, Any, object]) -> None:
    """Until that, or the end."""
    tasks = {asyncio.ensure_future(until), asyncio.ensure_future(stop.wait())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
