"""One program during an upgrade: it works on a database until its input ends. Run as a program of its own:

    python -m tests.faults.upgrading URL FILE

Writes a line into FILE for every call that it has brought to an end.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from interlock.wiring import wire
from tests.support import OK, approve, pending


async def main(url: str, told: Path) -> None:
    parts = wire(url)
    await parts.store.open()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, stop.set)
    number = 0
    with told.open("a", buffering=1) as file:
        while not stop.is_set():
            number += 1
            approval_id = await pending(parts, f"{os.getpid()}.{number}")
            await approve(parts, approval_id)
            execution = await parts.gate.start("default", approval_id, "r")
            await parts.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
            file.write(f"{approval_id}\n")
    await parts.store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
