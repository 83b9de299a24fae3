"""A socket that takes connections, and a small application behind it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from interlock.core.errors import Misconfigured
from interlock.web.running import on_signal


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


async def answer(app: Any, listening: socket.socket) -> None:
    """Serves an ASGI application until a signal comes."""
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
    server = Quiet(config)
    with on_signal(server.stop):
        await server.serve(sockets=[listening])


class Quiet(uvicorn.Server):
    def stop(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are taken care of outside."""
        yield
