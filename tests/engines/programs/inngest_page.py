"""Serves the program of the page as `uvicorn shop:app` does, on any port."""

from __future__ import annotations

import logging
import socket
import sys

sys.path.insert(0, "")  # as uvicorn does

import uvicorn

logging.disable(logging.CRITICAL)
with socket.create_server(("127.0.0.1", 0)) as listening:
    config = uvicorn.Config("shop:app", log_config=None)
    config.load()
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(config).run([listening])
