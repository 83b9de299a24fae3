"""The contract of a channel, for the company's pager: it needs only a fake of the service that the channel sends to."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from interlock.testing.channels import ERROR_TEXT, ChannelContract, FakeService

SECRET = "a secret of the tests"  # noqa: S105  of an example


class TestPager(ChannelContract):
    kind = "mycompany.pager:Pager"

    @asynccontextmanager
    async def run_service(self, folder: Path) -> AsyncIterator[FakeService]:
        received: list[dict[str, object]] = []
        broken = False

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].split()[0])
            body = await reader.readexactly(length)
            if not broken:
                received.append(json.loads(body))
            status, said = ("500 Broken", ERROR_TEXT) if broken else ("200 OK", "")
            writer.write(
                f"HTTP/1.1 {status}\r\ncontent-length: {len(said)}\r\nconnection: close\r\n\r\n{said}".encode()
            )
            await writer.drain()
            writer.close()

        def fail(is_broken: bool) -> None:
            nonlocal broken
            broken = is_broken

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/pages"
        async with server:
            yield FakeService(
                settings={"url": url, "secret": SECRET, "acts_as": "bob", "allow_private": True},
                received_texts=lambda: [line for body in received for line in texts(body)],
                refusals=list,
                fail=fail,
                ids=lambda: [str(body["id"]) for body in received],
                secrets=[SECRET],
            )


def texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [str(value)]
