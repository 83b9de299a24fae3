"""The live feed: every event once and in order, from any point, to those who may see it, whoever else stalls."""

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
from tests.server.chat_harness import PATIENCE
from tests.server.conftest import As
from tests.support import ADA, approve, pending

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
        self._takes = asyncio.Event()
        self._takes.set()
        self._gone = asyncio.Event()
        self._more = asyncio.Event()
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
        self._takes.clear()

    def go_on(self) -> None:
        self._takes.set()

    async def leave(self) -> None:
        self._gone.set()
        self._takes.set()
        await self.task
        self._socket.close()

    async def until(self, condition: Callable[[Reader], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition(self):
                self._more.clear()
                await self._more.wait()

    async def until_seq(self, seq: int) -> list[Event]:
        await self.until(lambda reader: reader.last_id >= seq)
        return self.events

    async def until_over(self) -> None:
        async with asyncio.timeout(PATIENCE):
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
        if not self._takes.is_set():
            await self._takes.wait()
        if self._gone.is_set():
            return
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        self.text += message.get("body", b"")
        self.messages += 1
        self._more.set()
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self._gone.set()

    async def _receive(self) -> AsgiMessage:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def get_extra_info(self, name: str) -> socket.socket:
        return self._socket

    def abort(self) -> None:
        self.aborted = True
        self._gone.set()
        self._takes.set()


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


async def ledger(parts: AppServices, workspace: str = "default") -> list[Entry]:
    return [entry async for page in parts.store.entries(workspace) for entry in page]


async def work(parts: AppServices, count: int, name: str = "c") -> None:
    """Calls that are asked about and approved: two events each."""
    for number in range(count):
        await approve(parts, await pending(parts, f"{name}{number}"))


# R4
@pytest.mark.postgres_smoke
async def test_from_any_point_every_event_comes_once_and_in_order(
    parts: AppServices, keys: dict[str, str], listen: Open
) -> None:
    await work(parts, 5)
    entries = await ledger(parts)
    readers = {after: listen(keys["admin"], f"after={after}") for after in range(len(entries) + 1)}
    for after, reader in readers.items():
        expected = [(entry.seq, entry.kind, entry_json(entry)) for entry in entries[after:]]
        assert await reader.until_seq(len(entries)) == expected
    await work(parts, 1, "later")
    entries = await ledger(parts)
    for after, reader in readers.items():
        await reader.until_seq(len(entries))
        assert reader.seqs == list(range(after + 1, len(entries) + 1))


async def test_without_a_point_only_what_is_new_comes(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    await work(parts, 2)
    before = len(await ledger(parts))
    reader = listen(keys["viewer"])
    await reader.until(lambda each: each.text)
    assert reader.text == b"retry: 2000\nid: %d\n\n" % before
    assert (reader.status, reader.headers[b"content-type"]) == (200, b"text/event-stream")
    assert (reader.headers[b"cache-control"], reader.headers[b"x-accel-buffering"]) == (b"no-store", b"no")
    await work(parts, 1, "new")
    events = await reader.until_seq(before + 2)
    assert [kind for _, kind, _ in events] == ["proposed", "approved"]
    assert events[1][2]["approval_id"]
    assert events[1][2]["data"]["status"] == "approved"


async def test_the_header_is_newer_than_the_address(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    await work(parts, 3)
    newest = len(await ledger(parts))
    reader = listen(keys["admin"], "after=1", last=str(newest - 1))
    await reader.until_seq(newest)
    assert reader.seqs == [newest]


@pytest.mark.parametrize("query", ["after=-1", "after=x", "after=1.5", "after=" + "9" * 19, "after=%D9%A1"])
async def test_a_point_that_is_no_number_is_refused(keys: dict[str, str], listen: Open, query: str) -> None:
    reader = listen(keys["viewer"], query)
    await reader.until_over()
    assert (reader.status, json.loads(reader.text)["error"]) == (400, "invalid_request")


async def test_a_point_that_is_still_to_come_is_reset(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    newest = len(await ledger(parts))
    reader = listen(keys["viewer"], last="999999")
    await reader.until(lambda each: each.events)
    assert reader.events == [(newest, "reset", {"seq": newest, "reason": "ahead"})]
    await work(parts, 1)
    await reader.until_seq(newest + 2)
    assert reader.seqs == [newest, newest + 1, newest + 2]


async def test_a_point_that_is_too_old_is_reset(
    parts: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_stream, "MAX_LAG", 5)
    await work(parts, 3)
    newest = len(await ledger(parts))
    old, young = listen(keys["admin"], f"after={newest - 6}"), listen(keys["admin"], f"after={newest - 5}")
    await old.until(lambda each: each.events)
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
async def test_only_admins_see_what_is_about_accounts(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    await work(parts, 1)
    newest = len(await ledger(parts))
    admin, viewer = listen(keys["admin"], "after=0"), listen(keys["viewer"], "after=0")
    assert {kind for _, kind, _ in await admin.until_seq(newest)} >= {"user_changed", "key_created"}
    assert [kind for _, kind, _ in await viewer.until_seq(newest)] == ["proposed", "approved"]


# R48
async def test_another_workspace_is_never_seen(
    parts: AppServices, site: ServerState, keys: dict[str, str], listen: Open
) -> None:
    other = await make_keys(parts, "other")
    reader = listen(other["admin"], "after=0")
    await work(parts, 2)
    await parts.accounts.add_user("other", "zoe", "viewer", "ada")
    events = await reader.until_seq(len(await ledger(parts, "other")))
    assert len(events) == len(await ledger(parts, "other"))
    assert {kind for _, kind, _ in events} == {"user_changed", "key_created"}


async def test_a_stream_can_be_about_one_approval_or_some_kinds(
    parts: AppServices, keys: dict[str, str], listen: Open
) -> None:
    first, second = await pending(parts, "first"), await pending(parts, "second")
    before = len(await ledger(parts))
    one = listen(keys["viewer"], f"approval_id={first}&after=0")
    some = listen(keys["viewer"], "kinds=approved,rejected&after=0")
    every = listen(keys["viewer"])
    await every.until(lambda each: each.text)
    await approve(parts, second)
    await approve(parts, first)
    await every.until_seq(before + 2)
    await one.until_seq(before + 2)
    await some.until_seq(before + 2)
    assert [(kind, body["approval_id"]) for _, kind, body in one.events] == [("proposed", first), ("approved", first)]
    assert [(kind, body["approval_id"]) for _, kind, body in some.events] == [("approved", second), ("approved", first)]


@pytest.mark.usefixtures("quick")
async def test_a_sign_of_life_says_how_far_the_stream_is(
    parts: AppServices, keys: dict[str, str], listen: Open
) -> None:
    reader = listen(keys["viewer"], "kinds=nothing")
    await work(parts, 2)
    newest = len(await ledger(parts))
    await reader.until(lambda each: b":\nid: %d\n\n" % newest in each.text)
    assert reader.events == []


async def test_all_streams_of_a_process_share_one_limit(
    keys: dict[str, str], listen: Open, client: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MAX_STREAMS", 1)
    first = listen(keys["reviewer"])
    await first.until(lambda each: each.text)
    second = listen(keys["reviewer"])
    await second.until_over()
    chat = await client(keys["reviewer"]).post("/api/chat", json={"message": "Hello"})
    assert (second.status, chat.status_code) == (429, 429)
    await first.leave()
    third = listen(keys["reviewer"])
    await third.until(lambda each: each.text)
    assert third.status == 200


@pytest.mark.usefixtures("quick")
async def test_a_stream_ends_with_the_key(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    revoked, kept = listen(keys["reviewer"]), listen(keys["viewer"])
    await revoked.until(lambda each: each.text)
    await kept.until(lambda each: each.text)
    (key_id,) = [key.id for key in await parts.accounts.keys("default") if key.person == "bob"]
    await parts.accounts.revoke_key("default", key_id, "ada")
    await revoked.until_over()
    await work(parts, 1)
    assert len(await kept.until_seq(len(await ledger(parts)))) == 2
    assert revoked.events == []


@pytest.mark.usefixtures("quick")
async def test_a_stream_ends_when_the_role_changes(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    reader = listen(keys["admin"])
    await reader.until(lambda each: each.text)
    await parts.accounts.add_user("default", "amy", "admin", "ada")
    await parts.accounts.change_user("default", "ada", "amy", role="viewer")
    await reader.until_over()
    assert not reader.aborted
    assert "user_changed" not in [kind for _, kind, body in reader.events if body["actor"] == "amy"]


@pytest.mark.usefixtures("quick")
async def test_a_stream_ends_with_the_session(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    token = await parts.accounts.create_link("default", "ada", user="vic")
    _, session = await parts.accounts.use_link(token)
    reader, other = listen(f"interlock={session}"), listen(keys["viewer"])
    await reader.until(lambda each: each.text)
    await other.until(lambda each: each.text)
    await parts.accounts.sign_out(session)
    await reader.until_over()
    assert reader.status == 200
    assert not other.task.done()


@pytest.mark.postgres_smoke
async def test_what_happens_together_is_told_together(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    reader = listen(keys["viewer"])
    await reader.until(lambda each: each.text)
    before, messages = reader.last_id, reader.messages
    await asyncio.gather(*[pending(parts, f"{number}") for number in range(100)])
    await reader.until_seq(before + 100)
    assert reader.messages - messages < 50


def skipping(
    lines: Iterable[ledger_events.SseEvent], wanted: ledger_events.EventFilter, at: int
) -> Iterator[ledger_events.SseChunk]:
    return ledger_events.make_chunks(list(lines)[:-1], wanted, at)


def repeating(
    lines: Iterable[ledger_events.SseEvent], wanted: ledger_events.EventFilter, at: int
) -> Iterator[ledger_events.SseChunk]:
    return ledger_events.make_chunks([line for line in lines for _ in range(2)], wanted, at)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("broken", [skipping, repeating])
async def test_a_feed_that_skips_or_repeats_would_be_found_out(
    parts: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch, broken: object
) -> None:
    monkeypatch.setattr(ledger_stream, "make_chunks", broken)
    reader = listen(keys["admin"], "after=0")
    await work(parts, 2)
    newest = len(await ledger(parts))
    await reader.until_seq(newest)
    assert reader.seqs != list(range(1, newest + 1))


@pytest.mark.usefixtures("quick")
async def test_who_does_not_read_is_dropped_and_slows_nobody_down(
    parts: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "STALL_TIMEOUT", 0.2)
    stalled, well = listen(keys["viewer"]), listen(keys["viewer"])
    await stalled.until(lambda each: each.text)
    await well.until(lambda each: each.text)
    stalled.stall()
    before = well.last_id
    await work(parts, 20)
    await well.until_seq(before + 40)
    assert well.seqs == list(range(before + 1, before + 41))
    await stalled.until_over()
    assert stalled.aborted
    assert not well.aborted


@pytest.mark.parametrize("room", [10_000, 5])
async def test_who_falls_behind_gets_the_rest_once_and_in_order(
    parts: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(ledger_events, "MAX_BUFFER_EVENTS", room)
    monkeypatch.setattr(ledger_events, "CHUNK_BYTES", 1_000)
    slow, well = listen(keys["viewer"]), listen(keys["viewer"])
    await slow.until(lambda each: each.text)
    await well.until(lambda each: each.text)
    before = slow.last_id
    for number in range(3):
        slow.stall()
        await work(parts, 10, f"round{number}-")
        await well.until_seq(before + 20 * (number + 1))
        assert slow.last_id < well.last_id
        slow.go_on()
        await slow.until_seq(well.last_id)
    assert slow.seqs == well.seqs == list(range(before + 1, before + 61))


@pytest.mark.usefixtures("quick")
async def test_a_store_that_fails_half_way_loses_nothing(
    parts: AppServices, keys: dict[str, str], listen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = listen(keys["viewer"])
    await reader.until(lambda each: each.text)
    before, whole, looks = reader.last_id, ledger_stream.LedgerFollower._page, itertools.count()

    async def page(self: ledger_stream.LedgerFollower, after: int) -> Sequence[Entry]:
        if next(looks) % 3:
            raise StoreUnavailable("just now")
        return (await whole(self, after))[:1]

    monkeypatch.setattr(ledger_stream, "ENTRIES_PER_READ", 1)
    monkeypatch.setattr(ledger_stream.LedgerFollower, "_page", page)
    await work(parts, 5)
    await reader.until_seq(before + 10)
    assert reader.seqs == list(range(before + 1, before + 11))


async def test_what_was_erased_is_not_told_from_memory(parts: AppServices, keys: dict[str, str], listen: Open) -> None:
    reader = listen(keys["viewer"])
    await reader.until(lambda each: each.text)
    before = reader.last_id
    approval_id = await pending(parts, "secret")
    await approve(parts, approval_id, ADA)
    await parts.gate.cancel("default", approval_id, "ada", "")
    await reader.until_seq(before + 3)
    erasing = parts.inbox.erase("default", Erasure("approval", approval_id), ADA)
    assert [erased.approvals async for erased in erasing] == [1]
    await reader.until_seq(len(await ledger(parts)))
    assert reader.events[0][2]["content"] is not None
    later = listen(keys["viewer"], f"after={before}")
    await later.until_seq(reader.last_id)
    assert later.seqs == reader.seqs
    assert later.events[0][2]["content"] is None


async def test_streams_end_when_the_server_stops(site: ServerState, keys: dict[str, str], listen: Open) -> None:
    readers = [listen(keys["viewer"]) for _ in range(3)]
    for reader in readers:
        await reader.until(lambda each: each.text)
    site.stopping.set()
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
