"""An ASGI application served on loopback in the event loop of its test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serve_asgi(app: Any, listening: socket.socket) -> AsyncIterator[None]:
    """As uvicorn serves it, but for its main loop: that one sleeps for two tenths of a second until it has ended."""
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, log_level="critical", date_header=False)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    try:
        yield
    finally:
        for each in server.servers:
            each.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        while server.server_state.connections or server.server_state.tasks:  # noqa: ASYNC110  nothing tells
            await asyncio.sleep(0.001)
