"""Tells people what happened: follows the ledger, works out who is to be told where, and hands it to the channels.

Each channel of each workspace has a lane of its own, so one that is slow or down delays nobody else, and nothing of
one workspace goes through a channel of another. Any number of couriers may run at once: what is due is claimed with a
lease, and a message has the same id for every try.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import TypeVar, cast

from interlock.core.approval.approval import Approval
from interlock.core.errors import Error
from interlock.core.notify.delivery import Delivery, DeliveryTarget
from interlock.core.notify.routing import Contact, Routes, delivery_targets, plan_deliveries, wakeup_targets
from interlock.core.ports import Watch
from interlock.notify.channel_queue import POLL_SECONDS, ChannelQueue, DispatchContext, DispatchLog, wait_or_stop
from interlock.notify.workspace_channels import WorkspaceChannels
from interlock.storage.tables.deliveries import RoutingBacklog

ROUTE_INTERVAL = (
    0.2  # seconds between looks at the ledger: what happens meanwhile is worked out together, if it still matters
)
RECOVERY_INTERVAL = (
    10_000  # milliseconds between looks for what dead runners had in their hands, and for stranded deliveries
)
STRANDED_AFTER = (
    300_000  # milliseconds that a delivery for a channel that is not configured waits: a newer process may have it
)

ReadContacts = Callable[[str], Awaitable[Sequence[Contact]]]
OpenWatch = Callable[[], AbstractAsyncContextManager[Watch]]
T = TypeVar("T")


class Dispatcher:
    """`own` is by workspace, of those that have channels; `people` are those of one; `watch` waits for the ledger."""

    def __init__(
        self, office: DispatchContext, own: Mapping[str, WorkspaceChannels], people: ReadContacts, watch: OpenWatch
    ) -> None:
        self._office = office
        self._store = office.store
        self._own = own
        self._people = people
        self._watch = watch
        self._looked: int | None = None
        self.lanes = {
            (workspace, name): ChannelQueue(workspace, name, channel, each.routes.means[name], office)
            for workspace, each in own.items()
            for name, channel in each.channels.items()
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Without channels there is nobody to tell, and the ledger is left alone."""
        if not self.lanes:
            await stop.wait()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(stop))
            for lane in self.lanes.values():
                tasks.create_task(lane.run(stop))

    async def sweep(self) -> int:
        """Does everything that is due now; gives how many messages were handed over."""
        await self.route()
        return sum(await asyncio.gather(*(lane.sweep() for lane in self.lanes.values())))

    async def route(self) -> None:
        """Works out what is to be told of all that has happened."""
        for behind in await self._store.behind(self._own):
            if behind.mark < 0:
                await self._store.begin(behind)
        for behind in await self._store.behind(self._own):
            try:
                await self._route(behind)
            except Error as error:  # it is tried again; others need not wait for it
                self._office.log.tell("warning", "not_routed", workspace=behind.workspace, note=error.message)

    async def release(self) -> None:
        """Looks now and then whether somebody died with messages in their hands: they need not wait for the lease.

        What is queued for a channel that its workspace does not have is parked.
        """
        now = self._office.clock()
        if self._looked is None or not 0 <= now - self._looked < RECOVERY_INTERVAL:
            if await self._store.release(self._office.is_dead):
                self._wake()
            await self._store.park_stranded(self.lanes.keys(), now - STRANDED_AFTER, _stranded_message)
            self._looked = now

    async def _route(self, behind: RoutingBacklog) -> None:
        plan = DeliveryPlanner(
            self._own[behind.workspace].routes, await self._people(behind.workspace), self._office.log
        )
        left: RoutingBacklog | None = behind
        while left is not None:
            left = await self._store.route(left, plan)
            if plan.found:
                self._wake()

    def _wake(self) -> None:
        for lane in self.lanes.values():
            lane.woken.set()

    async def _follow(self, stop: asyncio.Event) -> None:
        async with self._watch() as watch:
            while not stop.is_set():
                with suppress(Error):  # a database in trouble is tried again; what is not told yet stays in the ledger
                    await self.route()
                    await self.release()
                await wait_or_stop(stop, watch.changed(POLL_SECONDS))
                await wait_or_stop(stop, asyncio.sleep(ROUTE_INTERVAL))


def _stranded_message(workspace: str, channel: str) -> str:
    return (
        f"The workspace {workspace} has no channel {channel}. Add it to the channels of the workspace in the "
        "configuration, then send it again."
    )


@dataclass
class DeliveryPlanner:
    """Who is to be told, for the people of one workspace. A call for which that fails keeps nobody from the others."""

    routes: Routes
    people: Sequence[Contact]
    log: DispatchLog
    found: bool = False

    def wakes(self, run_id: str) -> bool:
        return bool(wakeup_targets(run_id, self.routes))

    def prepare(self, approval: Approval) -> object:
        return self._tried(approval, lambda: delivery_targets(approval, self.routes, self.people), None)

    def __call__(self, approval: Approval, known: Sequence[Delivery], now: int, prepared: object) -> Sequence[Delivery]:
        ways = cast("Mapping[DeliveryTarget, int] | None", prepared)
        nothing: Sequence[Delivery] = ()
        planned = self._tried(
            approval, lambda: list(plan_deliveries(approval, known, self.routes, self.people, now, ways)), nothing
        )
        self.found = self.found or bool(planned)
        return planned

    def _tried(self, approval: Approval, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001
            self.log.failed("not_routed", error, approval_id=approval.id)
            return otherwise
