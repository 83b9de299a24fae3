"""The dispatcher: follows the ledger, plans deliveries, and runs one queue for each channel of each workspace.

Theory of operation. Notifications are an outbox. `route` reads the entries after each workspace's mark, lets
`core/notify/routing.py` work out who is notified through which channel, and writes the deliveries and the new mark in
one transaction: no entry is planned twice or skipped. Each `ChannelQueue` then claims due deliveries with a lease and a
fence, sends them, and records the result; a failure is retried with backoff and ends as a dead letter.

Any number of processes may run a dispatcher. A delivery that was claimed by a process that died is released when the
process is known to be dead, else when its lease ends. A message has the same id at every try, so that a channel that
knows idempotency sends it once.

A slow or failing channel delays only its own queue, and nothing of one workspace goes through a channel of another.
Deliveries for a channel that is no longer configured are parked after `STRANDED_AFTER`: a newer process may know it.
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
    0.2  # seconds between reads of the ledger: events in between are planned together, if they still matter
)
RECOVERY_INTERVAL = 10_000  # milliseconds between checks for deliveries of dead runners, and for stranded deliveries
STRANDED_AFTER = 300_000  # milliseconds that a delivery for an unknown channel waits: a newer process may have it

ReadContacts = Callable[[str], Awaitable[Sequence[Contact]]]
OpenWatch = Callable[[], AbstractAsyncContextManager[Watch]]
T = TypeVar("T")


class Dispatcher:
    """Dispatches the notifications of workspaces that have channels; `watch` waits for the ledger."""

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
        """Run until `stop` is set. Without channels, the ledger is not read."""
        if not self.queues:
            await stop.wait()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(stop))
            for queue in self.queues.values():
                tasks.create_task(queue.run(stop))

    async def sweep(self) -> int:
        """Route and send everything that is due now; return how many messages were sent."""
        await self.route()
        return sum(await asyncio.gather(*(queue.sweep() for queue in self.queues.values())))

    async def route(self) -> None:
        """Plan the deliveries of all new ledger entries."""
        for backlog in await self._store.find_backlog(self._channels_by_workspace):
            if backlog.mark < 0:
                await self._store.start_routing(backlog)
        for backlog in await self._store.find_backlog(self._channels_by_workspace):
            try:
                await self._route(backlog)
            except Error as error:  # it is retried; other workspaces need not wait
                self._context.log.write("warning", "not_routed", workspace=backlog.workspace, note=error.message)

    async def release(self) -> None:
        """Release the deliveries of dead runners now and then, before their lease ends.

        Deliveries for a channel that their workspace does not have become dead letters.
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
                with suppress(Error):  # a database error is retried; the ledger keeps what is not routed yet
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
    """Plans deliveries to the people of one workspace. If that fails for a call, the others are still planned."""

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
