"""Stored items of tool packs on both databases: each change once for its key, atomically."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.worker import CLEANUP_INTERVAL
from interlock.core.errors import InvalidRequest, ToolFailed
from interlock.core.ledger.erasure import Erasure
from interlock.core.ports import ToolItem, ToolItemTransaction
from interlock.storage.tables.tool_items import APPLIED_RETENTION, MAX_LISTED, SqlToolItemStore
from tests.counter_program import increment
from tests.databases import Database
from tests.support import OK, START, Clock, approve, ledger_violations, open_services, propose_pending

REPOSITORY = Path(__file__).resolve().parents[2]


async def stored_count(items: SqlToolItemStore) -> object:
    found = await items.get("counter", "c")
    return found.body["n"] if found else 0


async def test_what_is_put_is_found_and_what_is_deleted_is_gone(services: AppServices, clock: Clock) -> None:  # R7
    items = services.store.tool_items("default")
    body = {"title": "Grüße", "parts": [1, 2.5, None, True, {"deep": "\U0001f600"}]}
    await items.change("", lambda transaction: transaction.put("page", "b", body))
    clock.advance(1_000)
    await items.change("", lambda transaction: transaction.put("page", "a", {}))
    await items.change("", lambda transaction: transaction.put("post", "a", {"other": "kind"}))
    assert await items.get("page", "b") == ToolItem("b", body, START)
    assert await items.list("page") == [ToolItem("a", {}, START + 1_000), ToolItem("b", body, START)]
    await items.change("", lambda transaction: transaction.delete("page", "a"))
    await items.change("", lambda transaction: transaction.delete("page", "never was"))
    assert await items.get("page", "a") is None
    assert [item.id for item in await items.list("page")] == ["b"]
    assert [item.id for item in await items.list("post")] == ["a"]


async def test_each_workspace_has_records_and_keys_of_its_own(services: AppServices) -> None:  # R7
    here, there = services.store.tool_items("default"), services.store.tool_items("other")
    assert await here.change("key", increment) == 1
    assert await there.get("counter", "c") is None
    assert await there.change("key", increment) == 1
    assert (await stored_count(here), await stored_count(there)) == (1, 1)


async def test_the_same_key_changes_once_and_gives_the_same_again(services: AppServices) -> None:  # R7
    items = services.store.tool_items("default")

    def step(transaction: ToolItemTransaction) -> object:
        return {"n": increment(transaction), "list": (1, 2)}

    first = await items.change("approval-1", step)
    assert first == {"n": 1, "list": [1, 2]}
    assert await items.change("approval-1", step) == first
    assert await items.change("approval-1", lambda transaction: transaction.delete("counter", "c")) == first
    assert await stored_count(items) == 1
    assert await items.change("approval-2", step) == {"n": 2, "list": [1, 2]}


async def test_without_a_key_every_change_counts_and_none_is_kept(
    services: AppServices, database: Database
) -> None:  # R7
    items = services.store.tool_items("default")
    assert [await items.change("", increment) for _ in range(3)] == [1, 2, 3]
    assert database.sql("select count(*) from applied") == [(0,)]


async def test_of_many_at_once_with_one_key_one_changes_something(services: AppServices) -> None:  # R7
    items = services.store.tool_items("default")
    assert await asyncio.gather(*(items.change("key", increment) for _ in range(50))) == [1] * 50
    assert await stored_count(items) == 1


async def test_changes_of_one_batch_see_each_other(services: AppServices) -> None:  # R7
    items = services.store.tool_items("default")
    results = await asyncio.gather(*(items.change(f"key{number}", increment) for number in range(50)))
    assert sorted(map(str, results)) == sorted(map(str, range(1, 51)))
    assert await stored_count(items) == 50


async def test_a_key_counts_once_in_two_stores_that_race(database: Database, clock: Clock) -> None:  # R7
    async with open_services(database, clock) as here, open_services(database, clock) as there:
        stores = [here.store.tool_items("default"), there.store.tool_items("default")]
        for number in range(20):
            results = await asyncio.gather(*(items.change(f"key{number}", increment) for items in stores * 2))
            assert results == [number + 1] * 4


async def test_a_key_counts_once_in_processes_that_race(database: Database) -> None:  # R7
    command = [
        sys.executable,
        "-m",
        "tests.counter_program",
        database.url,
        ",".join(f"key{number}" for number in range(30)),
    ]
    pipe = asyncio.subprocess.PIPE
    others = [await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stdin=pipe, stdout=pipe) for _ in range(2)]
    try:
        for other in others:
            assert other.stdout is not None
            assert await other.stdout.readline() == b"ready\n"
        outputs = await asyncio.gather(*(other.communicate(b"go\n") for other in others))
    finally:
        for other in others:
            if other.returncode is None:
                other.kill()
                await other.wait()
    assert [json.loads(output) for output, _ in outputs] == [list(range(1, 31))] * 2
    assert [bytes(body) for (body,) in database.sql("select body from records")] == [b'{"n":30}']


@pytest.mark.parametrize("error", [ToolFailed("no"), KeyError("a bug")])
async def test_a_step_that_raises_has_changed_nothing(
    services: AppServices, database: Database, error: Exception
) -> None:  # R7
    items = services.store.tool_items("default")
    await items.change("", increment)

    def step(transaction: ToolItemTransaction) -> object:
        transaction.put("page", "new", {})
        transaction.delete("counter", "c")
        raise error

    results = await asyncio.gather(items.change("key", step), items.change("other", increment), return_exceptions=True)
    assert results == [error, 2]
    assert await items.get("page", "new") is None
    assert database.sql("select key from applied") == [("other",)]
    assert await items.change("key", increment) == 3  # the key of what failed is good for another try


async def test_what_cannot_be_kept_is_refused_and_changes_nothing(
    services: AppServices, database: Database
) -> None:  # R7
    items = services.store.tool_items("default")
    for kind, item_id, body in (
        ("page", "a\0b", {}),
        ("page\ud800", "a", {}),
        ("page", "a", {"text": "\0"}),
        ("page", "a", {"number": float("nan")}),
        ("page", "a", {"text": "x" * 1024 * 1024}),
    ):

        def step(
            transaction: ToolItemTransaction, kind: str = kind, item_id: str = item_id, body: dict[str, object] = body
        ) -> object:
            transaction.put("page", "before", {})
            return transaction.put(kind, item_id, body)

        with pytest.raises(InvalidRequest):
            await items.change("key", step)
    with pytest.raises(InvalidRequest):
        await items.change("key", lambda transaction: [transaction.put("page", "before", {}), object()])
    assert database.sql("select count(*) from records") == [(0,)]
    assert database.sql("select count(*) from applied") == [(0,)]


async def test_a_step_sees_what_it_has_changed_itself(services: AppServices, clock: Clock) -> None:  # R7
    items = services.store.tool_items("default")
    for item_id in ("b", "d"):
        await items.change("", lambda transaction, item_id=item_id: transaction.put("page", item_id, {"n": 1}))  # type: ignore[misc]
    clock.advance(5)

    def step(transaction: ToolItemTransaction) -> object:
        transaction.put("page", "a", {"n": 2})
        transaction.put("page", "b", {"n": 2})
        transaction.put("post", "d", {"n": 2})
        transaction.put("page", "c", {"n": 2})
        transaction.delete("page", "c")
        assert transaction.get("page", "c") is None
        assert transaction.get("page", "b") == ToolItem("b", {"n": 2}, START + 5)
        transaction.delete("page", "d")
        transaction.put("page", "d", {"n": 3})
        return [[item.id, item.body["n"]] for item in transaction.list("page")]

    assert await items.change("key", step) == [["a", 2], ["b", 2], ["d", 3]]
    assert [(item.id, item.body["n"]) for item in await items.list("page")] == [("a", 2), ("b", 2), ("d", 3)]
    assert [item.id for item in await items.list("post")] == ["d"]


async def test_a_list_has_an_end(services: AppServices) -> None:  # R7
    items = services.store.tool_items("default")

    def step(transaction: ToolItemTransaction) -> object:
        for number in range(MAX_LISTED + 5):
            transaction.put("page", f"{number:06}", {})
        return len(transaction.list("page"))

    assert await items.change("", step) == MAX_LISTED
    assert (await items.list("page"))[-1].id == f"{MAX_LISTED - 1:06}"


# What is forgotten


async def test_a_change_is_remembered_for_thirty_days(
    services: AppServices, database: Database, clock: Clock
) -> None:  # R7
    items = services.store.tool_items("default")
    await items.change("old", increment)
    clock.advance(APPLIED_RETENTION)
    await items.change("new", increment)
    await services.worker.sweep()
    assert database.sql("select count(*) from applied") == [(2,)]
    clock.advance(CLEANUP_INTERVAL)
    await services.worker.sweep()
    assert database.sql("select key from applied") == [("new",)]
    assert await stored_count(items) == 2, "what was changed stays"


async def test_erasing_an_approval_takes_what_its_tool_gave(services: AppServices, database: Database) -> None:  # R7
    approval_id, other = await propose_pending(services, 1), await propose_pending(services, 2)
    items = services.store.tool_items("default")
    for key in (approval_id, other):
        assert await approve(services, key) == "approved"
        started = await services.gate.start("default", key, "runner")
        await items.change(started.idempotency_key, lambda _: "a private result")
        if key == approval_id:
            await services.gate.finish("default", key, started.fence, ok=True, payload=OK)
    erased = [each async for each in services.store.erase("default", Erasure("approval", approval_id, by="ada"))]
    assert [each.approvals for each in erased] == [1]
    assert database.sql("select key from applied") == [(other,)]
    assert await ledger_violations(services) == []
