"""Forgetting: what is erased is gone from every table, what stays can be verified, and nothing runs again."""

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
from interlock.storage.tables import erasure as erasing
from tests.places import Place
from tests.support import ADA, BOB, OK, START, WRITE, Clock, approve, call, kinds, opened, pending, status

T = TypeVar("T")
DAY = 86_400_000
HOUR = 3_600_000
LATE = 300_000  # how long a lot that is not full may wait
PRIVATE = "harriet-vane"
PAY = ToolSpec("pay", "write", describe="Pay {to}", secret=("key",), preview=lambda args: f"Pays {args['to']}")
RULES = """
rules:
  - {name: never, tools: [drop_table], then: deny, reason: Never.}
  - {name: patient, tools: [delete_file], then: ask, expires_in: 90d}
"""
ALLOWS = "rules:\n  - {name: free, then: allow}\n"
DROP = ToolSpec("drop_table", "destructive", describe="Drop {name}")


async def erase(
    parts: AppServices, scope: str, what: str, reviewer: Reviewer = ADA, *, dry_run: bool = False
) -> ErasureResult:
    total = ErasureResult()
    erasure = Erasure(scope, what, "they asked for it")  # type: ignore[arg-type]
    async for erased in parts.inbox.erase("default", erasure, reviewer, dry_run=dry_run):
        total += erased
    return total


async def succeeded(parts: AppServices, number: int | str = 1, spec: ToolSpec = WRITE, **more: object) -> str:
    approval_id = await pending(parts, number, spec, **more)
    await approve(parts, approval_id)
    execution = await parts.gate.start("default", approval_id, "r")
    await parts.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    return approval_id


async def entries(parts: AppServices, kind: str = "") -> list[Entry]:
    return [entry async for page in parts.store.entries("default") for entry in page if kind in ("", entry.kind)]


async def erased_events(parts: AppServices) -> list[Mapping[str, object]]:
    return [json.loads(entry.data) for entry in await entries(parts, "erased")]


async def with_content(parts: AppServices) -> set[int]:
    return {entry.seq for entry in await entries(parts) if entry.content is not None}


async def assert_sound(parts: AppServices) -> None:
    assert (await audit.verify(parts.store, "default")).violations == ()


def places_of(place: Place, needle: str) -> list[str]:
    """The tables that hold a text anywhere."""
    words = needle.encode()
    found = {
        table
        for table in place.tables()
        for row in place.sql(f"select * from {table}")
        if any(words in (bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode()) for cell in row)
    }
    return sorted(found)


def worker_of(parts: AppServices, retention: int) -> Worker:
    return build_services_from_store(parts.store, retention=retention).worker


async def queued(work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    """Begun, up to where it waits for the writer."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


async def private_call(parts: AppServices) -> tuple[str, str]:
    """Somebody's name in every place that can hold one: id, and the digest that people saw."""
    approval_id = await pending(
        parts, 1, PAY, args={"to": f"{PRIVATE}\u202e", "key": f"k-{PRIVATE}"}, agent_says=f"for {PRIVATE}"
    )
    approval = (await parts.store.get("default", approval_id)).approval
    seen = Acknowledgement(approval.args_sha256, approval.findings.alarms, comment=f"as {PRIVATE} said")
    await parts.inbox.decide("default", approval_id, Approve(seen), BOB)
    execution = await parts.gate.start("default", approval_id, "r")
    payload = Payload(error=f"{PRIVATE} is unknown")
    await parts.gate.finish("default", approval_id, execution.fence, ok=False, payload=payload)
    return approval_id, approval.args_sha256


async def test_erasing_takes_the_content_out_of_every_table(parts: AppServices, place: Place) -> None:  # R41, R49
    approval_id, sha256 = await private_call(parts)
    nonce = (await parts.store.get("default", approval_id)).approval.subject.nonce
    assert places_of(place, PRIVATE) == ["approvals", "contents", "payloads"]
    assert "approvals" in places_of(place, sha256)
    assert await erase(parts, "approval", approval_id) == ErasureResult(1, 3)
    for needle in (PRIVATE, sha256, nonce, "bidi"):
        assert places_of(place, needle) == [], needle
    assert place.sql("select count(*) from payloads") == [(0,)]
    await assert_sound(parts)


async def test_who_when_and_what_became_of_it_stay(parts: AppServices, clock: Clock) -> None:  # R41
    approval_id, _ = await private_call(parts)
    before = (await parts.store.get("default", approval_id)).approval
    clock.forward(1)
    await erase(parts, "approval", approval_id)
    stored = await parts.store.get("default", approval_id)
    after = stored.approval
    assert stored.payload == Payload()
    assert (after.status, after.version, after.binding) == ("failed", before.version + 1, before.binding)
    assert (after.args_sha256, after.subject.nonce, after.findings.alarms) == ("", "", ())
    assert after.decision is not None
    assert (after.decision.by, after.decision.at, after.decision.comment) == ("bob", START, "")
    assert [(vote.by, vote.args_sha256) for vote in after.votes] == [("bob", "")]
    assert after.erasure == ErasureRecord(START + 1, "ada")
    assert [entry.kind for entry in await parts.store.timeline("default", approval_id)] == [
        "proposed",
        "approved",
        "started",
        "failed",
    ]


async def test_the_event_says_which_entries_and_for_whom(parts: AppServices) -> None:  # R49
    approval_id, _ = await private_call(parts)
    await pending(parts, 2)
    before = await with_content(parts)
    await erase(parts, "approval", approval_id)
    (event,) = await entries(parts, "erased")
    assert (event.actor, event.approval_id) == ("ada", "")
    assert json.loads(event.data) == {"scope": "approval", "entries": [[1, 2], [4, 4]], "approvals": 1}
    assert json.loads(event.content or b"") == {"what": approval_id, "reason": "they asked for it"}
    assert before - await with_content(parts) == {1, 2, 4}


async def test_the_card_says_that_the_content_was_erased(parts: AppServices) -> None:
    approval_id, _ = await private_call(parts)
    await erase(parts, "approval", approval_id)
    view = await parts.inbox.show("default", approval_id)
    assert (view.status, view.card.sentence) == ("failed", "The content of this call was erased.")
    assert dict(view.card.facts)["erased"] == "2027-01-15 08:00:00 UTC by ada"
    assert view.card.fields == ()
    assert [entry.content for entry in view.timeline] == [None] * 4


async def test_a_call_that_comes_back_gets_its_outcome_without_the_result(
    parts: AppServices, clock: Clock
) -> None:  # R24
    done, answered, refused = await succeeded(parts, 1), await pending(parts, 2), await pending(parts, 3)
    await parts.inbox.decide("default", answered, Respond("Use the other one."), BOB)
    await parts.inbox.decide("default", refused, Reject("No, harriet."), BOB)
    clock.forward(8_000)
    for approval_id in (done, answered, refused):
        assert (await erase(parts, "approval", approval_id)).approvals == 1
    assert await parts.gate.check(call(1), WRITE) == Finished("succeeded", None, "", done)
    assert await parts.gate.check(call(2), WRITE) == Answered(None, answered)
    assert await parts.gate.check(call(3), WRITE) == Refused("A person rejected this call.", "rejected", refused)
    other = await parts.gate.check(call(1, {"path": "/elsewhere"}), WRITE)
    assert other == Finished("succeeded", None, "", done)  # there is nothing left to compare with, and nothing runs
    with pytest.raises(AlreadyStarted):
        await parts.gate.start("default", done, "r")


async def test_what_has_not_ended_is_left_and_told(parts: AppServices) -> None:
    waiting, allowed, runs, unsure, undoable = [await pending(parts, n, thread_id="t") for n in range(5)]
    for approval_id in (allowed, runs, unsure):
        await approve(parts, approval_id)
    for approval_id in (runs, unsure):
        await parts.gate.start("default", approval_id, "r")
    await parts.gate.abandon("default", unsure, 1)
    await parts.inbox.decide("default", undoable, Reject("Wait"), BOB)
    before = await kinds(parts)
    left = await erase(parts, "thread", "t")
    assert (left.approvals, left.entries) == (0, 0)
    assert dict(left.skipped) == {
        waiting: "pending",
        allowed: "approved",
        runs: "running",
        unsure: "unknown",
        undoable: "rejected",
    }
    assert await kinds(parts) == before
    assert (await parts.store.get("default", undoable)).payload.args is not None
    await parts.inbox.undo("default", undoable, BOB)
    assert await status(parts, undoable) == "pending"


async def test_what_is_gone_is_not_erased_again(parts: AppServices) -> None:
    approval_id = await succeeded(parts)
    await erase(parts, "approval", approval_id)
    before = await kinds(parts)
    assert await erase(parts, "approval", approval_id) == ErasureResult()
    assert await kinds(parts) == before


async def test_a_dry_run_tells_the_same_and_changes_nothing(parts: AppServices) -> None:
    approval_id = await succeeded(parts, thread_id="t")
    waiting = await pending(parts, 2, thread_id="t")
    before = await parts.store.head("default")
    told = await erase(parts, "thread", "t", dry_run=True)
    assert told == ErasureResult(1, 3, ((waiting, "pending"),))
    assert await parts.store.head("default") == before
    assert (await parts.store.get("default", approval_id)).payload.result == b'"ok"'
    assert await erase(parts, "thread", "t") == told


async def test_a_thread_is_erased_in_lots_and_the_others_stay(
    parts: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH_SIZE", 3)
    for number in range(8):
        clock.forward(1)
        await succeeded(parts, number, thread_id="t")
    other = await succeeded(parts, "other", thread_id="u")
    assert await erase(parts, "thread", "t") == ErasureResult(8, 24)
    assert [event["approvals"] for event in await erased_events(parts)] == [3, 3, 2]
    assert (await parts.store.get("default", other)).payload.args is not None
    await assert_sound(parts)


async def test_an_erasure_that_was_interrupted_is_run_again(
    parts: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH_SIZE", 2)
    for number in range(5):
        clock.forward(1)
        await succeeded(parts, number, thread_id="t")
    async for erased in parts.inbox.erase("default", Erasure("thread", "t"), ADA):
        assert erased == ErasureResult(2, 6)
        break
    await assert_sound(parts)
    assert await erase(parts, "thread", "t") == ErasureResult(3, 9)
    await assert_sound(parts)


async def test_a_person_is_forgotten_where_they_asked_and_where_they_spoke(place: Place, clock: Clock) -> None:
    async with opened(place, clock, RULES) as parts:
        asked = await succeeded(parts, 1, requester="zoe")
        decided = await pending(parts, 2, requester="yan")
        await parts.inbox.decide(
            "default", decided, Reject("zoe-reason", Acknowledgement(comment="zoe-comment")), Reviewer("zoe")
        )
        by_bob = await pending(parts, 3, requester="yan")
        await parts.inbox.decide("default", by_bob, Reject("bob-reason"), BOB)
        for number, requester in enumerate(("zoe", "yan")):
            denied = call(f"d{number}", {"name": f"{requester}-table"}, tool="drop_table", requester=requester)
            assert isinstance(await parts.gate.check(denied, DROP), Refused)
        clock.forward(8_000)
        erased = await erase(parts, "person", "zoe")
        assert (erased.approvals, erased.skipped) == (1, ())
        assert (await parts.store.get("default", asked)).payload == Payload()
        theirs = await parts.store.get("default", decided)
        assert theirs.payload.args is not None  # the call was yan's
        assert theirs.approval.decision is not None
        assert (theirs.approval.decision.by, theirs.approval.decision.reason) == ("zoe", "")
        for words in ("zoe-reason", "zoe-comment", "zoe-table"):
            assert places_of(place, words) == [], words
        assert places_of(place, "bob-reason") == ["approvals", "contents"]
        assert places_of(place, "yan-table") == ["contents"]
        await assert_sound(parts)
        assert await erase(parts, "person", "zoe") == ErasureResult()


async def test_what_a_person_said_about_an_open_call_is_left_and_told(parts: AppServices) -> None:
    approval_id = await pending(parts, requester="yan")
    seen = Acknowledgement((await parts.store.get("default", approval_id)).approval.args_sha256, comment="fine by zoe")
    await parts.inbox.decide("default", approval_id, Approve(seen), Reviewer("zoe"))
    assert await erase(parts, "person", "zoe") == ErasureResult(skipped=((approval_id, "approved"),))
    execution = await parts.gate.start("default", approval_id, "r")
    await parts.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    assert await erase(parts, "person", "zoe") == ErasureResult(0, 1)
    after = (await parts.store.get("default", approval_id)).approval
    assert after.decision is not None
    assert (after.decision.by, after.decision.comment, after.erasure) == ("zoe", "", None)


async def test_an_admin_who_forgets_themselves_comes_to_an_end(
    parts: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "ENTRIES_PER_BATCH", 2)
    for number in range(5):
        rejected = await pending(parts, number)
        await parts.inbox.decide("default", rejected, Reject("by ada", Acknowledgement()), ADA)
    await parts.store.put_policy("default", "0" * 64, "version: 1", "ada", "a reason")
    erased = await asyncio.wait_for(erase(parts, "person", "ada"), 30)
    assert (erased.entries, len(erased.skipped)) == (1, 5)


async def test_only_admins_erase(parts: AppServices) -> None:
    approval_id = await succeeded(parts)
    for reviewer in (BOB, Reviewer("x", "viewer"), Reviewer("y", "agent")):
        with pytest.raises(Forbidden, match="Ask an admin"):
            await erase(parts, "approval", approval_id, reviewer)
    assert (await parts.store.get("default", approval_id)).payload.args is not None


@pytest.mark.parametrize("scope", ["approval", "thread", "person", "retention"])
async def test_nothing_named_is_nothing_erased(parts: AppServices, scope: str) -> None:
    await succeeded(parts)
    with pytest.raises(InvalidRequest, match="Say what to erase"):
        await erase(parts, scope, "")
    assert "erased" not in await kinds(parts)


async def test_what_is_not_there_cannot_be_erased(parts: AppServices) -> None:
    await succeeded(parts)
    with pytest.raises(NotFound):
        await erase(parts, "approval", "nowhere")
    assert await erase(parts, "thread", "nowhere") == ErasureResult()
    assert await erase(parts, "person", "nobody") == ErasureResult()
    assert "erased" not in await kinds(parts)


async def test_another_workspace_is_left_alone(parts: AppServices) -> None:
    other = await parts.gate.check(call(1, workspace="other", thread_id="t"), WRITE)
    assert isinstance(other, Waiting)
    await parts.gate.cancel("other", other.approval_id, "agent")
    assert await erase(parts, "thread", "t") == ErasureResult()
    assert (await parts.store.get("other", other.approval_id)).payload.args is not None


async def test_what_ends_in_the_same_batch_is_erased_with_its_last_words(parts: AppServices, place: Place) -> None:
    """The batch waits behind somebody else's lock until both are in it."""
    approval_id = await pending(parts)
    await approve(parts, approval_id)
    execution = await parts.gate.start("default", approval_id, "r")
    payload = Payload(error="harriet is unknown")
    finish = parts.gate.finish("default", approval_id, execution.fence, ok=False, payload=payload)
    with place.held():
        first = await queued(pending(parts, 2))
        others = [await queued(each) for each in (finish, erase(parts, "approval", approval_id))]
        again = await queued(parts.gate.check(call(1), WRITE))
    await first
    assert (await asyncio.gather(*others))[1] == ErasureResult(1, 3)
    assert await again == Finished("failed", None, "", approval_id)
    assert places_of(place, "harriet") == []
    await assert_sound(parts)


# Retention


@pytest.fixture
async def patient(place: Place, clock: Clock) -> AsyncIterator[AppServices]:
    """Nothing expires here while a test lets days pass."""
    async with opened(place, clock, RULES) as doors:
        yield doors


async def is_kept(parts: AppServices, approval_id: str) -> bool:
    return (await parts.store.get("default", approval_id)).payload.args is not None


async def test_what_ended_long_enough_ago_is_forgotten(patient: AppServices, place: Place, clock: Clock) -> None:  # R49
    old, waiting = await succeeded(patient, 1), await pending(patient, 2)
    await patient.gate.check(call("d", {"name": "customers"}, tool="drop_table"), DROP)
    clock.forward(HOUR)
    recent, worker = await succeeded(patient, 3), worker_of(patient, DAY)
    clock.now = START + DAY + LATE
    assert await worker.sweep() == 0
    clock.forward(1)
    assert await worker.sweep() == 1
    assert (await patient.store.get("default", old)).approval.erasure.by == "interlock"
    assert [await is_kept(patient, each) for each in (old, waiting, recent)] == [False, True, True]
    assert places_of(place, "customers") == []
    assert await worker.sweep() == 0
    await assert_sound(patient)


async def test_what_retention_took_is_in_the_ledger_without_content(patient: AppServices, clock: Clock) -> None:  # R49
    await succeeded(patient)
    before = await with_content(patient)
    clock.forward(2 * DAY)
    await worker_of(patient, DAY).sweep()
    (event,) = await entries(patient, "erased")
    assert (event.actor, event.content, event.digest) == ("interlock", None, "")
    assert json.loads(event.data) == {"scope": "retention", "entries": [[2, 3], [5, 5]], "approvals": 1}
    assert before == {2, 3, 5}
    clock.forward(10 * DAY)
    assert await worker_of(patient, DAY).sweep() == 0
    assert (await kinds(patient)).count("erased") == 1  # retention does not go on about itself


async def test_without_a_retention_everything_is_kept(patient: AppServices, clock: Clock) -> None:
    approval_id = await succeeded(patient)
    clock.forward(3_650 * DAY)
    assert await patient.worker.sweep() == 0
    assert await is_kept(patient, approval_id)


async def test_a_program_can_say_how_long_its_calls_are_kept(place: Place) -> None:
    """By the clock of the machine: its own worker erases what has ended, within a second."""
    lock = Interlock(place.url, policy=ALLOWS, agent="tester", retention="0s")

    @lock.tool(effect="write")
    async def delete_file(path: str) -> str:
        return f"deleted {path}"

    async with lock:
        assert await delete_file(path="/harriet") == "deleted /harriet"
        store = build_services(place.url).store
        await store.open()
        async with store.watch("default") as watch, asyncio.timeout(30):
            while not (erased := [s.approval.erasure for s in (await store.list("default", ApprovalQuery())).items])[0]:
                await watch.wait(0.1)
        await store.close()
    assert [each.by for each in erased] == ["interlock"]
    assert places_of(place, "harriet") == []


def test_a_duration_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="not a duration"):
        Interlock("sqlite:///never.db", retention="a while")


async def test_policies_users_and_grants_keep_their_reasons(patient: AppServices, clock: Clock) -> None:
    await patient.store.put_policy("default", "0" * 64, RULES, "ada", "a reason")
    await succeeded(patient)
    clock.forward(2 * DAY)
    assert await worker_of(patient, DAY).sweep() == 1
    assert [json.loads(entry.content or b"{}") for entry in await entries(patient, "policy_changed")] == [
        {},
        {"reason": "a reason"},
    ]


async def test_why_something_was_erased_is_forgotten_in_its_turn(
    patient: AppServices, place: Place, clock: Clock
) -> None:
    await succeeded(patient, requester="zoe")
    await erase(patient, "person", "zoe")
    assert places_of(place, "they asked for it") == ["contents"]
    clock.forward(2 * DAY)
    await worker_of(patient, DAY).sweep()
    assert places_of(place, "they asked for it") == []
    await assert_sound(patient)


async def test_a_rejection_is_kept_until_it_cannot_be_undone(patient: AppServices, clock: Clock) -> None:
    approval_id, worker = await pending(patient), worker_of(patient, 0)
    await patient.inbox.decide("default", approval_id, Reject("No."), BOB)
    clock.forward(1)
    later = await succeeded(patient, 2)
    clock.forward(7_998)
    assert await worker.sweep() == 1
    assert [await is_kept(patient, each) for each in (approval_id, later)] == [True, False]
    clock.forward(1)
    assert await worker.sweep() == 1
    assert not await is_kept(patient, approval_id)
    await assert_sound(patient)


async def test_a_rejection_that_was_undone_begins_anew(patient: AppServices, clock: Clock) -> None:
    approval_id, worker = await pending(patient), worker_of(patient, DAY)
    await patient.inbox.decide("default", approval_id, Reject("No."), BOB)
    await patient.inbox.undo("default", approval_id, BOB)
    clock.forward(20 * HOUR)
    await patient.inbox.decide("default", approval_id, Reject("No!"), BOB)
    clock.forward(20 * HOUR)
    assert await worker.sweep() == 0
    assert await is_kept(patient, approval_id)
    clock.forward(5 * HOUR)
    assert await worker.sweep() == 1


async def test_what_is_reported_after_the_erasure_is_forgotten_later(
    patient: AppServices, place: Place, clock: Clock
) -> None:
    approval_id, worker = await pending(patient), worker_of(patient, DAY)
    await approve(patient, approval_id)
    await patient.gate.start("default", approval_id, "r")
    await patient.gate.abandon("default", approval_id, 1)
    await patient.inbox.resolve_unknown("default", approval_id, BOB, ok=True)
    clock.forward(2 * DAY)
    assert await worker.sweep() == 1
    with pytest.raises(LeaseLost):
        await patient.gate.finish("default", approval_id, 1, ok=False, payload=Payload(error="harriet"))
    assert places_of(place, "harriet") == ["contents"]
    clock.forward(2 * DAY)
    assert await worker.sweep() == 0  # no approval is erased twice
    assert places_of(place, "harriet") == []
    assert [event["approvals"] for event in await erased_events(patient)] == [1, 0]
    await assert_sound(patient)


async def test_much_is_forgotten_in_lots_and_a_sweep_does_only_so_many(
    patient: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH_SIZE", 2)
    monkeypatch.setattr("interlock.app.worker.MAX_FORGET_BATCHES", 5)
    for number in range(25):
        await succeeded(patient, number)
    clock.forward(2 * DAY)
    sweeps = [await worker_of(patient, DAY).sweep() for _ in range(4)]
    assert sweeps == [10, 10, 5, 0]
    assert [event["approvals"] for event in await erased_events(patient)] == [2] * 12 + [1]
    await assert_sound(patient)


async def test_a_full_lot_does_not_wait_for_more(
    patient: AppServices, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "ENTRIES_PER_BATCH", 9)
    for number in range(3):
        await succeeded(patient, number)
    clock.forward(DAY + 1)
    assert await worker_of(patient, DAY).sweep() == 2  # nine entries; the last are no full lot


async def test_two_workers_forget_everything_once(place: Place, clock: Clock) -> None:
    async with opened(place, clock, RULES) as one, opened(place, clock) as two:
        for number in range(20):
            await succeeded(one, number)
        clock.forward(2 * DAY)
        workers = [worker_of(each, DAY) for each in (one, two, one)]
        assert sum(await asyncio.gather(*(worker.sweep() for worker in workers))) == 20
        assert sum(int(str(event["approvals"])) for event in await erased_events(one)) == 20
        await assert_sound(one)


async def test_every_workspace_is_swept(patient: AppServices, clock: Clock) -> None:
    ids = {}
    for workspace in ("default", "other"):
        outcome = await patient.gate.check(call(1, workspace=workspace), WRITE)
        assert isinstance(outcome, Waiting)
        ids[workspace] = outcome.approval_id
        await patient.gate.cancel(workspace, outcome.approval_id, "agent")
    clock.forward(2 * DAY)
    assert await worker_of(patient, DAY).sweep() == 2
    for workspace, approval_id in ids.items():
        assert (await patient.store.get(workspace, approval_id)).payload == Payload()


async def test_a_row_that_somebody_deleted_does_not_stop_the_others(
    patient: AppServices, place: Place, clock: Clock
) -> None:
    gone, there = await succeeded(patient, 1), await succeeded(patient, 2)
    place.sql("delete from approvals where id = ?", gone)
    clock.forward(2 * DAY)
    assert await worker_of(patient, DAY).sweep() == 1
    assert not await is_kept(patient, there)
