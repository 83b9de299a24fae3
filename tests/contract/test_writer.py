"""The writer: a short item that is alone runs on the event loop, everything else in the writer thread."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.errors import StoreUnavailable
from interlock.storage.engine.writer import MAX_INLINE_BATCH, BatchItem, BatchResult, Writer
from interlock.storage.sqlite.database import MAX_INLINE_COMMIT
from tests.databases import Database, SqliteFile
from tests.support import approve, ledger_violations, propose_pending, status


def name_of_thread(_: object) -> str:
    return threading.current_thread().name


LOOP_THREAD = threading.current_thread().name
WRITER_THREAD = "interlock-writer"
BRIEF = BatchItem(name_of_thread, "default")
LONG = BatchItem(name_of_thread, "default", is_short=False)


class FakeBatches:
    """Commits by asking each item; `held` keeps the thread's next batch back, `busy` refuses what cannot wait."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.busy = False
        self.free = threading.Event()
        self.free.set()

    def commit(self, batch: list[BatchItem]) -> BatchResult:
        self.free.wait()
        return self._run(batch)

    def commit_now(self, batch: list[BatchItem]) -> BatchResult | None:
        return None if self.busy else self._run(batch)

    def _run(self, batch: list[BatchItem]) -> BatchResult:
        self.sizes.append(len(batch))
        return [work.run(None) for work in batch], {}  # type: ignore[arg-type]


@pytest.fixture
def batches() -> FakeBatches:
    return FakeBatches()


@pytest.fixture
def writer(batches: FakeBatches) -> Iterator[Writer]:
    writer = Writer(batches.commit, lambda _: None, batches.commit_now)
    writer.start()
    yield writer
    batches.free.set()
    writer.stop()


async def test_a_lone_write_needs_no_other_thread(writer: Writer) -> None:
    assert await writer.submit(BRIEF) == LOOP_THREAD


async def test_what_takes_long_does_not_hold_up_the_event_loop(writer: Writer) -> None:
    assert await writer.submit(LONG) == WRITER_THREAD


async def test_what_would_have_to_wait_does_not_hold_up_the_event_loop(writer: Writer, batches: FakeBatches) -> None:
    batches.busy = True
    assert await writer.submit(BRIEF) == WRITER_THREAD


async def test_all_that_is_submitted_in_one_turn_shares_a_commit(writer: Writer, batches: FakeBatches) -> None:
    results = await asyncio.gather(*(writer.submit(BRIEF) for _ in range(MAX_INLINE_BATCH + 1)))
    assert (batches.sizes, set(results)) == ([MAX_INLINE_BATCH + 1], {WRITER_THREAD})


async def test_no_item_overtakes_the_queue_of_the_writer_thread(writer: Writer, batches: FakeBatches) -> None:
    batches.free.clear()
    first = asyncio.ensure_future(writer.submit(LONG))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.ensure_future(writer.submit(BRIEF))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    batches.free.set()
    assert await asyncio.gather(first, second) == [WRITER_THREAD, WRITER_THREAD]


async def test_an_error_of_one_does_not_fail_its_neighbour(writer: Writer) -> None:
    def fail(_: object) -> object:
        raise ValueError("odd")

    failed, fine = await asyncio.gather(
        writer.submit(BatchItem(fail, "default")), writer.submit(BRIEF), return_exceptions=True
    )
    assert (type(failed), fine) == (ValueError, WRITER_THREAD)
    with pytest.raises(ValueError, match="odd"):
        await writer.submit(BatchItem(fail, "default"))


async def test_what_was_submitted_before_the_end_is_written_and_nothing_after_it(batches: FakeBatches) -> None:
    writer = Writer(batches.commit, lambda _: None, batches.commit_now)
    writer.start()
    before = asyncio.ensure_future(writer.submit(BRIEF))
    await asyncio.sleep(0)
    writer.stop()
    assert await before == WRITER_THREAD
    with pytest.raises(StoreUnavailable, match="closed"):
        await writer.submit(BRIEF)
    with pytest.raises(StoreUnavailable, match="closed"):
        writer.submit_sync(BRIEF)


# On a real file


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return SqliteFile(tmp_path / "interlock.db")


async def test_a_program_that_writes_without_the_file_lock_is_waited_for_in_the_thread(
    services: AppServices, tmp_path: Path
) -> None:
    approval_id = await propose_pending(services)
    stranger = sqlite3.connect(tmp_path / "interlock.db", isolation_level=None)
    stranger.execute("begin immediate")
    deciding = asyncio.ensure_future(approve(services, approval_id))
    for _ in range(100):
        await asyncio.sleep(0)  # the loop turns, or this would not come to its end before the stranger does
    assert not deciding.done()
    stranger.execute("rollback")
    stranger.close()
    await deciding
    assert await status(services, approval_id) == "approved"
    assert await ledger_violations(services) == []


async def test_while_the_disk_is_slow_the_thread_writes(services: AppServices) -> None:
    database = services.store._database  # type: ignore[attr-defined]
    await propose_pending(services, 1)
    database._seconds_per_item = 0.0
    assert await database.write(BRIEF) == LOOP_THREAD
    database._seconds_per_item = 2 * MAX_INLINE_COMMIT
    assert await database.write(BRIEF) == WRITER_THREAD
