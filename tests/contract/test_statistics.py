"""What plots are made of, counted by both databases."""

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
from tests.places import Place
from tests.support import ADA, BOB, EVE, READ, START, Clock, approve, call, pending

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


async def edit(parts: AppServices, approval_id: str, args: dict[str, object]) -> None:
    stored = await parts.store.get("default", approval_id)
    decision = Edit(args, Acknowledgement(stored.approval.args_sha256, stored.approval.findings.alarms))
    await parts.inbox.decide("default", approval_id, decision, BOB)


async def reject(parts: AppServices, approval_id: str) -> None:
    await parts.inbox.decide("default", approval_id, Reject(reason="no"), BOB)


async def of(parts: AppServices, days: int, clock: Clock) -> Any:
    return await compute_stats_history(parts.store, "default", days, clock())


def told(parts: Any, *names: str) -> list[tuple[Any, ...]]:
    """Of the parts in which anything happened."""
    return [tuple(part[name] for name in names) for part in parts if any(part[name] for name in names)]


# R18
async def test_what_waited_is_right_for_every_part_of_the_time(parts: AppServices, clock: Clock) -> None:
    clock.now = START // HOUR * HOUR + 60_000 + DAY
    await parts.put_policy("default", "version: 1\ndefaults: {expires_in: 2d}", "ada", {})
    ids = [await pending(parts, n) for n in range(4)]  # hour 0: 4 wait
    clock.forward(HOUR)
    await approve(parts, ids[0])
    await reject(parts, ids[1])  # hour 1: 2 wait
    await parts.inbox.undo("default", ids[1], BOB)  # no: 3
    clock.forward(HOUR)
    stored = await parts.store.get("default", ids[2])
    await parts.store.transition("default", ids[2], lambda now, moment: cancel(now, "agent:", "later", moment))
    await parts.store.transition("default", ids[0], lambda now, moment: cancel(now, "agent:", "later", moment))
    assert stored.approval.status == "pending"  # hour 2: 2, since the other one had been approved
    clock.forward(HOUR)  # hour 3: nothing
    body = await of(parts, 1, clock)
    assert [part["pending"] for part in body["parts"]][-5:] == [0, 4, 3, 2, 2]
    assert len(body["parts"]) == 24
    assert body["parts"][-1]["at"] == rfc3339(clock() // HOUR * HOUR)
    assert told(body["parts"], "proposed", "approved", "rejected", "cancelled") == [
        (4, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 0, 0, 2),
    ]
    assert body["complete"]


# R18
async def test_how_long_people_took_is_told_by_rank(parts: AppServices, clock: Clock) -> None:
    clock.now = START // DAY * DAY + DAY
    ids = [await pending(parts, n) for n in range(20)]
    for approval_id in ids:
        clock.forward(1_000)
        await approve(parts, approval_id)
    body = await of(parts, 30, clock)
    assert (body["decisions"], body["p50_seconds"], body["p95_seconds"]) == (20, 10.0, 19.0)
    assert told(body["parts"], "decisions", "p50_seconds", "p95_seconds") == [(20, 10.0, 19.0)]
    assert body["step_seconds"] == 86_400
    clock.forward(40 * DAY)
    later = await of(parts, 30, clock)
    assert (later["decisions"], later["p50_seconds"], told(later["parts"], "decisions")) == (0, None, [])


# R18
async def test_how_calls_ended_is_told_by_tool_and_agent(parts: AppServices, clock: Clock) -> None:
    await parts.put_policy("default", TWO_TEAMS, "ada", {})
    approved, edited, rejected, responded = [await pending(parts, n, agent="one" if n < 2 else "two") for n in range(4)]
    await approve(parts, approved)
    await edit(parts, edited, {"path": "/tmp/y"})
    await reject(parts, rejected)
    await parts.inbox.decide("default", responded, Respond("use the other file"), BOB)
    await parts.gate.check(call(9, tool="free", agent="two"), FREE)
    mail = await pending(parts, 10, MAIL, agent="two")
    with pytest.raises(Forbidden):
        await approve(parts, mail, ADA)  # the other stage comes first
    body = await of(parts, 7, clock)
    kinds = ("name", "approved", "edited", "rejected", "responded", "allowed", "refused")
    assert told(body["tools"], *kinds) == [
        ("delete_file", 1, 1, 1, 1, 0, 0),
        ("free", 0, 0, 0, 0, 1, 0),
        ("send_mail", 0, 0, 0, 0, 0, 1),
    ]
    assert told(body["agents"], *kinds) == [("two", 0, 0, 1, 1, 1, 1), ("one", 1, 1, 0, 0, 0, 0)]
    assert told(body["parts"], "refused", "allowed", "edited") == [(1, 1, 1)]


# R18
async def test_who_waits_on_whom_goes_by_the_stage_that_is_open(parts: AppServices, clock: Clock) -> None:
    await parts.put_policy("default", TWO_TEAMS, "ada", {})
    first, _ = [await pending(parts, n, MAIL, agent="office") for n in range(2)]
    await approve(parts, first, EVE)
    clock.forward(5_000)
    await pending(parts, 3)
    body = await of(parts, 1, clock)
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
async def test_allowed_reads_are_summed_by_tool(parts: AppServices, clock: Clock) -> None:
    for _ in range(3):
        await parts.gate.check(call(1, tool="read_file"), READ)
    clock.forward(2 * DAY)
    for n in range(2):
        await parts.gate.check(call(n, tool="look"), ToolSpec("look", "read"))
    await pending(parts, 1)  # a batch, with which counts are written
    assert (await of(parts, 7, clock))["reads"] == [{"tool": "read_file", "count": 3}, {"tool": "look", "count": 2}]
    assert (await of(parts, 1, clock))["reads"] == [{"tool": "look", "count": 2}]


async def test_only_so_much_is_counted_at_once_and_it_says_so(
    parts: AppServices, clock: Clock, monkeypatch: Any
) -> None:
    for n in range(5):
        clock.forward(1_000)
        await pending(parts, n)
    monkeypatch.setattr(stats, "MAX_ENTRIES", 2)
    body = await of(parts, 1, clock)
    assert (body["complete"], body["since"]) == (False, rfc3339(clock() - 1_000))
    assert told(body["parts"], "proposed") == [(2,)]


async def test_another_workspace_is_not_counted(parts: AppServices, clock: Clock) -> None:
    await pending(parts, 1)
    body: Any = await compute_stats_history(parts.store, "elsewhere", 7, clock())
    assert (told(body["parts"], "proposed", "pending"), body["tools"], body["waiting"], body["reads"]) == (
        [],
        [],
        [],
        [],
    )


async def test_a_hundred_thousand_entries_are_counted_in_a_moment(
    parts: AppServices, clock: Clock, place: Place
) -> None:
    """Made by the database itself: each call was proposed and approved, some minutes apart, over two months."""
    model = await pending(parts, 1)
    await approve(parts, model)
    numbers = "with recursive n(i) as (select cast(1 as bigint) union all select i + 1 from n where i < 50000)"
    head = (await parts.store.head("default")).seq
    columns = [
        "run_id", "tool", "effect", "agent", "agent_path", "thread_id", "requester", "priority", "idempotent",
        "spec_sha256", "nonce", "proposed", "expires_at", "terms_sha256", "args_sha256", "binding", "version",
        "progress", "decision", "release_at", "start_by", "fence", "lease_until", "runner", "grant_id",
    ]  # fmt: skip
    named = ", ".join(columns)
    place.forced(
        f"{numbers} insert into approvals (workspace, id, call_id, created_at, status, {named}) "
        f"select workspace, 'made-' || i, 'made-' || i, created_at + i * 100000, 'approved', {named} "
        "from n, approvals where call_id = 'call1'"
    )
    for number, kind, wait in ((0, "proposed", 0), (1, "approved", 1_000)):
        place.sql(
            f"{numbers} insert into events (workspace, seq, at, kind, actor, approval_id, data, digest, link) "
            f"select 'default', {head - 1} + i * 2 + {number}, {START} + i * 100000 + {wait}, '{kind}', 'bob', "
            "'made-' || i, '{}', '', '' from n"
        )
    place.sql(f"update heads set seq = {head + 100_000}")
    clock.forward(50_000 * 100_000)
    body = await of(parts, 90, clock)
    assert sum(part["approved"] for part in body["parts"]) == 50_001
    assert body["tools"][0]["approved"] == 50_001
    assert body["p95_seconds"] == 1.0
