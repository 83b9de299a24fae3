"""One raw ASGI request to the app; a stream is closed by the client after a while."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from interlock.server.http import AsgiApp, AsgiMessage

HOST = "127.0.0.1:8321"
STREAM = b"text/event-stream"
TIMEOUT = 50.0  # seconds for what certainly comes, on a loaded machine


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error_code(self) -> str:
        """Its code; empty if it is none of ours."""
        try:
            return str(self.json().get("error", ""))
        except (ValueError, AttributeError):
            return ""


async def send_request(
    app: AsgiApp,
    method: str,
    path: str,
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    body: bytes = b"",
    enough: Callable[[bytes], bool] = lambda _: True,
) -> Response:
    """Send a request; a stream is read until `enough` returns true."""
    client = _Client(make_scope(method, path, headers, body), body, enough)
    await asyncio.wait_for(client.run(app), TIMEOUT * 2)
    return client.response()


def make_scope(
    method: str, path: str, headers: Mapping[str, str] | Sequence[tuple[str, str]], body: bytes
) -> dict[str, Any]:
    given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    named = {name.lower() for name, _ in given}
    if "host" not in named:
        given.append(("host", HOST))
    if body and not named & {"content-length", "transfer-encoding"}:
        given.append(("content-length", str(len(body))))
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in given],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8321),
    }


class _Client:
    def __init__(self, scope: dict[str, Any], body: bytes, enough: Callable[[bytes], bool]) -> None:
        self._scope, self._body, self._enough = scope, body, enough
        self._is_body_sent = False
        self._disconnected = asyncio.Event()
        self._start: AsgiMessage = {}
        self._chunks: list[bytes] = []

    async def run(self, app: AsgiApp) -> None:
        talking = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        leaving = asyncio.ensure_future(self._disconnected.wait())
        try:
            await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED, timeout=TIMEOUT)
            self._disconnected.set()
            if self._is_stream():
                await asyncio.wait({talking}, timeout=TIMEOUT)
            else:
                await talking
        finally:
            for task in (talking, leaving):
                task.cancel()
            await asyncio.gather(talking, leaving, return_exceptions=True)

    def response(self) -> Response:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._start["headers"]}
        return Response(self._start["status"], headers, b"".join(self._chunks))

    async def _receive(self) -> AsgiMessage:
        if not self._is_body_sent:
            self._is_body_sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._chunks.append(message.get("body", b""))
        if not message.get("more_body") or (self._is_stream() and self._enough(b"".join(self._chunks))):
            self._disconnected.set()

    def _is_stream(self) -> bool:
        return any(
            value.startswith(STREAM) for name, value in self._start.get("headers", ()) if name == b"content-type"
        )
