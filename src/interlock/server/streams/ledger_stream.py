"""Follows the ledger of one workspace for all of its streams, in rounds: read what is new, encode it, hand it out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from itertools import chain
from typing import cast

from interlock.core.errors import Error, Forbidden, StoreUnavailable, TooManyRequests, Unauthenticated
from interlock.core.identity import Principal
from interlock.core.ledger.chain import Entry
from interlock.core.ports import Store, Watch
from interlock.server.http import SECURITY_HEADERS, Header, HttpRequest, Receive, Send, error_response
from interlock.server.state import ServerState
from interlock.server.streams.sse import (
    MAX_BUFFER_BYTES,
    STALL_TIMEOUT,
    EventBuffer,
    EventFilter,
    LedgerSubscriber,
    SseChunk,
    SseEvent,
    body_message,
    heartbeat_frame,
    make_chunks,
    opening_frame,
    parse_event_filter,
    parse_last_event_id,
    reset_frame,
    to_sse_event,
)
from interlock.storage.store import ENTRIES_PER_READ

TICK = 1.0  # seconds
HEARTBEAT_TICKS = 15  # ticks between two signs of life of one stream
POLL_TICKS = 5  # ticks between two looks at the ledger if nothing woke us
RECHECK_TICKS = (
    3  # ticks for which somebody is looked up again: what other processes changed counts here after a second
)
MIN_INTERVAL = 0.05  # seconds between two rounds at least
MAX_INTERVAL = 0.5  # and at most, if there is something to tell
IDLE_FACTOR = (
    6  # times what telling took, with whatever else the loop did meanwhile, that all others have before the next
)
PAGES_PER_ROUND = 8  # pages of the ledger in one round
SEND_BATCH = 50  # streams that are sent something before everybody else has a turn
MAX_LIVE_LAG = 100  # events that the next round tells whoever was behind
MAX_LAG = 100_000  # events behind which a reader has to load its lists anew
SSE_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),  # a proxy must not keep back what is meant for now
    *SECURITY_HEADERS,
)

Authenticate = Callable[[HttpRequest], Awaitable[Principal]]


class LedgerFollower:
    """A stream is in `_joining` with a place of its own, or in a group, which knows all that was told, or behind both.

    Who is behind has a task: because the reader does not take what is sent, or because it is older than the ring.
    """

    def __init__(self, site: ServerState, workspace: str, look: Authenticate, reading: asyncio.Semaphore) -> None:
        self.streams: set[LedgerSubscriber] = set()
        self.over = False
        self._site = site
        self._store: Store = site.store
        self._workspace = workspace
        self._look = look
        self._reading = reading
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._ring: EventBuffer | None = None
        self._joining: list[LedgerSubscriber] = []
        self._groups: dict[str, dict[EventFilter, set[LedgerSubscriber]]] = {}  # by the approval that they are about
        self._doubted: dict[str, int] = {}
        self._tick = 0
        self._owed = False
        self._busy = 0.0

    def join(self, stream: LedgerSubscriber) -> None:
        self.streams.add(stream)
        stream.slot = len(self.streams) % HEARTBEAT_TICKS
        self._enter(stream)

    async def leave(self, stream: LedgerSubscriber) -> None:
        self.streams.discard(stream)
        self._part(stream)
        await stream.leave()

    def follow(self) -> None:
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Until nobody listens or the server stops. However it ends, no stream is left without what it waits for."""
        try:
            async with self._store.watch(self._workspace) as watch:
                hints = [asyncio.create_task(hint) for hint in (self._heed(watch), self._heed_end())]
                try:
                    await self._rounds()
                finally:
                    for hint in hints:
                        hint.cancel()
        except Exception as error:  # noqa: BLE001  the streams end, and whoever connects again starts anew
            self._site.log.failed("feed_failed", error, workspace=self._workspace)
        finally:
            self.over = True
            for stream in list(self.streams):
                stream.end("The server stops here. Connect again.")

    async def _heed(self, watch: Watch) -> None:
        while True:
            await watch.changed(None)
            self._news.set()

    async def _heed_end(self) -> None:
        await self._site.stopping.wait()
        self._news.set()

    async def _rounds(self) -> None:
        due = time.monotonic() + TICK
        while self.streams and not self._site.stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._news.wait()
            self._busy = 0.0
            if self._news.is_set():
                await self._round()
            if time.monotonic() >= due:
                due = time.monotonic() + TICK
                await self._on_tick()
            await asyncio.sleep(min(max(MIN_INTERVAL, IDLE_FACTOR * self._busy), MAX_INTERVAL))

    async def _round(self) -> None:
        self._news.clear()
        joining, self._joining = self._joining, []  # before the look, so that what they know is not newer than it
        try:
            ring, lines = await self._read()
        except Error as error:
            self._put_off(joining, error)
            return
        await self._look_up(self._doubtful())
        began = time.thread_time()
        await self._tell(lines, ring.at)
        self._busy = time.thread_time() - began
        if lines:
            self._site.meters.lag = max(0, self._site.clock() - lines[-1].at) / 1000
        for lot in _batches(joining):
            for stream in lot:
                if stream in self.streams:
                    self._admit(stream, ring)
            await asyncio.sleep(0)
        if any(line.kind == "erased" for line in lines):
            ring.clear()  # it may hold what nobody is to see any more

    async def _read(self) -> tuple[EventBuffer, list[SseEvent]]:
        if self._ring is None:
            self._ring = EventBuffer((await self._store.head(self._workspace)).seq)
        ring, lines, size = self._ring, list[SseEvent](), 0
        for _ in range(PAGES_PER_ROUND):
            try:
                page = await self._page(ring.at)
            except Error:
                if not lines:
                    raise
                break  # what was read is in the ring, and has to be told
            for line in map(to_sse_event, page):
                ring.add(line)
                lines.append(line)
                size += len(line.body)
                self._doubted.update(dict.fromkeys(line.doubted, RECHECK_TICKS))
            if len(page) < ENTRIES_PER_READ:
                return ring, lines
            if size > MAX_BUFFER_BYTES // 2:
                break
        self._news.set()  # there may be more
        return ring, lines

    async def _page(self, after: int) -> Sequence[Entry]:
        entries = cast(AsyncGenerator[Sequence[Entry], None], self._store.entries(self._workspace, after))
        async with aclosing(entries) as found:
            return await anext(found, None) or ()

    async def _tell(self, lines: Sequence[SseEvent], at: int) -> None:
        for approval_id in {"", *(line.approval_id for line in lines)}:
            for wanted, members in list(self._groups.get(approval_id, {}).items()):
                told = list(make_chunks(lines, wanted, at))
                if told:
                    await self._hand_out(members, told)

    async def _hand_out(self, streams: Collection[LedgerSubscriber], told: Sequence[SseChunk]) -> None:
        for lot in _batches(streams):
            for stream in lot:
                self._push(stream, told)
            await asyncio.sleep(0)

    def _push(self, stream: LedgerSubscriber, told: Iterable[SseChunk]) -> bool:
        """False if the reader does not keep up: then it goes on at its own pace."""
        waiting = stream.push_all(told)
        if waiting is None:
            return True
        self._part(stream)
        stream.behind(self._catch_up(stream, waiting))
        return False

    def _admit(self, stream: LedgerSubscriber, ring: EventBuffer) -> None:
        """Into its group if it can be told all that it does not know yet."""
        opening = list(_opening_chunks(stream, ring.at))
        at = opening[-1].at if opening else stream.at or 0
        lines = ring.since(at) if ring.at - at <= MAX_LIVE_LAG else None
        if not self._push(stream, chain(opening, make_chunks(lines or (), stream.wanted, ring.at))):
            return
        if lines is None:
            stream.at = at
            stream.behind(self._catch_up(stream))
        else:
            about = self._groups.setdefault(stream.wanted.approval_id, {})
            about.setdefault(stream.wanted, set()).add(stream)

    async def _catch_up(self, stream: LedgerSubscriber, waiting: Awaitable[None] | None = None) -> None:
        """At the pace of this one reader, from the ring or the store, until the next round can tell it the rest."""
        try:
            if waiting is not None:
                async with asyncio.timeout(STALL_TIMEOUT):
                    await waiting
            while lines := await self._missed(stream):
                for piece in make_chunks(lines, stream.wanted, lines[-1].seq):
                    await stream.send(piece)
                stream.at = lines[-1].seq
            self._enter(stream)
        except (TimeoutError, Error):
            stream.drop()

    async def _missed(self, stream: LedgerSubscriber) -> Sequence[SseEvent]:
        """Some of what the reader does not know; nothing if that is for the next round."""
        ring, at = self._ring, stream.at
        if ring is None or at is None or ring.at - at > MAX_LAG:
            return ()
        lines = ring.since(at)
        if lines is not None:
            return lines if ring.at - at > MAX_LIVE_LAG else ()
        async with self._reading:
            return list(map(to_sse_event, await self._page(at)))

    def _enter(self, stream: LedgerSubscriber) -> None:
        self._joining.append(stream)
        self._news.set()

    def _part(self, stream: LedgerSubscriber) -> None:
        """From its group, which goes with the last of its members."""
        wanted = stream.wanted
        about = self._groups.get(wanted.approval_id, {})
        members = about.get(wanted, set())
        members.discard(stream)
        if not members:
            about.pop(wanted, None)
        if not about:
            self._groups.pop(wanted.approval_id, None)

    def _put_off(self, joining: Sequence[LedgerSubscriber], error: Error) -> None:
        """The ledger cannot be read just now: who has not begun is told so, the others wait for the next tick."""
        self._owed = True
        for stream in joining:
            if stream.begun:
                self._joining.append(stream)
            else:
                stream.answer(error_response(error), SECURITY_HEADERS)

    async def _on_tick(self) -> None:
        self._tick += 1
        if self._tick % POLL_TICKS == 0 or self._owed:
            self._owed = False
            self._news.set()
        slot = self._tick % HEARTBEAT_TICKS
        if self._ring is not None:
            sign = [SseChunk(self._ring.at, body_message(heartbeat_frame(self._ring.at)))]
            everybody = [members for about in self._groups.values() for members in about.values()]
            await self._hand_out([each for members in everybody for each in members if each.slot == slot], sign)
        await self._look_up([*self._doubtful(), *(stream for stream in self.streams if stream.slot == slot)])
        self._doubted = {name: ticks - 1 for name, ticks in self._doubted.items() if ticks > 1}

    def _doubtful(self) -> Sequence[LedgerSubscriber]:
        names = self._doubted
        return [stream for stream in self.streams if stream.principal.name in names] if names else ()

    async def _look_up(self, streams: Sequence[LedgerSubscriber]) -> None:
        """Whoever is not let in any more, or as somebody else, has to come in again."""
        for stream in streams:
            if not await self._is_unchanged(stream):
                self._part(stream)
                stream.end("Sign in again.")

    async def _is_unchanged(self, stream: LedgerSubscriber) -> bool:
        before = stream.principal
        try:
            now = await self._look(stream.asked)
        except (Unauthenticated, Forbidden):
            return False
        except Error:  # nobody knows just now, and nothing can be read either
            return True
        return (now.workspace, now.name, now.role) == (before.workspace, before.name, before.role)


def _opening_chunks(stream: LedgerSubscriber, at: int) -> Iterator[SseChunk]:
    """How a stream begins, and begins anew if its place is nowhere near."""
    place = at if stream.at is None else stream.at
    reason = "ahead" if place > at else "behind" if at - place > MAX_LAG else ""
    place = at if reason else place
    if not stream.begun:
        stream.begun = True
        yield SseChunk(place, {"type": "http.response.start", "status": 200, "headers": SSE_HEADERS})
        yield SseChunk(place, body_message(opening_frame(place)))
    if reason:
        yield SseChunk(place, body_message(reset_frame(place, reason)))


def _batches(streams: Iterable[LedgerSubscriber]) -> Iterator[list[LedgerSubscriber]]:
    every = list(streams)
    for start in range(0, len(every), SEND_BATCH):
        yield every[start : start + SEND_BATCH]


MAX_STREAMS = 10_000  # in one process
MAX_CATCHING_UP = 4  # streams that read from the store by themselves at the same time


class LedgerStreams:
    def __init__(self, site: ServerState, look: Authenticate) -> None:
        self._site = site
        self._look = look
        self._tails: dict[str, LedgerFollower] = {}
        self._reading = asyncio.Semaphore(MAX_CATCHING_UP)

    async def stream(self, asked: HttpRequest, receive: Receive, send: Send) -> None:
        """The task of a stream only waits for its end; whatever is sent comes from the one who follows the ledger."""
        self._check_room()
        stream = LedgerSubscriber(asked, send, parse_event_filter(asked), parse_last_event_id(asked))
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
        if sum(len(tail.streams) for tail in self._tails.values()) >= MAX_STREAMS:
            raise TooManyRequests(f"{MAX_STREAMS:,} event streams are open. Try again later.", retry_after=15)

    def _tail(self, workspace: str) -> LedgerFollower:
        tail = self._tails.get(workspace)
        if tail is None or tail.over:
            tail = self._tails[workspace] = LedgerFollower(self._site, workspace, self._look, self._reading)
            tail.follow()
        return tail
