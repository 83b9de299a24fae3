"""What agents did, counted by both databases without a walk through all calls."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Edit, Reject
from interlock.core.outcome import Refused
from interlock.runtime.durations import DAY
from interlock.storage.engine.queries import load_queries
from interlock.storage.migrate import migrate_sqlite
from interlock.storage.tables.history import MAX_AGENT_CALLS, AgentCalls, DeniedCalls
from tests.databases import Database
from tests.support import BOB, START, Clock, approve, call, propose_pending

POLICY = """
version: 1
rules:
  - {name: free, tools: [free], then: allow}
  - {name: never, tools: [drop], then: deny, reason: Never that.}
"""
BY_INDEX = "approvals_by_agent (workspace=? AND agent=?"


# R18
async def test_calls_of_an_agent_are_counted_by_outcome_and_day(services: AppServices, clock: Clock) -> None:
    clock.now = START // DAY * DAY
    await services.put_policy("default", POLICY, "ada", {})
    ids = [await propose_pending(services, n, agent="one") for n in range(3)]
    await approve(services, ids[0])
    shown = (await services.store.get("default", ids[1])).approval
    seen = Acknowledgement(shown.args_sha256, shown.findings.alarms)
    await services.inbox.decide("default", ids[1], Edit({"path": '"by":"policy"'}, seen), BOB)
    await services.inbox.decide("default", ids[2], Reject(reason='"via":"grant" "kind":"edit"'), BOB)
    clock.advance(DAY)
    await propose_pending(services, 4, agent="one")
    await services.gate.check(call(5, tool="free", agent="one"), ToolSpec("free", "write"))
    await propose_pending(services, 6, agent="two")
    statistics, day = services.store.statistics, START // DAY
    found = await statistics.outcomes_of_agent("default", "one", START - DAY)
    assert [(each.day - day, each.tool, each.outcome, each.n) for each in found] == [
        (0, "delete_file", "approved", 1),
        (0, "delete_file", "edited", 1),
        (0, "delete_file", "rejected", 1),
        (1, "delete_file", "pending", 1),
        (1, "free", "allowed", 1),
    ]
    assert found[-1].last_at == clock()
    recent = await statistics.outcomes_of_agent("default", "one", clock())
    assert [(each.tool, each.n) for each in recent] == [("delete_file", 1), ("free", 1)]
    assert await statistics.call_times_of_agent("default", "one") == (START // DAY * DAY, clock())
    assert await statistics.call_times_of_agent("default", "nobody") == (None, None)
    assert await statistics.outcomes_of_agent("elsewhere", "one", 0) == []
    assert await statistics.pending_by_agent("default") == {"one": 1, "two": 1}


# R18
async def test_every_agent_is_listed_with_its_newest_call(services: AppServices, clock: Clock) -> None:
    await propose_pending(services, 1, agent="one")
    clock.advance(1_000)
    newest = await propose_pending(services, 2, agent="one")
    await propose_pending(services, 3, agent="Two")
    await propose_pending(services, 4)
    statistics, names = services.store.statistics, ["one", "", "Two", "nobody", "o'ne"]
    found = {each.agent: each for each in await statistics.agent_calls("default", START + 1_000, names)}
    assert found["one"] == AgentCalls("one", START + 1_000, newest, 1)
    assert {name: each.n for name, each in found.items()} == {"Two": 1, "one": 1}, "no name is no agent"
    assert [each.agent for each in await statistics.agent_calls("default", 0, ["one"])] == ["one"]
    assert await statistics.agent_calls("default", 0, []) == []
    assert await statistics.agent_calls("elsewhere", 0, names) == []


# R18
async def test_agents_come_with_the_time_of_their_newest_call(services: AppServices, clock: Clock) -> None:
    for n, agent in enumerate(("one", "two", "", "one", "three")):
        await propose_pending(services, n, agent=agent)
        clock.advance(1_000)
    found = await services.store.statistics.newest_agents("default")
    assert list(found.items()) == [
        ("three", START + 4_000),
        ("one", START + 3_000),
        ("two", START + 1_000),
    ]
    assert await services.store.statistics.newest_agents("elsewhere") == {}


# R18
async def test_denied_calls_are_counted_by_the_agent_that_proposed_them(services: AppServices, clock: Clock) -> None:
    await services.put_policy("default", POLICY, "ada", {})
    for n in range(3):
        outcome = await services.gate.check(call(n, tool="drop", agent="one"), ToolSpec("drop", "write"))
        assert isinstance(outcome, Refused)
        clock.advance(1_000)
    statistics = services.store.statistics
    assert await statistics.denied_by_agent("default", START) == [DeniedCalls("one", 3, START + 2_000)]
    assert await statistics.denied_by_agent("default", START + 1_000) == [DeniedCalls("one", 2, START + 2_000)]
    assert await statistics.denied_by_agent("default", clock()) == []


async def test_an_agent_with_many_calls_is_counted_up_to_a_limit(
    services: AppServices, clock: Clock, database: Database
) -> None:
    await propose_pending(services, 1, agent="busy")
    columns = (
        "run_id, tool, effect, agent, agent_path, thread_id, requester, priority, idempotent, spec_sha256, nonce, "
        "proposed, expires_at, terms_sha256, args_sha256, binding, version, progress, decision, release_at, start_by, "
        "fence, lease_until, runner, grant_id"
    )
    database.sql_without_triggers(
        "with recursive n(i) as (select cast(1 as bigint) union all select i + 1 from n where i < 1500) "
        f"insert into approvals (workspace, id, call_id, created_at, status, {columns}) "
        f"select workspace, 'made-' || i, 'made-' || i, created_at + i, 'approved', {columns} from n, approvals "
        "where call_id = 'call1'"
    )
    [found] = await services.store.statistics.agent_calls("default", 0, ["busy"])
    assert (found.n, found.last_id, found.last_at) == (MAX_AGENT_CALLS + 1, "made-1500", START + 1_500)


@pytest.mark.parametrize("name", ["agent_calls", "outcomes_of_agent", "call_times_of_agent"])
def test_calls_of_an_agent_are_found_by_its_index(name: str) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate_sqlite(connection, 0)
        query = load_queries()[name]
        steps = [row[3] for row in connection.execute(f"explain query plan {query}", [1] * query.count("?"))]
    assert any(BY_INDEX in step for step in steps), steps
    assert [step for step in steps if "approvals" in step and "approvals_by_agent" not in step] == []
    assert [step for step in steps if step.startswith("SCAN a")] == []
