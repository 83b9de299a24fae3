"""What keeps running until it is told to stop: what time does, the log of libraries, and the signals."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from interlock.web.logs import Log, Passed

GRACE = 10  # seconds that what was begun gets to end when the program stops
SIGNALS = (signal.SIGINT, signal.SIGTERM)
Run = Callable[[asyncio.Event], Awaitable[None]]


@contextmanager
def on_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Calls `stop` on the first signal; from then on a signal does what it does to any program: ends it at once."""
    loop = asyncio.get_running_loop()

    def told() -> None:
        for each in SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        stop()

    for each in SIGNALS:
        loop.add_signal_handler(each, told)
    try:
        yield
    finally:
        for each in SIGNALS:
            loop.remove_signal_handler(each)


def take_logs(log: Log) -> None:
    """What libraries and the event loop have to say becomes lines of ours."""
    logging.basicConfig(handlers=[Passed(log)], level=logging.WARNING, force=True)
    asyncio.get_running_loop().set_exception_handler(log.loop_failed)


@asynccontextmanager
async def working(log: Log, *runs: Run) -> AsyncIterator[None]:
    """Runs them until the end of the block; a fault of ours must not end one before."""
    stop = asyncio.Event()

    async def keep(run: Run) -> None:
        while not stop.is_set():
            try:
                await run(stop)
            except Exception as error:  # noqa: BLE001  deadlines have to be kept whatever happens
                log.failed("background_failed", error)
                await pause(stop, 1.0)

    tasks = [asyncio.create_task(keep(run)) for run in runs]
    try:
        yield
    finally:
        stop.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*tasks), GRACE)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
