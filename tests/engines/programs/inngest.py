"""Functions of Inngest with one gated tool, served over HTTP; what the tool does is counted elsewhere."""

from __future__ import annotations

import json
import logging
import socket
import sys
import urllib.request
from typing import Any

import fastapi
import inngest
import inngest.fast_api
import uvicorn

from interlock import Interlock
from interlock.integrations.inngest import Gate


def make_functions(client: inngest.Inngest, gate: Gate) -> list[Any]:
    @client.create_function(fn_id="refund", trigger=inngest.TriggerEvent(event="order/complained"))
    async def refund(ctx: inngest.Context) -> Any:
        return await gate.run(ctx, "refund", dict(ctx.event.data))

    @client.create_function(fn_id="told", trigger=inngest.TriggerEvent(event="order/asked"))
    async def told(ctx: inngest.Context) -> Any:
        return await gate.run_for_model(ctx, "refund", dict(ctx.event.data))

    @client.create_function(fn_id="twice", trigger=inngest.TriggerEvent(event="order/twice"))
    async def twice(ctx: inngest.Context) -> Any:
        """The same call two times over: two calls."""
        known = await gate.run(ctx, "look_up", {"order": ctx.event.data["order"]})
        return [known, *[await gate.run(ctx, "refund", dict(ctx.event.data)) for _ in range(2)]]

    return [refund, told, twice]


def make_gate(lock: Interlock, effects: str) -> Gate:
    gate = Gate(lock.agent("refunds"))

    @gate.tool(effect="write", describe="Refund {amount} for order {order}")
    def refund(order: str, amount: int) -> Any:
        record_effect(effects, "refund", {"order": order, "amount": amount})
        if order.startswith("broken"):
            raise ValueError("the bank is closed")
        return None if order.startswith("nothing") else f"refunded {amount}"

    @gate.tool(effect="read")
    async def look_up(order: str) -> str:
        return f"{order} is paid"

    return gate


def record_effect(effects: str, tool: str, args: dict[str, Any]) -> None:
    request = urllib.request.Request(f"{effects}/effect", json.dumps({"tool": tool, "args": args}).encode())  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310  our own, on loopback
        answer.read()


def main(job: dict[str, Any]) -> None:
    logging.disable(logging.CRITICAL)
    client = inngest.Inngest(
        app_id="shop",
        is_production=True,
        event_key=job["event_key"],
        signing_key=job["signing_key"],
        event_api_base_url=job["inngest"],
        api_base_url=job["inngest"],
    )
    with Interlock(job["url"], lease_seconds=job["lease"]) as lock, socket.socket() as listening:
        lock.open()
        app = fastapi.FastAPI()
        inngest.fast_api.serve(app, client, make_functions(client, make_gate(lock, job["effects"])))
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_config=None)).run([listening])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
