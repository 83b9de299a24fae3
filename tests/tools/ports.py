"""A port of this machine that stays a test's own, also while nobody listens at it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"


@contextmanager
def reserved_port() -> Iterator[int]:
    """Who knows it may listen there, end and come back; meanwhile a connection is refused.

    A port that was given back could be given to another program before it is used. Only Linux lets somebody listen at a
    port that another socket has bound: elsewhere it is given back.
    """
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, 0))
        port = bound.getsockname()[1]
        if sys.platform != "linux":
            bound.close()
        yield port
