"""Process lifecycle: background jobs such as timers, the log of libraries, signal handling and graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import uvicorn

from interlock.core.errors import Misconfigured
from interlock.server.logs import JsonLogger, LibraryLogHandler

SHUTDOWN_GRACE = 10  # seconds that running work gets to finish when the program stops
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BackgroundJob = Callable[[asyncio.Event], Awaitable[None]]


@contextmanager
def on_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on the first signal; later signals have their default effect, which ends the program at once."""
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


def capture_library_logs(log: JsonLogger) -> None:
    """Write messages of libraries and the event loop as lines of our log."""
    logging.basicConfig(handlers=[LibraryLogHandler(log)], level=logging.WARNING, force=True)
    asyncio.get_running_loop().set_exception_handler(log.handle_loop_exception)


@asynccontextmanager
async def background_jobs(log: JsonLogger, *runs: BackgroundJob) -> AsyncIterator[None]:
    """Run the background jobs until the end of the block; a job that raises is logged and restarted."""
    stop = asyncio.Event()

    async def keep(run: BackgroundJob) -> None:
        while not stop.is_set():
            try:
                await run(stop)
            except Exception as error:  # noqa: BLE001  deadlines have to be kept despite any error
                log.write_exception("background_failed", error)
                await wait_for_stop(stop, 1.0)

    tasks = [asyncio.create_task(keep(run)) for run in runs]
    try:
        yield
    finally:
        stop.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*tasks), SHUTDOWN_GRACE)


async def wait_for_stop(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise Misconfigured(f"Cannot listen on {host}:{port}: {error.strerror}. Choose another --port.") from None
    listening.listen(2048)
    listening.setblocking(False)
    return listening


async def serve_asgi(app: Any, listening: socket.socket) -> None:
    """Serve an ASGI application until a signal arrives."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    server = MinimalServer(config)
    with on_signal(server.stop):
        await server.serve(sockets=[listening])


class MinimalServer(uvicorn.Server):
    def stop(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the caller handles signals."""
        yield
