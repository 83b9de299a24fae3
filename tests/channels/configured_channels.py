"""Configured channels on a real database: the dispatcher sends ledger events to fakes."""

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


class ConfiguredChannels:
    """`channels` maps a name to its settings; the first is the default channel. `log` holds log lines."""

    def __init__(self, services: AppServices, channels: Mapping[str, ChannelSettings], escalation: str = "") -> None:
        self.services = services
        self.log: list[str] = []
        first = next(iter(channels))
        settings = Settings(
            channels=channels,
            routing=RoutingSettings(default_channel=first),
            escalation=EscalationSettings(channel=escalation),
        )
        self.workspaces = Workspaces(services.store, lambda policy: build_gate_and_inbox(services.store, policy), {})
        log = JsonLogger(services.clock, "problems", self.log.append)
        self.notifications = build_notification_service(settings, services.store, self.workspaces, log)
        self.dispatcher = self.notifications.make_dispatcher()

    async def sweep(self) -> int:
        await self.workspaces.refresh("default")
        return await self.dispatcher.sweep()

    async def deliveries_text(self) -> str:
        """All deliveries, as text."""
        found = [await self.services.store.deliveries.list_deliveries("default", status) for status in STATUSES]
        return "\n".join(repr(delivery) for some in found for delivery in some)

    async def close(self) -> None:
        for channel in self.notifications.channels.values():
            await channel.close()
