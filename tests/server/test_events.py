"""The live event stream: every event once and in order, from any position, for those who may see it."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.errors import StoreUnavailable
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.erasure import Erasure
from interlock.presenters.approval import entry_json
from interlock.server import router
from interlock.server.http import AsgiApp, AsgiMessage
from interlock.server.state import ServerState
from interlock.server.streams import ledger_events, ledger_stream, sse
from tests.interlock_server import make_keys
from tests.server.chat_harness import TIMEOUT
from tests.server.conftest import ClientFactory
from tests.support import ADA, approve, propose_pending

Event = tuple[int, str, Any]


class Reader:
    """Whoever opened the stream. While it is `stalled`, it takes nothing, as a connection whose buffers are full."""

    def __init__(self, app: AsgiApp, key: str, query: str = "", last: str = "") -> None:
        who = (b"authorization", f"Bearer {key}".encode()) if key.startswith("ilk_") else (b"cookie", key.encode())
        headers = [(b"host", b"127.0.0.1"), who]
        if last:
            headers.append((b"last-event-id", last.encode()))
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.text = b""
        self.aborted = False
        self.messages = 0
        self._socket = socket.socket()
        self._accepts = asyncio.Event()
        self._accepts.set()
        self._disconnected = asyncio.Event()
        self._changed = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/events",
            "query_string": query.encode(),
            "headers": headers,
            "extensions": {"interlock.transport": self},
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    def stall(self) -> None:
        self._accepts.clear()

    def resume(self) -> None:
        self._accepts.set()

    async def leave(self) -> None:
        self._disconnected.set()
        self._accepts.set()
        await self.task
        self._socket.close()

    async def wait_until(self, condition: Callable[[Reader], object]) -> None:
        async with asyncio.timeout(TIMEOUT):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()

    async def until_seq(self, seq: int) -> list[Event]:
        await self.wait_until(lambda reader: reader.last_id >= seq)
        return self.events

    async def until_over(self) -> None:
        async with asyncio.timeout(TIMEOUT):
            await self.task

    @property
    def last_id(self) -> int:
        """As a browser keeps it: also an id without an event counts."""
        return max((int(line[4:]) for line in self.text.split(b"\n") if line.startswith(b"id: ")), default=-1)

    @property
    def events(self) -> list[Event]:
        blocks = [block.split(b"\n") for block in self.text.split(b"\n\n")]
        fields = [dict(line.split(b": ", 1) for line in block if b": " in line) for block in blocks]
        return [
            (int(each[b"id"]), each[b"event"].decode(), json.loads(each[b"data"])) for each in fields if b"data" in each
        ]

    @property
    def seqs(self) -> list[int]:
        return [seq for seq, _, _ in self.events]

    async def _send(self, message: AsgiMessage) -> None:
        if not self._accepts.is_set():
            await self._accepts.wait()
        if self._disconnected.is_set():
            return
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        self.text += message.get("body", b"")
        self.messages += 1
        self._changed.set()
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._disconnected.set()

    async def _receive(self) -> AsgiMessage:
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    def get_extra_info(self, name: str) -> socket.socket:
        return self._socket

    def abort(self) -> None:
        self.aborted = True
        self._disconnected.set()
        self._accepts.set()


Open = Callable[..., Reader]


@pytest.fixture
async def listen(app: AsgiApp) -> AsyncIterator[Open]:
    readers: list[Reader] = []

    def opened(key: str, query: str = "", last: str = "") -> Reader:
        readers.append(Reader(app, key, query, last))
        return readers[-1]

    yield opened
    for reader in readers:
        await reader.leave()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes by a hundred times as fast for the feed."""
    monkeypatch.setattr(ledger_stream, "TICK", 0.01)


async def ledger(services: AppServices, workspace: str = "default") -> list[Entry]:
    return [entry async for page in services.store.entries(workspace) for entry in page]


async def run_calls(services: AppServices, count: int, name: str = "c") -> None:
    """Calls that are asked about and approved: two events each."""
    for number in range(count):
        await approve(services, await propose_pending(services, f"{name}{number}"))


# R4
@pytest.mark.postgres_smoke
async def test_from_any_point_every_event_comes_once_and_in_order(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    await run_calls(services, 5)
    entries = await ledger(services)
    readers = {after: listen(keys["admin"], f"after={after}") for after in range(len(entries) + 1)}
    for after, reader in readers.items():
        expected = [(entry.seq, entry.kind, entry_json(entry)) for entry in entries[after:]]
        assert await reader.until_seq(len(entries)) == expected
    await run_calls(services, 1, "later")
    entries = await ledger(services)
    for after, reader in readers.items():
        await reader.until_seq(len(entries))
        assert reader.seqs == list(range(after + 1, len(entries) + 1))


async def test_without_a_point_only_what_is_new_comes(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    await run_calls(services, 2)
    before = len(await ledger(services))
    reader = listen(keys["viewer"])
    await reader.wait_until(lambda each: each.text)
    assert reader.text == b"retry: 2000\nid: %d\n\n" % before
    assert (reader.status, reader.headers[b"content-type"]) == (200, b"text/event-stream")
    assert (reader.headers[b"cache-control"], reader.headers[b"x-accel-buffering"]) == (b"no-store", b"no")
    await run_calls(services, 1, "new")
    events = await reader.until_seq(before + 2)
    assert [kind for _, kind, _ in events] == ["proposed", "approved"]
    assert events[1][2]["approval_id"]
    assert events[1][2]["data"]["status"] == "approved"


async def test_the_header_is_newer_than_the_address(services: AppServices, keys: dict[str, str], listen: Open) -> None:
    await run_calls(services, 3)
    newest = len(await ledger(services))
    reader = listen(keys["admin"], "after=1", last=str(newest - 1))
    await reader.until_seq(newest)
    assert reader.seqs == [newest]


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=1.5", "after=" + "9" * 19, "after=%D9%A1"])
async def test_a_point_that_is_no_number_is_refused(keys: dict[str, str], listen: Open, query: str) -> None:
    reader = listen(keys["viewer"], query)
    await reader.until_over()
    assert (reader.status, json.loads(reader.text)["error"]) == (400, "invalid_request")


async def test_a_point_that_is_still_to_come_is_reset(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    newest = len(await ledger(services))
    reader = listen(keys["viewer"], last="999999")
    await reader.wait_until(lambda each: each.events)
    assert reader.events == [(newest, "reset", {"seq": newest, "reason": "ahead"})]
    await run_calls(services, 1)
    await reader.until_seq(newest + 2)
    assert reader.seqs == [newest, newest + 1, newest + 2]


async def test_a_point_that_is_too_old_is_reset(
    services: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_stream, "MAX_LAG", 5)
    await run_calls(services, 3)
    newest = len(await ledger(services))
    old, young = listen(keys["admin"], f"after={newest - 6}"), listen(keys["admin"], f"after={newest - 5}")
    await old.wait_until(lambda each: each.events)
    assert old.events == [(newest, "reset", {"seq": newest, "reason": "behind"})]
    await young.until_seq(newest)
    assert young.seqs == list(range(newest - 4, newest + 1))


# R48
async def test_agents_and_strangers_get_no_events(keys: dict[str, str], listen: Open) -> None:
    for key, expected in ((keys["agent"], (403, "forbidden")), ("ilk_none", (401, "unauthenticated"))):
        reader = listen(key)
        await reader.until_over()
        assert (reader.status, json.loads(reader.text)["error"]) == expected


# R48
async def test_only_admins_see_what_is_about_accounts(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    await run_calls(services, 1)
    newest = len(await ledger(services))
    admin, viewer = listen(keys["admin"], "after=0"), listen(keys["viewer"], "after=0")
    assert {kind for _, kind, _ in await admin.until_seq(newest)} >= {"user_changed", "key_created"}
    assert [kind for _, kind, _ in await viewer.until_seq(newest)] == ["proposed", "approved"]


# R48
async def test_another_workspace_is_never_seen(
    services: AppServices, state: ServerState, keys: dict[str, str], listen: Open
) -> None:
    other = await make_keys(services, "other")
    reader = listen(other["admin"], "after=0")
    await run_calls(services, 2)
    await services.accounts.add_user("other", "zoe", "viewer", "ada")
    events = await reader.until_seq(len(await ledger(services, "other")))
    assert len(events) == len(await ledger(services, "other"))
    assert {kind for _, kind, _ in events} == {"user_changed", "key_created"}


async def test_a_stream_can_be_about_one_approval_or_some_kinds(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    first, second = await propose_pending(services, "first"), await propose_pending(services, "second")
    before = len(await ledger(services))
    one = listen(keys["viewer"], f"approval_id={first}&after=0")
    some = listen(keys["viewer"], "kinds=approved,rejected&after=0")
    every = listen(keys["viewer"])
    await every.wait_until(lambda each: each.text)
    await approve(services, second)
    await approve(services, first)
    await every.until_seq(before + 2)
    await one.until_seq(before + 2)
    await some.until_seq(before + 2)
    assert [(kind, body["approval_id"]) for _, kind, body in one.events] == [("proposed", first), ("approved", first)]
    assert [(kind, body["approval_id"]) for _, kind, body in some.events] == [("approved", second), ("approved", first)]


@pytest.mark.usefixtures("quick")
async def test_a_sign_of_life_says_how_far_the_stream_is(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    reader = listen(keys["viewer"], "kinds=nothing")
    await run_calls(services, 2)
    newest = len(await ledger(services))
    await reader.wait_until(lambda each: b":\nid: %d\n\n" % newest in each.text)
    assert reader.events == []


async def test_all_streams_of_a_process_share_one_limit(
    keys: dict[str, str], listen: Open, client: ClientFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MAX_STREAMS", 1)
    first = listen(keys["reviewer"])
    await first.wait_until(lambda each: each.text)
    second = listen(keys["reviewer"])
    await second.until_over()
    chat = await client(keys["reviewer"]).post("/api/chat", json={"message": "Hello"})
    assert (second.status, chat.status_code) == (429, 429)
    await first.leave()
    third = listen(keys["reviewer"])
    await third.wait_until(lambda each: each.text)
    assert third.status == 200


@pytest.mark.usefixtures("quick")
async def test_a_stream_ends_with_the_key(services: AppServices, keys: dict[str, str], listen: Open) -> None:
    revoked, kept = listen(keys["reviewer"]), listen(keys["viewer"])
    await revoked.wait_until(lambda each: each.text)
    await kept.wait_until(lambda each: each.text)
    (key_id,) = [key.id for key in await services.accounts.keys("default") if key.person == "bob"]
    await services.accounts.revoke_key("default", key_id, "ada")
    await revoked.until_over()
    await run_calls(services, 1)
    assert len(await kept.until_seq(len(await ledger(services)))) == 2
    assert revoked.events == []


@pytest.mark.usefixtures("quick")
async def test_a_stream_ends_when_the_role_changes(services: AppServices, keys: dict[str, str], listen: Open) -> None:
    reader = listen(keys["admin"])
    await reader.wait_until(lambda each: each.text)
    await services.accounts.add_user("default", "amy", "admin", "ada")
    await services.accounts.change_user("default", "ada", "amy", role="viewer")
    await reader.until_over()
    assert not reader.aborted
    assert "user_changed" not in [kind for _, kind, body in reader.events if body["actor"] == "amy"]


@pytest.mark.usefixtures("quick")
async def test_a_stream_ends_with_the_session(services: AppServices, keys: dict[str, str], listen: Open) -> None:
    token = await services.accounts.create_link("default", "ada", user="vic")
    _, session = await services.accounts.use_link(token)
    reader, other = listen(f"interlock={session}"), listen(keys["viewer"])
    await reader.wait_until(lambda each: each.text)
    await other.wait_until(lambda each: each.text)
    await services.accounts.sign_out(session)
    await reader.until_over()
    assert reader.status == 200
    assert not other.task.done()


@pytest.mark.postgres_smoke
async def test_events_of_one_batch_are_streamed_together(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    reader = listen(keys["viewer"])
    await reader.wait_until(lambda each: each.text)
    before, messages = reader.last_id, reader.messages
    await asyncio.gather(*[propose_pending(services, f"{number}") for number in range(100)])
    await reader.until_seq(before + 100)
    assert reader.messages - messages < 50


def skip_entry(
    lines: Iterable[ledger_events.SseEvent], wanted: ledger_events.EventFilter, at: int
) -> Iterator[ledger_events.SseChunk]:
    return ledger_events.make_chunks(list(lines)[:-1], wanted, at)


def repeat_entry(
    lines: Iterable[ledger_events.SseEvent], wanted: ledger_events.EventFilter, at: int
) -> Iterator[ledger_events.SseChunk]:
    return ledger_events.make_chunks([line for line in lines for _ in range(2)], wanted, at)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("broken", [skip_entry, repeat_entry])
async def test_a_feed_that_skips_or_repeats_would_be_found_out(
    services: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch, broken: object
) -> None:
    monkeypatch.setattr(ledger_stream, "make_chunks", broken)
    reader = listen(keys["admin"], "after=0")
    await run_calls(services, 2)
    newest = len(await ledger(services))
    await reader.until_seq(newest)
    assert reader.seqs != list(range(1, newest + 1))


@pytest.mark.usefixtures("quick")
async def test_who_does_not_read_is_dropped_and_slows_nobody_down(
    services: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "STALL_TIMEOUT", 0.2)
    stalled, well = listen(keys["viewer"]), listen(keys["viewer"])
    await stalled.wait_until(lambda each: each.text)
    await well.wait_until(lambda each: each.text)
    stalled.stall()
    before = well.last_id
    await run_calls(services, 20)
    await well.until_seq(before + 40)
    assert well.seqs == list(range(before + 1, before + 41))
    await stalled.until_over()
    assert stalled.aborted
    assert not well.aborted


@pytest.mark.parametrize("room", [10_000, 5])
async def test_who_falls_behind_gets_the_rest_once_and_in_order(
    services: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(ledger_events, "MAX_BUFFER_EVENTS", room)
    monkeypatch.setattr(ledger_events, "CHUNK_BYTES", 1_000)
    slow, well = listen(keys["viewer"]), listen(keys["viewer"])
    await slow.wait_until(lambda each: each.text)
    await well.wait_until(lambda each: each.text)
    before = slow.last_id
    for number in range(3):
        slow.stall()
        await run_calls(services, 10, f"round{number}-")
        await well.until_seq(before + 20 * (number + 1))
        assert slow.last_id < well.last_id
        slow.resume()
        await slow.until_seq(well.last_id)
    assert slow.seqs == well.seqs == list(range(before + 1, before + 61))


@pytest.mark.usefixtures("quick")
async def test_a_store_that_fails_half_way_loses_nothing(
    services: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = listen(keys["viewer"])
    await reader.wait_until(lambda each: each.text)
    before, whole, looks = reader.last_id, ledger_stream.LedgerFollower._page, itertools.count()

    async def page(self: ledger_stream.LedgerFollower, after: int) -> Sequence[Entry]:
        if next(looks) % 3:
            raise StoreUnavailable("just now")
        return (await whole(self, after))[:1]

    monkeypatch.setattr(ledger_stream, "ENTRIES_PER_READ", 1)
    monkeypatch.setattr(ledger_stream.LedgerFollower, "_page", page)
    await run_calls(services, 5)
    await reader.until_seq(before + 10)
    assert reader.seqs == list(range(before + 1, before + 11))


async def test_erased_content_is_not_streamed_from_memory(
    services: AppServices, keys: dict[str, str], listen: Open
) -> None:
    reader = listen(keys["viewer"])
    await reader.wait_until(lambda each: each.text)
    before = reader.last_id
    approval_id = await propose_pending(services, "secret")
    await approve(services, approval_id, ADA)
    await services.gate.cancel("default", approval_id, "ada", "")
    await reader.until_seq(before + 3)
    erasing = services.inbox.erase("default", Erasure("approval", approval_id), ADA)
    assert [erased.approvals async for erased in erasing] == [1]
    await reader.until_seq(len(await ledger(services)))
    assert reader.events[0][2]["content"] is not None
    later = listen(keys["viewer"], f"after={before}")
    await later.until_seq(reader.last_id)
    assert later.seqs == reader.seqs
    assert later.events[0][2]["content"] is None


async def test_streams_end_when_the_server_stops(state: ServerState, keys: dict[str, str], listen: Open) -> None:
    readers = [listen(keys["viewer"]) for _ in range(3)]
    for reader in readers:
        await reader.wait_until(lambda each: each.text)
    state.stopping.set()
    for reader in readers:
        await reader.until_over()
        assert reader.text.endswith(b"Connect again.\n\n")
        assert not reader.aborted
    late = listen(keys["viewer"])
    await late.until_over()
    assert late.status == 503


def test_a_row_that_somebody_forged_begins_no_event_of_its_own() -> None:
    entry = Entry("default", 7, 0, "proposed", 'a"\u2028\n', "", '{"a":\n1}', "", "", None, b'{"b":\r\n"\xc3\xa9"}')
    line = ledger_events.to_sse_event(entry)
    assert line.body.count(b"\n") == 4
    assert b"\r" not in line.body
    assert json.loads(line.body.split(b"data: ")[1]) == entry_json(entry)
