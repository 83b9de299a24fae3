"""The contract of every store."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.approval.approval import STATUSES, TRANSITIONS
from interlock.core.errors import Forbidden, InvalidRequest, Misconfigured, NotFound, Stale, StoreUnavailable
from interlock.core.ledger.event import Change, Event, Moment
from interlock.core.outcome import Waiting
from interlock.core.policy.policy import People
from interlock.core.ports import ApprovalQuery, User
from interlock.core.run import Run, close_run, open_run
from interlock.storage.engine.writer import BatchItem
from interlock.storage.migrate import load_migrations
from tests.databases import Database
from tests.support import (
    BOB,
    OK,
    START,
    WRITE,
    Clock,
    approve,
    call,
    event_kinds,
    ledger_violations,
    open_services,
    propose_pending,
    status,
)


async def test_a_stored_approval_comes_back_as_it_was(services: AppServices) -> None:  # R23
    approval_id = await propose_pending(
        services, agent="writer", agent_path=("boss", "writer"), thread_id="t1", requester="zoe"
    )
    stored = await services.store.get("default", approval_id)
    assert stored.payload.args == b'{"path":"/tmp/x"}'
    assert stored.approval.subject.agent_path == ("boss", "writer")
    assert (stored.approval.subject.requester, stored.approval.subject.thread_id) == ("zoe", "t1")
    assert (await services.store.find("default", "run", "call1")) == stored


async def test_every_change_of_state_is_one_event_in_the_same_order(services: AppServices) -> None:  # R41
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    assert await event_kinds(services) == ["proposed", "approved", "started", "succeeded"]
    assert await ledger_violations(services) == []


async def test_workspaces_do_not_see_each_other(services: AppServices) -> None:
    outcome = await services.gate.check(call(1, workspace="other"), WRITE)
    assert isinstance(outcome, Waiting)
    with pytest.raises(NotFound):
        await services.store.get("default", outcome.approval_id)
    assert (await services.store.list("default", ApprovalQuery())).items == ()
    assert await event_kinds(services, "other") == ["proposed"]


async def test_pages_neither_skip_nor_repeat_while_rows_come_in(services: AppServices, clock: Clock) -> None:  # R8
    for number in range(7):
        clock.advance(1)
        await propose_pending(services, number)
    first = await services.store.list("default", ApprovalQuery(statuses=("pending",), limit=3))
    clock.advance(1)
    await propose_pending(services, 99)
    second = await services.store.list(
        "default", ApprovalQuery(statuses=("pending",), limit=3, cursor=first.next or "")
    )
    third = await services.store.list(
        "default", ApprovalQuery(statuses=("pending",), limit=3, cursor=second.next or "")
    )
    seen = [s.approval.subject.call_id for page in (first, second, third) for s in page.items]
    assert seen == [f"call{n}" for n in (0, 1, 2, 3, 4, 5, 6, 99)]
    assert third.next is None


async def test_history_is_newest_first_and_can_be_filtered(services: AppServices, clock: Clock) -> None:  # R8
    for number in range(3):
        clock.advance(1)
        await propose_pending(services, number, agent=f"agent{number}")
    page = await services.store.list("default", ApprovalQuery())
    assert [s.approval.subject.call_id for s in page.items] == ["call2", "call1", "call0"]
    page = await services.store.list("default", ApprovalQuery(agent="agent1"))
    assert [s.approval.subject.agent for s in page.items] == ["agent1"]
    page = await services.store.list("default", ApprovalQuery(statuses=("approved", "rejected")))
    assert page.items == ()


async def test_an_approval_is_found_by_the_beginning_or_the_end_of_its_id(services: AppServices) -> None:
    first, second = await propose_pending(services, 1), await propose_pending(services, 2)
    assert await services.store.find_ids("default", first[-10:], 5) == [first]
    assert set(await services.store.find_ids("default", first[:8], 5)) == {first, second}  # made in the same minute
    assert await services.store.find_ids("default", first[-10:].upper(), 5) == [first]
    assert await services.store.find_ids("default", first.upper(), 5) == [first]
    assert await services.store.find_ids("default", "%", 5) == []
    assert await services.store.find_ids("other", first, 5) == []


async def test_a_cursor_that_no_list_gave_is_refused(services: AppServices) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        await services.store.list("default", ApprovalQuery(cursor="nonsense"))


async def test_counts_follow_every_change(services: AppServices) -> None:  # R18
    first, second = await propose_pending(services, 1), await propose_pending(services, 2)
    await approve(services, first)
    await services.gate.cancel("default", second, "agent")
    stats = await services.store.stats("default")
    assert stats.by_status == {"approved": 1, "cancelled": 1}


async def test_the_database_refuses_every_illegal_transition_by_itself(
    services: AppServices, database: Database
) -> None:
    approval_id = await propose_pending(services)
    [(version,)] = database.sql("select version from approvals")
    forbidden = [f"status = '{new}'" for new in set(STATUSES) - TRANSITIONS["pending"]]
    forbidden += ["tool = 'x'", "run_id = 'x'", "expires_at = 7", "nonce = 'x'", "nonce = ''", "fence = fence + 2"]
    forbidden += ["owner = '*'", "known = '{}'"]  # whose it is, and what its key proved
    for change in forbidden:
        with pytest.raises(Exception, match="illegal transition"):
            database.sql(f"update approvals set {change}, version = version + 1 where id = ?", approval_id)
    assert database.sql("select status, version from approvals") == [("pending", version)]


async def test_the_databases_own_table_of_transitions_is_the_one_of_the_core(
    services: AppServices, database: Database
) -> None:
    """Every pair of statuses, tried on a row that was forced into the first one."""
    approval_id = await propose_pending(services)
    for old in STATUSES:
        allowed = set()
        for new in STATUSES:
            database.sql_without_triggers("update approvals set status = ?, fence = 0 where id = ?", old, approval_id)
            with suppress(Exception):  # each driver has its own
                database.sql("update approvals set status = ?, version = version + 1 where id = ?", new, approval_id)
                allowed.add(new)
        assert allowed - {old} == TRANSITIONS.get(old, frozenset()) - {old}, old


async def test_a_program_that_breaks_the_rules_is_stopped_by_the_database(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    with pytest.raises(StoreUnavailable, match="illegal transition"):
        await services.store.transition(
            "default", approval_id, lambda a, _: Change(replace(a, status="succeeded", version=a.version + 1))
        )
    assert await status(services, approval_id) == "pending"
    assert await event_kinds(services) == ["proposed"]


async def test_a_bad_item_does_not_fail_its_neighbours(services: AppServices) -> None:
    ids = [await propose_pending(services, n) for n in range(4)]

    def broken(approval, moment):  # type: ignore[no-untyped-def]
        raise RuntimeError("a bug")

    work = [services.store.transition("default", ids[0], broken), *(approve(services, i) for i in ids[1:])]
    results = await asyncio.gather(*work, return_exceptions=True)
    assert [type(r).__name__ for r in results] == ["RuntimeError", "str", "str", "str"]
    assert await ledger_violations(services) == []


async def test_a_step_that_fails_while_it_is_written_leaves_no_trace(services: AppServices) -> None:
    """Its event cannot be sealed, after its neighbours' were: neither the row nor half of the events may stay."""
    first, second = await propose_pending(services, 1), await propose_pending(services, 2)

    def unkeepable(approval, moment):  # type: ignore[no-untyped-def]
        moved = replace(approval, status="approved", version=approval.version + 1)
        events = (Event("approved", "bob", {}, approval.id), Event("approved", "bob", {"x": {1, 2}}, approval.id))
        return Change(moved, events)

    work = [services.store.transition("default", first, unkeepable), approve(services, second)]
    failed, done = await asyncio.gather(*work, return_exceptions=True)
    assert (type(failed).__name__, done) == ("TypeError", "approved")
    assert await status(services, first) == "pending"
    assert await event_kinds(services) == ["proposed", "proposed", "approved"]
    assert await ledger_violations(services) == []


async def test_a_lost_compare_and_set_writes_nothing(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    stored = await services.store.get("default", approval_id)
    stale = replace(stored.approval, version=7)
    with pytest.raises(Stale):
        await services.store._database.write(  # type: ignore[attr-defined]
            BatchItem(lambda tx: tx.update(stale, Change(replace(stale, status="approved", version=8))), "default")
        )
    assert await status(services, approval_id) == "pending"
    assert await event_kinds(services) == ["proposed"]


async def test_two_stores_on_one_database_see_each_other(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        approval_id = await propose_pending(one)
        await approve(two, approval_id)
        execution = await one.gate.start("default", approval_id, "r")
        await two.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
        assert await status(one, approval_id) == "succeeded"
        assert await ledger_violations(two) == []


async def test_migrations_run_once_and_are_never_edited(database: Database, clock: Clock) -> None:
    async with open_services(database, clock):
        pass
    async with open_services(database, clock) as again:
        assert await event_kinds(again) == []
    applied = [row[0] for row in database.sql("select number from migrations order by number")]
    assert applied == [migration.number for migration in load_migrations(database.kind)]
    database.sql("update migrations set sha256 = 'other'")
    with pytest.raises(Misconfigured, match="not the one"):
        async with open_services(database, clock):
            pass


async def test_a_database_that_was_migrated_by_files_of_other_names_is_not_migrated_again(
    database: Database, clock: Clock
) -> None:
    """A migration is known by its number and its bytes: a file may be renamed."""
    async with open_services(database, clock):
        pass
    database.sql("update migrations set name = 'heart', applied_at = 7 where number = 1")
    database.sql("update migrations set name = 'holds', applied_at = 7 where number = 16")
    async with open_services(database, clock) as again:
        assert await again.store.migrate() == []
        approval_id = await propose_pending(again)
        assert await status(again, approval_id) == "pending"
    renamed = database.sql("select number, name, applied_at from migrations where applied_at = 7 order by number")
    assert [tuple(row) for row in renamed] == [(1, "heart", 7), (16, "holds", 7)]
    assert len(database.sql("select number from migrations")) == len(load_migrations(database.kind))


async def test_a_newer_database_is_not_touched(database: Database, clock: Clock) -> None:
    async with open_services(database, clock):
        pass
    database.sql("insert into migrations values (999, 'later', 'x', 0, 999)")
    with pytest.raises(Misconfigured, match="Upgrade"):
        async with open_services(database, clock):
            pass


async def test_a_policy_and_a_user_are_kept_with_their_author(services: AppServices) -> None:
    await services.put_policy("default", "version: 1\nrules: []\n", "ada", {})
    again = await services.put_policy("default", "version: 1\nrules: []\n", "ada", {})
    assert again.policy.sha256 == (await services.store.policy("default")).sha256  # type: ignore[union-attr]
    await services.store.put_user("default", User("bob", "reviewer", teams=frozenset({"finance"})), "ada")
    assert (await services.inbox.reviewer("default", "bob", "test")) == BOB
    assert await event_kinds(services) == ["policy_changed", "user_changed"]


async def test_a_user_comes_back_as_put(services: AppServices) -> None:  # R40
    stand_in = People(frozenset({"eve"}), frozenset({"leads"}))
    away = User(
        "bob",
        "admin",
        teams=frozenset({"finance"}),
        email="bob@example.com",
        away_until=START + 1,
        away_to=stand_in,
        removed_at=START + 2,
    )
    for user in (User("bob"), away, User("bob", "viewer")):
        await services.store.put_user("default", user, "ada")
        assert await services.store.users("default") == [user]


async def test_somebody_who_was_removed_decides_nothing(services: AppServices) -> None:  # R48
    await services.store.put_user(
        "default", User("bob", "admin", teams=frozenset({"finance"}), removed_at=START), "ada"
    )
    approval_id = await propose_pending(services)
    with pytest.raises(Forbidden):
        await approve(services, approval_id, await services.inbox.reviewer("default", "bob", "test"))
    assert (await event_kinds(services))[-1] == "decision_refused"


async def test_open_runs_are_counted_by_whose_programs_hold_them(services: AppServices) -> None:
    for number, runner in enumerate(("remote:a:1", "remote:a:2", "remote:ab:1", "remote:A:1")):

        def opened_run(moment: Moment, number: int = number, runner: str = runner) -> Change[Run]:
            return open_run(f"run{number}", "default", f"agent{number}", runner, 1_000, moment)

        await services.store.add_run("default", opened_run)
    assert await services.store.count_open_runs("default", "remote:a:", 10) == 2
    assert await services.store.count_open_runs("default", "remote:a:", 1) == 1
    await services.store.update_run("default", "run0", lambda run, _: close_run(run, "remote:a:1"))
    assert await services.store.count_open_runs("default", "remote:a:", 10) == 1
    assert await services.store.count_open_runs("elsewhere", "remote:a:", 10) == 0


DAY = 86_400_000


async def test_the_calls_of_a_tool_are_counted_by_status_and_agent(services: AppServices, clock: Clock) -> None:  # R10
    await services.gate.check(call(1, agent="bot"), WRITE)
    clock.advance(2 * DAY)
    for number in (2, 3):
        await services.gate.check(call(number, agent="bot"), WRITE)
    await services.gate.check(call(4, agent="other"), WRITE)
    await services.gate.check(call(5, agent="bot", tool="else"), WRITE)
    await services.gate.check(call(6, workspace="elsewhere", agent="bot"), WRITE)
    measures, tool, since = services.store.metrics, call(1).tool, clock.now - DAY
    assert (await measures.tool_status_counts("default", tool, "bot", since)).by_status == {"pending": 2}
    assert (await measures.tool_status_counts("default", tool, "", since)).by_status == {"pending": 3}
    assert (await measures.tool_status_counts("default", tool, "", 0)).by_status == {"pending": 4}
    nothing = await measures.tool_status_counts("default", "unheard of", "", 0)
    assert (nothing.by_status, nothing.reads, nothing.complete) == ({}, 0, True)
