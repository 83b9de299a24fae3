"""`interlock serve` and `interlock worker`: what keeps running."""

from __future__ import annotations

from interlock.cli.output import say
from interlock.cli.shared import Options
from interlock.server.serve import serve


async def run(options: Options, host: str, port: int | None, *, worker: bool) -> None:
    settings = options.settings(server_host=host or None, server_port=port)
    await serve(settings, say, worker=worker)
