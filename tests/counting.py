"""A process that counts up in what tool packs keep, once for each key: `python -m tests.counting URL TIMES`.

Says "ready", waits for a line, and prints what each change gave.
"""

from __future__ import annotations

import asyncio
import json
import sys

from interlock.core.ports import Shelf
from interlock.wiring import wire


async def main(url: str, times: int) -> None:
    parts = wire(url)
    await parts.store.open()
    try:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        records = parts.store.records("default")
        print(json.dumps([await records.change(f"key{number}", count_up) for number in range(times)]))
    finally:
        await parts.store.close()


def count_up(shelf: Shelf) -> int:
    """By one; gives how far it came."""
    found = shelf.get("counter", "c")
    n = int(str(found.body["n"])) + 1 if found else 1
    shelf.put("counter", "c", {"n": n})
    return n


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
