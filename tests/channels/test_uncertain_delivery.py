"""Whether the other side may have heard a message: it matters when there is more to say about it."""

from __future__ import annotations

import asyncio

import pytest

from interlock.notify.channel import ChannelContext, DeliveryDelayed, DeliveryUnknown
from interlock.notify.http import HttpPoster
from tests.tools.ports import reserved_port


def poster(port: int) -> HttpPoster:
    url = f"http://127.0.0.1:{port}/hook"
    return HttpPoster(ChannelContext("hook", {"allow_private": True}), "The webhook", url)


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"])
async def test_who_hangs_up_half_way_may_have_heard_it(begins: bytes) -> None:  # R24
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(begins)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        post = poster(server.sockets[0].getsockname()[1])
        with pytest.raises(DeliveryUnknown, match="hung up"):
            await post.post(b"{}", {})
        await post.close()


async def test_where_nobody_listens_nobody_has_heard_it() -> None:  # R24
    with reserved_port() as port:
        post = poster(port)
        with pytest.raises(DeliveryDelayed, match="cannot be reached") as raised:
            await post.post(b"{}", {})
        await post.close()
    assert not isinstance(raised.value, DeliveryUnknown)
