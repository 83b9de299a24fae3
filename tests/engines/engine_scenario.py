"""Shared by engine tests: a database, a reviewer, counted effects, and the engine's channel."""

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
from tests.frameworks.framework_program import TIMEOUT, EffectServer
from tests.frameworks.reviewer import DatabaseReviewer
from tests.journeys.shell import wait_until

T = TypeVar("T")
POLICY = """
version: 1
defaults: {undo_window: 0s}
rules:
  - {name: soon over, tools: [refund], when: 'args.order.startsWith("late")', then: ask, expires_in: 1s}
"""


@dataclass(frozen=True)
class EngineScenario:
    """Every order is one call of `refund`, so an order names its approval."""

    url: str
    effects: EffectServer
    kind: str
    settings: Callable[[], Mapping[str, object]]
    log: list[str] = field(default_factory=list)  # the log of the dispatcher

    @property
    def reviewer(self) -> DatabaseReviewer:
        return DatabaseReviewer(self.url)

    def approvals(self, order: str) -> list[Approval]:
        """Every approval of an order."""

        async def work(services: AppServices) -> list[Approval]:
            page = await services.store.list("default", ApprovalQuery(limit=200))
            stored = [await services.store.get("default", each.approval.id) for each in page.items]
            return [each.approval for each in stored if json.loads(each.payload.args or b"{}").get("order") == order]

        return self._with_services(work)

    def wait_for_approval(self, order: str) -> Approval:
        """The only approval of an order, once it exists."""
        found: list[Approval] = []

        def one() -> bool:
            found[:] = self.approvals(order)
            return bool(found)

        wait_until(one, f"somebody asked about {order}", TIMEOUT)
        (only,) = found
        return only

    def status(self, order: str) -> str:
        return status_at(self.wait_for_approval(order), time.time_ns() // 1_000_000)

    def decide(self, order: str, verb: str, *words: str) -> None:
        self.reviewer.decide(self.wait_for_approval(order).id, verb, *words)

    def wait_for_status(self, order: str, status: str) -> None:
        wait_until(lambda: self.status(order) == status, f"{order} is {status}", TIMEOUT)

    def refunded_amounts(self, order: str) -> list[int]:
        """The amounts that really went out for it."""
        return [args["amount"] for args in self.effects.calls_to("refund") if args["order"] == order]

    def dispatch(self) -> int:
        """Dispatch all decisions to the engine, as a server does."""

        async def work(services: AppServices) -> int:
            settings = Settings(channels={"flows": ChannelSettings(self.kind, self.settings())})
            workspaces = Workspaces(services.store, lambda policy: build_gate_and_inbox(services.store, policy), {})
            notifications = build_notification_service(
                settings, services.store, workspaces, JsonLogger(services.clock, "problems", self.log.append)
            )
            try:
                await workspaces.refresh("default")
                return await notifications.make_dispatcher().sweep()
            finally:
                await notifications.channels["flows"].close()

        return self._with_services(work)

    def _with_services(self, work: Callable[[AppServices], Awaitable[T]]) -> T:
        async def run() -> T:
            services = build_services(self.url)
            await services.store.open()
            try:
                return await work(services)
            finally:
                await services.store.close()

        return asyncio.run(run())
