"""Channels of a configuration at work over a real database: what the ledger says is told to stand-ins."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.app.bootstrap import AppServices, build_gate_and_inbox
from interlock.app.workspaces import Workspaces
from interlock.config.models import ChannelSettings, EscalationSettings, RoutingSettings, Settings
from interlock.core.notify.delivery import Status
from interlock.notify.service import build_notification_service
from interlock.server.logs import JsonLogger

URL = "https://interlock.example"
STATUSES: tuple[Status, ...] = ("due", "sending", "sent", "parked", "dropped", "grouped")


class Office:
    """`channels` are by name: a kind and its settings; the first one is for everything. `lines` is the log."""

    def __init__(self, parts: AppServices, channels: Mapping[str, ChannelSettings], escalation: str = "") -> None:
        self.parts = parts
        self.lines: list[str] = []
        first = next(iter(channels))
        settings = Settings(
            channels=channels,
            routing=RoutingSettings(default_channel=first),
            escalation=EscalationSettings(channel=escalation),
        )
        self.workspaces = Workspaces(parts.store, lambda policy: build_gate_and_inbox(parts.store, policy), {})
        log = JsonLogger(parts.clock, "problems", self.lines.append)
        self.reach = build_notification_service(settings, parts.store, self.workspaces, log)
        self.courier = self.reach.make_dispatcher()

    async def sweep(self) -> int:
        await self.workspaces.refresh("default")
        return await self.courier.sweep()

    async def stored(self) -> str:
        """Every delivery there is, as text."""
        found = [await self.parts.store.deliveries.list_deliveries("default", status) for status in STATUSES]
        return "\n".join(repr(delivery) for some in found for delivery in some)

    async def close(self) -> None:
        for channel in self.reach.channels.values():
            await channel.close()
