"""Stops itself (SIGSTOP) in the middle of a batch, while it holds the head of the ledger:

python -m tests.faults.stopped_batch_program URL APPROVAL_ID
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from typing import Any

from interlock.app.bootstrap import build_services
from interlock.storage.postgres.pipeline import Pipeline
from tests.support import approve


class Stopping:
    def around(self, pipe: Pipeline) -> Stopping:
        self._pipe = pipe
        return self

    def sync(self) -> None:
        self._pipe.sync()
        print("stopped", flush=True)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # this thread, or it would go on for a moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)


async def main(url: str, approval_id: str) -> None:
    parts = build_services(url)
    await parts.store.open()
    parts.store._database.wrap_connection(Stopping().around)  # type: ignore[attr-defined]
    await approve(parts, approval_id)
    await parts.store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
