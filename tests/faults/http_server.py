"""`interlock`, broken on purpose or with a plan: `python -m tests.faults.http_server CONTROL PLAN serve …`.

Either may be empty. `points` has the plans.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from interlock.app.gate import Execution, Gate
from interlock.app.inbox import Inbox
from interlock.chat.turn import Turn
from interlock.cli import main
from interlock.core.notify import delivery as deliveries
from interlock.core.notify.delivery import Delivery
from interlock.core.ports import ApprovalQuery
from interlock.notify.channel_queue import ChannelQueue
from interlock.storage.store import SqlStore
from interlock.storage.tables import deliveries as claiming
from tests.faults import race_controls
from tests.faults.points import add_delivery_points, parse_fault_plan
from tests.interlock_server import INTERLOCK

REPOSITORY = Path(__file__).resolve().parents[2]
UNHURRIED = 0.5  # seconds until what was acknowledged is written
LATER: set[asyncio.Task[Any]] = set()  # a task that nobody holds may be collected before it ran


def program(broken: str, plan: str = "") -> tuple[Sequence[str], dict[str, str]]:
    """How such a server is started, and in which environment: it runs in another folder than this one."""
    if not broken and not plan:
        return INTERLOCK, {}
    return (sys.executable, "-m", "tests.faults.http_server", broken, plan), {
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}"
    }


def acknowledge_before_commit() -> None:
    """A decision is acknowledged half a second before it is written."""
    real = Inbox.decide

    async def decide(self: Inbox, workspace: str, approval_id: str, decision: Any, reviewer: Any) -> Any:
        async def later() -> None:
            await asyncio.sleep(UNHURRIED)
            await real(self, workspace, approval_id, decision, reviewer)

        task = asyncio.create_task(later())
        LATER.add(task)
        task.add_done_callback(LATER.discard)
        return (await self._store.get(workspace, approval_id)).approval

    Inbox.decide = decide  # type: ignore[method-assign]


def hold_threads() -> None:
    """A coroutine with its log stays in memory for every thread that waits."""
    real, held = Turn.advance, list[Any]()

    async def advance(self: Turn) -> None:
        await real(self)
        held.append((self, asyncio.create_task(asyncio.sleep(3_600)), bytearray(10_000)))

    Turn.advance = advance  # type: ignore[method-assign]


def start_for_all() -> None:
    """Every caller may start an approved call, repeatedly; only the first start is recorded."""
    known: dict[str, Execution] = {}
    real = Gate.start

    async def start(self: Gate, workspace: str, approval_id: str, *rest: Any) -> Execution:
        if approval_id not in known:
            known[approval_id] = await real(self, workspace, approval_id, *rest)
        return known[approval_id]

    Gate.start = start  # type: ignore[method-assign]


def count_all() -> None:
    """Before it opens, it looks at every approval once: what grows with the database."""
    real = SqlStore.__init__

    def init(self: SqlStore, *rest: Any, **more: Any) -> None:
        real(self, *rest, **more)
        opened = self.open

        async def open_() -> None:
            await opened()
            cursor: str | None = ""
            while cursor is not None:
                cursor = (await self.list("default", ApprovalQuery(limit=500, cursor=cursor))).next

        self.open = open_

    SqlStore.__init__ = init  # type: ignore[method-assign]


def record_before_send() -> None:
    """A message is marked as sent before it is sent."""
    real = ChannelQueue._send

    async def tell(self: ChannelQueue, delivery: Delivery) -> str:
        await self._record_sent(delivery, "")
        return await real(self, delivery)

    ChannelQueue._send = tell  # type: ignore[method-assign]


def use_new_delivery_ids() -> None:
    """Every try has an id of its own, so the other side cannot know that it has heard this before."""
    Delivery.message_id = property(lambda self: f"{self.id}.{uuid.uuid4().hex[:12]}")  # type: ignore[assignment]


def send_without_lease() -> None:
    """A delivery is sent without a lease, and late enough for others to send it too."""
    claimed, save, send = deliveries.lease, claiming.save_delivery, ChannelQueue._send_or_update
    deliveries.lease = lambda delivery, *rest: replace(claimed(delivery, *rest), fence=delivery.fence)
    claiming.save_delivery = lambda tx, delivery: None if delivery.status == "sending" else save(tx, delivery)  # type: ignore[assignment]

    async def send_late(*given: Any) -> Any:
        await asyncio.sleep(0.2)
        return await send(*given)

    ChannelQueue._send_or_update = send_late  # type: ignore[method-assign]


CONTROLS: dict[str, Callable[[], None]] = {
    **race_controls.CONTROLS,
    "acknowledged-first": acknowledge_before_commit,
    "started-for-all": start_for_all,
    "counts-all": count_all,
    "holds-threads": hold_threads,
    "recorded-first": record_before_send,
    "new-ids": use_new_delivery_ids,
    "unclaimed": send_without_lease,
}


if __name__ == "__main__":
    _, control, fault_plan, *words = sys.argv
    if control:
        CONTROLS[control]()
    if point := parse_fault_plan(fault_plan):
        add_delivery_points(point)
    sys.argv = ["interlock", *words]
    os.environ.pop("PYTHONPATH", None)
    main()
