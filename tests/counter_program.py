"""A program that increments a counter in the tool items, once for each key.

Says "ready", waits for a line, and prints what each change gave. A plan of `tests.faults.points` counts from there.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading

from interlock.core.ports import ToolItemTransaction
from tests.faults.points import build_services_with_points, parse_fault_plan


async def main(url: str, keys: str, fault: str = "") -> None:
    begun, act = threading.Event(), parse_fault_plan(fault)
    services = build_services_with_points(url, lambda name: act(name) if act and begun.is_set() else None)
    await services.store.open()
    try:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        begun.set()
        items = services.store.tool_items("default")
        print(json.dumps([await items.change(key, increment) for key in keys.split(",")]))
        begun.clear()
    finally:
        await services.store.close()


def increment(items: ToolItemTransaction) -> int:
    """Add one and return the new value."""
    found = items.get("counter", "c")
    n = int(str(found.body["n"])) + 1 if found else 1
    items.put("counter", "c", {"n": n})
    return n


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
