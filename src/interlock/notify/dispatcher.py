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
        self,
        context: DispatchContext,
        channels_by_workspace: Mapping[str, WorkspaceChannels],
        read_contacts: ReadContacts,
        watch: OpenWatch,
    ) -> None:
        self._context = context
        self._store = context.store
        self._channels_by_workspace = channels_by_workspace
        self._read_contacts = read_contacts
        self._watch = watch
        self._recovered_at: int | None = None
        self.queues = {
            (workspace, name): ChannelQueue(workspace, name, channel, each.routes.capabilities[name], context)
            for workspace, each in channels_by_workspace.items()
            for name, channel in each.channels.items()
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Without channels there is nobody to tell, and the ledger is left alone."""
        if not self.queues:
            await stop.wait()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(stop))
            for queue in self.queues.values():
                tasks.create_task(queue.run(stop))

    async def sweep(self) -> int:
        """Does everything that is due now; gives how many messages were handed over."""
        await self.route()
        return sum(await asyncio.gather(*(queue.sweep() for queue in self.queues.values())))

    async def route(self) -> None:
        """Works out what is to be told of all that has happened."""
        for backlog in await self._store.find_backlog(self._channels_by_workspace):
            if backlog.mark < 0:
                await self._store.start_routing(backlog)
        for backlog in await self._store.find_backlog(self._channels_by_workspace):
            try:
                await self._route(backlog)
            except Error as error:  # it is tried again; others need not wait for it
                self._context.log.write("warning", "not_routed", workspace=backlog.workspace, note=error.message)

    async def release(self) -> None:
        """Looks now and then whether somebody died with messages in their hands: they need not wait for the lease.

        What is queued for a channel that its workspace does not have is parked.
        """
        now = self._context.clock()
        if self._recovered_at is None or not 0 <= now - self._recovered_at < RECOVERY_INTERVAL:
            if await self._store.release_dead_runners(self._context.is_dead):
                self._wake()
            await self._store.dead_letter_stranded(self.queues.keys(), now - STRANDED_AFTER, _stranded_message)
            self._recovered_at = now

    async def _route(self, backlog: RoutingBacklog) -> None:
        planner = DeliveryPlanner(
            self._channels_by_workspace[backlog.workspace].routes,
            await self._read_contacts(backlog.workspace),
            self._context.log,
        )
        left: RoutingBacklog | None = backlog
        while left is not None:
            left = await self._store.route(left, planner)
            if planner.has_planned:
                self._wake()

    def _wake(self) -> None:
        for queue in self.queues.values():
            queue.wake_event.set()

    async def _follow(self, stop: asyncio.Event) -> None:
        async with self._watch() as watch:
            while not stop.is_set():
                with suppress(Error):  # a database in trouble is tried again; what is not told yet stays in the ledger
                    await self.route()
                    await self.release()
                await wait_or_stop(stop, watch.wait(POLL_SECONDS))
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
    has_planned: bool = False

    def wakes_workflow(self, run_id: str) -> bool:
        return bool(wakeup_targets(run_id, self.routes))

    def prepare(self, approval: Approval) -> object:
        return self._run_guarded(approval, lambda: delivery_targets(approval, self.routes, self.people), None)

    def __call__(self, approval: Approval, known: Sequence[Delivery], now: int, prepared: object) -> Sequence[Delivery]:
        targets = cast("Mapping[DeliveryTarget, int] | None", prepared)
        nothing: Sequence[Delivery] = ()
        planned = self._run_guarded(
            approval, lambda: list(plan_deliveries(approval, known, self.routes, self.people, now, targets)), nothing
        )
        self.has_planned = self.has_planned or bool(planned)
        return planned

    def _run_guarded(self, approval: Approval, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001
            self.log.write_exception("not_routed", error, approval_id=approval.id)
            return otherwise
