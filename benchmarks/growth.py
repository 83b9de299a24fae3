"""The cost of a cycle with a thousand and with a million stored approvals: `python -m benchmarks.growth`.

The rows are made by the databases themselves. All of them are pending, which is the hardest case: every index is full.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg

from benchmarks import cycles, report
from interlock.app.bootstrap import AppServices, build_services_from_store, wall_clock
from interlock.core.ports import ApprovalQuery
from interlock.storage.engine.database import Database
from interlock.storage.postgres.database import PostgresDatabase
from interlock.storage.sqlite.database import SqliteDatabase
from interlock.storage.store import SqlStore
from tests.databases import migrated_template
from tests.postgres import Server

COLUMNS = (
    "workspace, id, run_id, call_id, tool, effect, agent, agent_path, thread_id, requester, priority, idempotent, "
    "spec_sha256, nonce, proposed, created_at, expires_at, terms_sha256, args_sha256, binding, status, version, "
    "progress, decision, release_at, start_by, fence, lease_until, runner, grant_id, due_at"
)
TERMS = "(select min(sha256) from terms)"
SQLITE_ID = "printf('00%06x-%04x-7000-8000-%012x', n, n % 65536, n)"
POSTGRES_ID = (
    "'00' || lpad(to_hex(n), 6, '0') || '-' || lpad(to_hex(n % 65536), 4, '0') || '-7000-8000-' || "
    "lpad(to_hex(n), 12, '0')"
)


def fillings(identity: str, numbers: str, digest: str, body: str, now: int) -> list[str]:
    """One approval, payload, event and content for each number, in a workspace beside the ledger's real entries."""
    late = now + 10 * 365 * 86_400_000
    return [
        f"insert into approvals ({COLUMNS}) select 'default', {identity}, 'run' || (n / 10), 'call' || n, "
        f"'tool' || (n % 50), 'write', 'agent' || (n % 20), '', 'thread' || (n / 100), 'user' || (n % 100), 'medium', "
        f"0, {digest}, 'nonce', {digest}, {now} - 2000000 + n, {late} + n, {TERMS}, {digest}, {digest}, 'pending', "
        f"1, null, null, null, null, 0, null, '', '', {late} + n from {numbers}",
        f"insert into payloads (workspace, id, args, sentence) select 'default', {identity}, {body}, "
        f"'Delete the file number ' || n from {numbers}",
        f"insert into events select 'filled', n, {now}, 'proposed', 'agent:agent1', {identity}, "
        f'\'{{"binding":"\' || {digest} || \'","idempotent":false,"status":"pending","tool":"tool1"}}\', {digest}, '
        f"{digest} from {numbers}",
        f"insert into contents select 'filled', n, {body}, {body} from {numbers}",
        "update tallies set n = n + (select count(*) from approvals) where status = 'pending'",
    ]


def fill_sqlite(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "create temp table numbers as with recursive g(n) as "
            f"(select 1 union all select n + 1 from g where n < {count}) select n from g"
        )
        connection.execute("begin")
        for statement in fillings(SQLITE_ID, "numbers", "hex(zeroblob(32))", "zeroblob(200)", wall_clock()):
            connection.execute(statement)
        connection.execute("commit")
        connection.execute("analyze")
        connection.execute("pragma wal_checkpoint(truncate)")


def fill_postgres(url: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        numbers = f"generate_series(1, {count}) n"
        body = "decode(repeat('00', 200), 'hex')"
        for statement in fillings(POSTGRES_ID, numbers, "repeat('0', 64)", body, wall_clock()):
            connection.execute(statement.encode())
        connection.execute("vacuum analyze")
        connection.execute("checkpoint")


async def measure(make: Callable[[], Database], fill: Callable[[], None], rounds: int) -> dict[str, float]:
    app_services = build_services_from_store(SqlStore(make()))
    await app_services.store.open()
    await app_services.store.secret_key("default")
    await cycles.cycle(app_services, "warm", [])
    await app_services.store.close()
    fill()
    app_services = build_services_from_store(SqlStore(make()))
    await app_services.store.open()
    try:
        await cycles.run_cycles(app_services, 100, 1, "warm2")
        alone = [await cycles.run_cycles(app_services, 300, 1, f"a{n}") for n in range(rounds)]
        many = [(await cycles.run_cycles(app_services, 3_000, 256, f"b{n}"))[0] for n in range(rounds)]
        return {
            "one_us": 1e6 / statistics.median(speed for speed, _ in alone),
            "many_us": 1e6 / statistics.median(many),
            "decide_ms": statistics.median(spent for _, latencies in alone for spent in latencies) * 1000,
            "page_ms": await page(app_services),
        }
    finally:
        await app_services.store.close()


async def page(app_services: AppServices) -> float:
    """Milliseconds for the 50 most urgent of all that are pending."""
    spent = []
    for _ in range(50):
        start_time = time.perf_counter()
        found = await app_services.store.list("default", ApprovalQuery(("pending",), limit=50))
        spent.append(time.perf_counter() - start_time)
        assert len(found.items) == 50
    return statistics.median(spent) * 1000


def figures(server: Server, sizes: Sequence[int], rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    return {
        "sqlite": {str(size): in_sqlite(size, rounds) for size in sizes},
        "postgresql": {str(size): in_postgres(server, size, rounds) for size in sizes},
    }


def in_sqlite(stored: int, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "growth.db"
        make = partial(SqliteDatabase, path, wall_clock)
        return asyncio.run(measure(make, lambda: fill_sqlite(path, stored), rounds))


def in_postgres(server: Server, stored: int, rounds: int) -> dict[str, float]:
    url = server.create_database("growth", migrated_template(server))
    try:
        return asyncio.run(measure(lambda: PostgresDatabase(url), lambda: fill_postgres(url, stored), rounds))
    finally:
        server.drop_database("growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with Server() as server:
        print(report.growth_table({"growth": figures(server, options.rows, options.rounds)}).text())


if __name__ == "__main__":
    main()
