"""Work on large values is done beside the event loop, so that nobody else waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
OFFLOAD_THRESHOLD = 64 * 1024  # bytes, a few milliseconds


async def offload(size: int, work: Callable[[], T]) -> T:
    return work() if size < OFFLOAD_THRESHOLD else await asyncio.to_thread(work)
