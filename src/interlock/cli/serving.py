"""`interlock serve` and `interlock worker`: what keeps running."""

from __future__ import annotations

import asyncio

from interlock.cli.output import say
from interlock.cli.shared import Options
from interlock.web.logs import Log
from interlock.web.running import on_signal, take_logs, working
from interlock.wiring import wall_clock, wire


async def run(options: Options, host: str, port: int | None, *, worker: bool, demo: bool) -> None:
    from interlock.server.serve import serve

    settings = options.settings(server_host=host or None, server_port=port)
    await serve(settings, say, worker=worker, demo=demo)


async def work(options: Options) -> None:
    """Any number of these may run, beside servers or without one."""
    settings = options.settings()
    log = Log(wall_clock, settings.server.log)
    parts = wire(settings.storage.url, retention=settings.storage.retention)
    await parts.store.open()
    told = asyncio.Event()
    take_logs(log)
    try:
        with on_signal(told.set):
            async with working(log, parts.worker.run):
                say(f"Interlock's worker is running on {parts.store.name}.")
                log.tell("info", "start", database=parts.store.name)
                await told.wait()
                log.tell("info", "stopping")
    finally:
        await parts.store.close()
    log.tell("info", "stopped")
