"""The live feed: GET /api/events. One reader for each workspace follows the ledger, and hands the same bytes to all."""

from __future__ import annotations

import asyncio

from interlock.core.errors import StoreUnavailable, TooManyRequests
from interlock.web.asgi import Asked, Receive, Send
from interlock.web.site import Site
from interlock.web.sse import after_of, wanted_of
from interlock.web.stream import Stream
from interlock.web.tail import Look, Tail

MOST_STREAMS = 10_000  # in one process
CATCHING_UP = 4  # streams that read from the store by themselves at the same time


class Feed:
    def __init__(self, site: Site, look: Look) -> None:
        self._site = site
        self._look = look
        self._tails: dict[str, Tail] = {}
        self._reading = asyncio.Semaphore(CATCHING_UP)

    async def stream(self, asked: Asked, receive: Receive, send: Send) -> None:
        """The task of a stream only waits for its end; whatever is sent comes from the one who follows the ledger."""
        self._check_room()
        stream = Stream(asked, send, wanted_of(asked), after_of(asked))
        tail = self._tail(asked.person.workspace)
        tail.join(stream)
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            await tail.leave(stream)

    def _check_room(self) -> None:
        if self._site.stopping.is_set():
            raise StoreUnavailable("This server is about to stop. Connect again.")
        if sum(len(tail.streams) for tail in self._tails.values()) >= MOST_STREAMS:
            raise TooManyRequests(f"{MOST_STREAMS:,} event streams are open. Try again later.", retry_after=15)

    def _tail(self, workspace: str) -> Tail:
        tail = self._tails.get(workspace)
        if tail is None or tail.over:
            tail = self._tails[workspace] = Tail(self._site, workspace, self._look, self._reading)
            tail.follow()
        return tail
