"""One request to the app, byte for byte as a server would hand it on; a stream is left after a while."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from interlock.server.http import AsgiApp, AsgiMessage

HOST = "127.0.0.1:8321"
STREAM = b"text/event-stream"
PATIENCE = 50.0  # seconds for what certainly comes, on a busy machine


class Got(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """Its code; empty if it is none of ours."""
        try:
            return str(self.json().get("error", ""))
        except (ValueError, AttributeError):
            return ""


async def ask(
    app: AsgiApp,
    method: str,
    path: str,
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    body: bytes = b"",
    enough: Callable[[bytes], bool] = lambda _: True,
) -> Got:
    """A stream is read until there is `enough` of it, then the client goes away."""
    client = _Client(scope_of(method, path, headers, body), body, enough)
    await asyncio.wait_for(client.talk(app), PATIENCE * 2)
    return client.got()


def scope_of(
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
        self._given = False
        self._gone = asyncio.Event()
        self._start: AsgiMessage = {}
        self._parts: list[bytes] = []

    async def talk(self, app: AsgiApp) -> None:
        talking = asyncio.ensure_future(app(self._scope, self._receive, self._send))
        leaving = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
            self._gone.set()
            if self._is_stream():
                await asyncio.wait({talking}, timeout=PATIENCE)
            else:
                await talking
        finally:
            for task in (talking, leaving):
                task.cancel()
            await asyncio.gather(talking, leaving, return_exceptions=True)

    def got(self) -> Got:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._start["headers"]}
        return Got(self._start["status"], headers, b"".join(self._parts))

    async def _receive(self) -> AsgiMessage:
        if not self._given:
            self._given = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._parts.append(message.get("body", b""))
        if not message.get("more_body") or (self._is_stream() and self._enough(b"".join(self._parts))):
            self._gone.set()

    def _is_stream(self) -> bool:
        return any(
            value.startswith(STREAM) for name, value in self._start.get("headers", ()) if name == b"content-type"
        )
