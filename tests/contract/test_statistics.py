"""Statistics for plots, counted by both databases."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.approval.approval import cancel
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Edit, Reject, Respond
from interlock.core.errors import Forbidden
from interlock.runtime.durations import rfc3339
from interlock.server.routes import stats
from interlock.server.routes.stats import DAY, HOUR, compute_stats_history
from tests.databases import Database
from tests.support import ADA, BOB, EVE, READ, START, Clock, approve, call, propose_pending

MAIL = ToolSpec("send_mail", "write")
TWO_TEAMS = """
version: 1
rules:
  - name: mail
    tools: [send_mail]
    then: ask
    stages: [{approvers: {teams: [finance]}}, {approvers: {users: [ada]}}]
  - name: free
    tools: [free]
    then: allow
"""
FREE = ToolSpec("free", "write")


async def edit(services: AppServices, approval_id: str, args: dict[str, object]) -> None:
    stored = await services.store.get("default", approval_id)
    decision = Edit(args, Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms))
    await services.inbox.decide("default", approval_id, decision, BOB)


async def reject(services: AppServices, approval_id: str) -> None:
    await services.inbox.decide("default", approval_id, Reject(reason="no"), BOB)


async def read_history(services: AppServices, days: int, clock: Clock) -> Any:
    return await compute_stats_history(services.store, "default", days, clock())


def nonzero_rows(services: Any, *names: str) -> list[tuple[Any, ...]]:
    """Of the parts in which anything happened."""
    return [tuple(part[name] for name in names) for part in services if any(part[name] for name in names)]


# R18
async def test_what_waited_is_right_for_every_part_of_the_time(services: AppServices, clock: Clock) -> None:
    clock.now = START // HOUR * HOUR + 60_000 + DAY
    await services.put_policy("default", "version: 1\ndefaults: {expires_in: 2d}", "ada", {})
    ids = [await propose_pending(services, n) for n in range(4)]  # hour 0: 4 wait
    clock.advance(HOUR)
    await approve(services, ids[0])
    await reject(services, ids[1])  # hour 1: 2 wait
    await services.inbox.undo("default", ids[1], BOB)  # no: 3
    clock.advance(HOUR)
    stored = await services.store.get("default", ids[2])
    await services.store.transition("default", ids[2], lambda now, moment: cancel(now, "agent:", "later", moment))
    await services.store.transition("default", ids[0], lambda now, moment: cancel(now, "agent:", "later", moment))
    assert stored.approval.status == "pending"  # hour 2: 2, since the other one had been approved
    clock.advance(HOUR)  # hour 3: nothing
    body = await read_history(services, 1, clock)
    assert [part["pending"] for part in body["parts"]][-5:] == [0, 4, 3, 2, 2]
    assert len(body["parts"]) == 24
    assert body["parts"][-1]["at"] == rfc3339(clock() // HOUR * HOUR)
    assert nonzero_rows(body["parts"], "proposed", "approved", "rejected", "cancelled") == [
        (4, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 0, 0, 2),
    ]
    assert body["complete"]


# R18
async def test_how_long_people_took_is_told_by_rank(services: AppServices, clock: Clock) -> None:
    clock.now = START // DAY * DAY + DAY
    ids = [await propose_pending(services, n) for n in range(20)]
    for approval_id in ids:
        clock.advance(1_000)
        await approve(services, approval_id)
    body = await read_history(services, 30, clock)
    assert (body["decisions"], body["p50_seconds"], body["p95_seconds"]) == (20, 10.0, 19.0)
    assert nonzero_rows(body["parts"], "decisions", "p50_seconds", "p95_seconds") == [(20, 10.0, 19.0)]
    assert body["step_seconds"] == 86_400
    clock.advance(40 * DAY)
    later = await read_history(services, 30, clock)
    assert (later["decisions"], later["p50_seconds"], nonzero_rows(later["parts"], "decisions")) == (0, None, [])


# R18
async def test_how_calls_ended_is_told_by_tool_and_agent(services: AppServices, clock: Clock) -> None:
    await services.put_policy("default", TWO_TEAMS, "ada", {})
    approved, edited, rejected, responded = [
        await propose_pending(services, n, agent="one" if n < 2 else "two") for n in range(4)
    ]
    await approve(services, approved)
    await edit(services, edited, {"path": "/tmp/y"})
    await reject(services, rejected)
    await services.inbox.decide("default", responded, Respond("use the other file"), BOB)
    await services.gate.check(call(9, tool="free", agent="two"), FREE)
    mail = await propose_pending(services, 10, MAIL, agent="two")
    with pytest.raises(Forbidden):
        await approve(services, mail, ADA)  # the other stage comes first
    body = await read_history(services, 7, clock)
    kinds = ("name", "approved", "edited", "rejected", "responded", "allowed", "refused")
    assert nonzero_rows(body["tools"], *kinds) == [
        ("delete_file", 1, 1, 1, 1, 0, 0),
        ("free", 0, 0, 0, 0, 1, 0),
        ("send_mail", 0, 0, 0, 0, 0, 1),
    ]
    assert nonzero_rows(body["agents"], *kinds) == [("two", 0, 0, 1, 1, 1, 1), ("one", 1, 1, 0, 0, 0, 0)]
    assert nonzero_rows(body["parts"], "refused", "allowed", "edited") == [(1, 1, 1)]


# R18
async def test_pending_counts_by_team_follow_the_open_stage(services: AppServices, clock: Clock) -> None:
    await services.put_policy("default", TWO_TEAMS, "ada", {})
    first, _ = [await propose_pending(services, n, MAIL, agent="office") for n in range(2)]
    await approve(services, first, EVE)
    clock.advance(5_000)
    await propose_pending(services, 3)
    body = await read_history(services, 1, clock)
    waits = sorted(
        (each["on"], each["kind"], each["agent"], each["pending"], each["oldest_seconds"]) for each in body["waiting"]
    )
    assert waits == [
        ("", "anyone", "", 1, 0.0),
        ("ada", "person", "office", 1, 5.0),
        ("finance", "team", "office", 1, 5.0),
    ]
    assert body["waiting_of"] == 3


# R18
async def test_allowed_reads_are_summed_by_tool(services: AppServices, clock: Clock) -> None:
    for _ in range(3):
        await services.gate.check(call(1, tool="read_file"), READ)
    clock.advance(2 * DAY)
    for n in range(2):
        await services.gate.check(call(n, tool="look"), ToolSpec("look", "read"))
    await propose_pending(services, 1)  # a batch, with which counts are written
    assert (await read_history(services, 7, clock))["reads"] == [
        {"tool": "read_file", "count": 3},
        {"tool": "look", "count": 2},
    ]
    assert (await read_history(services, 1, clock))["reads"] == [{"tool": "look", "count": 2}]


async def test_only_so_much_is_counted_at_once_and_it_says_so(
    services: AppServices, clock: Clock, monkeypatch: Any
) -> None:
    for n in range(5):
        clock.advance(1_000)
        await propose_pending(services, n)
    monkeypatch.setattr(stats, "MAX_ENTRIES", 2)
    body = await read_history(services, 1, clock)
    assert (body["complete"], body["since"]) == (False, rfc3339(clock() - 1_000))
    assert nonzero_rows(body["parts"], "proposed") == [(2,)]


async def test_another_workspace_is_not_counted(services: AppServices, clock: Clock) -> None:
    await propose_pending(services, 1)
    body: Any = await compute_stats_history(services.store, "elsewhere", 7, clock())
    assert (nonzero_rows(body["parts"], "proposed", "pending"), body["tools"], body["waiting"], body["reads"]) == (
        [],
        [],
        [],
        [],
    )


async def test_a_hundred_thousand_entries_are_counted_in_a_moment(
    services: AppServices, clock: Clock, database: Database
) -> None:
    """Made by the database itself: each call was proposed and approved, some minutes apart, over two months."""
    model = await propose_pending(services, 1)
    await approve(services, model)
    numbers = "with recursive n(i) as (select cast(1 as bigint) union all select i + 1 from n where i < 50000)"
    head = (await services.store.head("default")).seq
    columns = [
        "run_id", "tool", "effect", "agent", "agent_path", "thread_id", "requester", "priority", "idempotent",
        "spec_sha256", "nonce", "proposed", "expires_at", "terms_sha256", "args_sha256", "binding", "version",
        "progress", "decision", "release_at", "start_by", "fence", "lease_until", "runner", "grant_id",
    ]  # fmt: skip
    named = ", ".join(columns)
    database.sql_without_triggers(
        f"{numbers} insert into approvals (workspace, id, call_id, created_at, status, {named}) "
        f"select workspace, 'made-' || i, 'made-' || i, created_at + i * 100000, 'approved', {named} "
        "from n, approvals where call_id = 'call1'"
    )
    for number, kind, wait in ((0, "proposed", 0), (1, "approved", 1_000)):
        database.sql(
            f"{numbers} insert into events (workspace, seq, at, kind, actor, approval_id, data, digest, link) "
            f"select 'default', {head - 1} + i * 2 + {number}, {START} + i * 100000 + {wait}, '{kind}', 'bob', "
            "'made-' || i, '{}', '', '' from n"
        )
    database.sql(f"update heads set seq = {head + 100_000}")
    clock.advance(50_000 * 100_000)
    body = await read_history(services, 90, clock)
    assert sum(part["approved"] for part in body["parts"]) == 50_001
    assert body["tools"][0]["approved"] == 50_001
    assert body["p95_seconds"] == 1.0
