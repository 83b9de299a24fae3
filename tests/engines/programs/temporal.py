"""A worker of Temporal with one gated tool; what it does is counted elsewhere."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from interlock import Interlock
    from interlock.integrations.temporal import Calls, Tools

QUEUE = "refunds"


@workflow.defn
class Refund:
    def __init__(self) -> None:
        self.calls = Calls()

    @workflow.run
    async def run(self, order: str = "", amount: int = 40) -> Any:
        return await self.calls.run("refund", {"order": order or workflow.info().workflow_id, "amount": amount})


@workflow.defn
class RefundForModel:
    """For a model in a workflow."""

    @workflow.run
    async def run(self, order: str) -> Any:
        return await Calls().run_for_model("refund", {"order": order, "amount": 40})


@workflow.defn
class Both:
    """Two calls at once, and a read before them."""

    @workflow.run
    async def run(self, first: str, second: str) -> Any:
        calls = Calls()
        known = await calls.run("look_up", {"order": first})
        asked = [calls.run("refund", {"order": order, "amount": 1}) for order in (first, second)]
        return [known, *await asyncio.gather(*asked)]


@workflow.defn
class InvalidRefund:
    @workflow.run
    async def run(self) -> Any:
        return await Calls().run("refund", {"order": "misfit", "amount": "much"})


WORKFLOWS = [Refund, RefundForModel, Both, InvalidRefund]


def make_tools(lock: Interlock, effects: str) -> Tools:
    tools = Tools(lock.agent("refunds"))

    @tools.tool(effect="write", describe="Refund {amount} for order {order}")
    def refund(order: str, amount: int) -> Any:
        record_effect(effects, "refund", {"order": order, "amount": amount})
        if order.startswith("broken"):
            raise ValueError("the bank is closed")
        return None if order.startswith("nothing") else f"refunded {amount}"

    @tools.tool(effect="read")
    async def look_up(order: str) -> str:
        return f"{order} is paid"

    return tools


def record_effect(effects: str, tool: str, args: dict[str, Any]) -> None:
    request = urllib.request.Request(f"{effects}/effect", json.dumps({"tool": tool, "args": args}).encode())  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310  our own, on loopback
        answer.read()


async def main(job: dict[str, Any]) -> None:
    client = await Client.connect(job["target"])
    with Interlock(job["url"], lease_seconds=job["lease"]) as lock:
        tools = make_tools(lock, job["effects"])
        # Nothing is remembered between two tasks of a workflow: every one is a replay of its whole history.
        async with Worker(
            client, task_queue=QUEUE, workflows=WORKFLOWS, activities=tools.activities, max_cached_workflows=0
        ):
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
