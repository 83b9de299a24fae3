"""A ledger of years: the cost of appending an entry, and of verifying all of them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from interlock.app import audit
from interlock.app.bootstrap import build_services
from interlock.app.ledger_file import ExportFile, export, verify_exports
from interlock.cli.commands.audit import VerifyPool
from interlock.core.approval.approval import Approval, decide
from interlock.core.approval.execute import finish, start
from interlock.core.approval.propose import Proposal, request_approval
from interlock.core.call import ToolSpec, propose, redact
from interlock.core.decision import Acknowledgement, Approve, Reviewer
from interlock.core.ledger.chain import Entry, Head, SignedHead, Verifier, make_entry
from interlock.core.ledger.event import Event, Moment, Payload, Stored
from interlock.core.ledger.row_digests import add_row_digests
from interlock.core.policy.policy import Ask
from interlock.core.ports import Store
from interlock.storage.engine import rows
from interlock.storage.engine.queries import load_queries

SPEC = ToolSpec("delete_file", "destructive", describe="Delete {path!r}")
TERMS = Ask("files are deleted by people")
BOB = Reviewer("bob", via="slack")
START = 1_700_000_000_000
BATCH = 5_000  # approvals in a transaction
ENTRIES_EACH = 4  # proposed, approved, started, succeeded
SALT = b"0123456789abcdef"


@dataclass(frozen=True)
class HistoryRows:
    """One approval from its proposal to its end, by the rules of the core."""

    approval: Approval
    payload: Payload
    events: tuple[Event, ...]


def build(path: Path, entries: int) -> float:
    """Writes the tables as the store would have; gives the seconds that sealing took for one entry."""
    asyncio.run(_create(path))
    connection = sqlite3.connect(path)
    triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"drop trigger {name}")  # these rows are written as they ended
    statements = load_queries()
    connection.execute(statements["insert_terms"], (TERMS.sha256, TERMS.snapshot))
    connection.execute(statements["insert_spec"], (SPEC.sha256, SPEC.definition))
    head, spent, every = Head("default"), 0.0, _histories()
    while (left := (entries - head.seq) // ENTRIES_EACH) > 0:
        batch = list(islice(every, min(BATCH, left)))
        start_time = time.perf_counter()
        sealed = _seal(batch, head)
        spent += time.perf_counter() - start_time
        head = Head("default", sealed[-1].seq, sealed[-1].link, sealed[-1].at)
        _write(connection, statements, batch, sealed)
    connection.execute(statements["write_head"], head)
    connection.execute(statements["write_status_count"], ("default", "succeeded", head.seq // ENTRIES_EACH))
    for _, definition in triggers:
        connection.execute(definition)
    connection.commit()
    connection.close()
    return spent / head.seq


def measure(path: Path) -> dict[str, float]:
    """Seconds for all entries: chain and invariants in one process and in several, the rows, and a bare hash loop."""
    return asyncio.run(_measure(path))


async def _measure(path: Path) -> dict[str, float]:
    url = f"sqlite:///{path}"
    store = build_services(url).store
    await store.open()
    try:
        spent: dict[str, float] = {}
        start_time = time.perf_counter()
        verifier = Verifier("default")
        await audit.catch_up(store, verifier)
        spent["one process"] = time.perf_counter() - start_time
        processes = max(2, os.cpu_count() or 1)  # named, since a short ledger would get none
        start_time = time.perf_counter()
        joined = await audit.verify_in_parallel(
            store, "default", None, lambda done, total: None, VerifyPool(store, url, processes)
        )
        spent["all processors"] = time.perf_counter() - start_time
        assert verifier.head == joined.head
        start_time = time.perf_counter()
        assert [message async for message in audit.compare_rows(store, verifier)] == []
        spent["rows"] = time.perf_counter() - start_time
        spent |= await _export(store, path.with_name("export.tsv"))
        verifier.finish(await store.head("default"))
        assert not verifier.violations
        return spent
    finally:
        await store.close()


async def _export(store: Store, path: Path) -> dict[str, float]:
    start_time = time.perf_counter()
    with path.open("wb") as file:
        async for block in export(store, "default", 0, SignedHead, lambda done, total: None):
            file.write(block)
    wrote = time.perf_counter()
    with path.open("rb") as file:
        report, _ = await verify_exports([ExportFile(path.name, file)], None, lambda signed: "")
    assert not report.violations
    return {"export": wrote - start_time, "verify the export": time.perf_counter() - wrote}


async def _create(path: Path) -> None:
    store = build_services(f"sqlite:///{path}").store
    await store.open()
    await store.close()


def _histories() -> Iterator[HistoryRows]:
    number = 0
    while True:
        number += 1
        yield _history(number, Moment(START + number * 1_000))


def _history(number: int, moment: Moment) -> HistoryRows:
    name = f"{number:032x}"
    approval_id = f"{name[:8]}-{name[8:12]}-7{name[13:16]}-8{name[17:20]}-{name[20:]}"
    args = {"path": f"/srv/x/{number}/" + "a" * 100}
    call = propose("delete_file", args, f"run{number % 97}", f"call{number}", agent="office", requester="ann")
    shown = redact(call.args, SPEC, b"")
    proposal = Proposal(approval_id, name, call, SPEC, shown, "Delete a file", policy_sha256="f" * 64)
    asked = request_approval(proposal, TERMS, moment)
    decided = decide(asked.state, Approve(Acknowledgement(shown.sha256)), BOB, moment)
    running = start(Stored(decided.state, Payload(call.args)), "runner:1", 60_000, "", moment, runner_is_dead=False)
    ended = finish(running.state, 1, Payload(result=b'"ok"'), moment, ok=True)
    changes = ((asked, None), (decided, asked.state), (running, decided.state), (ended, running.state))
    events = tuple(event for change, old in changes for event in add_row_digests(change, old))
    assert len(events) == ENTRIES_EACH
    return HistoryRows(ended.state, Payload(call.args, None, "Delete a file", result=b'"ok"'), events)


def _seal(batch: list[HistoryRows], head: Head) -> list[Entry]:
    sealed = []
    for one in batch:
        for event in one.events:
            entry = make_entry(event, head, one.approval.created_at, SALT)
            head = Head("default", entry.seq, entry.link, entry.at)
            sealed.append(entry)
    return sealed


def _write(
    connection: sqlite3.Connection, statements: dict[str, str], batch: list[HistoryRows], sealed: list[Entry]
) -> None:
    connection.executemany(statements["insert_event"], [entry[:9] for entry in sealed])
    contents = [(e.workspace, e.seq, e.salt, e.content) for e in sealed if e.content is not None]
    connection.executemany(statements["insert_content"], contents)
    connection.executemany(statements["insert_approval"], [rows.insert_values(one.approval) for one in batch])
    connection.executemany(
        "insert into payloads (workspace, id, args, sentence, result) values ('default', ?, ?, ?, ?)",
        [(one.approval.id, one.payload.args, one.payload.sentence, one.payload.result) for one in batch],
    )
    connection.commit()
