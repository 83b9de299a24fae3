"""Threads in the database: one holder at a time, no wake-up lost, and nothing read that is not due."""

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
from tests.faults.contention import claimed, thread_of
from tests.places import Place as Where
from tests.support import BOB, OK, START, Clock, faults, opened

SEND = ToolSpec("send", "write")
WORDS = NewThreadEntry("failed", "time", {"attempt": 1, "error": "no", "again_at": 0})
ENDED = NewThreadEntry("ended", "time", {"status": "done", "reason": ""})


@pytest.fixture
async def others(place: Where, clock: Clock, parts: AppServices) -> AsyncIterator[AppServices]:
    """The same database through another store, as another process has it."""
    async with opened(place, clock) as more:
        yield more


async def new(parts: AppServices, thread_id: str = "thread-1") -> Thread:
    return await thread_of(parts, thread_id)


async def taken(parts: AppServices, thread_id: str = "thread-1", runner: str = "mine") -> Thread:
    await new(parts, thread_id)
    thread = await claimed(parts, thread_id, runner)
    assert thread is not None
    return thread


async def step(
    parts: AppServices, move: Callable[[Thread, Moment], ThreadTransition], thread_id: str = "thread-1"
) -> Thread:
    return await parts.store.threads.step("default", thread_id, move)


async def get(parts: AppServices, thread_id: str = "thread-1") -> Thread:
    return await parts.store.threads.get("default", thread_id)


async def append(parts: AppServices, fence: int, *lines: NewThreadEntry, thread_id: str = "thread-1") -> Thread:
    return await step(parts, lambda thread, now: threads.append(thread, fence, lines, now), thread_id)


async def park(parts: AppServices, fence: int, due_at: int | None = None, thread_id: str = "thread-1") -> Thread:
    return await step(parts, lambda thread, now: threads.suspend(thread, fence, due_at, now), thread_id)


async def say(parts: AppServices, text: str = "And?") -> Thread:
    return await step(parts, lambda thread, now: threads.add_message(thread, "ann", text, now))


async def stop(parts: AppServices) -> Thread:
    return await step(parts, lambda thread, now: threads.stop(thread, "ann", now))


async def kinds(parts: AppServices, thread_id: str = "thread-1") -> list[str]:
    return [line.kind for line in await parts.store.threads.entries("default", thread_id)]


async def card(parts: AppServices, thread_id: str = "thread-1", call: str = "1:c1") -> str:
    """A call of this thread that waits for people."""
    outcome = await parts.gate.check(propose("send", {"to": "bob"}, thread_id, call, thread_id=thread_id), SEND)
    assert isinstance(outcome, Waiting)
    return outcome.approval_id


async def approve(parts: AppServices, approval_id: str) -> None:
    stored = await parts.store.get("default", approval_id)
    await parts.inbox.decide("default", approval_id, Approve(Acknowledgement(stored.approval.args_sha256)), BOB)


# Rows and lines


async def test_a_thread_comes_back_as_it_was_kept(parts: AppServices) -> None:
    below = ThreadOrigin("default", "writer", "ann", ("assistant", "writer"), "thread-0", "c1")
    kept = await parts.store.threads.add(
        "default", "thread-1", lambda moment: open_thread("thread-1", below, "Löse das 🙂", moment)
    )
    assert await get(parts) == kept
    confirmation = Confirmation("ann", "c1", "delete_page", "a" * 64)
    held = await claimed(parts, "thread-1", "mine")
    assert held is not None
    question = await step(
        parts, lambda thread, now: threads.request_confirmation(thread, held.fence, confirmation, (WORDS,), now)
    )
    assert await get(parts) == question
    assert question.confirmation == confirmation
    (said, confirming, failed) = await parts.store.threads.entries("default", "thread-1")
    assert (said.number, said.at, said.kind, said.actor) == (1, START, "said", "agent:assistant")
    assert said.body == {"text": "Löse das 🙂", "agent": "writer"}
    assert (confirming.kind, failed.body) == ("confirming", WORDS.body)
    assert await faults(parts) == []


async def test_adding_a_thread_twice_is_adding_it_once(parts: AppServices, others: AppServices) -> None:
    made = await asyncio.gather(*(new((parts, others)[n % 2]) for n in range(10)))
    assert {thread.id for thread in made} == {"thread-1"}
    assert await kinds(parts) == ["said"]


async def test_a_thread_that_is_not_there_is_not_found(parts: AppServices) -> None:
    assert await parts.store.threads.find("default", "thread-1") is None
    with pytest.raises(NotFound):
        await get(parts)
    with pytest.raises(NotFound):
        await say(parts)
    await new(parts)
    with pytest.raises(NotFound):
        await parts.store.threads.get("other", "thread-1")


async def test_lines_that_are_written_at_once_are_numbered_without_a_gap(
    parts: AppServices, others: AppServices
) -> None:
    held = await taken(parts)

    async def mirror(doors: AppServices, number: int) -> None:
        line = NewThreadEntry("asked", "agent:writer", {"call": f"c{number}", "child": "thread-2"})
        await step(doors, lambda thread, now: threads.mirror(thread, (line,), now))

    writing = [append(parts, held.fence, WORDS) if n % 3 else mirror((parts, others)[n % 2], n) for n in range(60)]
    await asyncio.gather(*writing)
    lines = await parts.store.threads.entries("default", "thread-1")
    assert [line.number for line in lines] == list(range(1, 62))
    assert (await get(parts)).entry_count == 61
    assert await faults(parts) == []


async def test_a_long_log_is_read_to_its_end(parts: AppServices) -> None:
    held = await taken(parts)
    await append(parts, held.fence, *[WORDS] * 2_500)
    assert len(await parts.store.threads.entries("default", "thread-1")) == 2_501
    assert [line.number for line in await parts.store.threads.entries("default", "thread-1", 2_499)] == [2_500, 2_501]
    assert [line.number for line in await parts.store.threads.entries("default", "thread-1", 7, 10)] == [8, 9]


async def test_a_line_that_cannot_be_kept_leaves_nothing_behind(parts: AppServices) -> None:
    held = await taken(parts)
    for body in ({"text": "a\x00b"}, {"text": "x" * 1_100_000}):
        with pytest.raises(InvalidRequest):
            await append(parts, held.fence, WORDS, NewThreadEntry("replied", "agent:assistant", body))
    assert (await kinds(parts), (await get(parts)).entry_count) == (["said"], 1)
    assert await faults(parts) == []


async def test_what_cannot_be_kept_leaves_nothing_behind_in_other_threads(parts: AppServices) -> None:
    held = await taken(parts)
    await new(parts, "thread-0")
    too_much = NewThreadEntry("asked", "agent:assistant", {"text": "x" * 1_100_000})

    def shown(thread: Thread | None, now: Moment) -> ThreadTransition | None:
        return None if thread is None else threads.mirror(thread, (WORDS,), now)

    with pytest.raises(InvalidRequest):
        await parts.store.threads.step(
            "default",
            "thread-1",
            lambda thread, now: threads.append(thread, held.fence, (too_much,), now),
            {"thread-0": shown, "thread-9": shown},
        )
    assert (await kinds(parts, "thread-0"), await faults(parts)) == (["said"], [])


async def test_each_line_is_an_entry_of_the_ledger_without_its_words(parts: AppServices) -> None:
    await new(parts)
    await say(parts, "my secret words")
    entries = [entry async for page in parts.store.entries("default") for entry in page]
    told = [(entry.kind, json.loads(entry.data)) for entry in entries if entry.kind.startswith("thread_")]
    assert told == [
        ("thread_said", {"thread_id": "thread-1", "line": 1, "agent": "assistant"}),
        ("thread_said", {"thread_id": "thread-1", "line": 2}),
    ]
    assert "secret" not in str(entries)


# One holder


# R32
async def test_of_many_who_claim_a_thread_one_has_it(parts: AppServices, others: AppServices) -> None:
    await new(parts)
    claims = await asyncio.gather(*(claimed((parts, others)[n % 2], "thread-1", f"runner{n}") for n in range(20)))
    (winner,) = [thread for thread in claims if thread is not None]
    assert await get(others) == winner
    assert (winner.status, winner.fence) == ("running", 1)


# R32
async def test_what_an_old_holder_writes_is_refused_and_leaves_nothing_behind(
    parts: AppServices, others: AppServices, clock: Clock
) -> None:
    old = await taken(parts)
    clock.forward(30_000)
    newer = await claimed(others, "thread-1", "theirs")
    assert newer is not None
    before = await kinds(parts)
    assert before == ["said", "resumed"]
    moves: list[Callable[[Thread, Moment], ThreadTransition]] = [
        lambda thread, now: threads.append(thread, old.fence, (WORDS,), now),
        lambda thread, now: threads.renew(thread, old.fence, 1, now),
        lambda thread, now: threads.suspend(thread, old.fence, None, now),
        lambda thread, now: threads.end(thread, old.fence, 2, (ENDED,), now),
    ]
    for move in moves:
        with pytest.raises(LeaseLost):
            await step(parts, move)
    assert (await kinds(parts), await get(parts)) == (before, newer)


async def test_a_renewed_lease_is_not_taken(parts: AppServices, clock: Clock) -> None:
    held = await taken(parts)
    clock.forward(29_000)
    await step(parts, lambda thread, now: threads.renew(thread, held.fence, 30_000, now))
    clock.forward(29_000)
    assert await claimed(parts, "thread-1", "theirs") is None
    clock.forward(1_000)
    assert await claimed(parts, "thread-1", "theirs") is not None


async def test_stop_takes_a_running_thread_away(parts: AppServices, others: AppServices) -> None:
    held = await taken(parts)
    await stop(others)
    with pytest.raises(LeaseLost):
        await append(parts, held.fence, WORDS)
    assert await claimed(parts, "thread-1", "mine") is not None
    assert await kinds(parts) == ["said", "stopped"]


async def test_stopping_and_writing_at_once_never_writes_behind_the_stop(
    parts: AppServices, others: AppServices
) -> None:
    for number in range(15):
        thread_id = f"thread-{number}"
        held = await taken(parts, thread_id)
        await asyncio.gather(
            append(parts, held.fence, WORDS, thread_id=thread_id),
            step(others, lambda thread, now: threads.stop(thread, "ann", now), thread_id),
            return_exceptions=True,
        )
        assert (await kinds(parts, thread_id))[-1] == "stopped"


async def test_what_is_said_while_it_runs_is_seen_before_the_end(parts: AppServices, others: AppServices) -> None:
    held = await taken(parts)
    seen = len(await kinds(parts))
    await say(others)
    ended = await step(parts, lambda thread, now: threads.end(thread, held.fence, seen, (ENDED,), now))
    assert (ended.status, await kinds(parts)) == ("ready", ["said", "said"])
    assert await parts.store.threads.due(START, 10) == [("default", "thread-1")]


async def test_a_message_and_the_end_at_once_leave_no_message_unanswered(
    parts: AppServices, others: AppServices
) -> None:
    """Whichever comes first: the thread is due, or the message comes behind the end and makes it due."""
    for number in range(15):
        thread_id = f"thread-{number}"
        held = await taken(parts, thread_id)
        fence = held.fence

        def ending(thread: Thread, now: Moment, fence: int = fence) -> ThreadTransition:
            return threads.end(thread, fence, 1, (ENDED,), now)

        speaking = step(others, lambda thread, now: threads.add_message(thread, "ann", "Wait", now), thread_id)
        await asyncio.gather(step(parts, ending, thread_id), speaking)
        assert (await get(parts, thread_id)).status == "ready"


# Waking


async def is_due(parts: AppServices, thread_id: str = "thread-1") -> bool:
    return ("default", thread_id) in await parts.store.threads.due(START, 1_000)


# R3
async def test_every_step_of_an_approval_wakes_its_thread(parts: AppServices) -> None:
    held = await taken(parts)
    approval_id = await card(parts)
    await park(parts, held.fence)
    assert not await is_due(parts)

    async def rest() -> None:
        assert await is_due(parts)
        thread = await claimed(parts, "thread-1", "mine")
        assert thread is not None
        await park(parts, thread.fence)
        assert not await is_due(parts)

    await parts.inbox.ask("default", approval_id, "Why?", BOB)
    await rest()
    await parts.gate.answer("default", approval_id, 1, "Because.")
    await rest()
    await parts.inbox.decide("default", approval_id, Reject("No"), BOB)
    await rest()
    await parts.inbox.undo("default", approval_id, BOB)
    await rest()
    await approve(parts, approval_id)
    await rest()
    started = await parts.gate.start("default", approval_id, "r")
    await rest()
    await parts.gate.finish("default", approval_id, started.fence, ok=True, payload=OK)
    await rest()


# R5
async def test_time_wakes_a_thread_too(parts: AppServices, clock: Clock) -> None:
    held = await taken(parts)
    await card(parts)
    await park(parts, held.fence)
    clock.forward(86_400_000)
    await parts.worker.sweep()
    assert (await parts.store.threads.due(clock.now, 10)) == [("default", "thread-1")]


async def test_a_step_that_is_refused_wakes_nobody(parts: AppServices) -> None:
    held = await taken(parts)
    approval_id = await card(parts)
    await park(parts, held.fence)
    before = await get(parts)
    with pytest.raises(Conflict):
        await parts.gate.start("default", approval_id, "r")
    assert await get(parts) == before


async def test_approvals_of_other_runs_wake_no_thread(parts: AppServices) -> None:
    held = await taken(parts)
    approval_id = await card(parts, "run")
    await park(parts, held.fence)
    await approve(parts, approval_id)
    assert not await is_due(parts)


async def test_waking_one_that_is_idle_leaves_it_idle(parts: AppServices) -> None:
    held = await taken(parts)
    approval_id = await card(parts)
    await step(parts, lambda thread, now: threads.end(thread, held.fence, 1, (ENDED,), now))
    await approve(parts, approval_id)
    assert ((await get(parts)).status, await is_due(parts)) == ("idle", False)


# R3
@pytest.mark.parametrize("same_process", [True, False], ids=["one process", "two processes"])
async def test_a_decision_between_the_look_and_the_parking_is_never_lost(
    parts: AppServices, others: AppServices, *, same_process: bool
) -> None:
    """Both ways round, and both in one batch: the thread is due afterwards, whatever the order was."""
    decider = parts if same_process else others
    for number in range(30):
        thread_id = f"thread-{number}"
        held = await taken(parts, thread_id)
        approval_id = await card(parts, thread_id)
        parking, deciding = park(parts, held.fence, None, thread_id), approve(decider, approval_id)
        await asyncio.gather(*((parking, deciding) if number % 2 else (deciding, parking)))
        assert await is_due(parts, thread_id), number


# R3
async def test_many_decisions_and_a_parking_in_one_batch_wake_the_thread(place: Where, parts: AppServices) -> None:
    held = await taken(parts)
    ids = [await card(parts, call=f"1:c{n}") for n in range(5)]
    work: list[asyncio.Task[object]] = []
    with place.held():  # all of it waits for one lock, and then goes together
        work += [asyncio.create_task(approve(parts, approval_id)) for approval_id in ids[:3]]
        work.append(asyncio.create_task(park(parts, held.fence)))
        work += [asyncio.create_task(approve(parts, approval_id)) for approval_id in ids[3:]]
        await asyncio.sleep(0.05)
    await asyncio.gather(*work)
    thread = await get(parts)
    assert (await is_due(parts), thread.wake_count > 0) == (True, True)


# R13
async def test_the_end_of_a_child_wakes_its_parent_in_the_same_transaction(parts: AppServices) -> None:
    above = await taken(parts, "thread-0")
    await park(parts, above.fence, thread_id="thread-0")
    below = ThreadOrigin("default", "writer", "ann", ("assistant", "writer"), "thread-0", "c1")
    await parts.store.threads.add("default", "thread-1", lambda now: open_thread("thread-1", below, "Go", now))
    child = await claimed(parts, "thread-1", "mine")
    assert child is not None
    await step(parts, lambda thread, now: threads.end(thread, child.fence, 1, (ENDED,), now))
    assert await is_due(parts, "thread-0")
    assert [each.id for each in await parts.store.threads.children("default", "thread-0")] == ["thread-1"]


# Drafts


@pytest.mark.parametrize("kind", ["replied", "failed", "stopped", "ended", "resumed"])
async def test_a_draft_is_gone_with_the_line_that_takes_its_place(
    parts: AppServices, others: AppServices, kind: str
) -> None:
    held = await taken(parts)
    store = parts.store.threads
    assert await store.draft("default", "thread-1") is None
    await store.write_draft("default", "thread-1", Draft(1, "Well"))
    await store.write_draft("default", "thread-1", Draft(1, "Well, hello 🙂"))
    assert await others.store.threads.draft("default", "thread-1") == Draft(1, "Well, hello 🙂")
    await append(parts, held.fence, NewThreadEntry("asked", "agent:assistant", {}))
    assert await store.draft("default", "thread-1") is not None
    await append(parts, held.fence, NewThreadEntry(kind, "agent:assistant", {}))
    assert await store.draft("default", "thread-1") is None


# What is due


async def test_what_is_due_is_given_in_its_order_and_no_more(parts: AppServices, clock: Clock) -> None:
    for number, due_at in enumerate((None, START + 5_000, START + 1_000)):
        held = await taken(parts, f"thread-{number}")
        await park(parts, held.fence, due_at, f"thread-{number}")
    store = parts.store.threads
    assert (await store.due(START, 10), await store.next_due()) == ([], START + 1_000)
    assert await store.due(START + 1_000, 10) == [("default", "thread-2")]
    assert await store.due(START + 9_000, 10) == [("default", "thread-2"), ("default", "thread-1")]
    assert await store.due(START + 9_000, 1) == [("default", "thread-2")]
    assert await store.running() == []
    clock.forward(1_000)
    assert await claimed(parts, "thread-2", "mine") is not None
    assert await store.running() == [("default", "thread-2", "mine")]


async def test_where_nothing_waits_nothing_is_due(parts: AppServices) -> None:
    assert (await parts.store.threads.due(START, 10), await parts.store.threads.next_due()) == ([], None)


async def test_a_persons_threads_are_listed_the_newest_first_and_in_pages(parts: AppServices, clock: Clock) -> None:
    for number in range(5):
        clock.forward(1_000)
        await new(parts, f"thread-{number}")
    store = parts.store.threads
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


async def test_ten_thousand_parked_threads_are_not_looked_at(place: Where, parts: AppServices) -> None:
    place.sql(MANY.format(now=START, later=START + 86_400_000))
    await new(parts)
    if place.kind == "postgres":
        place.sql("analyze threads")
    assert await parts.store.threads.due(START, 100) == [("default", "thread-1")]
    queries = load_queries()
    for name, index in PLANS.items():
        plan = _plan(place, queries[name])
        assert index in plan, f"{name}: {plan}"
        assert "Seq Scan" not in plan, f"{name}: {plan}"


def _plan(place: Where, query: str) -> str:
    values = [START, 100][: query.count("?")]
    words = "explain query plan" if place.kind == "sqlite" else "explain"
    return "\n".join(str(row) for row in place.sql(f"{words} {query}", *values))


# Wake-ups


async def woken(parts: AppServices, workspace: str, name: str, act: Callable[[], object]) -> bool:
    """Whether somebody who waits for this hears of it long before they would look by themselves."""
    loop = asyncio.get_running_loop()
    async with parts.store.watch(workspace, name) as watch:
        await watch.wait(0.05)  # what was before
        began = loop.time()
        await act()  # type: ignore[misc]
        await watch.wait(20.0)
        return loop.time() - began < 15.0


# R3
async def test_who_follows_a_thread_hears_of_it(parts: AppServices) -> None:
    await new(parts)
    assert await woken(parts, "default", "thread-1", lambda: say(parts))


# R3
async def test_who_follows_a_thread_in_another_process_hears_of_it(parts: AppServices, others: AppServices) -> None:
    await new(parts)
    assert await woken(others, "default", "thread-1", lambda: say(parts))


async def test_who_advances_threads_hears_of_what_is_due(parts: AppServices) -> None:
    held = await taken(parts)
    approval_id = await card(parts)
    await park(parts, held.fence)
    assert await woken(parts, "", DUE_THREADS_TOPIC, lambda: approve(parts, approval_id))
    assert await woken(parts, "", DUE_THREADS_TOPIC, lambda: new(parts, "thread-2"))


# R3
async def test_who_holds_a_thread_hears_of_a_decision_about_its_call(parts: AppServices) -> None:
    await taken(parts)
    approval_id = await card(parts)
    assert await woken(parts, "default", "thread-1", lambda: approve(parts, approval_id))


async def test_only_whoever_has_a_thread_asks_about_its_calls(parts: AppServices) -> None:  # R24
    """One that lost it to a stop would put a card to people for which nobody waits."""
    thread = await taken(parts)
    call = propose("send", {"to": "x"}, thread.id, "2:c1", workspace="default", thread_id=thread.id)
    await step(parts, lambda thread, moment: threads.stop(thread, "ann", moment))
    with pytest.raises(LeaseLost):
        await parts.gate.with_fence(thread.fence).check(call, SEND)
    assert await parts.gate.find_approval("default", thread.id, "2:c1") is None


async def test_what_was_asked_before_a_thread_was_lost_is_still_known(parts: AppServices) -> None:  # R24
    thread = await taken(parts)
    call = propose("send", {"to": "x"}, thread.id, "2:c1", workspace="default", thread_id=thread.id)
    first = await parts.gate.with_fence(thread.fence).check(call, SEND)
    await step(parts, lambda thread, moment: threads.stop(thread, "ann", moment))
    assert await parts.gate.with_fence(thread.fence).check(call, SEND) == first
