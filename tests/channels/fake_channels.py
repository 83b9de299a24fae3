"""Channels that record their messages, and a dispatcher that sends to them."""

from __future__ import annotations

from interlock.app.bootstrap import AppServices, PolicyChannelSettings, build_gate_and_inbox
from interlock.app.workspaces import Workspaces
from interlock.config.models import Settings
from interlock.core.notify.delivery import Notification
from interlock.core.notify.routing import Routes
from interlock.notify.dispatcher import Dispatcher
from interlock.notify.service import NotificationService
from interlock.server.logs import JsonLogger


class FakeChannel:
    """A channel that records its messages and can be made to fail."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Notification, str]] = []
        self.failure: Exception | None = None

    async def send(self, message: Notification) -> str:
        return self._record("send", message, "")

    async def update(self, message: Notification, ref: str) -> str:
        return self._record("update", message, ref)

    async def close(self) -> None: ...

    def _record(self, verb: str, message: Notification, ref: str) -> str:
        if self.failure is not None:
            raise self.failure
        self.messages.append((verb, message, ref))
        return f"ref {len(self.messages)}"

    @property
    def purposes(self) -> list[tuple[str, str]]:
        return [(verb, message.purpose) for verb, message, _ in self.messages]


class FakeChannels:
    """A dispatcher with fake channels."""

    def __init__(
        self,
        services: AppServices,
        routes: Routes,
        reaching: PolicyChannelSettings = PolicyChannelSettings(),  # noqa: B008  frozen
        **channels: FakeChannel,
    ) -> None:
        self.services = services
        self.channels = channels
        workspaces = Workspaces(
            services.store, lambda policy: build_gate_and_inbox(services.store, policy), {}, reaching
        )
        log = JsonLogger(services.clock, "none", lambda _: None)
        self.notifications = NotificationService(
            settings=Settings(),
            store=services.store,
            workspaces=workspaces,
            channels=channels,
            routes=routes,
            log=log,
            public_url="https://interlock.example",
        )
        self.workspaces = workspaces
        self.dispatcher: Dispatcher = self.notifications.make_dispatcher()

    async def sweep(self) -> int:
        await self.workspaces.refresh("default")
        return await self.dispatcher.sweep()

    def take_notifying(self) -> list[tuple[str, str, str]]:
        """Channel, recipient and purpose of every message that notified somebody; clears the record."""
        found = [
            (name, message.to.person or message.to.destination, message.purpose)
            for name, told in self.channels.items()
            for _, message, _ in told.messages
            if message.purpose not in ("changed", "ended")
        ]
        for told in self.channels.values():
            told.messages.clear()
        return found
