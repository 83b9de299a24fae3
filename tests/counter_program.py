"""A process that counts up in what tool packs keep, once for each key: `python -m tests.counter_program URL KEY,KEY [PLAN]`.

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
    parts = build_services_with_points(url, lambda name: act(name) if act and begun.is_set() else None)
    await parts.store.open()
    try:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        begun.set()
        records = parts.store.records("default")
        print(json.dumps([await records.change(key, count_up) for key in keys.split(",")]))
        begun.clear()
    finally:
        await parts.store.close()


def count_up(shelf: ToolItemTransaction) -> int:
    """By one; gives how far it came."""
    found = shelf.get("counter", "c")
    n = int(str(found.body["n"])) + 1 if found else 1
    shelf.put("counter", "c", {"n": n})
    return n


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
