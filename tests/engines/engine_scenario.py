"""What both sides of an engine's test share: a database, people at it, effects that are counted, and the channel."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from interlock.app.bootstrap import AppServices, build_gate_and_inbox, build_services
from interlock.app.workspaces import Workspaces
from interlock.config.models import ChannelSettings, Settings
from interlock.core.approval.approval import Approval
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery
from interlock.notify.service import build_notification_service
from interlock.server.logs import JsonLogger
from tests.frameworks.framework_program import PATIENCE, Effects
from tests.frameworks.reviewer import Desk
from tests.journeys.shell import wait_until

T = TypeVar("T")
POLICY = """
version: 1
defaults: {undo_window: 0s}
rules:
  - {name: soon over, tools: [refund], when: 'args.order.startsWith("late")', then: ask, expires_in: 1s}
"""


@dataclass(frozen=True)
class World:
    """Every order is one call of `refund`, so an order names its approval."""

    url: str
    effects: Effects
    kind: str
    settings: Callable[[], Mapping[str, object]]
    lines: list[str] = field(default_factory=list)  # the log of the courier

    @property
    def desk(self) -> Desk:
        return Desk(self.url)

    def asked(self, order: str) -> list[Approval]:
        """Every approval of an order."""

        async def work(parts: AppServices) -> list[Approval]:
            page = await parts.store.list("default", ApprovalQuery(limit=200))
            stored = [await parts.store.get("default", each.approval.id) for each in page.items]
            return [each.approval for each in stored if json.loads(each.payload.args or b"{}").get("order") == order]

        return self._with(work)

    def standing(self, order: str) -> Approval:
        """The one approval of an order, once it is there."""
        found: list[Approval] = []

        def one() -> bool:
            found[:] = self.asked(order)
            return bool(found)

        wait_until(one, f"somebody asked about {order}", PATIENCE)
        (only,) = found
        return only

    def status(self, order: str) -> str:
        return status_at(self.standing(order), time.time_ns() // 1_000_000)

    def decide(self, order: str, verb: str, *words: str) -> None:
        self.desk.decide(self.standing(order).id, verb, *words)

    def becomes(self, order: str, status: str) -> None:
        wait_until(lambda: self.status(order) == status, f"{order} is {status}", PATIENCE)

    def ran(self, order: str) -> list[int]:
        """The amounts that really went out for it."""
        return [args["amount"] for args in self.effects.of("refund") if args["order"] == order]

    def wake(self) -> int:
        """What the courier of a server does: tells the engine of everything that was decided."""

        async def work(parts: AppServices) -> int:
            settings = Settings(channels={"flows": ChannelSettings(self.kind, self.settings())})
            workspaces = Workspaces(parts.store, lambda policy: build_gate_and_inbox(parts.store, policy), {})
            reach = build_notification_service(
                settings, parts.store, workspaces, JsonLogger(parts.clock, "problems", self.lines.append)
            )
            try:
                await workspaces.refresh("default")
                return await reach.make_dispatcher().sweep()
            finally:
                await reach.channels["flows"].close()

        return self._with(work)

    def _with(self, work: Callable[[AppServices], Awaitable[T]]) -> T:
        async def run() -> T:
            parts = build_services(self.url)
            await parts.store.open()
            try:
                return await work(parts)
            finally:
                await parts.store.close()

        return asyncio.run(run())
