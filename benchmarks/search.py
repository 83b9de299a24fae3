"""A million approvals: the cost of a search, and of indexing a new one.

    python -m benchmarks.search [--rows N] [--database sqlite|postgres|both]

Rows are written straight into the tables, as the store would have left them; then the store is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import machine
from interlock.app.bootstrap import AppServices, build_services
from interlock.core.approval.approval import Approval, ApprovalDeadlines, DecisionRecord
from interlock.core.call import Subject, ToolSpec, propose
from interlock.core.canonical import plain_json
from interlock.core.ledger.chain import Head
from interlock.core.ledger.event import Payload, Stored
from interlock.core.outcome import Waiting
from interlock.core.policy.policy import Ask
from interlock.core.ports import ApprovalQuery
from interlock.core.search import search_document
from interlock.storage.engine import rows
from interlock.storage.engine.queries import load_queries
from interlock.storage.tables.search import BATCH_SIZE
from tests.postgres import Server

START = 1_700_000_000_000
EVERY = 20_000  # milliseconds between two approvals: a million in eight months
TERMS = Ask("ask somebody")
STATUSES = ("succeeded",) * 90 + ("rejected",) * 4 + ("expired",) * 3 + ("failed",) * 2 + ("pending",)
CHUNK = 5_000
RUNS = 20
FRESH = 2_000
Record = tuple[tuple[object, ...], tuple[object, ...], tuple[str, str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    options = parser.parse_args()
    for name, value in machine.describe().items():
        print(f"{name:<12}{value}")
    with tempfile.TemporaryDirectory() as folder:
        if options.database != "postgres":
            report("SQLite", in_sqlite(Path(folder) / "interlock.db", options.rows))
    if options.database != "sqlite":
        with Server() as server:
            report("PostgreSQL", in_postgres(server, options.rows))


def report(name: str, figures: dict[str, float | str]) -> None:
    print(f"\n{name}")
    for label, figure in figures.items():
        print(f"  {label:<40}{figure if isinstance(figure, str) else f'{figure:>10,.2f}'}", flush=True)


# The rows


def records(count: int) -> Iterator[list[Record]]:
    """In the order of creation, made by as many processes as there are cores."""
    with get_context("fork").Pool() as pool:
        yield from pool.imap(_chunk, [(first, min(first + CHUNK, count), count) for first in range(0, count, CHUNK)])


def _chunk(span: tuple[int, int, int]) -> list[Record]:
    chance = random.Random(span[0])
    words = _vocabulary()
    weights = list(accumulate(1 / (place + 3) for place in range(len(words))))
    tools = list(accumulate(1 / (place + 1) for place in range(200)))
    made = []
    for number in range(span[0], span[1]):
        note = " ".join(chance.choices(words, cum_weights=weights, k=12))
        note += " ancient" if number < span[2] // 10 else ""
        tool = f"tool{chance.choices(range(200), cum_weights=tools)[0]}"
        made.append(_record(number, tool, note, chance))
    return made


def _vocabulary() -> list[str]:
    chance = random.Random(1)
    sounds = [a + b for a in "bcdfghjklmnprstvz" for b in "aeiou"]
    made = {"".join(chance.choices(sounds, k=chance.randint(2, 4))) for _ in range(30_000)}
    return ["invoice", "customer", *sorted(made, key=lambda word: sha256(word.encode()).digest())]


def _record(number: int, tool: str, note: str, chance: random.Random) -> Record:
    approval_id = f"{START + number * EVERY:012x}-{chance.getrandbits(64):016x}"
    asker, decider = (f"person{chance.randrange(500)}" for _ in range(2))
    status, at = chance.choice(STATUSES), START + number * EVERY
    currency = chance.choice(("EUR", "EUR", "USD", "GBP"))
    args = {"amount": chance.randint(1, 5_000), "currency": currency, "note": note, "ticket": f"T{number}"}
    sentence = f"{tool} {args['amount']} {currency} for ticket T{number}"
    names = (f"run{chance.getrandbits(48):x}", "call", tool, "write", f"agent{chance.randrange(50)}", ())
    subject = Subject("default", *names, f"thread{number // 20}", asker, "medium", False, "0" * 64, "n", "p")
    decision_record = None if status == "pending" else DecisionRecord("approve", decider, at, via="web")
    approval = Approval(
        id=approval_id,
        subject=subject,
        terms=TERMS,
        args_sha256="0" * 64,
        binding="0" * 64,
        status=status,
        created_at=at,
        deadlines=ApprovalDeadlines(at + 86_400_000),
        version=3,
        decision=decision_record,
    )
    payload = Payload(plain_json(args).encode(), None, sentence)
    words = search_document(Stored(approval, payload))
    shown = (payload.args, payload.shown, payload.sentence, None, None)
    return rows.insert_values(approval), ("default", approval_id, *shown), ("default", approval_id, words)


# The databases


def in_sqlite(path: Path, count: int) -> dict[str, float | str]:
    asyncio.run(_migrate(f"sqlite:///{path}"))
    start_time = time.perf_counter()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (begin,) = connection.execute("select sql from sqlite_master where name = 'approvals_begin'").fetchone()
        connection.execute("drop trigger approvals_begin")  # these rows are written as they ended
        connection.execute("pragma synchronous = off")
        statements = load_queries()
        for number, chunk in enumerate(records(count)):
            connection.execute("begin")
            for name, values in zip(
                ("insert_approval", "insert_payload", "insert_search_document"), zip(*chunk, strict=True), strict=True
            ):
                connection.executemany(statements[name], values)
            for place in range(CHUNK // BATCH_SIZE):  # the index merges its parts a little each time, as it would have
                connection.execute(statements["write_consumer_offset"], ("default", "search", number * CHUNK + place))
            connection.execute("commit")
        connection.execute(begin)
        for name, values in _remaining_rows(count):
            connection.execute(statements[name], values)
        connection.execute("pragma wal_checkpoint(truncate)")
        size = connection.execute("select sum(length(block)) from found_data").fetchone()[0]
        docs = connection.execute("select sum(length(cast(words as blob))) from docs").fetchone()[0]
    made: dict[str, float | str] = {"seconds to write it": time.perf_counter() - start_time}
    made["megabytes of the file"] = path.stat().st_size / 1e6
    made["  of documents"], made["  of their index"] = docs / 1e6, size / 1e6
    return made | asyncio.run(measure(f"sqlite:///{path}", count))


def in_postgres(server: Server, count: int) -> dict[str, float | str]:
    url = server.create_database("interlock")
    asyncio.run(_migrate(url))
    start_time = time.perf_counter()
    with server.connect("interlock") as connection:
        connection.execute("set session_replication_role = replica")  # these rows are written as they ended
        (index,) = connection.execute("select indexdef from pg_indexes where indexname = 'docs_found'").fetchall()[0]
        connection.execute("drop index docs_found")
        statements = load_queries()
        for chunk in records(count):
            for name, values in zip(
                ("insert_approval", "insert_payload", "insert_search_document"), zip(*chunk, strict=True), strict=True
            ):
                _copy(connection, statements[name], values)
        connection.execute("set maintenance_work_mem = '1GB'")
        connection.execute(index)
        for name, values in _remaining_rows(count):
            connection.execute(statements[name].replace("?", "%s").encode(), values)
        connection.execute("vacuum analyze")
        sizes = ("pg_database_size('interlock')", "pg_table_size('docs')", "pg_relation_size('docs_found')")
        found = connection.execute(f"select {', '.join(sizes)}".encode()).fetchall()[0]
    made: dict[str, float | str] = {"seconds to write it": time.perf_counter() - start_time}
    labels = ("megabytes of the database", "  of documents", "  of their index")
    made |= {label: size / 1e6 for label, size in zip(labels, found, strict=True)}
    return made | asyncio.run(measure(url, count))


def _copy(connection: Any, statement: str, values: Iterable[tuple[object, ...]]) -> None:
    head = statement.partition(") values")[0].removeprefix("insert into ") + ")"
    with connection.cursor().copy(f"copy {head} from stdin") as copy:
        for row in values:
            copy.write_row(row)


def _remaining_rows(count: int) -> Iterator[tuple[str, tuple[object, ...]]]:
    yield "insert_terms", (TERMS.sha256, TERMS.snapshot)
    yield "write_head", ("default", count, Head("default").link, START + count * EVERY)
    yield "write_consumer_offset", ("default", "search", count)


async def _migrate(url: str) -> None:
    app_services = build_services(url)
    await app_services.store.open()
    await app_services.store.close()


# The questions


def questions(count: int) -> dict[str, ApprovalQuery]:
    rare, since = f"T{count * 2 // 3}", START + count * EVERY // 3
    week = ApprovalQuery(since=since, until=since + 604_800_000)
    return {
        "a rare word": ApprovalQuery(text=rare),
        "a common word": ApprovalQuery(text="invoice"),
        "two common words": ApprovalQuery(text="invoice customer"),
        "a common and a rare word": ApprovalQuery(text=f"invoice {rare}"),
        "the beginning of a word": ApprovalQuery(text="customer inv"),
        "a word that nobody has": ApprovalQuery(text="nowhere"),
        "a word of the oldest tenth": ApprovalQuery(text="ancient"),
        "a common tool": ApprovalQuery(tool="tool0"),
        "a rare tool": ApprovalQuery(tool="tool199"),
        "an agent": ApprovalQuery(agent="agent7"),
        "a person": ApprovalQuery(person="person42"),
        "an argument": ApprovalQuery(arguments=(("ticket", rare),)),
        "a common argument": ApprovalQuery(arguments=(("currency", "EUR"),)),
        "an argument and a tool": ApprovalQuery(arguments=(("amount", 77),), tool="tool3"),
        "a thread": ApprovalQuery(thread_id=f"thread{count // 60}"),
        "status failed": ApprovalQuery(("failed",)),
        "status failed and a tool": ApprovalQuery(("failed",), tool="tool199"),
        "status failed and a common word": ApprovalQuery(("failed",), text="invoice"),
        "three statuses": ApprovalQuery(("failed", "rejected", "expired")),
        "pending and a common word": ApprovalQuery(("pending",), text="invoice"),
        "pending and a rare tool": ApprovalQuery(("pending",), tool="tool199"),
        "a week long ago": week,
        "a week long ago and a tool": replace(week, tool="tool5"),
        "no filter": ApprovalQuery(),
    }


async def measure(url: str, count: int) -> dict[str, float | str]:
    app_services = build_services(url)
    await app_services.store.open()
    try:
        figures: dict[str, float | str] = {"": "          ms (half of the runs)    worst    found"}
        for label, query in questions(count).items():
            figures[label] = await measure_query(app_services, query)
        page = await app_services.store.list("default", ApprovalQuery(tool="tool0"))
        figures["a common tool, second page"] = await measure_query(
            app_services, ApprovalQuery(tool="tool0", cursor=page.next or "")
        )
        figures["µs to index a new approval"] = await measure_indexing(app_services) * 1e6
        return figures
    finally:
        await app_services.store.close()


async def measure_query(app_services: AppServices, query: ApprovalQuery) -> str:
    spent = []
    for _ in range(RUNS):
        start_time = time.perf_counter()
        page = await app_services.store.list("default", query)
        spent.append((time.perf_counter() - start_time) * 1000)
    more = "+" if page.next else ""
    return f"{statistics.median(spent):>10.2f}{max(spent):>29.2f}{f'{len(page.items)}{more}':>9}"


async def measure_indexing(app_services: AppServices) -> float:
    """Seconds for one approval, beside the million that there are."""
    spec = ToolSpec("tool1", "write", describe="{note}")
    chance, words = random.Random(9), _vocabulary()
    for first in range(0, FRESH, 100):
        notes = [" ".join(chance.choices(words, k=12)) for _ in range(100)]
        calls = [
            propose("tool1", {"note": note, "ticket": f"N{first + n}"}, "fresh", f"c{first + n}", requester="person1")
            for n, note in enumerate(notes)
        ]
        outcomes = await asyncio.gather(*(app_services.gate.check(call, spec) for call in calls))
        assert all(isinstance(outcome, Waiting) for outcome in outcomes)
    start_time = time.perf_counter()
    while await app_services.store.update_search_index():
        pass
    spent = (time.perf_counter() - start_time) / FRESH
    assert len((await app_services.store.list("default", ApprovalQuery(text=f"N{FRESH - 1}"))).items) == 1
    return spent


if __name__ == "__main__":
    main()
