"""Search of approvals by words, names, arguments and times, the same on both databases."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from interlock.app.bootstrap import AppServices
from interlock.core.call import Caller, ToolSpec
from interlock.core.decision import Acknowledgement, Edit, Reject
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.erasure import Erasure, ErasureScope
from interlock.core.ports import ApprovalPage, ApprovalQuery
from interlock.core.search import exact_term, split_words
from interlock.storage.engine.queries import make_cursor
from interlock.storage.migrate import load_migrations
from interlock.storage.postgres import database as postgres_finding
from interlock.storage.tables import search as finding
from interlock.storage.tables import search as searching
from interlock.storage.tables.search import IndexBatch
from tests.databases import Database, ServerDatabase, migrated_template
from tests.hypothesis_profiles import examples
from tests.journeys.shell import wait_until
from tests.postgres import Server
from tests.support import BOB, EVE, OK, WRITE, Clock, approve, call, ledger_violations, open_services, propose_pending

PAY = ToolSpec("pay", "write", describe="Pay {amount} to {to}", secret=("key",))
MAIL = ToolSpec("send_mail", "write", describe="Mail {to}: {body}")


async def pay(services: AppServices, number: int | str, to: str = "ann", amount: float = 5, **more: Any) -> str:
    return await propose_pending(services, number, PAY, args={"to": to, "amount": amount, "key": "hunter2"}, **more)


async def search(services: AppServices, **filters: Any) -> list[str]:
    """The ids on all pages."""
    page = await services.store.list("default", ApprovalQuery(**filters))
    ids = [stored.approval.id for stored in page.items]
    while page.next is not None:
        page = await services.store.list("default", ApprovalQuery(**filters | {"cursor": page.next}))
        ids += [stored.approval.id for stored in page.items]
    return ids


async def erase(services: AppServices, scope: ErasureScope, what: str) -> None:
    async for _ in services.store.erase("default", Erasure(scope, what, by="ada")):
        pass


async def reject(services: AppServices, approval_id: str, reason: str) -> None:
    stored = await services.store.get("default", approval_id)
    await services.inbox.decide(
        "default", approval_id, Reject(reason, Acknowledgement(stored.approval.args_sha256)), BOB
    )


async def run(services: AppServices, approval_id: str, *, ok: bool) -> None:
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.finish("default", approval_id, execution.fence, ok=ok, payload=OK)


# What is found


async def test_calls_that_were_indexed_without_their_owner_are_found_after_the_migration(
    services: AppServices, database: Database
) -> None:  # R18
    caller = Caller(owner="key:k1", owners=frozenset({"key:k1"}), agents=("bot",), credential="k1")
    mine = await propose_pending(services, 1, agent="bot", caller=caller)
    assert await search(services, owners=caller.owners) == [mine]
    [(words,)] = database.sql("select words from docs")
    without = " ".join(word for word in words.split() if word != exact_term("default", "owner", "key:k1"))
    database.sql("update docs set words = ?", without)
    assert await search(services, owners=caller.owners) == []
    [migration] = [each for each in load_migrations(database.kind) if each.number == 17]
    database.sql(migration.text)
    assert await search(services, owners=caller.owners) == [mine]


async def test_approvals_are_found_by_what_they_say(services: AppServices) -> None:  # R8
    first = await pay(services, 1, "Ann Smith", 120.5, agent="clerk", thread_id="t1")
    second = await propose_pending(
        services, 2, MAIL, args={"to": "bob", "body": "The Café opens at nine"}, requester="zoe"
    )
    for text, ids in (
        ("ann", [first]),
        ("SMITH ann", [first]),
        ("ann smi", [first]),
        ("pay", [first]),
        ("120.5", [first]),
        ("cafe\u0301 NINE", [second]),
        ("send", [second]),
        ("zoe", [second]),
        ("bob", [second]),
        ("to", [first]),
        ("ann bob", []),
        ("mith", []),
        ("hunter2", []),
    ):
        assert await search(services, text=text) == ids, text


async def test_approvals_are_found_by_tool_agent_person_run_thread_and_priority(services: AppServices) -> None:  # R8
    first = await pay(services, 1, agent="clerk", agent_path=("boss", "clerk"), thread_id="t1", requester="rita")
    second = await propose_pending(services, 2, MAIL, args={"to": "bob", "body": "x"}, agent="writer", thread_id="t2")
    await approve(services, second, EVE)
    for filters, ids in (
        ({"tool": "pay"}, [first]),
        ({"tool": "send_mail"}, [second]),
        ({"tool": "send"}, []),
        ({"agent": "clerk"}, [first]),
        ({"agent": "boss"}, [first]),
        ({"agent": "writer"}, [second]),
        ({"thread_id": "t1"}, [first]),
        ({"run_id": "run"}, [second, first]),
        ({"requester": "rita"}, [first]),
        ({"requester": "eve"}, []),
        ({"person": "rita"}, [first]),
        ({"person": "eve"}, [second]),
        ({"priority": "medium"}, [second, first]),
        ({"priority": "high"}, []),
        ({"person": "eve", "tool": "send_mail", "text": "bob"}, [second]),
        ({"person": "eve", "tool": "pay"}, []),
    ):
        assert await search(services, **filters) == ids, filters


async def test_approvals_are_found_by_arguments(services: AppServices) -> None:  # R8
    first = await pay(services, 1, "ann", 100)
    second = await pay(services, 2, "bob", 100.0)
    nested = await propose_pending(
        services, 3, args={"order": {"lines": [{"sku": "a1"}, {"sku": "b2"}]}, "draft": True}
    )
    for arguments, ids in (
        ([("to", "ann")], [first]),
        ([("amount", 100)], [second, first]),
        ([("amount", 1e2), ("to", "bob")], [second]),
        ([("amount", "100")], []),
        ([("order.lines.sku", "b2")], [nested]),
        ([("draft", True)], [nested]),
        ([("draft", 1)], []),
        ([("key", "hunter2")], []),
    ):
        assert await search(services, arguments=tuple(arguments)) == ids, arguments


async def test_a_list_found_by_arguments_does_not_hand_them_out(services: AppServices) -> None:
    await pay(services, 1, "ann")
    (short,) = (await services.store.list("default", ApprovalQuery(arguments=(("to", "ann"),)))).items
    (whole,) = (await services.store.list("default", ApprovalQuery(arguments=(("to", "ann"),), payload="whole"))).items
    assert (short.payload.args, short.payload.sentence) == (None, "Pay 5 to ann")
    assert whole.payload.args is not None


async def test_approvals_are_found_by_when_they_were_made(services: AppServices, clock: Clock) -> None:  # R8
    begun = clock.now
    ids = []
    for number in range(6):
        ids.append(await pay(services, number))
        clock.advance(1_000 if number != 2 else 0)  # two at once
    times = [begun, begun + 1_000, begun + 2_000, begun + 2_000, begun + 3_000, begun + 4_000]
    for since in (0, *times, clock.now):
        for until in (None, *times, clock.now):
            expected = [i for i, at in zip(ids, times, strict=True) if since <= at and (until is None or at < until)]
            assert set(await search(services, since=since, until=until, limit=2)) == set(expected)
            assert await search(services, since=since, until=until, tool="pay", limit=2) == expected[::-1]
            found = await search(services, since=since, until=until, statuses=("pending",), limit=2)
            assert set(found) == set(expected)


async def test_approvals_are_found_by_any_set_of_statuses(services: AppServices, clock: Clock) -> None:  # R8
    by_status: dict[str, str] = {}
    for status in ("succeeded", "failed", "rejected", "approved", "pending", "cancelled"):
        clock.advance(1)
        by_status[status] = await pay(services, status)
    await run(services, by_status["succeeded"], ok=True)
    await run(services, by_status["failed"], ok=False)
    await reject(services, by_status["rejected"], "no")
    await approve(services, by_status["approved"])
    await services.gate.cancel("default", by_status["cancelled"], "agent")
    order = list(reversed(by_status))
    for number in range(1, 2 ** len(order)):
        wanted = tuple(status for place, status in enumerate(order) if number >> place & 1)
        expected = [by_status[status] for status in wanted]
        assert await search(services, statuses=wanted, limit=2) == expected
        assert await search(services, statuses=wanted, limit=2, tool="pay") == expected
    assert await search(services, statuses=("running", "failed"), since=clock.now) == []
    with pytest.raises(InvalidRequest, match="There is no status 'open'"):
        await search(services, statuses=("open",))


# What changes


async def test_what_was_just_written_is_found(services: AppServices) -> None:  # R8
    approval_id = await pay(services, 1, "ann")
    assert await search(services, text="zurich") == []
    await reject(services, approval_id, "Wrong branch: Zurich")
    assert await search(services, text="zurich") == [approval_id]
    assert await search(services, person="bob") == [approval_id]
    assert await search(services, tool="pay", statuses=("pending",)) == []
    assert await search(services, tool="pay", statuses=("rejected",)) == [approval_id]


async def test_an_edit_is_found_by_the_new_arguments_alone(services: AppServices) -> None:
    approval_id = await pay(services, 1, "ann", 10)
    stored = await services.store.get("default", approval_id)
    mark = stored.payload.shown or b""
    args = mark.replace(b'"ann"', b'"carol"')
    await services.inbox.decide("default", approval_id, Edit(args, Acknowledgement(stored.approval.args_sha256)), BOB)
    assert await search(services, text="carol") == await search(services, arguments=(("to", "carol"),)) == [approval_id]
    assert await search(services, text="ann") == await search(services, arguments=(("to", "ann"),)) == []


async def test_what_was_erased_is_found_only_by_what_is_left(
    services: AppServices, database: Database, clock: Clock
) -> None:
    approval_id, other = await pay(services, 1, "ann", thread_id="t1"), await pay(services, 2, "ann")
    for each in (approval_id, other):
        await reject(services, each, "Zurich")
    clock.advance(60_000)
    assert await search(services, text="zurich") == [other, approval_id]
    await erase(services, "thread", "t1")
    assert await search(services, text="zurich") == await search(services, arguments=(("to", "ann"),)) == [other]
    assert (
        await search(services, thread_id="t1") == await search(services, person="bob", thread_id="t1") == [approval_id]
    )
    await erase(services, "person", "bob")
    assert await search(services, text="zurich") == []
    assert await search(services, text="ann") == [other]
    words = " ".join(row[0] for row in database.sql("select words from docs"))
    assert "zurich" not in words
    assert await ledger_violations(services) == []


async def test_words_that_were_read_before_an_erasure_are_not_written_after_it(
    services: AppServices, database: Database, clock: Clock
) -> None:
    """A lot as somebody read it who is held up, until an erasure has come in between."""
    approval_id = await pay(services, 1, "ann")
    await services.store.update_search_index()
    await reject(services, approval_id, "Zurich")
    clock.advance(60_000)
    late = IndexBatch("default", 1, 2, changed=[(approval_id, "zurich")])
    async for _ in services.store.erase("default", Erasure("approval", approval_id, by="ada")):
        own = services.store._database
        assert not await own.full_text_index.write_batch(own, late)
    assert await search(services, text="zurich") == []
    assert await search(services, tool="pay") == [approval_id]
    assert "zurich" not in database.sql("select words from docs")[0][0]


# Pages


async def test_pages_of_a_search_neither_skip_nor_repeat_while_rows_come_in(services: AppServices) -> None:  # R8
    ids = [await pay(services, number) for number in range(7)]
    first = await services.store.list("default", ApprovalQuery(tool="pay", limit=3))
    await pay(services, "late")
    await reject(services, ids[1], "changed meanwhile")
    second = await services.store.list("default", ApprovalQuery(tool="pay", limit=3, cursor=first.next or ""))
    third = await services.store.list("default", ApprovalQuery(tool="pay", limit=3, cursor=second.next or ""))
    assert [s.approval.id for page in (first, second, third) for s in page.items] == ids[::-1]
    assert third.next is None


async def test_what_is_pending_stays_in_the_order_of_time_left(services: AppServices) -> None:  # R8
    windows = [9_000, 3_000, 7_000, 1_000, 5_000]
    ids = [await pay(services, n, expires_in=window) for n, window in enumerate(windows)]
    await propose_pending(services, "other", expires_in=2_000)
    urgent = [ids[n] for n in (3, 1, 4, 2, 0)]
    assert await search(services, statuses=("pending",), tool="pay", limit=2) == urgent
    assert await search(services, statuses=("pending",), text="ann", limit=5) == urgent


@pytest.mark.parametrize("few", [3, 100])
async def test_a_long_queue_is_searched_in_the_same_order(
    services: AppServices, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Beyond those that are looked at one by one; with more matches than can be sorted, pages may be short."""
    monkeypatch.setattr(searching, "MAX_SCANNED_PENDING", 4)
    monkeypatch.setattr(searching, "MAX_SORTED_MATCHES", few)
    windows = random.Random(7).sample(range(1_000, 90_000, 100), 30)
    ids = {window: await pay(services, window, expires_in=window) for window in windows[:12]}
    for window in windows[12:]:
        await propose_pending(services, window, expires_in=window)
    expected = [ids[window] for window in sorted(ids)]
    assert await search(services, statuses=("pending",), tool="pay", limit=3) == expected
    page = await services.store.list("default", ApprovalQuery(("pending",), tool="pay", limit=20))
    assert (len(page.items) < 12) == (page.next is not None) == (few == 3)


@pytest.mark.parametrize("cursor", ["nonsense", "WyJhIl0=", "WzEsIDIsIDNd", "WzFlOTld", "e30=", make_cursor(2**70)])
async def test_a_cursor_that_no_list_gave_is_refused(services: AppServices, cursor: str) -> None:
    for query in (
        ApprovalQuery(),
        ApprovalQuery(("pending",), tool="x"),
        ApprovalQuery(("failed",)),
        ApprovalQuery(tool="x"),
    ):
        with pytest.raises(InvalidRequest, match="cursor"):
            await services.store.list("default", replace(query, cursor=cursor))


async def test_a_cursor_of_another_list_is_refused(services: AppServices) -> None:
    for number in range(3):
        await pay(services, number)
    listed = await services.store.list("default", ApprovalQuery(limit=1))
    found = await services.store.list("default", ApprovalQuery(tool="pay", limit=1))
    for query in (ApprovalQuery(tool="pay", cursor=listed.next or ""), ApprovalQuery(cursor=found.next or "")):
        with pytest.raises(InvalidRequest, match="cursor"):
            await services.store.list("default", query)


# What people type


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=20) | st.text("\"'\\%_*:&|!()<->- §ANDORNEAR", max_size=12))
async def test_nothing_that_is_typed_is_taken_for_an_operator(services: AppServices, text: str) -> None:
    asked = split_words(text)
    if not (await services.store.list("default", ApprovalQuery())).items:
        await propose_pending(services, 1, MAIL, args={"to": "ann", "body": "and or near not"})
    try:
        found = await search(services, text=text)
    except InvalidRequest:
        assert text.strip()
        assert not asked
        return
    has = split_words("mail ann and or near not send run call1")
    all_but_last = all(word in has for word in asked[:-1])
    last = not asked or any(word == asked[-1] or (len(asked[-1]) > 1 and word.startswith(asked[-1])) for word in has)
    assert len(found) == int(all_but_last and last)


async def test_every_word_of_a_sentence_finds_it(services: AppServices) -> None:
    texts = ["naïve ﬁle", "東京 タワー", "Ünïcödé", "x" * 100, "İstanbul", "1,000.50", "a_b-c/d", "🚀 launch", "ǅ", "ﬀ"]
    ids = [await propose_pending(services, n, MAIL, args={"to": "ann", "body": text}) for n, text in enumerate(texts)]
    for approval_id, text in zip(ids, texts, strict=True):
        assert approval_id in await search(services, text=text), text


# Following the ledger


async def test_other_workspaces_are_neither_found_nor_disturbed(services: AppServices) -> None:
    mine = await pay(services, 1, "ann")
    await services.gate.check(call(1, {"to": "ann", "amount": 5}, tool="pay", workspace="other"), PAY)
    assert await search(services, text="ann") == await search(services, tool="pay") == [mine]
    assert len((await services.store.list("other", ApprovalQuery(text="ann"))).items) == 1
    assert (await services.store.list("third", ApprovalQuery(text="ann"))) == ApprovalPage((), None)


async def test_the_worker_makes_things_searchable_that_have_settled(
    services: AppServices, database: Database, clock: Clock
) -> None:
    await pay(services, 1, "ann")
    await services.gate.check(call(1, workspace="other"), WRITE)
    assert await services.worker.sweep() == 0
    assert database.sql("select count(*) from docs") == [(0,)]
    clock.advance(3_001)
    assert await services.worker.sweep() == 0
    assert sorted(database.sql("select workspace, name from marks where name = 'search'")) == [
        ("default", "search"),
        ("other", "search"),
    ]
    assert database.sql("select count(*) from docs") == [(2,)]
    assert not await services.store.update_search_index()


async def test_only_what_changed_is_indexed_again(services: AppServices, database: Database) -> None:
    ids = [await pay(services, number) for number in range(5)]
    await services.store.update_search_index()
    database.sql("update docs set words = 'untouched'")
    await reject(services, ids[2], "no")
    await services.store.update_search_index()
    untouched = {row[0] for row in database.sql("select id from docs where words = 'untouched'")}
    assert untouched == {*ids} - {ids[2]}
    assert await search(services, tool="pay") == [ids[2]]


async def test_a_search_that_is_behind_says_so(services: AppServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "BATCH_SIZE", 2)
    monkeypatch.setattr(searching, "BATCHES_PER_SEARCH", 2)
    ids = [await pay(services, number) for number in range(9)]
    found = []
    for _ in range(3):
        page = await services.store.list("default", ApprovalQuery(tool="pay"))
        found.append((len(page.items), page.is_index_behind))
    assert found == [(4, True), (8, True), (9, False)]
    assert await search(services, tool="pay") == ids[::-1]


async def test_an_erasure_of_many_misses_none_that_is_not_indexed_yet(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "BATCH_SIZE", 2)
    monkeypatch.setattr(searching, "BATCHES_PER_SEARCH", 1)
    for number in range(7):
        await services.gate.cancel("default", await pay(services, number, thread_id="t1"), "agent")
    erased = [each async for each in services.store.erase("default", Erasure("thread", "t1", by="ada"))]
    assert sum(each.approvals for each in erased) == 7


async def test_several_that_index_at_once_do_no_harm(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "BATCH_SIZE", 3)
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        ids = [await pay(one, number) for number in range(20)]
        await asyncio.gather(
            one.store.update_search_index(),
            two.store.update_search_index(),
            one.store.update_search_index(),
            search(two, text="ann"),
        )
        assert await search(one, text="ann") == await search(two, tool="pay") == ids[::-1]
        assert database.sql("select count(*), count(distinct id) from docs") == [(20, 20)]


async def test_postgresql_locks_the_mark_before_the_documents(postgres_server: Server, clock: Clock) -> None:
    """Else those who erase and those who index could wait for each other. Somebody holds a document until both wait."""
    name = "test_locks_of_search"
    postgres_server.create_database(name, migrated_template(postgres_server))
    database = ServerDatabase(postgres_server, name)
    async with open_services(database, clock) as services:
        approval_id = await pay(services, 1)
        await services.store.update_search_index()
        await services.gate.cancel("default", approval_id, "agent")
        with postgres_server.connect(name) as holder, holder.transaction():
            holder.execute("select from docs for update")
            erasing = asyncio.ensure_future(erase(services, "approval", approval_id))
            await wait_for_lock_waiters(database, 1)
            indexing = asyncio.ensure_future(services.store._search.catch_up("default"))
            await wait_for_lock_waiters(database, 2)
        await asyncio.gather(erasing, indexing)
        assert await search(services, text="ann") == []
        assert await search(services, tool="pay") == [approval_id]
    database.close()
    postgres_server.drop_database(name)


async def wait_for_lock_waiters(database: Database, count: int) -> None:
    """Until so many wait for a lock."""
    asked = "select count(*) from pg_locks where not granted and locktype <> 'advisory'"
    await asyncio.to_thread(wait_until, lambda: database.sql(asked) == [(count,)], f"{count} wait for a lock")


async def test_a_damaged_row_does_not_keep_the_others_from_being_searched(
    services: AppServices, database: Database
) -> None:
    damaged, sound = await propose_pending(services, 1), await propose_pending(services, 2)
    database.sql("update payloads set args = ? where id = ?", b"{", damaged)
    assert await search(services, tool="delete_file") == [sound]


async def test_an_index_that_was_lost_is_made_again(services: AppServices, database: Database) -> None:
    ids = [await pay(services, number) for number in range(3)]
    await reject(services, ids[0], "zurich")
    assert await search(services, text="zurich") == [ids[0]]
    database.sql("delete from docs")
    database.sql("delete from marks")
    assert await search(services, text="zurich") == [ids[0]]
    assert await search(services, tool="pay") == ids[::-1]


async def test_while_nothing_can_be_indexed_the_old_is_still_found(services: AppServices, database: Database) -> None:
    old = await pay(services, 1)
    assert await search(services, tool="pay") == [old]
    new = await pay(services, 2)
    database.sql("alter table marks rename to away")
    page = await services.store.list("default", ApprovalQuery(tool="pay"))
    assert ([stored.approval.id for stored in page.items], page.is_index_behind) == ([old], True)
    assert await services.worker.sweep() == 0
    database.sql("alter table away rename to marks")
    assert await search(services, tool="pay") == [new, old]


async def test_every_walk_gives_what_the_index_gives(services: AppServices, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many documents are looked at one by one first, the answer is the same."""
    names = random.Random(3)
    for number in range(30):
        await pay(services, number, names.choice(["ann", "anna", "bob", "bobby"]), names.choice([1, 2]))
    for filters in (
        {"text": "ann"},
        {"text": "pay bo"},
        {"tool": "pay"},
        {"arguments": (("amount", 2),), "text": "an"},
    ):
        found = []
        for walk in ((0, 0), (1, 128), (5, 5), (6, 128), (1_000, 1_000)):
            monkeypatch.setattr(finding, "SCAN_LIMITS", walk)
            monkeypatch.setattr(postgres_finding, "SCAN_LIMITS", walk)
            found.append(await search(services, limit=4, **filters))
        assert found[0]
        assert all(each == found[0] for each in found), filters


async def test_no_part_of_sqlite_keeps_an_erased_word(tmp_path: Path, clock: Clock) -> None:
    """Its index only notes that words are gone, until it merges the parts that it wrote long ago."""
    path = tmp_path / "interlock.db"
    async with open_services(path, clock) as services:
        for number, word in enumerate(("qxerasedqx", "vxforgottenvx", *("ann", "bob") * 20, "zxstayszx")):
            approval_id = await pay(services, number, word, thread_id=f"t{number}")
            await services.gate.cancel("default", approval_id, "agent")
            await services.store.update_search_index()
            clock.advance(1_000)
        await erase(services, "thread", "t0")
        while await services.store.apply_retention(41_500):
            pass
    written = path.read_bytes()
    assert (b"xerasedq" in written, b"xforgottenv" in written, b"xstaysz" in written) == (False, False, True)
