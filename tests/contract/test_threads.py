"""Threads in the database: one lease holder, no lost wake-up, and only due threads are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec, propose
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import Confirmation, NewThreadEntry, Thread, ThreadOrigin, ThreadTransition, open_thread
from interlock.core.decision import Acknowledgement, Approve, Reject
from interlock.core.errors import Conflict, InvalidRequest, LeaseLost, NotFound
from interlock.core.ledger.event import Moment
from interlock.core.outcome import Waiting
from interlock.storage.engine.queries import load_queries
from interlock.storage.engine.transaction import DUE_THREADS_TOPIC
from interlock.storage.tables.threads import Draft
from tests.databases import Database
from tests.faults.contention import lease_thread, make_thread
from tests.support import BOB, OK, START, Clock, ledger_violations, open_services

SEND = ToolSpec("send", "write")
WORDS = NewThreadEntry("failed", "time", {"attempt": 1, "error": "no", "again_at": 0})
ENDED = NewThreadEntry("ended", "time", {"status": "done", "reason": ""})


@pytest.fixture
async def other_services(database: Database, clock: Clock, services: AppServices) -> AsyncIterator[AppServices]:
    """The same database through another store, as another process has it."""
    async with open_services(database, clock) as more:
        yield more


async def create_thread(services: AppServices, thread_id: str = "thread-1") -> Thread:
    return await make_thread(services, thread_id)


async def lease_new_thread(services: AppServices, thread_id: str = "thread-1", runner: str = "mine") -> Thread:
    await create_thread(services, thread_id)
    thread = await lease_thread(services, thread_id, runner)
    assert thread is not None
    return thread


async def apply_transition(
    services: AppServices, move: Callable[[Thread, Moment], ThreadTransition], thread_id: str = "thread-1"
) -> Thread:
    return await services.store.threads.step("default", thread_id, move)


async def get_thread(services: AppServices, thread_id: str = "thread-1") -> Thread:
    return await services.store.threads.get("default", thread_id)


async def append_entry(
    services: AppServices, fence: int, *lines: NewThreadEntry, thread_id: str = "thread-1"
) -> Thread:
    return await apply_transition(services, lambda thread, now: threads.append(thread, fence, lines, now), thread_id)


async def park_thread(
    services: AppServices, fence: int, due_at: int | None = None, thread_id: str = "thread-1"
) -> Thread:
    return await apply_transition(services, lambda thread, now: threads.suspend(thread, fence, due_at, now), thread_id)


async def send_message(services: AppServices, text: str = "And?") -> Thread:
    return await apply_transition(services, lambda thread, now: threads.add_message(thread, "ann", text, now))


async def stop_thread(services: AppServices) -> Thread:
    return await apply_transition(services, lambda thread, now: threads.stop(thread, "ann", now))


async def kinds(services: AppServices, thread_id: str = "thread-1") -> list[str]:
    return [line.kind for line in await services.store.threads.entries("default", thread_id)]


async def add_card(services: AppServices, thread_id: str = "thread-1", call: str = "1:c1") -> str:
    """A call of this thread that waits for people."""
    outcome = await services.gate.check(propose("send", {"to": "bob"}, thread_id, call, thread_id=thread_id), SEND)
    assert isinstance(outcome, Waiting)
    return outcome.approval_id


async def approve(services: AppServices, approval_id: str) -> None:
    stored = await services.store.get("default", approval_id)
    await services.inbox.decide("default", approval_id, Approve(Acknowledgement(stored.approval.args_sha256)), BOB)


# Rows and lines


async def test_a_thread_comes_back_as_it_was_kept(services: AppServices) -> None:
    below = ThreadOrigin("default", "writer", "ann", ("assistant", "writer"), "thread-0", "c1")
    kept = await services.store.threads.add(
        "default", "thread-1", lambda moment: open_thread("thread-1", below, "Löse das 🙂", moment)
    )
    assert await get_thread(services) == kept
    confirmation = Confirmation("ann", "c1", "delete_page", "a" * 64)
    held = await lease_thread(services, "thread-1", "mine")
    assert held is not None
    question = await apply_transition(
        services, lambda thread, now: threads.request_confirmation(thread, held.fence, confirmation, (WORDS,), now)
    )
    assert await get_thread(services) == question
    assert question.confirmation == confirmation
    (said, confirming, failed) = await services.store.threads.entries("default", "thread-1")
    assert (said.number, said.at, said.kind, said.actor) == (1, START, "said", "agent:assistant")
    assert said.body == {"text": "Löse das 🙂", "agent": "writer"}
    assert (confirming.kind, failed.body) == ("confirming", WORDS.body)
    assert await ledger_violations(services) == []


async def test_adding_a_thread_twice_is_adding_it_once(services: AppServices, other_services: AppServices) -> None:
    made = await asyncio.gather(*(create_thread((services, other_services)[n % 2]) for n in range(10)))
    assert {thread.id for thread in made} == {"thread-1"}
    assert await kinds(services) == ["said"]


async def test_a_thread_that_is_not_there_is_not_found(services: AppServices) -> None:
    assert await services.store.threads.find("default", "thread-1") is None
    with pytest.raises(NotFound):
        await get_thread(services)
    with pytest.raises(NotFound):
        await send_message(services)
    await create_thread(services)
    with pytest.raises(NotFound):
        await services.store.threads.get("other", "thread-1")


async def test_lines_that_are_written_at_once_are_numbered_without_a_gap(
    services: AppServices, other_services: AppServices
) -> None:
    held = await lease_new_thread(services)

    async def mirror(services: AppServices, number: int) -> None:
        line = NewThreadEntry("asked", "agent:writer", {"call": f"c{number}", "child": "thread-2"})
        await apply_transition(services, lambda thread, now: threads.mirror(thread, (line,), now))

    writing = [
        append_entry(services, held.fence, WORDS) if n % 3 else mirror((services, other_services)[n % 2], n)
        for n in range(60)
    ]
    await asyncio.gather(*writing)
    lines = await services.store.threads.entries("default", "thread-1")
    assert [line.number for line in lines] == list(range(1, 62))
    assert (await get_thread(services)).entry_count == 61
    assert await ledger_violations(services) == []


async def test_a_long_log_is_read_to_its_end(services: AppServices) -> None:
    held = await lease_new_thread(services)
    await append_entry(services, held.fence, *[WORDS] * 2_500)
    assert len(await services.store.threads.entries("default", "thread-1")) == 2_501
    assert [line.number for line in await services.store.threads.entries("default", "thread-1", 2_499)] == [
        2_500,
        2_501,
    ]
    assert [line.number for line in await services.store.threads.entries("default", "thread-1", 7, 10)] == [8, 9]


async def test_a_line_that_cannot_be_kept_leaves_nothing_behind(services: AppServices) -> None:
    held = await lease_new_thread(services)
    for body in ({"text": "a\x00b"}, {"text": "x" * 1_100_000}):
        with pytest.raises(InvalidRequest):
            await append_entry(services, held.fence, WORDS, NewThreadEntry("replied", "agent:assistant", body))
    assert (await kinds(services), (await get_thread(services)).entry_count) == (["said"], 1)
    assert await ledger_violations(services) == []


async def test_what_cannot_be_kept_leaves_nothing_behind_in_other_threads(services: AppServices) -> None:
    held = await lease_new_thread(services)
    await create_thread(services, "thread-0")
    too_much = NewThreadEntry("asked", "agent:assistant", {"text": "x" * 1_100_000})

    def shown(thread: Thread | None, now: Moment) -> ThreadTransition | None:
        return None if thread is None else threads.mirror(thread, (WORDS,), now)

    with pytest.raises(InvalidRequest):
        await services.store.threads.step(
            "default",
            "thread-1",
            lambda thread, now: threads.append(thread, held.fence, (too_much,), now),
            {"thread-0": shown, "thread-9": shown},
        )
    assert (await kinds(services, "thread-0"), await ledger_violations(services)) == (["said"], [])


async def test_each_line_is_an_entry_of_the_ledger_without_its_words(services: AppServices) -> None:
    await create_thread(services)
    await send_message(services, "my secret words")
    entries = [entry async for page in services.store.entries("default") for entry in page]
    result = [(entry.kind, json.loads(entry.data)) for entry in entries if entry.kind.startswith("thread_")]
    assert result == [
        ("thread_said", {"thread_id": "thread-1", "line": 1, "agent": "assistant"}),
        ("thread_said", {"thread_id": "thread-1", "line": 2}),
    ]
    assert "secret" not in str(entries)


# One holder


# R32
async def test_of_many_who_claim_a_thread_one_has_it(services: AppServices, other_services: AppServices) -> None:
    await create_thread(services)
    claims = await asyncio.gather(
        *(lease_thread((services, other_services)[n % 2], "thread-1", f"runner{n}") for n in range(20))
    )
    (winner,) = [thread for thread in claims if thread is not None]
    assert await get_thread(other_services) == winner
    assert (winner.status, winner.fence) == ("running", 1)


# R32
async def test_what_an_old_holder_writes_is_refused_and_leaves_nothing_behind(
    services: AppServices, other_services: AppServices, clock: Clock
) -> None:
    old = await lease_new_thread(services)
    clock.advance(30_000)
    newer = await lease_thread(other_services, "thread-1", "theirs")
    assert newer is not None
    before = await kinds(services)
    assert before == ["said", "resumed"]
    moves: list[Callable[[Thread, Moment], ThreadTransition]] = [
        lambda thread, now: threads.append(thread, old.fence, (WORDS,), now),
        lambda thread, now: threads.renew(thread, old.fence, 1, now),
        lambda thread, now: threads.suspend(thread, old.fence, None, now),
        lambda thread, now: threads.end(thread, old.fence, 2, (ENDED,), now),
    ]
    for move in moves:
        with pytest.raises(LeaseLost):
            await apply_transition(services, move)
    assert (await kinds(services), await get_thread(services)) == (before, newer)


async def test_a_renewed_lease_is_not_taken(services: AppServices, clock: Clock) -> None:
    held = await lease_new_thread(services)
    clock.advance(29_000)
    await apply_transition(services, lambda thread, now: threads.renew(thread, held.fence, 30_000, now))
    clock.advance(29_000)
    assert await lease_thread(services, "thread-1", "theirs") is None
    clock.advance(1_000)
    assert await lease_thread(services, "thread-1", "theirs") is not None


async def test_stop_takes_a_running_thread_away(services: AppServices, other_services: AppServices) -> None:
    held = await lease_new_thread(services)
    await stop_thread(other_services)
    with pytest.raises(LeaseLost):
        await append_entry(services, held.fence, WORDS)
    assert await lease_thread(services, "thread-1", "mine") is not None
    assert await kinds(services) == ["said", "stopped"]


async def test_stopping_and_writing_at_once_never_writes_behind_the_stop(
    services: AppServices, other_services: AppServices
) -> None:
    for number in range(15):
        thread_id = f"thread-{number}"
        held = await lease_new_thread(services, thread_id)
        await asyncio.gather(
            append_entry(services, held.fence, WORDS, thread_id=thread_id),
            apply_transition(other_services, lambda thread, now: threads.stop(thread, "ann", now), thread_id),
            return_exceptions=True,
        )
        assert (await kinds(services, thread_id))[-1] == "stopped"


async def test_what_is_said_while_it_runs_is_seen_before_the_end(
    services: AppServices, other_services: AppServices
) -> None:
    held = await lease_new_thread(services)
    seen = len(await kinds(services))
    await send_message(other_services)
    ended = await apply_transition(services, lambda thread, now: threads.end(thread, held.fence, seen, (ENDED,), now))
    assert (ended.status, await kinds(services)) == ("ready", ["said", "said"])
    assert await services.store.threads.due(START, 10) == [("default", "thread-1")]


async def test_a_message_and_the_end_at_once_leave_no_message_unanswered(
    services: AppServices, other_services: AppServices
) -> None:
    """Whichever comes first: the thread is due, or the message comes behind the end and makes it due."""
    for number in range(15):
        thread_id = f"thread-{number}"
        held = await lease_new_thread(services, thread_id)
        fence = held.fence

        def ending(thread: Thread, now: Moment, fence: int = fence) -> ThreadTransition:
            return threads.end(thread, fence, 1, (ENDED,), now)

        speaking = apply_transition(
            other_services, lambda thread, now: threads.add_message(thread, "ann", "Wait", now), thread_id
        )
        await asyncio.gather(apply_transition(services, ending, thread_id), speaking)
        assert (await get_thread(services, thread_id)).status == "ready"


# Waking


async def is_due(services: AppServices, thread_id: str = "thread-1") -> bool:
    return ("default", thread_id) in await services.store.threads.due(START, 1_000)


# R3
async def test_every_step_of_an_approval_wakes_its_thread(services: AppServices) -> None:
    held = await lease_new_thread(services)
    approval_id = await add_card(services)
    await park_thread(services, held.fence)
    assert not await is_due(services)

    async def rest() -> None:
        assert await is_due(services)
        thread = await lease_thread(services, "thread-1", "mine")
        assert thread is not None
        await park_thread(services, thread.fence)
        assert not await is_due(services)

    await services.inbox.ask("default", approval_id, "Why?", BOB)
    await rest()
    await services.gate.answer("default", approval_id, 1, "Because.")
    await rest()
    await services.inbox.decide("default", approval_id, Reject("No"), BOB)
    await rest()
    await services.inbox.undo("default", approval_id, BOB)
    await rest()
    await approve(services, approval_id)
    await rest()
    started = await services.gate.start("default", approval_id, "r")
    await rest()
    await services.gate.finish("default", approval_id, started.fence, ok=True, payload=OK)
    await rest()


# R5
async def test_time_wakes_a_thread_too(services: AppServices, clock: Clock) -> None:
    held = await lease_new_thread(services)
    await add_card(services)
    await park_thread(services, held.fence)
    clock.advance(86_400_000)
    await services.worker.sweep()
    assert (await services.store.threads.due(clock.now, 10)) == [("default", "thread-1")]


async def test_a_step_that_is_refused_wakes_nobody(services: AppServices) -> None:
    held = await lease_new_thread(services)
    approval_id = await add_card(services)
    await park_thread(services, held.fence)
    before = await get_thread(services)
    with pytest.raises(Conflict):
        await services.gate.start("default", approval_id, "r")
    assert await get_thread(services) == before


async def test_approvals_of_other_runs_wake_no_thread(services: AppServices) -> None:
    held = await lease_new_thread(services)
    approval_id = await add_card(services, "run")
    await park_thread(services, held.fence)
    await approve(services, approval_id)
    assert not await is_due(services)


async def test_waking_one_that_is_idle_leaves_it_idle(services: AppServices) -> None:
    held = await lease_new_thread(services)
    approval_id = await add_card(services)
    await apply_transition(services, lambda thread, now: threads.end(thread, held.fence, 1, (ENDED,), now))
    await approve(services, approval_id)
    assert ((await get_thread(services)).status, await is_due(services)) == ("idle", False)


# R3
@pytest.mark.parametrize("same_process", [True, False], ids=["one process", "two processes"])
async def test_a_decision_between_the_look_and_the_parking_is_never_lost(
    services: AppServices, other_services: AppServices, *, same_process: bool
) -> None:
    """In both orders, and both in one batch: the thread is due afterwards."""
    decider = services if same_process else other_services
    for number in range(30):
        thread_id = f"thread-{number}"
        held = await lease_new_thread(services, thread_id)
        approval_id = await add_card(services, thread_id)
        parking, deciding = park_thread(services, held.fence, None, thread_id), approve(decider, approval_id)
        await asyncio.gather(*((parking, deciding) if number % 2 else (deciding, parking)))
        assert await is_due(services, thread_id), number


# R3
async def test_many_decisions_and_a_parking_in_one_batch_wake_the_thread(
    database: Database, services: AppServices
) -> None:
    held = await lease_new_thread(services)
    ids = [await add_card(services, call=f"1:c{n}") for n in range(5)]
    work: list[asyncio.Task[object]] = []
    with database.hold_lock():  # all of it waits for one lock, and then goes together
        work += [asyncio.create_task(approve(services, approval_id)) for approval_id in ids[:3]]
        work.append(asyncio.create_task(park_thread(services, held.fence)))
        work += [asyncio.create_task(approve(services, approval_id)) for approval_id in ids[3:]]
        await asyncio.sleep(0.05)
    await asyncio.gather(*work)
    thread = await get_thread(services)
    assert (await is_due(services), thread.wake_count > 0) == (True, True)


# R13
async def test_the_end_of_a_child_wakes_its_parent_in_the_same_transaction(services: AppServices) -> None:
    above = await lease_new_thread(services, "thread-0")
    await park_thread(services, above.fence, thread_id="thread-0")
    below = ThreadOrigin("default", "writer", "ann", ("assistant", "writer"), "thread-0", "c1")
    await services.store.threads.add("default", "thread-1", lambda now: open_thread("thread-1", below, "Go", now))
    child = await lease_thread(services, "thread-1", "mine")
    assert child is not None
    await apply_transition(services, lambda thread, now: threads.end(thread, child.fence, 1, (ENDED,), now))
    assert await is_due(services, "thread-0")
    assert [each.id for each in await services.store.threads.children("default", "thread-0")] == ["thread-1"]


# Drafts


@pytest.mark.parametrize("kind", ["replied", "failed", "stopped", "ended", "resumed"])
async def test_a_draft_is_gone_with_the_line_that_takes_its_place(
    services: AppServices, other_services: AppServices, kind: str
) -> None:
    held = await lease_new_thread(services)
    store = services.store.threads
    assert await store.draft("default", "thread-1") is None
    await store.write_draft("default", "thread-1", Draft(1, "Well"))
    await store.write_draft("default", "thread-1", Draft(1, "Well, hello 🙂"))
    assert await other_services.store.threads.draft("default", "thread-1") == Draft(1, "Well, hello 🙂")
    await append_entry(services, held.fence, NewThreadEntry("asked", "agent:assistant", {}))
    assert await store.draft("default", "thread-1") is not None
    await append_entry(services, held.fence, NewThreadEntry(kind, "agent:assistant", {}))
    assert await store.draft("default", "thread-1") is None


# What is due


async def test_what_is_due_is_given_in_its_order_and_no_more(services: AppServices, clock: Clock) -> None:
    for number, due_at in enumerate((None, START + 5_000, START + 1_000)):
        held = await lease_new_thread(services, f"thread-{number}")
        await park_thread(services, held.fence, due_at, f"thread-{number}")
    store = services.store.threads
    assert (await store.due(START, 10), await store.next_due()) == ([], START + 1_000)
    assert await store.due(START + 1_000, 10) == [("default", "thread-2")]
    assert await store.due(START + 9_000, 10) == [("default", "thread-2"), ("default", "thread-1")]
    assert await store.due(START + 9_000, 1) == [("default", "thread-2")]
    assert await store.running() == []
    clock.advance(1_000)
    assert await lease_thread(services, "thread-2", "mine") is not None
    assert await store.running() == [("default", "thread-2", "mine")]


async def test_where_nothing_waits_nothing_is_due(services: AppServices) -> None:
    assert (await services.store.threads.due(START, 10), await services.store.threads.next_due()) == ([], None)


async def test_a_persons_threads_are_listed_the_newest_first_and_in_pages(services: AppServices, clock: Clock) -> None:
    for number in range(5):
        clock.advance(1_000)
        await create_thread(services, f"thread-{number}")
    store = services.store.threads
    first = await store.list_by_person("default", "ann", (2**62, ""), 3)
    assert [thread.id for thread in first] == ["thread-4", "thread-3", "thread-2"]
    rest = await store.list_by_person("default", "ann", (first[-1].updated_at, first[-1].id), 3)
    assert [thread.id for thread in rest] == ["thread-1", "thread-0"]
    assert await store.list_by_person("default", "bob", (2**62, ""), 3) == []
    assert len(await store.list_all("default", (2**62, ""), 9)) == 5


MANY = """
insert into threads (workspace, id, agent, person, title, parent, parent_call, path, status, lines, due_at, woken,
    runner, fence, confirmation, created_at, updated_at)
with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000)
select 'default', 'thread-parked-' || i, 'assistant', 'ann', 'Hi', '', '', '["assistant"]', 'waiting', 1,
    case when i % 2 = 0 then null else {later} + i end, 0, '', 1, '', {now}, {now} from n
"""
PLANS = {"due_threads": "threads_due", "next_due_thread": "threads_due", "running_threads": "threads_running"}


async def test_ten_thousand_parked_threads_are_not_looked_at(database: Database, services: AppServices) -> None:
    database.sql(MANY.format(now=START, later=START + 86_400_000))
    await create_thread(services)
    if database.kind == "postgres":
        database.sql("analyze threads")
    assert await services.store.threads.due(START, 100) == [("default", "thread-1")]
    queries = load_queries()
    for name, index in PLANS.items():
        plan = _plan(database, queries[name])
        assert index in plan, f"{name}: {plan}"
        assert "Seq Scan" not in plan, f"{name}: {plan}"


def _plan(database: Database, query: str) -> str:
    values = [START, 100][: query.count("?")]
    words = "explain query plan" if database.kind == "sqlite" else "explain"
    return "\n".join(str(row) for row in database.sql(f"{words} {query}", *values))


# Wake-ups


async def is_woken(services: AppServices, workspace: str, name: str, act: Callable[[], object]) -> bool:
    """Whether somebody who waits for this hears of it long before they would look by themselves."""
    loop = asyncio.get_running_loop()
    async with services.store.watch(workspace, name) as watch:
        await watch.wait(0.05)  # what was before
        began = loop.time()
        await act()  # type: ignore[misc]
        await watch.wait(20.0)
        return loop.time() - began < 15.0


# R3
async def test_who_follows_a_thread_hears_of_it(services: AppServices) -> None:
    await create_thread(services)
    assert await is_woken(services, "default", "thread-1", lambda: send_message(services))


# R3
async def test_who_follows_a_thread_in_another_process_hears_of_it(
    services: AppServices, other_services: AppServices
) -> None:
    await create_thread(services)
    assert await is_woken(other_services, "default", "thread-1", lambda: send_message(services))


async def test_who_advances_threads_hears_of_what_is_due(services: AppServices) -> None:
    held = await lease_new_thread(services)
    approval_id = await add_card(services)
    await park_thread(services, held.fence)
    assert await is_woken(services, "", DUE_THREADS_TOPIC, lambda: approve(services, approval_id))
    assert await is_woken(services, "", DUE_THREADS_TOPIC, lambda: create_thread(services, "thread-2"))


# R3
async def test_who_holds_a_thread_hears_of_a_decision_about_its_call(services: AppServices) -> None:
    await lease_new_thread(services)
    approval_id = await add_card(services)
    assert await is_woken(services, "default", "thread-1", lambda: approve(services, approval_id))


async def test_only_the_lease_holder_proposes_calls_of_a_thread(services: AppServices) -> None:  # R24
    """One that lost it to a stop would put a card to people for which nobody waits."""
    thread = await lease_new_thread(services)
    call = propose("send", {"to": "x"}, thread.id, "2:c1", workspace="default", thread_id=thread.id)
    await apply_transition(services, lambda thread, moment: threads.stop(thread, "ann", moment))
    with pytest.raises(LeaseLost):
        await services.gate.with_fence(thread.fence).check(call, SEND)
    assert await services.gate.find_approval("default", thread.id, "2:c1") is None


async def test_what_was_asked_before_a_thread_was_lost_is_still_known(services: AppServices) -> None:  # R24
    thread = await lease_new_thread(services)
    call = propose("send", {"to": "x"}, thread.id, "2:c1", workspace="default", thread_id=thread.id)
    first = await services.gate.with_fence(thread.fence).check(call, SEND)
    await apply_transition(services, lambda thread, moment: threads.stop(thread, "ann", moment))
    assert await services.gate.with_fence(thread.fence).check(call, SEND) == first
