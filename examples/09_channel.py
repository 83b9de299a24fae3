"""People are told where they are: here a webhook, whose other side is a few lines below.

python examples/09_channel.py                 in one terminal: it waits, and prints what the webhook was told
interlock approvals approve ID                in another one

The agent uses the library alone. A worker on the same database follows the ledger and reaches people.
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

from standardwebhooks.webhooks import Webhook

from interlock import Interlock

SECRET = "whsec_c2VjcmV0IG9mIHRoZSBleGFtcGxlLCAzMiBieXRlcyE="  # noqa: S105  of an example
over = threading.Event()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Believes nothing that is not signed; `webhook-id` is the same if a message comes again."""
        body = self.rfile.read(int(self.headers["content-length"]))
        told = Webhook(SECRET).verify(body, dict(self.headers))
        self.send_response(204)
        self.end_headers()
        data = told["data"]
        print(f"{told['type']}: {data.get('sentence')} ({data.get('status')})", flush=True)
        if data.get("status") == "succeeded":
            over.set()

    def log_message(self, format: str, *args: object) -> None: ...


async def main(url: str) -> None:
    with receiver() as port, worker(url, port):
        lock = Interlock(url)

        @lock.tool(effect="write", describe="Send {text!r} to {to}")
        async def send_mail(to: str, text: str) -> str:
            return f"sent to {to}"

        async with lock:
            print(await send_mail(to="alice", text="Clear sky."), flush=True)
        await asyncio.to_thread(over.wait, 30)


@contextmanager
def receiver() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def worker(url: str, port: int) -> Iterator[None]:
    """The configuration is JSON here, which is YAML too; private addresses have to be allowed by name."""
    hook = {"kind": "webhook", "url": f"http://127.0.0.1:{port}/", "secret": SECRET, "allow_private": True}
    settings = {"channels": {"hook": hook}, "routing": {"default_channel": "hook"}}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "interlock.yaml")
        file.write_text(json.dumps(settings))
        command = [sys.executable, "-m", "interlock", "worker", "--config", str(file), "--database", url]
        program = subprocess.Popen(command)  # noqa: S603  our own
        try:
            yield
        finally:
            program.terminate()
            program.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///interlock.db"))
