"""The live feed: one follower for each workspace reads its ledger and sends every event to all SSE subscribers.

Theory of operation. A subscriber is in one of three places:

- joining, with a position of its own, until the next round;
- in a group, with all subscribers that have the same filter: a group is up to date, and each event is encoded once;
- catching up, in a task of its own: because its connection is slow, or because it resumed from an older event than the
  buffer holds. It reads from the buffer or the database at its own pace, then joins again.

A round reads the entries after the buffer's last one, sends them to the groups, and moves the joining subscribers into
their groups. Rounds are triggered by the store's wake-ups, which are only hints, and by a timer. Between rounds the
follower sleeps for a multiple of the time that sending took, so that other work of the event loop goes on.

A subscriber that is more than `MAX_LAG` events behind, or ahead of the ledger, gets a reset and reloads its lists.
Access is checked again at every heartbeat, and at once for people that an entry affects. After an erasure the buffer
is cleared.

What would break it: reading before the joining subscribers are taken, which would leave a gap; awaiting a slow
connection inside a round, which would hold up everybody.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from itertools import chain
from typing import Annotated, cast

from pydantic import BaseModel, Field

from interlock.core.errors import Error
from interlock.core.ledger.chain import Entry
from interlock.core.ports import Store, Watch
from interlock.server.dependencies import VIEWERS
from interlock.server.http import SECURITY_HEADERS, HttpRequest, Receive, Send, error_response
from interlock.server.router import AsgiRouter
from interlock.server.state import ServerState
from interlock.server.streams.ledger_events import (
    MAX_BUFFER_BYTES,
    EventBuffer,
    EventFilter,
    SseChunk,
    SseEvent,
    heartbeat_frame,
    make_chunks,
    parse_event_filter,
    parse_last_event_id,
    reset_frame,
    to_sse_event,
)
from interlock.server.streams.sse import (
    HEARTBEAT_TICKS,
    RECONNECT_REASON,
    SIGN_IN_REASON,
    TICK,
    SseConnection,
    body_message,
)
from interlock.storage.store import ENTRIES_PER_READ

POLL_TICKS = 5  # ticks between two polls of the ledger without a notification
RECHECK_TICKS = 3  # ticks for which access is rechecked: changes of other processes take effect here after a second
MIN_INTERVAL = 0.05  # seconds between two rounds at least
MAX_INTERVAL = 0.5  # and at most, if there is something to send
IDLE_FACTOR = (
    6  # times the CPU time of sending, with other work of the loop meanwhile, that all others have before the next
)
PAGES_PER_ROUND = 8  # pages of the ledger in one round
SEND_BATCH = 50  # streams that are sent something before other tasks have a turn
MAX_LIVE_LAG = 100  # missed events that the next round sends to a stream that was behind
MAX_LAG = 100_000  # missed events after which a reader has to reload its lists
MAX_TURN_BYTES = 256 * 1024  # bytes that one reader is sent before it is checked whether they leave
MAX_CATCHING_UP = 4  # streams that read from the store at the same time


class LedgerSubscriber:
    """`last_seq` is the last event sent, or None before the first; in a group, the group's position counts."""

    __slots__ = ("connection", "event_filter", "heartbeat_slot", "last_seq")

    def __init__(self, connection: SseConnection, event_filter: EventFilter, last_seq: int | None) -> None:
        self.connection = connection
        self.event_filter = event_filter
        self.last_seq = last_seq
        self.heartbeat_slot = 0

    def push_all(self, chunks: Iterable[SseChunk]) -> Awaitable[None] | None:
        """Send as far as the reader keeps up; `last_seq` moves with it."""
        size = 0
        for chunk in chunks:
            if size > MAX_TURN_BYTES:
                return _completed_future()
            waiting = self.connection.push(chunk.message)
            self.last_seq = chunk.last_seq
            if waiting is not None:
                return waiting
            size += len(chunk.message.get("body", b""))
        return None

    async def send(self, chunk: SseChunk) -> None:
        """Raises TimeoutError if the reader has stalled."""
        await self.connection.write(chunk.message)
        self.last_seq = chunk.last_seq
        await asyncio.sleep(0)  # lets the transport report whether there is room for more


class LedgerFollower:
    """A stream is in `_joining` with its own position, or in a group, which has all events, or catches up.

    A stream that catches up has a task: its reader is slow, or its position is older than the buffer.
    """

    def __init__(self, state: ServerState, workspace: str, reading: asyncio.Semaphore) -> None:
        self.subscribers: set[LedgerSubscriber] = set()
        self.is_closed = False
        self._state = state
        self._store: Store = state.store
        self._workspace = workspace
        self._reading = reading
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._buffer: EventBuffer | None = None
        self._joining: list[LedgerSubscriber] = []
        self._groups: dict[str, dict[EventFilter, set[LedgerSubscriber]]] = {}  # by the approval that they are about
        self._recheck_ticks: dict[str, int] = {}
        self._tick = 0
        self._must_retry_read = False
        self._busy = 0.0

    def join(self, subscriber: LedgerSubscriber) -> None:
        self.subscribers.add(subscriber)
        subscriber.heartbeat_slot = len(self.subscribers) % HEARTBEAT_TICKS
        self._enqueue_join(subscriber)

    async def leave(self, subscriber: LedgerSubscriber) -> None:
        self.subscribers.discard(subscriber)
        self._leave_group(subscriber)
        await subscriber.connection.leave()

    def follow(self) -> None:
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        """Follow until there are no streams or the server stops. However it ends, all streams are ended."""
        try:
            async with self._store.watch(self._workspace) as watch:
                hints = [asyncio.create_task(hint) for hint in (self._watch_changes(watch), self._watch_shutdown())]
                try:
                    await self._rounds()
                finally:
                    for hint in hints:
                        hint.cancel()
        except Exception as error:  # noqa: BLE001  the streams end, and clients that reconnect start over
            self._state.log.write_exception("feed_failed", error, workspace=self._workspace)
        finally:
            self.is_closed = True
            for subscriber in list(self.subscribers):
                subscriber.connection.end(RECONNECT_REASON)

    async def _watch_changes(self, watch: Watch) -> None:
        while True:
            await watch.wait(None)
            self._changed.set()

    async def _watch_shutdown(self) -> None:
        await self._state.stopping.wait()
        self._changed.set()

    async def _rounds(self) -> None:
        due = time.monotonic() + TICK
        while self.subscribers and not self._state.stopping.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._changed.wait()
            self._busy = 0.0
            if self._changed.is_set():
                await self._round()
            if time.monotonic() >= due:
                due = time.monotonic() + TICK
                await self._on_tick()
            await asyncio.sleep(min(max(MIN_INTERVAL, IDLE_FACTOR * self._busy), MAX_INTERVAL))

    async def _round(self) -> None:
        self._changed.clear()
        joining, self._joining = self._joining, []  # before the read, so that their positions are not newer than it
        try:
            buffer, events = await self._read()
        except Error as error:
            self._postpone(joining, error)
            return
        await self._recheck_access(self._subscribers_to_recheck())
        began = time.thread_time()
        await self._send_events(events, buffer.last_seq)
        self._busy = time.thread_time() - began
        if events:
            self._state.counters.lag = max(0, self._state.clock() - events[-1].at) / 1000
        for lot in _batches(joining):
            for subscriber in lot:
                if subscriber in self.subscribers:
                    self._join_group(subscriber, buffer)
            await asyncio.sleep(0)
        if any(event.kind == "erased" for event in events):
            buffer.clear()  # it may hold erased content

    async def _read(self) -> tuple[EventBuffer, list[SseEvent]]:
        if self._buffer is None:
            self._buffer = EventBuffer((await self._store.head(self._workspace)).seq)
        buffer, events, size = self._buffer, list[SseEvent](), 0
        for _ in range(PAGES_PER_ROUND):
            try:
                page = await self._page(buffer.last_seq)
            except Error:
                if not events:
                    raise
                break  # events that were read are in the buffer, and have to be sent
            for event in map(to_sse_event, page):
                buffer.add(event)
                events.append(event)
                size += len(event.body)
                self._recheck_ticks.update(dict.fromkeys(event.affected_people, RECHECK_TICKS))
            if len(page) < ENTRIES_PER_READ:
                return buffer, events
            if size > MAX_BUFFER_BYTES // 2:
                break
        self._changed.set()  # there may be more
        return buffer, events

    async def _page(self, after: int) -> Sequence[Entry]:
        entries = cast(AsyncGenerator[Sequence[Entry], None], self._store.entries(self._workspace, after))
        async with aclosing(entries) as found:
            return await anext(found, None) or ()

    async def _send_events(self, events: Sequence[SseEvent], last_seq: int) -> None:
        for approval_id in {"", *(event.approval_id for event in events)}:
            for event_filter, members in list(self._groups.get(approval_id, {}).items()):
                chunks = list(make_chunks(events, event_filter, last_seq))
                if chunks:
                    await self._broadcast(members, chunks)

    async def _broadcast(self, subscribers: Collection[LedgerSubscriber], chunks: Sequence[SseChunk]) -> None:
        for lot in _batches(subscribers):
            for subscriber in lot:
                self._push(subscriber, chunks)
            await asyncio.sleep(0)

    def _push(self, subscriber: LedgerSubscriber, chunks: Iterable[SseChunk]) -> bool:
        """False if the reader does not keep up: then it catches up at its own pace."""
        waiting = subscriber.push_all(chunks)
        if waiting is None:
            return True
        self._leave_group(subscriber)
        subscriber.connection.start_task(partial(self._catch_up, subscriber, waiting))
        return False

    def _join_group(self, subscriber: LedgerSubscriber, buffer: EventBuffer) -> None:
        """Add the stream to its group, if it can be sent all events that it lacks."""
        opening = list(_opening_chunks(subscriber, buffer.last_seq))
        at = opening[-1].last_seq if opening else subscriber.last_seq or 0
        events = buffer.events_after(at) if buffer.last_seq - at <= MAX_LIVE_LAG else None
        if not self._push(
            subscriber, chain(opening, make_chunks(events or (), subscriber.event_filter, buffer.last_seq))
        ):
            return
        if events is None:
            subscriber.last_seq = at
            subscriber.connection.start_task(partial(self._catch_up, subscriber))
        else:
            about = self._groups.setdefault(subscriber.event_filter.approval_id, {})
            about.setdefault(subscriber.event_filter, set()).add(subscriber)

    async def _catch_up(self, subscriber: LedgerSubscriber, waiting: Awaitable[None] | None = None) -> None:
        """Send missed events at this reader's pace, from the buffer or the store, until a round can send the rest."""
        try:
            if waiting is not None:
                await subscriber.connection.complete(waiting)
            while events := await self._read_missed(subscriber):
                for chunk in make_chunks(events, subscriber.event_filter, events[-1].seq):
                    await subscriber.send(chunk)
                subscriber.last_seq = events[-1].seq
            self._enqueue_join(subscriber)
        except (TimeoutError, Error):
            subscriber.connection.drop()

    async def _read_missed(self, subscriber: LedgerSubscriber) -> Sequence[SseEvent]:
        """A batch of missed events; empty if the next round sends them."""
        buffer, at = self._buffer, subscriber.last_seq
        if buffer is None or at is None or buffer.last_seq - at > MAX_LAG:
            return ()
        events = buffer.events_after(at)
        if events is not None:
            return events if buffer.last_seq - at > MAX_LIVE_LAG else ()
        async with self._reading:
            return list(map(to_sse_event, await self._page(at)))

    def _enqueue_join(self, subscriber: LedgerSubscriber) -> None:
        self._joining.append(subscriber)
        self._changed.set()

    def _leave_group(self, subscriber: LedgerSubscriber) -> None:
        """Remove the stream from its group, and the group with its last member."""
        event_filter = subscriber.event_filter
        about = self._groups.get(event_filter.approval_id, {})
        members = about.get(event_filter, set())
        members.discard(subscriber)
        if not members:
            about.pop(event_filter, None)
        if not about:
            self._groups.pop(event_filter.approval_id, None)

    def _postpone(self, joining: Sequence[LedgerSubscriber], error: Error) -> None:
        """The ledger cannot be read now: streams that have not started get the error, others wait for the next tick."""
        self._must_retry_read = True
        for subscriber in joining:
            if subscriber.connection.has_started:
                self._joining.append(subscriber)
            else:
                subscriber.connection.respond(error_response(error), SECURITY_HEADERS)

    async def _on_tick(self) -> None:
        self._tick += 1
        if self._tick % POLL_TICKS == 0 or self._must_retry_read:
            self._must_retry_read = False
            self._changed.set()
        slot = self._tick % HEARTBEAT_TICKS
        if self._buffer is not None:
            sign = [SseChunk(self._buffer.last_seq, body_message(heartbeat_frame(self._buffer.last_seq)))]
            everybody = [members for about in self._groups.values() for members in about.values()]
            await self._broadcast(
                [each for members in everybody for each in members if each.heartbeat_slot == slot], sign
            )
        await self._recheck_access(
            [
                *self._subscribers_to_recheck(),
                *(subscriber for subscriber in self.subscribers if subscriber.heartbeat_slot == slot),
            ]
        )
        self._recheck_ticks = {name: ticks - 1 for name, ticks in self._recheck_ticks.items() if ticks > 1}

    def _subscribers_to_recheck(self) -> Sequence[LedgerSubscriber]:
        names = self._recheck_ticks
        return [each for each in self.subscribers if each.connection.principal.name in names] if names else ()

    async def _recheck_access(self, subscribers: Sequence[LedgerSubscriber]) -> None:
        """End the streams of callers who lost access, or who are somebody else now: they have to authenticate again."""
        for subscriber in subscribers:
            if not await self._state.auth.is_unchanged(subscriber.connection.request):
                self._leave_group(subscriber)
                subscriber.connection.end(SIGN_IN_REASON)


def _opening_chunks(subscriber: LedgerSubscriber, at: int) -> Iterator[SseChunk]:
    """The start of a stream, with a reset if its position is ahead or too far behind."""
    last_seq = at if subscriber.last_seq is None else subscriber.last_seq
    reason = "ahead" if last_seq > at else "behind" if at - last_seq > MAX_LAG else ""
    last_seq = at if reason else last_seq
    if not subscriber.connection.has_started:
        for message in subscriber.connection.opening(last_seq):
            yield SseChunk(last_seq, message)
    if reason:
        yield SseChunk(last_seq, body_message(reset_frame(last_seq, reason)))


def _completed_future() -> asyncio.Future[None]:
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


def _batches(subscribers: Iterable[LedgerSubscriber]) -> Iterator[list[LedgerSubscriber]]:
    every = list(subscribers)
    for start in range(0, len(every), SEND_BATCH):
        yield every[start : start + SEND_BATCH]


class LedgerStreams:
    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._followers: dict[str, LedgerFollower] = {}
        self._reading = asyncio.Semaphore(MAX_CATCHING_UP)

    async def stream(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Serve one stream: its task only waits for the disconnect; the ledger's follower sends everything."""
        event_filter, last_seq = parse_event_filter(request), parse_last_event_id(request)
        subscriber = LedgerSubscriber(SseConnection(request, send), event_filter, last_seq)
        follower = self._follower(request.current_principal.workspace)
        follower.join(subscriber)
        try:
            while (await receive())["type"] != "http.disconnect":
                pass
        finally:
            await follower.leave(subscriber)

    def _follower(self, workspace: str) -> LedgerFollower:
        follower = self._followers.get(workspace)
        if follower is None or follower.is_closed:
            follower = self._followers[workspace] = LedgerFollower(self._state, workspace, self._reading)
            follower.follow()
        return follower


asgi_routes = AsgiRouter("events")


class EventsQuery(BaseModel):
    after: Annotated[int | None, Field(ge=0, description="The number of the last event that was received.")] = None
    kinds: Annotated[str, Field(description="Only events of these kinds, separated by commas.")] = ""
    approval_id: Annotated[str, Field(description="Only events of this approval.")] = ""


class EventRoutes:
    def __init__(self, state: ServerState) -> None:
        self._streams = LedgerStreams(state)

    @asgi_routes.stream(
        "GET", "/api/events", VIEWERS, "An event stream without an end.", errors=(429,), query=EventsQuery
    )
    def follow(self, request: HttpRequest, receive: Receive, send: Send) -> Awaitable[None]:
        """Stream the events of the workspace, in order and each of them once. `Last-Event-ID` resumes the stream."""
        return self._streams.stream(request, receive, send)  # not awaited here: a frame less for each open stream
