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


class StoppingPipeline:
    def around(self, pipe: Pipeline) -> StoppingPipeline:
        self._pipe = pipe
        return self

    def sync(self) -> None:
        self._pipe.sync()
        print("stopped", flush=True)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # this thread, or it would go on for a moment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)


async def main(url: str, approval_id: str) -> None:
    services = build_services(url)
    await services.store.open()
    services.store._database.wrap_connection(StoppingPipeline().around)  # type: ignore[attr-defined]
    await approve(services, approval_id)
    await services.store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
