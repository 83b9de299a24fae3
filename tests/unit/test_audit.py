"""The verifier over a store: chain, invariants and rows, at once or in parts, during concurrent writes."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock.app import audit, ledger_file
from interlock.app.audit import (
    AuditReport,
    ProgressCallback,
    RowCheck,
    catch_up,
    head_at,
    quick_check,
    verify,
    verify_part,
)
from interlock.app.bootstrap import AppServices
from interlock.app.ledger_file import ExportFile, export, verify_exports
from interlock.core.call import ToolSpec
from interlock.core.errors import Conflict, InvalidRequest
from interlock.core.ledger.chain import Entry, Head, Verifier, make_entry, sign, skeleton
from interlock.core.ledger.erasure import Erasure, ErasureTracker
from interlock.core.ledger.event import Event
from interlock.core.ledger.expected_tables import ExpectedTables
from interlock.core.ledger.invariants import Violation
from interlock.core.ports import AuditPage, AuditReader, Store
from interlock.storage import store as stores
from tests.databases import SqliteFile
from tests.support import OK, START, Clock, approve, open_services, propose_pending

MAIL = ToolSpec("send_mail", "write")
PAY = ToolSpec("pay", "destructive", secret=("key",))
ENDED_CALL, PENDING_CALL = "call1", "call2"
OTHER_DIGEST = "Its arguments were altered: their digest is not the one that people saw."
OTHER_BINDING = "Its row was altered: call, terms and arguments do not match its binding."
BOUND_ELSEWHERE = "Its row is bound to other arguments than the ledger records."


@pytest.fixture(scope="module")
def seed_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mail that was sent, and a payment with a secret that waits."""
    path = tmp_path_factory.mktemp("seed") / "interlock.db"

    async def play() -> None:
        async with open_services(path, Clock()) as services:
            sent = await propose_pending(services, 1, MAIL, args={"to": "bob"})
            await approve(services, sent)
            started = await services.gate.start("default", sent, "runner", 60_000)
            await services.gate.finish("default", sent, started.fence, ok=True, payload=OK)
            await propose_pending(services, 2, PAY, args={"amount": 5, "key": "hunter2"})

    asyncio.run(play())
    return path


@pytest.fixture
def database(seed_database: Path, tmp_path: Path) -> SqliteFile:
    return SqliteFile(Path(shutil.copy(seed_database, tmp_path / "interlock.db")))


@pytest.fixture
async def services(database: SqliteFile) -> AsyncIterator[AppServices]:
    async with open_services(database, Clock()) as services:
        yield services


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short record takes several."""
    monkeypatch.setattr(audit, "PAGE_SIZE", 1)
    monkeypatch.setattr(audit, "COMPARED_PER_READ", 1)
    monkeypatch.setattr(stores, "ENTRIES_PER_READ", 2)


def violations(report: AuditReport) -> list[tuple[int, str]]:
    return [(fault.seq, fault.message) for fault in report.violations]


def tamper(database: SqliteFile, *statements: str) -> None:
    triggers = database.sql("select name, sql from sqlite_master where type = 'trigger'")
    for name, _ in triggers:
        database.sql(f"drop trigger {name}")
    for statement in (*statements, *(made for _, made in triggers)):
        database.sql(statement)


def find_approval_id(database: SqliteFile, call_id: str) -> str:
    return str(database.sql("select id from approvals where call_id = ?", call_id)[0][0])


# --- a sound record


async def test_a_sound_record_is_reported_with_its_figures(services: AppServices) -> None:
    report, head = await verify(services.store, "default"), await services.store.head("default")
    assert report == AuditReport(entries=5, approvals=2, erased=0, head=head, violations=())
    assert report.to_json() == {
        "valid": True,
        "entries": 5,
        "erased": 0,
        "approvals": 2,
        "head": {"workspace": "default", "seq": 5, "link": head.link, "at": START},
        "faults": [],
        "erasures": [],
        "since": 0,
        "strangers": 0,
    }


async def test_a_record_of_several_pages_is_read_to_its_end(
    services: AppServices, database: SqliteFile, small_pages: None
) -> None:
    read: list[tuple[int, int]] = []
    report = await verify(services.store, "default", None, lambda *seen: read.append(seen))
    assert (report.entries, report.violations) == (5, ())
    assert read == [(2, 5), (4, 5), (5, 5)]
    tamper(database, "delete from payloads")
    assert len({fault.row for fault in (await verify(services.store, "default")).violations}) == 2


async def test_an_empty_workspace_is_sound(services: AppServices) -> None:
    assert await verify(services.store, "nowhere") == AuditReport(
        entries=0, approvals=0, erased=0, head=Head("nowhere"), violations=()
    )


async def test_what_was_erased_is_counted_and_attributed(services: AppServices, database: SqliteFile) -> None:
    async for _ in services.store.erase(
        "default", Erasure("approval", find_approval_id(database, ENDED_CALL), "wish", "ann")
    ):
        pass
    report = await verify(services.store, "default")
    assert (report.violations, report.entries, report.erased) == ((), 6, 3)
    assert [taken.to_json() for taken in report.erasures] == report.to_json()["erasures"]
    assert report.to_json()["erasures"] == [
        {
            "scope": "approval",
            "actor": "ann",
            "entries": 3,
            "approvals": 1,
            "times": 1,
            "since": START,
            "until": START,
        }
    ]


# --- rows that say otherwise than the ledger


@pytest.mark.parametrize(
    ("statement", "call_id", "said"),
    [
        (
            "update approvals set status = 'approved' where call_id = 'call2'",
            PENDING_CALL,
            "status is approved in its row; the ledger says pending.",
        ),
        ("update approvals set binding = args_sha256 where call_id = 'call2'", PENDING_CALL, BOUND_ELSEWHERE),
        ("update approvals set args_sha256 = binding where call_id = 'call2'", PENDING_CALL, OTHER_DIGEST),
        ("update payloads set args = cast('{}' as blob) where shown is null", ENDED_CALL, OTHER_DIGEST),
        ("update payloads set shown = cast('{}' as blob) where shown is not null", PENDING_CALL, OTHER_DIGEST),
        ("update payloads set args = cast('{}' as blob) where shown is not null", PENDING_CALL, OTHER_BINDING),
        ("update approvals set tool = 'drop_table' where call_id = 'call1'", ENDED_CALL, OTHER_BINDING),
        (
            "delete from payloads where shown is null",
            ENDED_CALL,
            "Its arguments are missing, and no entry records an erasure.",
        ),
        (
            "delete from approvals where call_id = 'call2'",
            PENDING_CALL,
            "Its row is missing, although the ledger has entries about it.",
        ),
    ],
)
async def test_a_row_that_was_altered_is_told_by_its_id(
    services: AppServices, database: SqliteFile, statement: str, call_id: str, said: str
) -> None:
    approval_id = find_approval_id(database, call_id)
    tamper(database, statement)
    report = await verify(services.store, "default")
    assert f"approval {approval_id}: {said}" in [message for _, message in violations(report)]
    result = report.to_json()
    assert (result["valid"], {fault.row for fault in report.violations}) == (False, {approval_id})
    assert result["faults"] == [fault.to_json() for fault in report.violations]


async def test_a_fault_of_a_row_names_table_field_and_the_entry_that_is_contradicted(
    services: AppServices, database: SqliteFile
) -> None:
    ended, waits = (find_approval_id(database, call_id) for call_id in (ENDED_CALL, PENDING_CALL))
    tamper(
        database,
        "update payloads set args = cast('{}' as blob) where shown is null",
        "update approvals set status = 'approved' where call_id = 'call2'",
    )
    report = await verify(services.store, "default")
    assert {fault for fault in report.violations if fault.table == "approvals"} == {
        Violation(1, f"approval {ended}: {OTHER_DIGEST}", "approvals", ended, "args"),
        Violation(
            5,
            f"approval {waits}: status is approved in its row; the ledger says pending.",
            *("approvals", waits, "status"),
        ),
    }


async def test_a_tally_that_the_ledger_does_not_give_is_told(services: AppServices, database: SqliteFile) -> None:
    tamper(database, "update tallies set n = 7 where status = 'pending'")
    message = "count of pending: It is 7; the ledger gives 1."
    report = await verify(services.store, "default")
    assert report.violations == (Violation(0, message, "tallies", "pending", "n"),)


async def test_a_row_of_which_the_ledger_knows_nothing_is_told(services: AppServices, database: SqliteFile) -> None:
    tamper(
        database,
        "create table copy as select * from approvals where call_id = 'call2'",
        "update copy set id = 'forged', call_id = 'forged'",
        "insert into approvals select * from copy",
    )
    assert violations(await verify(services.store, "default")) == [
        (0, "approval forged: The ledger has no entry about it.")
    ]


async def test_arguments_that_are_no_bytes_are_a_row_that_cannot_be_read(
    services: AppServices, database: SqliteFile
) -> None:
    tamper(database, "update payloads set args = 'a text' where shown is null")
    ((_, said),) = violations(await verify(services.store, "default"))
    assert said.startswith(f"approval {find_approval_id(database, ENDED_CALL)}: Its row cannot be read: ")


async def test_a_row_that_is_no_approval_does_not_end_the_look_at_rows(
    services: AppServices, database: SqliteFile
) -> None:
    waits = find_approval_id(database, PENDING_CALL)
    tamper(database, "update approvals set decision = 'nonsense'", "delete from approvals where call_id = 'call2'")
    said = [message for _, message in violations(await verify(services.store, "default"))]
    assert said[0].startswith(f"approval {find_approval_id(database, ENDED_CALL)}: Its row cannot be read: ")
    assert said[1:] == [f"approval {waits}: Its row is missing, although the ledger has entries about it."]


async def test_an_entry_that_is_no_json_is_told_for_its_row_too(services: AppServices, database: SqliteFile) -> None:
    tamper(database, "update events set data = 'nonsense' where seq = 1")
    said = [message for _, message in violations(await verify(services.store, "default"))]
    assert [
        each
        for each in said
        if each.startswith(f"approval {find_approval_id(database, ENDED_CALL)}: The entry cannot be read: ")
    ]


async def test_faults_of_the_chain_come_in_its_order_and_before_those_of_rows(
    services: AppServices, database: SqliteFile
) -> None:
    tamper(
        database,
        "update contents set content = cast('{}' as blob) where seq = 5",
        "delete from contents where seq = 1",
        "delete from payloads where shown is null",
    )
    report = await verify(services.store, "default")
    assert [seq for seq, _ in violations(report)][:2] == [1, 5]
    assert {fault.table for fault in report.violations[2:]} == {"approvals"}


async def test_missing_rows_come_in_the_order_of_their_ids(services: AppServices, database: SqliteFile) -> None:
    for number in range(3, 9):
        await propose_pending(services, number)
    ids = [each for (each,) in database.sql("select id from approvals order by id")]
    tamper(database, "delete from approvals")
    said = [message.split()[1].rstrip(":") for _, message in violations(await verify(services.store, "default"))]
    assert (said, len(said)) == (ids, 8)


async def test_a_head_that_was_kept_elsewhere_is_held_against_the_ledger(services: AppServices) -> None:
    older = await head_at(services.store, "default", 3)
    assert (await verify(services.store, "default", older)).violations == ()
    assert len((await verify(services.store, "default", Head("default", 3, "f" * 64, START))).violations) == 1


async def test_a_stored_head_beyond_the_last_entry_is_found(services: AppServices, database: SqliteFile) -> None:
    tamper(database, "update heads set seq = 6")
    assert len((await verify(services.store, "default")).violations) == 1


# --- a quick check


async def test_a_quick_check_reads_all_that_is_stated_and_what_was_erased(
    services: AppServices, database: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "ENTRIES_PER_READ", 1)
    for name in ("ann", "bea"):
        await services.accounts.add_user("default", name, "viewer", "ada")
    ended = find_approval_id(database, ENDED_CALL)
    async for _ in services.store.erase("default", Erasure("approval", ended, "wish", "ann")):
        pass
    assert await quick_check(services.store, "default") == []
    tamper(database, "update users set role = 'admin'", "update approvals set tool = 'x' where call_id = 'call1'")
    found = [(fault.table, fault.row, fault.field) for fault in await quick_check(services.store, "default")]
    people = [("users", name, "role") for name in ("ann", "bea")]
    assert [each for each in found if each[0] == "users"] == people
    assert ("approvals", ended, "tool") in found


# --- rows that are only in the ledger, or only in a table


class PageReader:
    """Rows of one table in the order of the database."""

    def __init__(self, *ids: str, sort: Callable[[str], Any] = str) -> None:
        self._ids = sorted(ids, key=sort)
        self._sort = sort

    async def rows(self, table: str, workspace: str, after: str, limit: int) -> AuditPage:
        page = [each for each in self._ids if not after or self._sort(each) > self._sort(after)][:limit]
        return AuditPage(0, [(each, None) for each in page], page[-1] if page else "")

    async def approvals(self, workspace: str, after: str, until: str, limit: int) -> AuditPage:
        return AuditPage(0, [(each, "It is odd.") for each in self._ids if after < each <= until][:limit])

    async def entries(self, *wanted: object) -> Sequence[Entry]:
        return []

    async def statements(self, *wanted: object) -> Sequence[Entry]:
        return []


def sealed(*events: Event) -> list[Entry]:
    entries: list[Entry] = []
    for each in events:
        last = Head("default", *(entries[-1].seq, entries[-1].link, START)) if entries else Head("default")
        entries.append(make_entry(each, last, START, b"salt"))
    return entries


def row_check(reader: PageReader, *events: Event) -> RowCheck:
    tables = ExpectedTables()
    for entry in sealed(*events):
        tables.apply(entry)

    async def read_up_to(seq: int) -> int:
        return len(events)

    return RowCheck(reader, "default", tables, ErasureTracker(), read_up_to)  # type: ignore[arg-type]


async def row_violations(table: str, reader: PageReader, *events: Event) -> list[Violation]:
    return [violation async for violation in row_check(reader, *events).tables(table)]


STATEMENTS: list[tuple[str, str, str, str, dict[str, object]]] = [
    ("users", "user", "bob", "user_removed", {"user": "bob"}),
    ("keys", "key", "k1", "key_revoked", {"key": "k1"}),
    ("policies", "policy", "1", "policy_changed", {"version": 1, "policy": "x"}),
    ("grants", "grant", "g1", "grant_revoked", {"grant": "g1"}),
    ("agents", "agent", "office", "agent_changed", {"agent": "office", "version": 1}),
    ("freezes", "freeze", "f1", "unfrozen", {"freeze": "f1"}),
    ("pins", "pin", "pay", "tool_pinned", {"tool": "pay", "spec": "x", "agent": "office"}),
]


@pytest.mark.parametrize(("table", "label", "row_id", "kind", "data"), STATEMENTS)
async def test_a_row_that_only_the_ledger_or_only_its_table_knows_is_told(
    table: str, label: str, row_id: str, kind: str, data: dict[str, object]
) -> None:
    events = (Event("signed_in", "ada", {}), Event(kind, "ada", data))
    gone = f"{label} {row_id}: Its row is missing, although the ledger has entries about it."
    assert await row_violations(table, PageReader(), *events) == [Violation(2, gone, table, row_id)]
    assert await row_violations(table, PageReader(row_id), *events) == []
    forged = f"{label} {row_id}: No entry of the ledger records its creation."
    assert await row_violations(table, PageReader(row_id)) == [Violation(0, forged, table, row_id)]


@pytest.mark.parametrize("size", [1, 2, 3, 500])
async def test_rows_that_are_gone_are_told_once_whatever_page_they_would_be_on(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(audit, "PAGE_SIZE", size)
    names = [str(number) for number in range(1, 13)]
    policies = [Event("policy_changed", "ada", {"version": int(name), "policy": "x"}) for name in names]
    people = [Event("user_removed", "ada", {"user": name}) for name in names]
    kept = {*names} - {"1", "2", "10", "12"}
    found = await row_violations("policies", PageReader(*kept, sort=int), *policies)
    assert [fault.row for fault in found] == ["1", "2", "10", "12"]
    found = await row_violations("users", PageReader(*kept), *people)
    assert sorted(fault.row for fault in found) == ["1", "10", "12", "2"]


async def test_a_version_that_an_entry_spells_otherwise_is_told_though_it_would_be_the_last_of_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "PAGE_SIZE", 2)
    stated = [Event("policy_changed", "ada", {"version": version, "policy": "x"}) for version in (1, 2, "02", 3)]
    found = await row_violations("policies", PageReader("1", "2", "3", sort=int), *stated)
    assert [fault.row for fault in found] == ["02"]


# --- letting others have their turn


class InstantStore:
    """A store that answers at once, one entry at a time."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    async def head(self, workspace: str) -> Head:
        last = self._entries[-1]
        return Head(workspace, last.seq, last.link, last.at)

    async def entries(self, workspace: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        for entry in self._entries[after:]:
            yield [entry]


async def compare_approvals(ids: Sequence[str]) -> list[Violation]:
    return [violation async for violation in row_check(PageReader(*ids)).approvals()]


READS: dict[str, Callable[[Any, bytes], Awaitable[object]]] = {
    "verify": lambda store, file: catch_up(store, Verifier("default")),
    "verify a part": lambda store, file: verify_part(store, "default", 0, 20, None),
    "export": lambda store, file: export_ledger(store),
    "verify an export": lambda store, file: verify_files(file),
    "compare rows": lambda store, file: compare_approvals([f"a{number}" for number in range(20)]),
}


@pytest.mark.parametrize("name", READS)
async def test_others_have_their_turn_during_a_long_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PAGE_SIZE", 1)
    monkeypatch.setattr(ledger_file, "BLOCK_SIZE", 100)
    store: Any = InstantStore(sealed(*[Event("signed_in", "ada", {})] * 20))
    file, turns = await export_ledger(store), 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(count_turns())
    await READS[name](store, file)
    other.cancel()
    assert turns >= 20


# --- in parts


async def test_the_head_at_an_entry_is_that_entry(services: AppServices) -> None:
    entries = [entry async for chunk in services.store.entries("default") for entry in chunk]
    assert await head_at(services.store, "default", 0) == Head("default")
    for entry in entries:
        assert await head_at(services.store, "default", entry.seq) == Head("default", entry.seq, entry.link, entry.at)
    assert await head_at(services.store, "default", 6) is None


async def test_there_is_no_head_at_an_entry_that_is_missing(services: AppServices, database: SqliteFile) -> None:
    tamper(database, "delete from events where seq = 3")
    assert await head_at(services.store, "default", 3) is None
    assert await verify_part(services.store, "default", 3, 5, None) is None


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize(("after", "until", "read"), [(0, 3, [(2, 3), (3, 3)]), (1, 2, [(1, 1)]), (3, 5, [(2, 2)])])
async def test_a_part_is_read_up_to_its_end_and_no_further(
    services: AppServices, after: int, until: int, read: list[tuple[int, int]]
) -> None:
    seen: list[tuple[int, int]] = []
    part = await verify_part(services.store, "default", after, until, None, lambda *each: seen.append(each))
    assert part is not None
    assert (part.head, part.violations, seen) == (await head_at(services.store, "default", until), [], read)


async def test_a_part_is_held_against_the_head_too(services: AppServices) -> None:
    part = await verify_part(services.store, "default", 2, 4, Head("default", 3, "f" * 64, START))
    assert part is not None
    assert len(part.violations) == 1


def truncate_at(store: Store, *cuts: int) -> Any:
    """Parts as the command makes them, but one after the other."""

    async def every(
        workspace: str, end: int, head: Head | None, progress: ProgressCallback
    ) -> AsyncGenerator[Verifier | None, None]:
        for after, until in zip((0, *cuts), (*cuts, end), strict=True):
            yield await verify_part(store, workspace, after, until, head, progress)

    return every


@pytest.mark.parametrize("cuts", [(2,), (1, 4), (1, 2, 3, 4)])
async def test_parts_give_the_report_of_the_whole(
    services: AppServices, database: SqliteFile, cuts: tuple[int, ...]
) -> None:
    store, read = services.store, []  # type: Store, list[tuple[int, int]]
    whole = await verify(store, "default")
    assert await verify(store, "default", None, lambda *seen: read.append(seen), truncate_at(store, *cuts)) == whole
    assert read == [(until - after,) * 2 for after, until in zip((0, *cuts), (*cuts, 5), strict=True)]
    tamper(database, "update events set actor = 'mallory' where seq = 2", "delete from payloads")
    altered = await verify(store, "default")
    assert await verify(store, "default", parts=truncate_at(store, *cuts)) == altered
    assert len(altered.violations) > 2


async def test_a_part_that_cannot_begin_has_all_read_again(services: AppServices, database: SqliteFile) -> None:
    tamper(database, "delete from events where seq = 2")
    whole = await verify(services.store, "default")
    assert whole == await verify(services.store, "default", parts=truncate_at(services.store, 2))
    assert whole.violations


async def test_a_kept_head_counts_when_parts_are_read_again(services: AppServices, database: SqliteFile) -> None:
    kept = await services.store.head("default")
    tamper(database, "delete from events where seq = 5", "update heads set seq = 4")
    whole = await verify(services.store, "default", kept)
    assert whole == await verify(services.store, "default", kept, parts=truncate_at(services.store, 2))
    assert any("The chain ends before the saved head" in message for _, message in violations(whole))


# --- while others write


class ConcurrentStore:
    """The store, with something done by somebody else before its n-th answer of one sort."""

    def __init__(self, store: Store, sort: str, turn: int, meanwhile: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self._sort = sort
        self._left = turn
        self._meanwhile = meanwhile
        self.audit_reader = ConcurrentVerificationReader(store.audit_reader, self.answering)

    async def answering(self, sort: str) -> None:
        self._left -= sort == self._sort
        if not self._left:
            self._left = -1
            await self._meanwhile()

    async def head(self, workspace: str) -> Head:
        await self.answering("head")
        return await self._store.head(workspace)

    async def entries(self, workspace: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        await self.answering("entries")
        async for entries in self._store.entries(workspace, after):
            yield entries


class ConcurrentVerificationReader:
    def __init__(self, checking: AuditReader, answering: Callable[[str], Awaitable[None]]) -> None:
        self._checking = checking
        self._answering = answering

    async def approvals(self, *wanted: Any) -> AuditPage:
        await self._answering("approvals")
        return await self._checking.approvals(*wanted)

    async def entries(self, *wanted: Any) -> Sequence[Entry]:
        await self._answering("checked entries")
        return await self._checking.entries(*wanted)

    async def rows(self, *wanted: Any) -> AuditPage:
        await self._answering("rows")
        return await self._checking.rows(*wanted)

    async def statements(self, *wanted: Any) -> Sequence[Entry]:
        return await self._checking.statements(*wanted)

    async def has_used(self, *wanted: Any) -> bool:
        return await self._checking.has_used(*wanted)

    async def tallies(self, *wanted: Any) -> tuple[int, Mapping[str, int]]:
        await self._answering("tallies")
        return await self._checking.tallies(*wanted)

    async def schema_violations(self) -> Sequence[Violation]:
        return await self._checking.schema_violations()


WRITES_BETWEEN = [
    ("head", 1),
    ("head", 2),
    ("head", 3),
    ("entries", 1),
    ("entries", 2),
    ("approvals", 1),
    ("approvals", 2),
]
WRITES_BETWEEN += [
    ("checked entries", 1),
    ("checked entries", 2),
    ("rows", 1),
    ("rows", 2),
    ("rows", 3),
    ("tallies", 1),
]


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize(("sort", "turn"), WRITES_BETWEEN)
async def test_what_others_write_meanwhile_is_read_and_is_no_fault(
    services: AppServices, database: SqliteFile, sort: str, turn: int
) -> None:
    async def meanwhile() -> None:
        await approve(services, find_approval_id(database, PENDING_CALL))
        await propose_pending(services, 3)
        await services.accounts.add_user("default", "ann", "viewer", "ada")

    report = await verify(ConcurrentStore(services.store, sort, turn, meanwhile), "default")  # type: ignore[arg-type]
    assert (report.entries, report.approvals, report.violations) == (8, 3, ())


async def test_a_person_who_is_forgotten_meanwhile_is_no_fault(services: AppServices) -> None:
    await services.accounts.add_user("default", "ann", "viewer", "ada", frozenset({"finance"}))
    await services.accounts.remove_user("default", "ann", "ada")

    async def meanwhile() -> None:
        async for _ in services.store.erase("default", Erasure("person", "ann", "", "ada")):
            pass

    report = await verify(ConcurrentStore(services.store, "rows", 1, meanwhile), "default")  # type: ignore[arg-type]
    assert report.violations == ()


# --- exports


async def export_ledger(store: Store, since: int = 0, read: list[tuple[int, int]] | None = None) -> bytes:
    seen: list[tuple[int, int]] = [] if read is None else read
    blocks = export(store, "default", since, lambda head: sign(head, None, START), lambda *each: seen.append(each))
    return b"".join([block async for block in blocks])


async def verify_files(*files: bytes) -> AuditReport:
    sources = [ExportFile("export", io.BytesIO(file)) for file in files]
    return (await verify_exports(sources, None, lambda _: ""))[0]


def compact_json(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


# R49
@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("since", [0, 2, 5])
async def test_an_export_is_the_entries_between_two_heads(services: AppServices, since: int) -> None:
    entries = [entry async for chunk in services.store.entries("default", since) for entry in chunk]
    start, end = await head_at(services.store, "default", since), await services.store.head("default")
    assert start is not None
    first, *rows, last, rest = (await export_ledger(services.store, since)).split(b"\n")
    assert first == compact_json(
        {"format": "interlock-ledger", "version": 1, "workspace": "default", "after": start.to_json()}
    )
    assert rows == [
        b"\t".join(
            (entry.link.encode(), skeleton(*entry[:8]), (entry.salt or b"").hex().encode(), entry.content or b"")
        )
        for entry in entries
    ]
    assert (last, rest) == (compact_json(end.to_json()), b"")
    assert any(entry.salt is None for entry in entries) == (since < 5)


# R49
@pytest.mark.usefixtures("small_pages")
async def test_an_export_tells_how_far_it_has_come(services: AppServices) -> None:
    read: list[tuple[int, int]] = []
    await export_ledger(services.store, 1, read)
    assert read == [(2, 4), (4, 4)]


# R49
@pytest.mark.usefixtures("small_pages")
async def test_what_is_written_during_an_export_is_in_it(services: AppServices) -> None:
    busy: Any = ConcurrentStore(services.store, "head", 2, lambda: propose_pending(services, 3))
    whole = await export_ledger(busy)
    assert (await verify_files(whole)).head == await services.store.head("default")
    assert whole.count(b"\n") == 8


# R49
async def test_a_head_that_is_not_there_is_exported_as_the_store_says(
    services: AppServices, database: SqliteFile
) -> None:
    tamper(database, "update heads set seq = 9")
    assert b'"seq":9,' in (await export_ledger(services.store)).splitlines()[-1]


# R49
async def test_an_export_goes_on_only_from_an_entry_that_is_there(services: AppServices) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await export_ledger(services.store, 6)
    assert caught.value.message == "The ledger has no entry 6 to continue from; its newest is 5."


# R49
@pytest.mark.parametrize(
    "statement",
    [
        "update events set data = replace(data, '{', '{' || char(10)) where seq = 2",
        "update events set data = replace(data, '{', '{' || char(9)) where seq = 2",
        "update contents set content = 'a text' where seq = 2",
    ],
)
async def test_an_entry_that_would_break_its_line_is_not_exported(
    services: AppServices, database: SqliteFile, statement: str
) -> None:
    tamper(database, statement)
    with pytest.raises(Conflict) as caught:
        await export_ledger(services.store)
    assert caught.value.to_json() == {
        "error": "conflict",
        "message": "Entry 2 was altered and cannot be written as a line. See: interlock audit verify",
        "seq": 2,
    }
