"""PostgreSQL alone: lost connections, commits in doubt, foreign tables, several workers, its URL."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from interlock.app.bootstrap import AppServices, build_services, build_services_from_store, mask_password
from interlock.core.call import ToolSpec
from interlock.core.errors import AlreadyDecided, BindingBroken, Expired, Misconfigured, StoreUnavailable
from interlock.core.preview import Preview
from interlock.storage.migrate import load_migrations
from interlock.storage.postgres.batches import BatchRunner
from interlock.storage.postgres.connection import PostgresConnection
from interlock.storage.postgres.database import WRITER_SETTINGS, PostgresDatabase, migrate
from interlock.storage.postgres.pipeline import Pipeline
from interlock.storage.store import SqlStore
from tests.databases import Database, ServerDatabase, migrated_template
from tests.postgres import Server
from tests.support import OK, Clock, approve, event_kinds, ledger_violations, open_services, propose_pending, status

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = [migration.name for migration in load_migrations("postgres")]


@pytest.fixture
def database(postgres_server: Server) -> Iterator[Database]:
    name = f"test_pg_{id(object())}"
    postgres_server.create_database(name, migrated_template(postgres_server))
    database = ServerDatabase(postgres_server, name)
    yield database
    database.close()
    postgres_server.drop_database(name)


@pytest.fixture
async def opened_database(database: Database) -> AsyncIterator[PostgresDatabase]:
    made = PostgresDatabase(database.url)
    yield made
    await made.close()


class BreakingPipeline:
    """A pipe whose connection breaks at the n-th sync from now: before what was sent is heard of, or after."""

    def __init__(self, at: int, *, heard: bool) -> None:
        self.left = at
        self.heard = heard
        self.pipe: Pipeline

    def around(self, pipe: Pipeline) -> "BreakingPipeline":
        self.pipe = pipe
        return self

    def sync(self) -> None:
        self.left -= 1
        if self.left == 0:
            if self.heard:
                self.pipe.sync()  # the server did it; only its answer is lost
            self.pipe._pgconn.finish()
            raise psycopg.OperationalError("the connection was cut")
        self.pipe.sync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pipe, name)


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_cut_connection_changes_nothing_but_the_wait(
    opened_database: PostgresDatabase, at: int, *, heard: bool
) -> None:
    """At a commit or between two: whether it stands is read from the ledger, and it is never done twice."""
    services = build_services_from_store(SqlStore(opened_database))
    await services.store.open()
    approval_id = await propose_pending(services)
    opened_database.wrap_connection(BreakingPipeline(at, heard=heard).around)
    assert await approve(services, approval_id) == "approved"
    assert await event_kinds(services) == ["proposed", "approved"]
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    assert await status(services, approval_id) == "succeeded"
    assert await ledger_violations(services) == []


async def test_a_commit_in_doubt_that_was_done_again_would_be_noticed(
    opened_database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The red control: without a check of the ledger the person is told that another decided."""
    services = build_services_from_store(SqlStore(opened_database))
    await services.store.open()
    approval_id = await propose_pending(services)
    await approve(services, await propose_pending(services, 2))  # from now on it is known who decides
    monkeypatch.setattr(BatchRunner, "_is_committed", lambda *_: False)
    opened_database.wrap_connection(BreakingPipeline(1, heard=True).around)
    with pytest.raises(AlreadyDecided):
        await approve(services, approval_id)


async def test_the_servers_end_of_a_connection_is_survived_by_readers_and_writers(
    database: Database, clock: Clock
) -> None:
    async with open_services(database, clock) as services:
        approval_id = await propose_pending(services)
        for _ in range(3):
            database.sql(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )
            assert await status(services, approval_id) == "pending"
            assert len((await services.store.list("default", _break_points())).items) == 1
        assert await approve(services, approval_id) == "approved"


async def test_a_waiter_is_woken_after_its_listener_lost_the_connection(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as here, open_services(database, clock) as there:
        approval_id = await propose_pending(here)
        waiting = asyncio.create_task(here.gate.wait("default", approval_id))
        await asyncio.sleep(0)
        database.sql("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'")
        await approve(there, approval_id)
        assert type(await waiting).__name__ == "Proceed"


async def test_several_workers_share_what_is_due(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        for number in range(20):
            await propose_pending(one, number, expires_in=60_000)
        clock.advance(10 * 60_000)
        first = await one.store.due(clock(), 12)
        second = await two.store.due(clock(), 12)
        assert (len(first), len(second)) == (12, 8)
        assert not set(first) & set(second)
        clock.advance(2_001)  # the lease of a worker that died with what it had claimed
        assert len(await two.store.due(clock(), 100)) == 20
        assert await one.worker.sweep() == 0  # claimed by the other one
        clock.advance(2_001)
        assert await one.worker.sweep() == 20


async def test_a_ledgers_first_entry_is_made_by_one_of_many(database: Database, clock: Clock) -> None:
    """There is no head to lock yet."""
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        await asyncio.gather(
            *(
                propose_pending(services, f"{n}{name}", workspace=f"w{n % 5}")
                for n in range(20)
                for name, services in (("a", one), ("b", two))
            )
        )
        for n in range(5):
            assert await ledger_violations(one, f"w{n}") == []
            assert (await one.store.head(f"w{n}")).seq == 8


async def test_a_database_that_is_not_migrated_says_what_to_run(postgres_server: Server, database: Database) -> None:
    database.sql("delete from migrations where number = 2")
    with pytest.raises(Misconfigured, match="interlock migrate"):
        await build_services(database.url).store.open()


async def test_an_empty_database_is_made_ready_and_a_foreign_one_is_not_touched(postgres_url: str) -> None:
    services = build_services(postgres_url)
    await services.store.open()
    assert [name for name, _ in await services.store.migrations()] == NAMES
    await services.store.close()


async def test_tables_of_another_program_are_not_touched(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("create table theirs (x int)")
    with pytest.raises(Misconfigured, match="another program"):
        await build_services(postgres_url).store.open()
    with pytest.raises(Misconfigured, match="another program"):
        await build_services(postgres_url).store.migrate()


async def test_a_schema_of_its_own_is_enough(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("create table theirs (x int); create schema gate")
    services = build_services(f"{postgres_url}&options=-csearch_path%3Dgate")
    await services.store.open()
    await propose_pending(services)
    assert await ledger_violations(services) == []
    await services.store.close()


def test_a_migration_that_fails_leaves_nothing_behind(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL takes tables back too, so half a migration is none."""
    from interlock.storage.postgres import database as module

    known = module.load_migrations("postgres")
    broken = [*known, module.Migration(99, "broken", "create table more (x int); select 1 / 0", 1)]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        monkeypatch.setattr(module, "load_migrations", lambda _: broken)
        with pytest.raises(psycopg.errors.DivisionByZero):
            migrate(connection)
        assert connection.execute("select count(*) from pg_tables where schemaname = 'public'").fetchone() == (0,)
        monkeypatch.setattr(module, "load_migrations", lambda _: known)
        assert migrate(connection) == NAMES
        assert migrate(connection) == []


async def test_two_that_migrate_at_once_do_it_once(postgres_url: str) -> None:
    done = await asyncio.gather(*(build_services(postgres_url).store.migrate() for _ in range(8)))
    assert sorted(done, key=len)[-1] == NAMES
    assert sum(map(len, done)) == len(NAMES)


async def test_programs_that_open_an_empty_database_at_once_all_find_it_ready(postgres_url: str) -> None:
    services = [build_services(postgres_url) for _ in range(8)]
    try:
        await asyncio.gather(*(services.store.open() for services in services))
        ids = await asyncio.gather(*(propose_pending(services, n) for n, services in enumerate(services)))
        assert len(set(ids)) == 8
        assert await ledger_violations(services[0]) == []
    finally:
        await asyncio.gather(*(services.store.close() for services in services))


async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        await build_services("postgresql://ann:hunter2@127.0.0.1:1/x").store.open()
    assert "hunter2" not in str(caught.value)
    assert mask_password("postgresql://ann:hunter2@db/x") == "postgresql://ann:…@db/x"


async def test_a_busy_database_is_said_to_be_busy(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from interlock.storage.postgres.database import WRITER_SETTINGS

    monkeypatch.setitem(WRITER_SETTINGS, "lock_timeout", "50ms")
    async with open_services(database, clock) as services:
        approval_id = await propose_pending(services)
        with database.hold_lock(), pytest.raises(StoreUnavailable, match="busy"):
            await approve(services, approval_id)
        assert await approve(services, approval_id) == "approved"


def _break_points() -> Any:
    from interlock.core.ports import ApprovalQuery

    return ApprovalQuery()


async def test_what_the_database_says_of_itself(services: AppServices) -> None:
    checks = {check.what: check for check in await services.store.check_health()}
    assert checks["postgresql"].state == "ok"
    assert f"{len(NAMES)} migrations" in checks["database"].found


async def test_a_stopped_process_with_the_lock_blocks_others_only_briefly(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services:
        first, second = await propose_pending(services, 1), await propose_pending(services, 2)
        command = [sys.executable, "-m", "tests.faults.stopped_batch_program", database.url, first]
        stopped = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE)
        try:
            assert stopped.stdout is not None
            assert await stopped.stdout.readline() == b"stopped\n"
            assert await approve(services, second) == "approved"  # waits for the server to end the other transaction
            assert await status(services, first) == "pending"
        finally:
            stopped.kill()
            await stopped.wait()
        assert await ledger_violations(services) == []


class CountingPipeline:
    """How many round trips the batches take."""

    def __init__(self) -> None:
        self.syncs = 0
        self.pipe: Pipeline

    def around(self, pipe: Pipeline) -> "CountingPipeline":
        self.pipe = pipe
        return self

    def sync(self) -> None:
        self.syncs += 1
        self.pipe.sync()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pipe, name)


async def count_round_trips(services: AppServices, work: Any) -> tuple[object, int]:
    counting = CountingPipeline()
    services.store._database.wrap_connection(counting.around)  # type: ignore[attr-defined]
    return await work, counting.syncs


def test_a_process_stopped_while_sending_loses_the_lock(database: Database) -> None:
    """What was sent in part is not idle for the server, which waits for the rest of it."""
    link = PostgresConnection(database.url, {**WRITER_SETTINGS, "transaction_timeout": "2s"})
    stopped = link.get_connection()
    stopped.execute("insert into heads (workspace, seq, link, at) values ('default', 0, '', 0)")
    stopped.execute("begin")
    stopped.execute("select seq from heads for update")
    got = []
    with psycopg.connect(database.url, autocommit=True) as other, suppress(psycopg.Error), stopped.pipeline():
        for _ in range(2):  # the driver sends as soon as it has 8 KiB
            stopped.pgconn.send_query_params(b"select length($1)", [b"x" * 20_000])
        other.execute("set lock_timeout = '40s'")
        got = other.execute("select seq from heads for update").fetchall()
    link.close()
    assert got == [(0,)]


async def test_a_process_that_is_alone_decides_starts_and_finishes_in_one_round_trip_each(
    services: AppServices,
) -> None:
    """But for the first decision of a person: whether they are still there is looked up, and then remembered."""
    approval_id = await propose_pending(services)
    assert await count_round_trips(services, approve(services, await propose_pending(services, 2))) == ("approved", 2)
    assert await count_round_trips(services, approve(services, approval_id)) == ("approved", 1)
    execution, syncs = await count_round_trips(services, services.gate.start("default", approval_id, "r"))
    assert syncs == 1
    finished = services.gate.finish("default", approval_id, 1, ok=True, payload=OK)
    assert (await count_round_trips(services, finished))[1] == 1
    assert execution.args == b'{"path":"/tmp/x"}'  # type: ignore[attr-defined]
    assert await ledger_violations(services) == []


async def test_what_another_process_did_is_seen_before_anything_counts(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        ids = [await propose_pending(one, n) for n in range(3)]
        await approve(two, ids[0])
        with pytest.raises(AlreadyDecided):
            await approve(one, ids[0])
        await two.gate.start("default", ids[0], "r")
        await approve(one, ids[1])
        await two.gate.renew("default", ids[0], 1)  # leaves no entry in the ledger
        await one.gate.finish("default", ids[0], 1, ok=True, payload=OK)
        assert await status(two, ids[0]) == "succeeded"
        assert await ledger_violations(two) == []


@pytest.mark.parametrize("late", [0, 1, 60_000])
async def test_a_process_with_a_stopped_clock_cannot_decide_late(database: Database, clock: Clock, late: int) -> None:
    """It remembers everything that it needs, and only the server knows that the time is over."""
    async with open_services(database, clock) as services:
        approval_id = await propose_pending(services)
        approval = (await services.store.get("default", approval_id)).approval
        database.set_clock(approval.deadlines.expires_at + late)  # the process still believes that there is time
        with pytest.raises(Expired):
            await approve(services, approval_id)
        assert await status(services, approval_id) == "expired"


async def test_a_decision_a_millisecond_before_the_deadline_counts(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services:
        approval_id = await propose_pending(services)
        approval = (await services.store.get("default", approval_id)).approval
        database.set_clock(approval.deadlines.expires_at - 1)
        assert await approve(services, approval_id) == "approved"


async def test_bytes_that_were_altered_after_they_were_remembered_do_not_run(
    services: AppServices, database: Database
) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    database.sql("update payloads set args = ?", b'{"path":"/"}')
    with pytest.raises(BindingBroken):
        await services.gate.start("default", approval_id, "r")
    assert await status(services, approval_id) == "approved"


async def test_a_preview_version_that_was_altered_after_it_was_remembered_is_used_as_it_is_stored(
    services: AppServices, database: Database
) -> None:
    spec = ToolSpec("delete_file", "write", preview=lambda args: Preview("3 rows", "version 1"))
    approval_id = await propose_pending(services, spec=spec)
    await approve(services, approval_id)
    database.sql("update payloads set preview_version = 'version 2'")
    assert (await services.gate.start("default", approval_id, "r")).preview_version == "version 2"
