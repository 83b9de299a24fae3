"""A service of Restate whose handler pays: at each point on its way it says where it is, and can be held there."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config

from interlock import Interlock, ToolSpec
from interlock.core.call import Args, ToolCall
from interlock.core.outcome import Outcome
from interlock.integrations.restate import gated
from interlock.sdk.agent import Agent, Executed

JOB: dict[str, Any] = json.loads(sys.argv[1])
ACCEPTED_FIELDS = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
PAY, PAY_SOON = (
    ToolSpec(name, "write", schema=ACCEPTED_FIELDS, describe="Pay {order}") for name in ("pay", "pay_soon")
)
TRIES = itertools.count(1)
RETRY = restate.InvocationRetryPolicy(timedelta(milliseconds=50), 1.5, timedelta(milliseconds=300), 10_000)
# Suspended at once where it waits, so that each step is a replay.
cashier = restate.Service("cashier", inactivity_timeout=timedelta(0), invocation_retry_policy=RETRY)


@dataclass(frozen=True)
class ReportingAgent(Agent):
    """Says where it is before and after each look."""

    order: dict[str, Any]

    async def attempt(
        self, call: ToolCall, spec: ToolSpec, body: Callable[[Args], Awaitable[Any]]
    ) -> Executed | Outcome:
        await report_point("looking", self.order)
        outcome = await super().attempt(call, spec, body)
        await report_point(type(outcome).__name__, self.order)
        return outcome


@cashier.handler()
async def pay(ctx: restate.Context, order: dict[str, Any]) -> Any:
    agent = ReportingAgent(LOCK, ("cashier",), order)
    pause = timedelta(seconds=order.get("recheck_after", 3_600))
    args = order.get("args", {"order": order["order"]})
    if order.get("wavering"):
        args = {"order": f"{order['order']}, try {next(TRIES)}"}
    spec = PAY_SOON if order.get("soon") else PAY
    return await gated(ctx, agent, spec, args, FUNCTIONS[order.get("how", "well")], recheck_after=pause)


async def well(order: str) -> str:
    await report_effect("pay", {"order": order})
    return f"paid {order}"


def in_a_thread(order: str) -> dict[str, object]:
    asyncio.run(report_effect("pay", {"order": order}))
    return {"paid": order, "raw": b"bytes"}


async def badly(order: str) -> str:
    await report_effect("pay", {"order": order})
    raise restate.TerminalError("The bank is closed.")


async def report_point(point: str, order: dict[str, Any]) -> None:
    """Held only where the order says so: others go on."""
    if point in order.get("points", ()):
        await report_effect("at", {"point": point, "order": order["order"]}, JOB["points"])


async def report_effect(tool: str, args: dict[str, Any], where: str = JOB["effects"]) -> None:
    async with httpx2.AsyncClient(timeout=110) as client:
        await client.post(where, json={"tool": tool, "args": args})


FUNCTIONS: dict[str, Callable[..., Any]] = {"well": well, "in a thread": in_a_thread, "badly": badly}


async def main() -> None:
    config = Config.from_mapping(bind=[f"127.0.0.1:{JOB['port']}"], loglevel="ERROR")
    await serve(restate.app([cashier]), config, mode="asgi")  # type: ignore[arg-type]


if __name__ == "__main__":
    with Interlock(JOB["url"], key=JOB.get("key"), agent="cashier", lease_seconds=2) as LOCK:
        asyncio.run(main())
