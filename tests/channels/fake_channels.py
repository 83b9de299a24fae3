"""Channels that keep what they were told, and a courier that tells them."""

from __future__ import annotations

from interlock.app.bootstrap import AppServices, PolicyChannelSettings, build_gate_and_inbox
from interlock.app.workspaces import Workspaces
from interlock.config.models import Settings
from interlock.core.notify.delivery import Notification
from interlock.core.notify.routing import Routes
from interlock.notify.dispatcher import Dispatcher
from interlock.notify.service import NotificationService
from interlock.server.logs import JsonLogger


class Told:
    """A channel that keeps what it was told, and can be made to fail."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Notification, str]] = []
        self.trouble: Exception | None = None

    async def send(self, message: Notification) -> str:
        return self._hear("send", message, "")

    async def update(self, message: Notification, ref: str) -> str:
        return self._hear("update", message, ref)

    async def close(self) -> None: ...

    def _hear(self, verb: str, message: Notification, ref: str) -> str:
        if self.trouble is not None:
            raise self.trouble
        self.heard.append((verb, message, ref))
        return f"ref {len(self.heard)}"

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(verb, message.purpose) for verb, message, _ in self.heard]


class Set:
    """A courier with such channels; `heard` is what any of them was told, in order."""

    def __init__(
        self,
        parts: AppServices,
        routes: Routes,
        reaching: PolicyChannelSettings = PolicyChannelSettings(),  # noqa: B008  frozen
        **channels: Told,
    ) -> None:
        self.parts = parts
        self.channels = channels
        workspaces = Workspaces(parts.store, lambda policy: build_gate_and_inbox(parts.store, policy), {}, reaching)
        log = JsonLogger(parts.clock, "none", lambda _: None)
        self.reach = NotificationService(
            settings=Settings(),
            store=parts.store,
            workspaces=workspaces,
            channels=channels,
            routes=routes,
            log=log,
            public_url="https://interlock.example",
        )
        self.workspaces = workspaces
        self.courier: Dispatcher = self.reach.make_dispatcher()

    async def sweep(self) -> int:
        await self.workspaces.refresh("default")
        return await self.courier.sweep()

    def loud(self) -> list[tuple[str, str, str]]:
        """Channel, person or place, and why: of everything that disturbed somebody. Then it is forgotten."""
        found = [
            (name, message.to.person or message.to.destination, message.purpose)
            for name, told in self.channels.items()
            for _, message, _ in told.heard
            if message.purpose not in ("changed", "ended")
        ]
        for told in self.channels.values():
            told.heard.clear()
        return found
