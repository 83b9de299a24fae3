"""What both sides of an engine's test share: a database, people at it, effects that are counted, and the channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.configuration import Channel
from interlock.wiring import wire
from tests.channels.office import Office
from tests.frameworks.desk import Desk
from tests.frameworks.outside import PATIENCE, Effects
from tests.journeys.programs import wait_until

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

    @property
    def desk(self) -> Desk:
        return Desk(self.url)

    def standing(self, order: str) -> dict[str, Any]:
        """The one approval of an order, once it is there."""
        found: list[dict[str, Any]] = []

        def one() -> bool:
            found[:] = [each for each in self.desk.listed("all") if each["args"].get("order") == order]
            return bool(found)

        wait_until(one, f"somebody asked about {order}", PATIENCE)
        (only,) = found
        return only

    def status(self, order: str) -> str:
        return str(self.standing(order)["status"])

    def decide(self, order: str, verb: str, *words: str) -> None:
        self.desk.decide(self.standing(order)["id"], verb, *words)

    def becomes(self, order: str, status: str) -> None:
        wait_until(lambda: self.status(order) == status, f"{order} is {status}", PATIENCE)

    def ran(self, order: str) -> list[int]:
        """The amounts that really went out for it."""
        return [args["amount"] for args in self.effects.of("refund") if args["order"] == order]

    def wake(self) -> int:
        """What the courier of a server does: tells the engine of everything that was decided."""

        async def swept() -> int:
            parts = wire(self.url)
            await parts.store.open()
            office = Office(parts, {"flows": Channel(self.kind, self.settings())})
            try:
                return await office.sweep()
            finally:
                await office.close()
                await parts.store.close()

        return asyncio.run(swept())
