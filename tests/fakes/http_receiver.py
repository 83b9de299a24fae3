"""A receiver of requests, over real HTTP on loopback, with the troubles that a real one has.

By itself it is a receiver of Standard Webhooks: it takes what the standard's own library verifies. Stand-ins for
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

from tests.fakes.asgi_server import answering


class Heard(NamedTuple):
    """A request as it came; header names are in small letters."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


Judge = Callable[[Heard], Answer]


def take_all(_: Heard) -> Answer:
    return Answer(204)


@dataclass
class Receiver:
    """`heard` is everything that arrived, `taken` what was answered with yes, `refused` why the rest was not.

    `instead` is answered while it is set. While it is `held`, nothing is answered at all.
    """

    judge: Judge = take_all
    heard: list[Heard] = field(default_factory=list)
    taken: list[Heard] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    instead: Answer | None = None
    held: bool = False
    url: str = ""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, heard: Heard) -> Answer:
        self.heard.append(heard)
        if self.held:
            await self.go_on.wait()
        answer = self.instead or self.judge(heard)
        if 200 <= answer.status < 300:
            self.taken.append(heard)
        else:
            self.refused.append(answer.body.decode())
        return answer


TROUBLES: Mapping[str, Answer] = {
    "redirecting": Answer(302, {"location": "/elsewhere"}),
    "500": Answer(500, {}, b"a secret of the other side"),
    "503": Answer(503),
    "429 with seconds": Answer(429, {"retry-after": "120"}),
    "429 with a date": Answer(
        429, {"retry-after": "Wed, 21 Oct 2026 07:30:00 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    ),
    "400": Answer(400, {}, b"a secret of the other side"),
    "410": Answer(410),
}


@asynccontextmanager
async def receiving(judge: Judge = take_all, path: str = "/hook") -> AsyncIterator[Receiver]:
    receiver = Receiver(judge)

    async def app(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        answer = await receiver.answer(Heard(scope["method"], scope["path"], headers, await _body(receive)))
        raw = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        await send({"type": "http.response.body", "body": answer.body})

    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver.url = f"http://127.0.0.1:{listening.getsockname()[1]}{path}"
        async with answering(app, listening):
            try:
                yield receiver
            finally:
                receiver.go_on.set()


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body
