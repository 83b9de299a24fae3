"""Whether a failed request may have been delivered."""

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
async def test_connection_closed_half_way_leaves_the_delivery_unknown(begins: bytes) -> None:  # R24
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(begins)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        post = poster(server.sockets[0].getsockname()[1])
        with pytest.raises(DeliveryUnknown, match="closed the connection"):
            await post.post(b"{}", {})
        await post.close()


async def test_refused_connection_delivers_nothing() -> None:  # R24
    with reserved_port() as port:
        post = poster(port)
        with pytest.raises(DeliveryDelayed, match="cannot be reached") as raised:
            await post.post(b"{}", {})
        await post.close()
    assert not isinstance(raised.value, DeliveryUnknown)
