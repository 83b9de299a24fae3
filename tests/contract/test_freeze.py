"""Freezes: nothing in scope starts, and deadlines move by the frozen time."""

import asyncio
import json
from dataclasses import replace

import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.gate import uuid7
from interlock.core.approval.timers import pending_timers
from interlock.core.call import Caller
from interlock.core.decision import Reject
from interlock.core.errors import AlreadyStarted, Frozen, InvalidRequest, NotFound
from interlock.core.freeze import Freeze
from interlock.core.outcome import Finished, Proceed, Refused, Waiting
from tests.databases import Database
from tests.support import (
    BOB,
    OK,
    READ,
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

MINUTE = 60_000
RUNNER = "runner"
LADDER = """
version: 1
rules:
  - name: climbs
    tools: [delete_file]
    then: ask
    expires_in: 30m
    on_expiry: escalate
    remind: [5m]
    escalate:
      - {after: 10m, to: {teams: [finance]}}
"""


def caller_with_key(name: str) -> Caller:
    """A key that is bound to nobody."""
    return Caller(owner=f"key:{name}", owners=frozenset({f"key:{name}"}), agents=(name,), credential=name)


async def add_freeze(
    services: AppServices, scope: str = "workspace", name: str = "", reason: str = "Stop it."
) -> Freeze:
    draft = Freeze(
        id=uuid7(services.clock()),
        workspace="default",
        scope=scope,
        name=name,
        reason=reason,
        by="ada",
        at=0,  # type: ignore[arg-type]
    )
    made = await services.store.freezes.add(draft)
    await services.refresh_policy("default", {})
    return made


async def release(services: AppServices, freeze: Freeze) -> Freeze:
    done = await services.store.freezes.release("default", freeze.id, "ada", "All is well.")
    await services.store.freezes.settle("default", freeze.id)
    await services.refresh_policy("default", {})
    return done


async def approved_call(services: AppServices, number: int | str = 1, **more: object) -> str:
    approval_id = await propose_pending(services, number, **more)
    await approve(services, approval_id)
    return approval_id


async def start(services: AppServices, approval_id: str, runner: str = RUNNER) -> int:
    return (await services.gate.start("default", approval_id, runner)).fence


async def test_nothing_starts_in_a_frozen_workspace_and_everything_after_its_release(services: AppServices) -> None:
    approval_id = await approved_call(services)
    freeze = await add_freeze(services)
    with pytest.raises(Frozen, match=r"Stop it\.") as refused:
        await start(services, approval_id)
    assert refused.value.status == 409
    assert refused.value.to_json()["freeze_id"] == freeze.id
    assert isinstance(await services.gate.get_outcome("default", approval_id), Waiting)
    await release(services, freeze)
    assert isinstance(await services.gate.get_outcome("default", approval_id), Proceed)
    assert await start(services, approval_id) == 1
    assert (await event_kinds(services))[-3:] == ["frozen", "unfrozen", "started"]
    assert await ledger_violations(services) == []


async def test_people_decide_and_running_calls_end_while_all_is_frozen(services: AppServices) -> None:
    running, waiting = await approved_call(services, 1), await propose_pending(services, 2)
    fence = await start(services, running)
    await add_freeze(services)
    assert await approve(services, waiting) == "approved"
    await services.gate.renew("default", running, fence)
    await services.gate.finish("default", running, fence, ok=True, payload=OK)
    assert isinstance(await services.gate.get_outcome("default", running), Finished)
    assert await ledger_violations(services) == []


async def test_a_start_that_is_sent_again_is_answered_as_before(services: AppServices) -> None:
    approval_id = await approved_call(services)
    assert await start(services, approval_id, "attempt:key1:once") == 1
    await add_freeze(services)
    assert await start(services, approval_id, "attempt:key1:once") == 1
    with pytest.raises(AlreadyStarted):
        await start(services, approval_id, "attempt:key1:twice")


async def test_new_calls_are_refused_with_the_reason_reads_too(services: AppServices) -> None:
    await add_freeze(services)
    for spec, number in ((WRITE, 1), (READ, 2)):
        outcome = await services.gate.check(call(number, tool=spec.name), spec)
        assert isinstance(outcome, Refused)
        assert "Stop it." in outcome.reason
    assert (await event_kinds(services))[-3:] == ["frozen", "denied", "denied"]


async def test_a_flood_of_frozen_reads_leaves_few_entries(services: AppServices, clock: Clock) -> None:
    await add_freeze(services)
    for number in range(100):
        assert isinstance(await services.gate.check(call(number, tool=READ.name), READ), Refused)
    assert (await event_kinds(services)).count("denied") == 60
    clock.advance(MINUTE)
    await services.gate.check(call("later", tool=READ.name), READ)
    assert (await event_kinds(services)).count("denied") == 61


async def test_a_known_call_keeps_its_outcome_while_it_is_frozen(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await add_freeze(services)
    outcome = await services.gate.check(call(), WRITE)
    assert isinstance(outcome, Waiting)
    assert outcome.approval_id == approval_id


@pytest.mark.parametrize(
    ("scope", "name", "inside", "outside"),
    [
        ("agent", "Bot ", {"agent": "bot"}, {"agent": "other"}),
        ("agent", "bot", {"agent": "sub", "agent_path": ("bot", "sub")}, {"agent": "robot"}),
        ("tool", "delete_*", {}, {"tool": "move_file"}),
    ],
)
async def test_a_freeze_stops_its_scope_alone(
    services: AppServices, scope: str, name: str, inside: dict[str, object], outside: dict[str, object]
) -> None:
    await add_freeze(services, scope, name)
    assert isinstance(await services.gate.check(call(1, **inside), WRITE), Refused)
    assert not isinstance(await services.gate.check(call(2, **outside), WRITE), Refused)


async def test_a_frozen_key_starts_nothing_and_proposes_nothing(services: AppServices) -> None:
    approval_id = await approved_call(services)
    freeze = await add_freeze(services, "key", "key1")
    with pytest.raises(Frozen):
        await start(services, approval_id, "attempt:key1:x")
    assert isinstance(await services.gate.check(call(2, caller=caller_with_key("key1")), WRITE), Refused)
    assert isinstance(await services.gate.check(call(3, caller=caller_with_key("key2")), WRITE), Waiting)
    assert await start(services, approval_id, "attempt:key2:x") == 1
    assert (await release(services, freeze)).released_by == "ada"
    assert await ledger_violations(services) == []


async def test_an_agents_freeze_covers_every_key_that_has_used_its_name(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services, open_services(database, clock) as elsewhere:
        await elsewhere.gate.check(call(1, tool=READ.name, agent="bot", caller=caller_with_key("key1")), READ)
        approval_id = await approved_call(services, 2, agent="other")
        await add_freeze(services, "agent", "bot")
        assert isinstance(
            await services.gate.check(call(3, agent="innocent", caller=caller_with_key("key1")), WRITE), Refused
        )
        assert isinstance(
            await services.gate.check(call(4, agent="innocent", caller=caller_with_key("key2")), WRITE), Waiting
        )
        with pytest.raises(Frozen):
            await start(elsewhere, approval_id, "attempt:key1:x")
        await elsewhere.gate.check(call(5, tool=READ.name, agent="bot", caller=caller_with_key("key2")), READ)
        with pytest.raises(Frozen):
            await start(services, approval_id, "attempt:key2:x")


async def chain(services: AppServices) -> list[str]:
    """The ids of a key and of two that replaced it."""
    first, _ = await services.accounts.create_key("default", "bot", "agent", "ada")
    second, _ = await services.accounts.rotate_key("default", first.id, "ada")
    third, _ = await services.accounts.rotate_key("default", second.id, "ada")
    return [first.id, second.id, third.id]


def rotated_caller(key_id: str, root: str) -> Caller:
    return replace(caller_with_key(key_id), owner=f"key:{root}", root=root)


# R59
@pytest.mark.parametrize("named", [0, 1, 2])
async def test_a_keys_freeze_covers_its_whole_chain_of_rotations(services: AppServices, named: int) -> None:
    keys, others = await chain(services), await chain(services)
    approval_id = await approved_call(services, agent="other")
    freeze = await add_freeze(services, "key", keys[named])
    newest, _ = await services.accounts.rotate_key("default", keys[-1], "ada")
    for number, each in enumerate((*keys, newest.id)):
        refused = await services.gate.check(call(f"in{number}", caller=rotated_caller(each, keys[0])), WRITE)
        assert isinstance(refused, Refused)
        with pytest.raises(Frozen):
            await start(services, approval_id, f"attempt:{each}:x")
    assert isinstance(
        await services.gate.check(call("out", caller=rotated_caller(others[1], others[0])), WRITE), Waiting
    )
    await release(services, freeze)
    assert await start(services, approval_id, f"attempt:{newest.id}:x") == 1
    assert await ledger_violations(services) == []


# R59
@pytest.mark.parametrize("used", [0, 1, 2])
async def test_an_agents_freeze_covers_the_chain_of_every_key_that_used_its_name(
    database: Database, clock: Clock, used: int
) -> None:
    async with open_services(database, clock) as services, open_services(database, clock) as elsewhere:
        keys, others = await chain(services), await chain(services)
        approval_id = await approved_call(services, agent="other")
        await services.gate.check(
            call("read", tool=READ.name, agent="bot", caller=rotated_caller(keys[used], keys[0])), READ
        )
        await add_freeze(services, "agent", "bot")
        newest, _ = await elsewhere.accounts.rotate_key("default", keys[-1], "ada")
        for number, each in enumerate((*keys, newest.id)):
            renamed = call(f"in{number}", agent="innocent", caller=rotated_caller(each, keys[0]))
            assert isinstance(await services.gate.check(renamed, WRITE), Refused)
            with pytest.raises(Frozen):
                await start(services, approval_id, f"attempt:{each}:x")
        assert await start(elsewhere, approval_id, f"attempt:{others[2]}:x") == 1


async def test_deadlines_reminders_and_escalation_move_by_the_frozen_time(database: Database, clock: Clock) -> None:
    async with open_services(database, clock, LADDER) as services:
        approval_id = await propose_pending(services)
        clock.advance(4 * MINUTE)
        freeze = await add_freeze(services)
        clock.advance(60 * MINUTE)
        assert await services.worker.sweep() == 0
        outcome = await services.gate.get_outcome("default", approval_id)
        assert isinstance(outcome, Waiting)
        assert outcome.until == clock.now + 26 * MINUTE
        await release(services, freeze)
        for minutes, kind in ((1, "reminded"), (6, "escalated"), (26, "expired")):
            clock.now = START + (64 + minutes) * MINUTE - 1
            assert await services.worker.sweep() == 0
            clock.now += 1
            assert await services.worker.sweep() == 1
            assert (await event_kinds(services))[-1] == kind
        assert await status(services, approval_id) == "expired"
        assert await ledger_violations(services) == []


async def test_what_was_approved_can_be_started_for_as_long_after_the_release(
    services: AppServices, clock: Clock
) -> None:
    approval_id = await approved_call(services)
    before = (await services.store.get("default", approval_id)).approval.deadlines.start_by
    clock.advance(MINUTE)
    freeze = await add_freeze(services)
    clock.advance(24 * 60 * MINUTE)
    assert await services.worker.sweep() == 0
    with pytest.raises(Frozen):
        await start(services, approval_id)
    await release(services, freeze)
    approval = (await services.store.get("default", approval_id)).approval
    assert approval.deadlines.start_by == (before or 0) + 24 * 60 * MINUTE
    assert await start(services, approval_id) == 1
    assert await ledger_violations(services) == []


async def test_a_decision_after_the_old_deadline_counts_while_it_is_held_up(
    services: AppServices, clock: Clock
) -> None:
    approval_id = await propose_pending(services)
    freeze = await add_freeze(services)
    clock.advance(60 * MINUTE)
    assert await approve(services, approval_id) == "approved"
    clock.advance(MINUTE)
    await release(services, freeze)
    approval = (await services.store.get("default", approval_id)).approval
    assert approval.deadlines.start_by == START + 60 * MINUTE + approval.terms.start_within + MINUTE
    assert (await event_kinds(services))[-4:] == ["deferred", "approved", "unfrozen", "deferred"]
    assert await ledger_violations(services) == []


@pytest.mark.parametrize("undone", ["while it is frozen", "after the release"])
async def test_the_deadline_of_a_rejection_that_is_undone_moves_by_the_frozen_time(
    database: Database, clock: Clock, undone: str
) -> None:
    async with open_services(database, clock, LADDER + "defaults: {undo_window: 1h}\n") as services:
        early, late = await propose_pending(services, "early"), await propose_pending(services, "late")
        clock.advance(4 * MINUTE)
        await services.inbox.decide("default", early, Reject("No."), BOB)
        freeze = await add_freeze(services)
        clock.advance(10 * MINUTE)
        await services.inbox.decide("default", late, Reject("No."), BOB)  # rejected while it is frozen
        clock.advance(10 * MINUTE)
        if undone == "while it is frozen":
            for each in (early, late):
                await services.inbox.undo("default", each, BOB)
        clock.advance(10 * MINUTE)
        await release(services, freeze)
        clock.advance(2 * MINUTE)  # half an hour and six minutes since they were proposed
        if undone == "after the release":
            for each in (early, late):
                await services.inbox.undo("default", each, BOB)
        for each in (early, late):
            approval = (await services.store.get("default", each)).approval
            assert (approval.status, approval.deadlines.expires_at) == ("pending", START + 60 * MINUTE)
            assert [due.at - START for due in pending_timers(approval)] == [35 * MINUTE, 40 * MINUTE, 60 * MINUTE]
        assert await ledger_violations(services) == []


async def test_a_rejection_that_was_released_to_its_agent_before_stays_as_it_is(
    services: AppServices, clock: Clock
) -> None:
    approval_id = await propose_pending(services)
    await services.inbox.decide("default", approval_id, Reject("No."), BOB)
    freeze = await add_freeze(services)
    clock.advance(MINUTE)  # the time to undo it ends meanwhile
    await release(services, freeze)
    assert (await services.store.get("default", approval_id)).approval.deadlines.deferred == 0
    assert "deferred" not in await event_kinds(services)


async def test_freezes_that_overlap_move_a_deadline_once(services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    expires_at = (await services.store.get("default", approval_id)).approval.deadlines.expires_at
    first = await add_freeze(services)
    clock.advance(5_000)
    second = await add_freeze(services, "tool", WRITE.name)
    clock.advance(5_000)
    await release(services, first)
    clock.advance(5_000)
    await release(services, second)
    assert (await services.store.get("default", approval_id)).approval.deadlines.expires_at == expires_at + 15_000
    assert await ledger_violations(services) == []


async def test_a_release_that_was_killed_is_finished_by_a_worker(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as services:
        ids = [await propose_pending(services, number) for number in range(3)]
        freeze = await add_freeze(services)
        clock.advance(60 * MINUTE)
        await services.store.freezes.release("default", freeze.id, "ada")
    clock.advance(1_000)
    async with open_services(database, clock) as later:
        assert await later.worker.sweep() == 0
        assert [await status(later, each) for each in ids] == ["pending"] * 3
        assert await later.store.freezes.unsettled() == []
        moved = [(await later.store.get("default", each)).approval.deadlines.deferred for each in ids]
        assert moved == [60 * MINUTE] * 3
        assert await ledger_violations(later) == []


async def test_more_overdue_calls_than_a_worker_takes_at_once_hold_up_nobody_else(
    database: Database, clock: Clock
) -> None:
    async with open_services(database, clock) as services:
        await asyncio.gather(*(propose_pending(services, number, agent="bot") for number in range(120)))
        clock.advance(1)
        other = await propose_pending(services, "other", agent="other")
        freeze = await add_freeze(services, "agent", "bot")
        clock.advance(25 * 60 * MINUTE)
        await services.worker.sweep()
        await services.worker.sweep()
        assert await status(services, other) == "expired"
        assert (await services.store.stats("default")).by_status["pending"] == 120
        await release(services, freeze)
        assert (await event_kinds(services)).count("deferred") == 120


async def test_two_admins_at_once_make_one_freeze_and_release_it_once(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        made = await asyncio.gather(add_freeze(one), add_freeze(two), add_freeze(one))
        assert len({each.id for each in made}) == 1
        await asyncio.gather(release(one, made[0]), release(two, made[0]))
        assert [kind for kind in await event_kinds(one) if "frozen" in kind] == ["frozen", "unfrozen"]
        assert await one.store.freezes.list_open("default") == ()


async def test_a_freeze_needs_a_reason_and_fits_its_scope(services: AppServices) -> None:
    for scope, name, reason in (("workspace", "", " "), ("workspace", "x", "Why"), ("agent", "", "Why")):
        with pytest.raises(InvalidRequest):
            await add_freeze(services, scope, name, reason)
    with pytest.raises(NotFound):
        await services.store.freezes.release("default", "none", "ada")


async def test_no_start_follows_a_freeze_in_the_ledger_in_any_race(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        ids = await asyncio.gather(*(approved_call(one, number) for number in range(24)))

        async def tries(services: AppServices, approval_id: str) -> str:
            try:
                await start(services, approval_id)
            except (Frozen, AlreadyStarted) as error:
                return error.code
            return "started"

        async def freeze_midway() -> Freeze:
            for _ in range(3):
                await asyncio.sleep(0)
            return await add_freeze(two)

        racing = [tries((one, two)[number % 2], each) for number, each in enumerate(ids)]
        *results, freeze = await asyncio.gather(*racing[:12], freeze_midway(), *racing[12:])
        results = [each for each in (*results, freeze) if isinstance(each, str)]
        every = await event_kinds(one)
        assert "started" not in every[every.index("frozen") :]
        assert results.count("started") == every.count("started")
        assert await ledger_violations(one) == []


async def test_the_entries_say_what_was_frozen_and_why(services: AppServices) -> None:
    freeze = await add_freeze(services, "tool", "delete_file")
    await release(services, freeze)
    entries = [each async for chunk in services.store.entries("default") for each in chunk if "frozen" in each.kind]
    assert [(each.kind, each.actor) for each in entries] == [("frozen", "ada"), ("unfrozen", "ada")]
    assert json.loads(entries[0].data) == {"freeze": freeze.id, "scope": "tool", "name": "delete_file"}
    assert json.loads(entries[0].content or b"") == {"reason": "Stop it."}
    assert (await services.store.freezes.list_all("default"))[0].released_by == "ada"


async def test_a_clock_that_went_back_shortens_no_deadline(services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    clock.advance(10_000)
    freeze = await add_freeze(services)
    clock.advance(-5_000)
    done = await release(services, freeze)
    assert done.released_at == freeze.at
    assert (await services.store.get("default", approval_id)).approval.deadlines.deferred == 0
