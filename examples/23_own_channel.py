"""People are told through a channel of one's own: the class in mycompany/pager.py, named in the configuration.

python examples/23_own_channel.py             in one terminal: it waits, and prints what the paging service was told
interlock approvals approve ID                in another one

The paging service is a few lines below. A worker on the same database follows the ledger and sends through the channel.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from interlock import Interlock

over = threading.Event()


class PagingService(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        page = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(204)
        self.end_headers()
        print(f"paged: {page['title']} ({page['status']})", flush=True)
        if page["status"] == "succeeded":
            over.set()

    def log_message(self, format: str, *args: object) -> None: ...


async def main(url: str) -> None:
    with paging_service() as port, worker(url, port):
        lock = Interlock(url)

        @lock.tool(effect="write", describe="Restart {service}")
        async def restart(service: str) -> str:
            return f"{service} restarted"

        async with lock:
            print(await restart("billing"), flush=True)
        await asyncio.to_thread(over.wait, 30)


@contextmanager
def paging_service() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), PagingService)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def worker(url: str, port: int) -> Iterator[None]:
    """It is started in this folder, where mycompany is; an installed package would be found from anywhere."""
    pager = {
        "kind": "mycompany.pager:Pager",
        "url": f"http://127.0.0.1:{port}/pages",
        "secret": "a secret of the example",
        "allow_private": True,
    }
    settings = {"channels": {"pager": pager}, "routing": {"default_channel": "pager"}}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "interlock.yaml")
        file.write_text(json.dumps(settings))
        command = [sys.executable, "-m", "interlock", "worker", "--config", str(file), "--database", absolute(url)]
        program = subprocess.Popen(command, cwd=Path(__file__).parent)  # noqa: S603  our own
        try:
            yield
        finally:
            program.terminate()
            program.wait()


def absolute(url: str) -> str:
    """The database of this folder, for a program that is started in another one."""
    kind, _, path = url.partition(":///")
    return f"sqlite:///{Path(path).absolute()}" if kind == "sqlite" else url


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))
