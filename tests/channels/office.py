"""Channels of a configuration at work over a real database: what the ledger says is told to stand-ins."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.app.bootstrap import Parts, doors_of
from interlock.app.workspaces import Workspaces
from interlock.config.models import Channel, Escalation, Routing, Settings
from interlock.core.notify.delivery import Status
from interlock.notify.service import reach_of
from interlock.server.logs import Log

URL = "https://interlock.example"
STATUSES: tuple[Status, ...] = ("due", "sending", "sent", "parked", "dropped", "grouped")


class Office:
    """`channels` are by name: a kind and its settings; the first one is for everything. `lines` is the log."""

    def __init__(self, parts: Parts, channels: Mapping[str, Channel], escalation: str = "") -> None:
        self.parts = parts
        self.lines: list[str] = []
        first = next(iter(channels))
        settings = Settings(
            channels=channels, routing=Routing(default_channel=first), escalation=Escalation(channel=escalation)
        )
        self.workspaces = Workspaces(parts.store, lambda policy: doors_of(parts.store, policy), {})
        log = Log(parts.clock, "problems", self.lines.append)
        self.reach = reach_of(settings, parts.store, self.workspaces, log)
        self.courier = self.reach.courier()

    async def sweep(self) -> int:
        await self.workspaces.refresh("default")
        return await self.courier.sweep()

    async def stored(self) -> str:
        """Every delivery there is, as text."""
        found = [await self.parts.store.deliveries.listed("default", status) for status in STATUSES]
        return "\n".join(repr(delivery) for some in found for delivery in some)

    async def close(self) -> None:
        for channel in self.reach.channels.values():
            await channel.close()
