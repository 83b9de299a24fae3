"""What is done beside a request, so that how long its answer takes tells nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


class Aside:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Waits for all that was begun."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
