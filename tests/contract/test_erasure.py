"""Erasure: gone from every table, the rest stays verifiable, and nothing runs again."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import TypeVar

import pytest

from interlock import Interlock
from interlock.app import audit
from interlock.app.bootstrap import AppServices, build_services, build_services_from_store
from interlock.app.worker import Worker
from interlock.core.approval.approval import ErasureRecord
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Approve, Reject, Respond, Reviewer
from interlock.core.errors import AlreadyStarted, Forbidden, InvalidRequest, LeaseLost, NotFound
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.erasure import Erasure, ErasureResult
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Answered, Finished, Refused, Waiting
from interlock.core.ports import ApprovalQuery
from interlock.core.preview import Preview
from interlock.storage.tables import erasure as erasing
from tests.databases import Database
from tests.support import (
    ADA,
    BOB,
    OK,
    START,
    WRITE,
    Clock,
    approve,
    call,
    event_kinds,
    open_services,
    propose_pending,
    status,
)

T = TypeVar("T")
DAY = 86_400_000
HOUR = 3_600_000
LATE = 300_000  # how long a lot that is not full may wait
PRIVATE = "harriet-vane"
PAY = ToolSpec(
    "pay",
    "write",
    describe="Pay {to}",
    secret=("key",),
    preview=lambda args: Preview(f"Pays {args['to']}", f"version {args['to']}"),
)
RULES = """
rules:
  - {name: never, tools: [drop_table], then: deny, reason: Never.}
  - {name: patient, tools: [delete_file], then: ask, expires_in: 90d}
"""
ALLOWS = "rules:\n  - {name: free, then: allow}\n"
DROP = ToolSpec("drop_table", "destructive", describe="Drop {name}")


async def erase(
    services: AppServices, scope: str, what: str, reviewer: Reviewer = ADA, *, dry_run: bool = False
) -> ErasureResult:
    total = ErasureResult()
    erasure = Erasure(scope, what, "they asked for it")  # type: ignore[arg-type]
    async for erased in services.inbox.erase("default", erasure, reviewer, dry_run=dry_run):
        total += erased
    return total


async def run_call(services: AppServices, number: int | str = 1, spec: ToolSpec = WRITE, **more: object) -> str:
    approval_id = await propose_pending(services, number, spec, **more)
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    return approval_id


async def entries(services: AppServices, kind: str = "") -> list[Entry]:
    return [entry async for page in services.store.entries("default") for entry in page if kind in ("", entry.kind)]


async def erased_events(services: AppServices) -> list[Mapping[str, object]]:
    return [json.loads(entry.data) for entry in await entries(services, "erased")]


async def entries_with_content(services: AppServices) -> set[int]:
    return {entry.seq for entry in await entries(services) if entry.content is not None}


async def assert_sound(services: AppServices) -> None:
    assert (await audit.verify(services.store, "default")).violations == ()


def tables_with(database: Database, needle: str) -> list[str]:
    """The tables that hold a text anywhere."""
    words = needle.encode()
    found = {
        table
        for table in database.tables()
        for row in database.sql(f"select * from {table}")
        if any(words in (bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode()) for cell in row)
    }
    return sorted(found)


def worker_with_retention(services: AppServices, retention: int) -> Worker:
    return build_services_from_store(services.store, retention=retention).worker


async def start_queued(work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    """Begun, up to where it waits for the writer."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


async def private_call(services: AppServices) -> tuple[str, str]:
    """Somebody's name in every place that can hold one: id, and the digest that people saw."""
    approval_id = await propose_pending(
        services, 1, PAY, args={"to": f"{PRIVATE}\u202e", "key": f"k-{PRIVATE}"}, agent_says=f"for {PRIVATE}"
    )
    approval = (await services.store.get("default", approval_id)).approval
    seen = Acknowledgement(approval.args_sha256, approval.findings.alarms, comment=f"as {PRIVATE} said")
    await services.inbox.decide("default", approval_id, Approve(seen), BOB)
    execution = await services.gate.start("default", approval_id, "r")
    payload = Payload(error=f"{PRIVATE} is unknown")
    await services.gate.finish("default", approval_id, execution.fence, ok=False, payload=payload)
    return approval_id, approval.args_sha256


async def test_erasing_takes_the_content_out_of_every_table(
    services: AppServices, database: Database
) -> None:  # R41, R49
    approval_id, sha256 = await private_call(services)
    nonce = (await services.store.get("default", approval_id)).approval.subject.nonce
    assert tables_with(database, PRIVATE) == ["approvals", "contents", "payloads"]
    assert "approvals" in tables_with(database, sha256)
    assert await erase(services, "approval", approval_id) == ErasureResult(1, 3)
    for needle in (PRIVATE, sha256, nonce, "bidi"):
        assert tables_with(database, needle) == [], needle
    assert database.sql("select count(*) from payloads") == [(0,)]
    await assert_sound(services)


async def test_who_when_and_what_became_of_it_stay(services: AppServices, clock: Clock) -> None:  # R41
    approval_id, _ = await private_call(services)
    before = (await services.store.get("default", approval_id)).approval
    clock.advance(1)
    await erase(services, "approval", approval_id)
    stored = await services.store.get("default", approval_id)
    after = stored.approval
    assert stored.payload == Payload()
    assert (after.status, after.version, after.binding) == ("failed", before.version + 1, before.binding)
    assert (after.args_sha256, after.subject.nonce, after.findings.alarms) == ("", "", ())
    assert after.decision is not None
    assert (after.decision.by, after.decision.at, after.decision.comment) == ("bob", START, "")
    assert [(vote.by, vote.args_sha256) for vote in after.votes] == [("bob", "")]
    assert after.erasure == ErasureRecord(START + 1, "ada")
    assert [entry.kind for entry in await services.store.timeline("default", approval_id)] == [
        "proposed",
        "approved",
        "started",
        "failed",
    ]


async def test_the_event_names_the_entries_and_the_requester(services: AppServices) -> None:  # R49
    approval_id, _ = await private_call(services)
    await propose_pending(services, 2)
    before = await entries_with_content(services)
    await erase(services, "approval", approval_id)
    (event,) = await entries(services, "erased")
    assert (event.actor, event.approval_id) == ("ada", "")
    assert json.loads(event.data) == {"scope": "approval", "entries": [[1, 2], [4, 4]], "approvals": 1}
    assert json.loads(event.content or b"") == {"what": approval_id, "reason": "they asked for it"}
    assert before - await entries_with_content(services) == {1, 2, 4}


async def test_the_card_says_that_the_content_was_erased(services: AppServices) -> None:
    approval_id, _ = await private_call(services)
    await erase(services, "approval", approval_id)
    view = await services.inbox.show("default", approval_id)
    assert (view.status, view.card.sentence) == ("failed", "The content of this call was erased.")
    assert dict(view.card.facts)["erased"] == "2027-01-15 08:00:00 UTC by ada"
    assert view.card.fields == ()
    assert [entry.content for entry in view.timeline] == [None] * 4


async def test_a_call_that_comes_back_gets_its_outcome_without_the_result(
    services: AppServices, clock: Clock
) -> None:  # R24
    done, answered, refused = (
        await run_call(services, 1),
        await propose_pending(services, 2),
        await propose_pending(services, 3),
    )
    await services.inbox.decide("default", answered, Respond("Use the other one."), BOB)
    await services.inbox.decide("default", refused, Reject("No, harriet."), BOB)
    clock.advance(8_000)
    for approval_id in (done, answered, refused):
        assert (await erase(services, "approval", approval_id)).approvals == 1
    assert await services.gate.check(call(1), WRITE) == Finished("succeeded", None, "", done)
    assert await services.gate.check(call(2), WRITE) == Answered(None, answered)
    assert await services.gate.check(call(3), WRITE) == Refused("A person rejected this call.", "rejected", refused)
    other = await services.gate.check(call(1, {"path": "/elsewhere"}), WRITE)
    assert other == Finished("succeeded", None, "", done)  # there is nothing left to compare with, and nothing runs
    with pytest.raises(AlreadyStarted):
        await services.gate.start("default", done, "r")


async def test_open_approvals_are_kept_and_reported(services: AppServices) -> None:
    waiting, allowed, runs, unsure, undoable = [await propose_pending(services, n, thread_id="t") for n in range(5)]
    for approval_id in (allowed, runs, unsure):
        await approve(services, approval_id)
    for approval_id in (runs, unsure):
        await services.gate.start("default", approval_id, "r")
    await services.gate.abandon("default", unsure, 1)
    await services.inbox.decide("default", undoable, Reject("Wait"), BOB)
    before = await event_kinds(services)
    left = await erase(services, "thread", "t")
    assert (left.approvals, left.entries) == (0, 0)
    assert dict(left.skipped) == {
        waiting: "pending",
        allowed: "approved",
        runs: "running",
        unsure: "unknown",
        undoable: "rejected",
    }
    assert await event_kinds(services) == before
    assert (await services.store.get("default", undoable)).payload.args is not None
    await services.inbox.undo("default", undoable, BOB)
    assert await status(services, undoable) == "pending"


async def test_what_is_gone_is_not_erased_again(services: AppServices) -> None:
    approval_id = await run_call(services)
    await erase(services, "approval", approval_id)
    before = await event_kinds(services)
    assert await erase(services, "approval", approval_id) == ErasureResult()
    assert await event_kinds(services) == before


async def test_a_dry_run_tells_the_same_and_changes_nothing(services: AppServices) -> None:
    approval_id = await run_call(services, thread_id="t")
    waiting = await propose_pending(services, 2, thread_id="t")
    before = await services.store.head("default")
    result = await erase(services, "thread", "t", dry_run=True)
    assert result == ErasureResult(1, 3, ((waiting, "pending"),))
    assert await services.store.head("default") == before
    assert (await services.store.get("default", approval_id)).payload.result == b'"ok"'
    assert await erase(services, "thread", "t") == result


async def test_a_thread_is_erased_in_lots_and_the_others_stay(
    services: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH_SIZE", 3)
    for number in range(8):
        clock.advance(1)
        await run_call(services, number, thread_id="t")
    other = await run_call(services, "other", thread_id="u")
    assert await erase(services, "thread", "t") == ErasureResult(8, 24)
    assert [event["approvals"] for event in await erased_events(services)] == [3, 3, 2]
    assert (await services.store.get("default", other)).payload.args is not None
    await assert_sound(services)


async def test_an_erasure_that_was_interrupted_is_run_again(
    services: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH_SIZE", 2)
    for number in range(5):
        clock.advance(1)
        await run_call(services, number, thread_id="t")
    async for erased in services.inbox.erase("default", Erasure("thread", "t"), ADA):
        assert erased == ErasureResult(2, 6)
        break
    await assert_sound(services)
    assert await erase(services, "thread", "t") == ErasureResult(3, 9)
    await assert_sound(services)


async def test_a_person_is_forgotten_where_they_asked_and_where_they_spoke(database: Database, clock: Clock) -> None:
    async with open_services(database, clock, RULES) as services:
        asked = await run_call(services, 1, requester="zoe")
        decided = await propose_pending(services, 2, requester="yan")
        await services.inbox.decide(
            "default", decided, Reject("zoe-reason", Acknowledgement(comment="zoe-comment")), Reviewer("zoe")
        )
        by_bob = await propose_pending(services, 3, requester="yan")
        await services.inbox.decide("default", by_bob, Reject("bob-reason"), BOB)
        for number, requester in enumerate(("zoe", "yan")):
            denied = call(f"d{number}", {"name": f"{requester}-table"}, tool="drop_table", requester=requester)
            assert isinstance(await services.gate.check(denied, DROP), Refused)
        clock.advance(8_000)
        erased = await erase(services, "person", "zoe")
        assert (erased.approvals, erased.skipped) == (1, ())
        assert (await services.store.get("default", asked)).payload == Payload()
        theirs = await services.store.get("default", decided)
        assert theirs.payload.args is not None  # the call was yan's
        assert theirs.approval.decision is not None
        assert (theirs.approval.decision.by, theirs.approval.decision.reason) == ("zoe", "")
        for words in ("zoe-reason", "zoe-comment", "zoe-table"):
            assert tables_with(database, words) == [], words
        assert tables_with(database, "bob-reason") == ["approvals", "contents"]
        assert tables_with(database, "yan-table") == ["contents"]
        await assert_sound(services)
        assert await erase(services, "person", "zoe") == ErasureResult()


async def test_comments_on_an_open_call_are_kept_and_reported(services: AppServices) -> None:
    approval_id = await propose_pending(services, requester="yan")
    seen = Acknowledgement(
        (await services.store.get("default", approval_id)).approval.args_sha256, comment="fine by zoe"
    )
    await services.inbox.decide("default", approval_id, Approve(seen), Reviewer("zoe"))
    assert await erase(services, "person", "zoe") == ErasureResult(skipped=((approval_id, "approved"),))
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    assert await erase(services, "person", "zoe") == ErasureResult(0, 1)
    after = (await services.store.get("default", approval_id)).approval
    assert after.decision is not None
    assert (after.decision.by, after.decision.comment, after.erasure) == ("zoe", "", None)


async def test_an_admin_who_forgets_themselves_comes_to_an_end(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "ENTRIES_PER_BATCH", 2)
    for number in range(5):
        rejected = await propose_pending(services, number)
        await services.inbox.decide("default", rejected, Reject("by ada", Acknowledgement()), ADA)
    await services.store.put_policy("default", "0" * 64, "version: 1", "ada", "a reason")
    erased = await asyncio.wait_for(erase(services, "person", "ada"), 30)
    assert (erased.entries, len(erased.skipped)) == (1, 5)


async def test_only_admins_erase(services: AppServices) -> None:
    approval_id = await run_call(services)
    for reviewer in (BOB, Reviewer("x", "viewer"), Reviewer("y", "agent")):
        with pytest.raises(Forbidden, match="Ask an admin"):
            await erase(services, "approval", approval_id, reviewer)
    assert (await services.store.get("default", approval_id)).payload.args is not None


@pytest.mark.parametrize("scope", ["approval", "thread", "person", "retention"])
async def test_nothing_named_is_nothing_erased(services: AppServices, scope: str) -> None:
    await run_call(services)
    with pytest.raises(InvalidRequest, match="Name what to erase"):
        await erase(services, scope, "")
    assert "erased" not in await event_kinds(services)


async def test_what_is_not_there_cannot_be_erased(services: AppServices) -> None:
    await run_call(services)
    with pytest.raises(NotFound):
        await erase(services, "approval", "nowhere")
    assert await erase(services, "thread", "nowhere") == ErasureResult()
    assert await erase(services, "person", "nobody") == ErasureResult()
    assert "erased" not in await event_kinds(services)


async def test_another_workspace_is_left_alone(services: AppServices) -> None:
    other = await services.gate.check(call(1, workspace="other", thread_id="t"), WRITE)
    assert isinstance(other, Waiting)
    await services.gate.cancel("other", other.approval_id, "agent")
    assert await erase(services, "thread", "t") == ErasureResult()
    assert (await services.store.get("other", other.approval_id)).payload.args is not None


async def test_what_ends_in_the_same_batch_is_erased_with_its_last_words(
    services: AppServices, database: Database
) -> None:
    """The batch waits behind somebody else's lock until both are in it."""
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r")
    payload = Payload(error="harriet is unknown")
    finish = services.gate.finish("default", approval_id, execution.fence, ok=False, payload=payload)
    with database.hold_lock():
        first = await start_queued(propose_pending(services, 2))
        others = [await start_queued(each) for each in (finish, erase(services, "approval", approval_id))]
        again = await start_queued(services.gate.check(call(1), WRITE))
    await first
    assert (await asyncio.gather(*others))[1] == ErasureResult(1, 3)
    assert await again == Finished("failed", None, "", approval_id)
    assert tables_with(database, "harriet") == []
    await assert_sound(services)


# Retention


@pytest.fixture
async def long_lived_services(database: Database, clock: Clock) -> AsyncIterator[AppServices]:
    """Nothing expires here while a test lets days pass."""
    async with open_services(database, clock, RULES) as services:
        yield services


async def has_args(services: AppServices, approval_id: str) -> bool:
    return (await services.store.get("default", approval_id)).payload.args is not None


async def test_what_ended_long_enough_ago_is_forgotten(
    long_lived_services: AppServices, database: Database, clock: Clock
) -> None:  # R49
    old, waiting = await run_call(long_lived_services, 1), await propose_pending(long_lived_services, 2)
    await long_lived_services.gate.check(call("d", {"name": "customers"}, tool="drop_table"), DROP)
    clock.advance(HOUR)
    recent, worker = await run_call(long_lived_services, 3), worker_with_retention(long_lived_services, DAY)
    clock.now = START + DAY + LATE
    assert await worker.sweep() == 0
    clock.advance(1)
    assert await worker.sweep() == 1
    assert (await long_lived_services.store.get("default", old)).approval.erasure.by == "interlock"
    assert [await has_args(long_lived_services, each) for each in (old, waiting, recent)] == [False, True, True]
    assert tables_with(database, "customers") == []
    assert await worker.sweep() == 0
    await assert_sound(long_lived_services)


async def test_what_retention_took_is_in_the_ledger_without_content(
    long_lived_services: AppServices, clock: Clock
) -> None:  # R49
    await run_call(long_lived_services)
    before = await entries_with_content(long_lived_services)
    clock.advance(2 * DAY)
    await worker_with_retention(long_lived_services, DAY).sweep()
    (event,) = await entries(long_lived_services, "erased")
    assert (event.actor, event.content, event.digest) == ("interlock", None, "")
    assert json.loads(event.data) == {"scope": "retention", "entries": [[2, 3], [5, 5]], "approvals": 1}
    assert before == {2, 3, 5}
    clock.advance(10 * DAY)
    assert await worker_with_retention(long_lived_services, DAY).sweep() == 0
    assert (await event_kinds(long_lived_services)).count("erased") == 1  # retention does not go on about itself


async def test_without_a_retention_everything_is_kept(long_lived_services: AppServices, clock: Clock) -> None:
    approval_id = await run_call(long_lived_services)
    clock.advance(3_650 * DAY)
    assert await long_lived_services.worker.sweep() == 0
    assert await has_args(long_lived_services, approval_id)


async def test_a_program_can_say_how_long_its_calls_are_kept(database: Database) -> None:
    """By the clock of the machine: its own worker erases what has ended, within a second."""
    lock = Interlock(database.url, policy=ALLOWS, agent="tester", retention="0s")

    @lock.tool(effect="write")
    async def delete_file(path: str) -> str:
        return f"deleted {path}"

    async with lock:
        assert await delete_file(path="/harriet") == "deleted /harriet"
        store = build_services(database.url).store
        await store.open()
        async with store.watch("default") as watch, asyncio.timeout(30):
            while not (erased := [s.approval.erasure for s in (await store.list("default", ApprovalQuery())).items])[0]:
                await watch.wait(0.1)
        await store.close()
    assert [each.by for each in erased] == ["interlock"]
    assert tables_with(database, "harriet") == []


def test_a_duration_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="not a duration"):
        Interlock("sqlite:///never.db", retention="a while")


async def test_policies_users_and_grants_keep_their_reasons(long_lived_services: AppServices, clock: Clock) -> None:
    await long_lived_services.store.put_policy("default", "0" * 64, RULES, "ada", "a reason")
    await run_call(long_lived_services)
    clock.advance(2 * DAY)
    assert await worker_with_retention(long_lived_services, DAY).sweep() == 1
    assert [json.loads(entry.content or b"{}") for entry in await entries(long_lived_services, "policy_changed")] == [
        {},
        {"reason": "a reason"},
    ]


async def test_why_something_was_erased_is_forgotten_in_its_turn(
    long_lived_services: AppServices, database: Database, clock: Clock
) -> None:
    await run_call(long_lived_services, requester="zoe")
    await erase(long_lived_services, "person", "zoe")
    assert tables_with(database, "they asked for it") == ["contents"]
    clock.advance(2 * DAY)
    await worker_with_retention(long_lived_services, DAY).sweep()
    assert tables_with(database, "they asked for it") == []
    await assert_sound(long_lived_services)


async def test_a_rejection_is_kept_until_it_cannot_be_undone(long_lived_services: AppServices, clock: Clock) -> None:
    approval_id, worker = await propose_pending(long_lived_services), worker_with_retention(long_lived_services, 0)
    await long_lived_services.inbox.decide("default", approval_id, Reject("No."), BOB)
    clock.advance(1)
    later = await run_call(long_lived_services, 2)
    clock.advance(7_998)
    assert await worker.sweep() == 1
    assert [await has_args(long_lived_services, each) for each in (approval_id, later)] == [True, False]
    clock.advance(1)
    assert await worker.sweep() == 1
    assert not await has_args(long_lived_services, approval_id)
    await assert_sound(long_lived_services)


async def test_an_undone_rejection_restarts_retention(long_lived_services: AppServices, clock: Clock) -> None:
    approval_id, worker = await propose_pending(long_lived_services), worker_with_retention(long_lived_services, DAY)
    await long_lived_services.inbox.decide("default", approval_id, Reject("No."), BOB)
    await long_lived_services.inbox.undo("default", approval_id, BOB)
    clock.advance(20 * HOUR)
    await long_lived_services.inbox.decide("default", approval_id, Reject("No!"), BOB)
    clock.advance(20 * HOUR)
    assert await worker.sweep() == 0
    assert await has_args(long_lived_services, approval_id)
    clock.advance(5 * HOUR)
    assert await worker.sweep() == 1


async def test_what_is_reported_after_the_erasure_is_forgotten_later(
    long_lived_services: AppServices, database: Database, clock: Clock
) -> None:
    approval_id, worker = await propose_pending(long_lived_services), worker_with_retention(long_lived_services, DAY)
    await approve(long_lived_services, approval_id)
    await long_lived_services.gate.start("default", approval_id, "r")
    await long_lived_services.gate.abandon("default", approval_id, 1)
    await long_lived_services.inbox.resolve_unknown("default", approval_id, BOB, ok=True)
    clock.advance(2 * DAY)
    assert await worker.sweep() == 1
    with pytest.raises(LeaseLost):
        await long_lived_services.gate.finish("default", approval_id, 1, ok=False, payload=Payload(error="harriet"))
    assert tables_with(database, "harriet") == ["contents"]
    clock.advance(2 * DAY)
    assert await worker.sweep() == 0  # no approval is erased twice
    assert tables_with(database, "harriet") == []
    assert [event["approvals"] for event in await erased_events(long_lived_services)] == [1, 0]
    await assert_sound(long_lived_services)


async def test_much_is_forgotten_in_lots_and_a_sweep_does_only_so_many(
    long_lived_services: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH_SIZE", 2)
    monkeypatch.setattr("interlock.app.worker.MAX_RETENTION_BATCHES", 5)
    for number in range(25):
        await run_call(long_lived_services, number)
    clock.advance(2 * DAY)
    sweeps = [await worker_with_retention(long_lived_services, DAY).sweep() for _ in range(4)]
    assert sweeps == [10, 10, 5, 0]
    assert [event["approvals"] for event in await erased_events(long_lived_services)] == [2] * 12 + [1]
    await assert_sound(long_lived_services)


async def test_a_full_lot_does_not_wait_for_more(
    long_lived_services: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "ENTRIES_PER_BATCH", 9)
    for number in range(3):
        await run_call(long_lived_services, number)
    clock.advance(DAY + 1)
    assert await worker_with_retention(long_lived_services, DAY).sweep() == 2  # nine entries; the last are no full lot


async def test_two_workers_forget_everything_once(database: Database, clock: Clock) -> None:
    async with open_services(database, clock, RULES) as one, open_services(database, clock) as two:
        for number in range(20):
            await run_call(one, number)
        clock.advance(2 * DAY)
        workers = [worker_with_retention(each, DAY) for each in (one, two, one)]
        assert sum(await asyncio.gather(*(worker.sweep() for worker in workers))) == 20
        assert sum(int(str(event["approvals"])) for event in await erased_events(one)) == 20
        await assert_sound(one)


async def test_every_workspace_is_swept(long_lived_services: AppServices, clock: Clock) -> None:
    ids = {}
    for workspace in ("default", "other"):
        outcome = await long_lived_services.gate.check(call(1, workspace=workspace), WRITE)
        assert isinstance(outcome, Waiting)
        ids[workspace] = outcome.approval_id
        await long_lived_services.gate.cancel(workspace, outcome.approval_id, "agent")
    clock.advance(2 * DAY)
    assert await worker_with_retention(long_lived_services, DAY).sweep() == 2
    for workspace, approval_id in ids.items():
        assert (await long_lived_services.store.get(workspace, approval_id)).payload == Payload()


async def test_a_row_that_somebody_deleted_does_not_stop_the_others(
    long_lived_services: AppServices, database: Database, clock: Clock
) -> None:
    gone, there = await run_call(long_lived_services, 1), await run_call(long_lived_services, 2)
    database.sql("delete from approvals where id = ?", gone)
    clock.advance(2 * DAY)
    assert await worker_with_retention(long_lived_services, DAY).sweep() == 1
    assert not await has_args(long_lived_services, there)
