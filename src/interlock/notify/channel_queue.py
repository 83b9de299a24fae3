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
from interlock.core.notify.delivery import Delivery
from interlock.core.notify.message import Message, Topic
from interlock.core.notify.routing import Means
from interlock.core.ports import Clock, IsDead
from interlock.notify.channel import Channel, Gone, Later, Never, Unsure
from interlock.runtime.faults import Point
from interlock.storage.tables.deliveries import SqlDeliveries, Step

LOOK_EVERY = 1.0  # seconds: a wake-up is only a hint, and others write to the same database
AT_ONCE = 8  # messages that a channel is given at the same time
AHEAD = 64  # that are claimed together
SECONDS = 20  # that one message may take; the lease is longer
FAULTS = 5  # tries that ended in a way which nobody foresaw, before a message is parked
MOST_PAUSE = 30_000  # milliseconds that a channel is left alone when it is down
RECORDS = 100  # times that it is tried to record something, while the lease lasts
AGAIN = 0.2  # seconds between them

Compose = Callable[[Delivery], Awaitable[Message]]


class Log(Protocol):
    def tell(self, level: Literal["info", "warning", "error"], event: str, **facts: object) -> None: ...
    def failed(self, event: str, error: BaseException, **facts: object) -> None: ...


@dataclass(frozen=True)
class Office:
    """What all lanes share; `compose` makes the message of a delivery."""

    store: SqlDeliveries
    clock: Clock
    runner: str
    compose: Compose
    log: Log
    point: Point = lambda _: None
    is_dead: IsDead = lambda _: False


class Lane:
    """When the channel is down it is left alone for a while, and longer each time, up to half a minute.

    Then a few messages are tried; once one is taken, the others follow.
    """

    def __init__(self, workspace: str, name: str, channel: Channel, means: Means, office: Office) -> None:
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
                if not waiting and len(flying) < AT_ONCE:
                    waiting.extend(await self._claim())
                while waiting and self._may_go and len(flying) < AT_ONCE:
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
            limit = AT_ONCE if self._failures else AHEAD
            taken = await self._store.claim(*self._key, self._office.runner, limit, self._means.most)
        except Error:  # the database is away; what is due stays due
            self._is_stuck = True
            return ()
        self._office.point("after claim")
        return taken

    # One message

    async def _turn(self, delivery: Delivery) -> int:
        """Whose lease is about to end may be in other hands before it is sent."""
        if self._clock() + SECONDS * 1000 > (delivery.due_at or 0):
            await self._give_back(delivery)
            return 0
        return await self._try(delivery)

    async def _try(self, delivery: Delivery) -> int:
        """Everything that can go wrong ends in a record; only the record itself may fail, and the lease ends then."""
        try:
            async with asyncio.timeout(SECONDS):
                ref = await self._tell(delivery)
        except Later as error:
            self._leave_alone(error.after)
            await self._failed(delivery, error.message, round(error.after * 1000), is_unsure=isinstance(error, Unsure))
        except TimeoutError:
            self._leave_alone(0)
            await self._failed(delivery, f"There was no answer within {SECONDS} seconds.", is_unsure=True)
        except StoreUnavailable:
            await self._failed(delivery, "The database did not answer.")
        except Gone as error:
            await self._switch_off(error.message)
            await self._parked(delivery, error.message)
        except (Never, NotFound, DeliveryFailed) as error:
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
        if message.purpose == "woken" and not _stands(message.topic, self._clock()):
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
            await self._record(done, deliveries.not_yet)
            return 0
        if ref is None:
            await self._record(done, lambda stored, _: deliveries.moot(stored))
            return 0
        self._failures = 0
        return int(await self._sent(done, ref))

    async def _sent(self, done: Delivery, ref: str) -> bool:
        finished = await self._record(done, lambda stored, now: deliveries.sent(stored, done, ref, now))
        self._office.point("after record")
        return finished is not None

    async def _failed(self, done: Delivery, error: str, after: int = 0, *, is_unsure: bool = False) -> None:
        jitter = random.uniform(0.5, 1.0)  # noqa: S311  many that failed together are not to come back together
        self._office.log.tell(
            "warning", "delivery_failed", workspace=self.workspace, channel=self.name, delivery=done.id, note=error
        )
        waits = self._means.waits

        def step(stored: Delivery, now: int) -> Delivery:
            tried = deliveries.lost(stored, now) if is_unsure else stored
            return deliveries.failed(tried, error, now, after=after, jitter=jitter, waits=waits)

        await self._record(done, step)

    async def _parked(self, done: Delivery, error: str) -> None:
        self._office.log.tell(
            "error", "delivery_parked", workspace=self.workspace, channel=self.name, delivery=done.id, note=error
        )
        await self._record(done, lambda stored, _: deliveries.parked(stored, error))

    async def _surprised(self, done: Delivery, name: str) -> None:
        error = f"It failed in a way that is not foreseen ({name}); the log says more."
        if done.attempts + 1 >= FAULTS:
            await self._parked(done, error)
        else:
            await self._failed(done, error)

    async def _give_back(self, delivery: Delivery) -> None:
        with suppress(Error):  # else the lease ends
            await self._store.finish(delivery, deliveries.released)

    async def _switch_off(self, why: str) -> None:
        with suppress(Error):  # the next message is told the same
            await self._store.switch_off(*self._key, why)

    async def _record(self, done: Delivery, step: Step) -> Delivery | None:
        """A database that is back within the lease hears of it: what was sent is then not sent again."""
        for _ in range(RECORDS):
            try:
                return await self._store.finish(done, step)
            except (StoreUnavailable, Stale):
                if self._clock() >= (done.due_at or 0):
                    break
                await asyncio.sleep(AGAIN)
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
        pause = min(1000 * 2 ** min(self._failures - 1, 5), MOST_PAUSE)
        self._closed_until = max(self._closed_until, now + max(pause, round(seconds * 1000)))

    async def _pause(self, stop: asyncio.Event) -> None:
        """Until something is due; `woken` says that there is something new."""
        due = None
        with suppress(Error):
            due = await self._store.next_due(*self._key)
        now = self._clock()
        wait = LOOK_EVERY if due is None or self._is_stuck else min(LOOK_EVERY, max(0.01, (due - now) / 1000))
        if now < self._closed_until:
            wait = min(LOOK_EVERY, max(0.01, (self._closed_until - now) / 1000))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await paused(stop, self.woken.wait())


def _stands(topic: Topic | None, now: int) -> bool:
    """Whether it is decided, and nobody can take it back any more."""
    return topic is None or (not topic.is_open and deliveries.settled_at(topic.approval, now) <= now)


async def paused(stop: asyncio.Event, until: Coroutine[Any, Any, object]) -> None:
    """Until that, or the end."""
    tasks = {asyncio.ensure_future(until), asyncio.ensure_future(stop.wait())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
