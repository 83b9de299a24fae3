"""A fake HTTP receiver on loopback that can fail like a real one.

By itself it is a receiver of Standard Webhooks: it takes what the standard's own library verifies. Fakes of
services give it a judge of their own.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.fakes.asgi_server import serve_asgi


class ReceivedRequest(NamedTuple):
    """A request as it arrived; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


Handler = Callable[[ReceivedRequest], Response]


def accept_all(_: ReceivedRequest) -> Response:
    return Response(204)


@dataclass
class Receiver:
    """`requests` is everything that arrived, `accepted` what got a 2xx, `refused` why the rest did not.

    `instead` is answered while it is set. While it is `held`, nothing is answered at all.
    """

    handler: Handler = accept_all
    requests: list[ReceivedRequest] = field(default_factory=list)
    accepted: list[ReceivedRequest] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    override: Response | None = None
    is_blocked: bool = False
    url: str = ""
    unblock: asyncio.Event = field(default_factory=asyncio.Event)

    async def respond(self, heard: ReceivedRequest) -> Response:
        self.requests.append(heard)
        if self.is_blocked:
            await self.unblock.wait()
        answer = self.override or self.handler(heard)
        if 200 <= answer.status < 300:
            self.accepted.append(heard)
        else:
            self.refused.append(answer.body.decode())
        return answer


FAILURES: Mapping[str, Response] = {
    "redirecting": Response(302, {"location": "/elsewhere"}),
    "500": Response(500, {}, b"a secret of the other side"),
    "503": Response(503),
    "429 with seconds": Response(429, {"retry-after": "120"}),
    "429 with a date": Response(
        429, {"retry-after": "Wed, 21 Oct 2026 07:30:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    ),
    "400": Response(400, {}, b"a secret of the other side"),
    "410": Response(410),
}


@asynccontextmanager
async def run_receiver(judge: Handler = accept_all, path: str = "/hook") -> AsyncIterator[Receiver]:
    receiver = Receiver(judge)

    async def app(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        answer = await receiver.respond(ReceivedRequest(scope["method"], scope["path"], headers, await _body(receive)))
        raw = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        await send({"type": "http.response.body", "body": answer.body})

    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver.url = f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
        async with serve_asgi(app, listening):
            try:
                yield receiver
            finally:
                receiver.unblock.set()


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body
