"""The gate: the agent's API, in process and over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.approval.execute import MAX_LATE_REPORTS
from interlock.core.call import ToolSpec, propose
from interlock.core.canonical import digest
from interlock.core.decision import Acknowledgement, Edit, Reject, Respond, Reviewer
from interlock.core.errors import (
    AlreadyStarted,
    BindingBroken,
    CallMismatch,
    CallWouldFail,
    ClockBehind,
    EffectUnknown,
    Expired,
    InvalidRequest,
    LeaseLost,
    NotApproved,
    ToolFailed,
)
from interlock.core.grant import Grant
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Answered, Finished, Proceed, Refused, Waiting
from interlock.core.preview import Preview
from interlock.presenters.model_message import refusal_message
from tests.databases import Database
from tests.remote_gate import has_remote_gate, recorded_spec, use_remote_gate
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

LATER = START + 3_600_000


@pytest.fixture(params=["here", "afar"])
async def services(request: pytest.FixtureRequest, database: Database, clock: Clock) -> AsyncIterator[AppServices]:
    """The gate of this process, and the same behind a server."""
    async with open_services(database, clock) as opened_services:
        if request.param == "here":
            yield opened_services
            return
        async with use_remote_gate(opened_services) as others:
            yield others


async def test_a_read_passes_and_leaves_only_a_number(services: AppServices) -> None:  # R1, R15
    for number in range(3):
        outcome = await services.gate.check(call(number, tool="read_file"), READ)
        assert outcome == Proceed(b'{"path":"/tmp/x"}')
    await propose_pending(services)  # its batch takes the counts along
    assert (await services.store.stats("default")).allowed_reads == 3
    assert await event_kinds(services) == ["proposed"]


async def test_writes_destructive_and_unknown_tools_ask(services: AppServices) -> None:  # R1
    for effect in ("write", "destructive", ""):
        outcome = await services.gate.check(call(effect or "x", tool="t"), ToolSpec("t", effect))
        assert isinstance(outcome, Waiting), effect


async def test_an_allowed_write_gets_a_row_and_runs_once(database: Database, clock: Clock) -> None:
    rules = "version: 1\nrules:\n  - {name: fine, tools: [delete_file], then: allow}\n"
    async with open_services(database, clock, rules) as services:
        outcome = await services.gate.check(call(), WRITE)
        assert isinstance(outcome, Proceed)
        assert outcome.approval_id
        execution = await services.gate.start("default", outcome.approval_id, "r")
        with pytest.raises(AlreadyStarted):
            await services.gate.start("default", outcome.approval_id, "other")
        await services.gate.finish("default", outcome.approval_id, execution.fence, ok=True, payload=OK)
        assert await services.gate.check(call(), WRITE) == Finished("succeeded", "ok", "", outcome.approval_id)
        assert await event_kinds(services) == ["policy_changed", "allowed", "started", "succeeded"]
        assert await ledger_violations(services) == []


async def test_an_attempt_that_is_sent_twice_starts_once(services: AppServices) -> None:  # R24, R46
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    twice = [services.gate.start("default", approval_id, "attempt:1") for _ in range(2)]
    others = [services.gate.start("default", approval_id, f"attempt:{n}") for n in (2, 3)]
    first, second, *rest = await asyncio.gather(*twice, *others, return_exceptions=True)
    assert first == second
    assert [type(each) for each in rest] == [AlreadyStarted, AlreadyStarted]
    repeated = await services.gate.start("default", approval_id, "attempt:1")
    assert repeated == first
    await services.gate.renew("default", approval_id, repeated.fence)
    with pytest.raises(AlreadyStarted):
        await services.gate.start("default", approval_id, "attempt:1")
    await services.gate.finish("default", approval_id, repeated.fence, ok=True, payload=OK)
    assert await event_kinds(services) == ["proposed", "approved", "started", "succeeded"]
    assert await ledger_violations(services) == []


async def test_a_denied_call_leaves_an_event_and_a_result_for_the_model(
    database: Database, clock: Clock
) -> None:  # R35
    rules = "version: 1\nrules:\n  - {name: never, tools: ['delete_*'], then: deny, reason: Not here.}\n"
    async with open_services(database, clock, rules) as services:
        outcome = await services.gate.check(call(), WRITE)
        assert outcome == Refused("Not here.", "denied")
        assert refusal_message(outcome, "delete_file")["error"] == "Access denied: Not here."
        assert await event_kinds(services) == ["policy_changed", "denied"]


async def test_a_replay_gets_the_first_answer_under_any_later_policy(
    services: AppServices, clock: Clock
) -> None:  # R24
    approval_id = await propose_pending(services)
    await services.inbox.decide("default", approval_id, Reject("no"), BOB)
    clock.advance(8_000)
    rules = "version: 1\nrules:\n  - {name: all, then: allow}\n"
    await services.put_policy("default", rules, "ada", {})
    assert await services.gate.check(call(), WRITE) == Refused("no", "rejected", approval_id)
    assert await services.gate.check(call(), ToolSpec("delete_file", "read")) == Refused("no", "rejected", approval_id)
    await services.put_policy("default", rules.replace("allow", "deny"), "ada", {})
    assert await services.gate.check(call(), WRITE) == Refused("no", "rejected", approval_id)


async def test_a_known_call_id_with_other_arguments_is_refused(services: AppServices) -> None:
    await propose_pending(services)
    for other in (call(1, {"path": "/"}), call(1, tool="other")):
        with pytest.raises(CallMismatch):
            await services.gate.check(other, ToolSpec(other.tool, "destructive"))


async def test_a_replay_after_an_edit_is_still_the_same_call(services: AppServices) -> None:  # R50
    approval_id = await propose_pending(services)
    sha = (await services.store.get("default", approval_id)).approval.args_sha256
    await services.inbox.decide("default", approval_id, Edit(b'{"path":"/tmp/y"}', Acknowledgement(sha)), BOB)
    assert await services.gate.check(call(), WRITE) == Proceed(b'{"path":"/tmp/y"}', approval_id)


async def test_twenty_replays_at_once_make_one_approval(services: AppServices) -> None:  # R24
    outcomes = await asyncio.gather(*(services.gate.check(call(), WRITE) for _ in range(20)))
    assert len({outcome.approval_id for outcome in outcomes if isinstance(outcome, Waiting)}) == 1
    assert await event_kinds(services) == ["proposed"]


async def test_what_runs_is_what_was_approved_to_the_byte(services: AppServices) -> None:  # R47
    args = {"path": "ünï", "n": 12345678901234567890123, "x": 1.0, "list": [True, None, "1", 1]}
    approval_id = await propose_pending(services, args=args)
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r")
    assert execution.args == '{"list":[true,null,"1",1],"n":12345678901234567890123,"path":"ünï","x":1}'.encode()
    stored = await services.store.get("default", approval_id)
    assert stored.approval.args_sha256 == digest(execution.args)


async def test_only_one_of_fifty_starts_wins(services: AppServices) -> None:  # R46
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    starts = (services.gate.start("default", approval_id, f"r{n}") for n in range(50))
    results = await asyncio.gather(*starts, return_exceptions=True)
    assert sum(not isinstance(result, Exception) for result in results) == 1
    assert sum(isinstance(result, AlreadyStarted) for result in results) == 49


async def test_a_start_without_approval_is_refused(services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    with pytest.raises(NotApproved):
        await services.gate.start("default", approval_id, "r")
    clock.advance(86_400_000)
    await services.worker.sweep()
    with pytest.raises(Expired):
        await services.gate.start("default", approval_id, "r")


async def test_consent_does_not_keep(services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    clock.advance(3_600_000)
    with pytest.raises(Expired, match="lapsed"):
        await services.gate.start("default", approval_id, "r")
    assert await status(services, approval_id) == "expired"
    assert await ledger_violations(services) == []


async def test_altered_bytes_do_not_start(services: AppServices, database: Database) -> None:  # R47
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    database.sql("update payloads set args = ?", b'{"path":"/"}')
    with pytest.raises(BindingBroken):
        await services.gate.start("default", approval_id, "r")
    assert await status(services, approval_id) == "approved"


async def test_a_changed_tool_definition_voids_the_approval(services: AppServices) -> None:  # R47
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    changed = ToolSpec("delete_file", "destructive", describe="Delete everything")
    with pytest.raises(BindingBroken, match="definition"):
        await services.gate.start("default", approval_id, "r", spec_sha256=changed.sha256)
    assert (await services.gate.start("default", approval_id, "r", spec_sha256=WRITE.sha256)).fence == 1


async def test_late_reports_leave_one_entry_each_and_a_few_of_a_call(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    fence = (await services.gate.start("default", approval_id, "r")).fence
    await services.gate.finish("default", approval_id, fence, ok=True, payload=OK)

    async def late(number: int) -> None:
        with pytest.raises(LeaseLost):
            await services.gate.finish("default", approval_id, fence, ok=False, payload=Payload(error=f"E{number}"))

    for _ in range(3):
        await late(1)
    assert (await event_kinds(services)).count("finished_late") == 1
    await asyncio.gather(*(late(number % 20) for number in range(60)))
    assert (await event_kinds(services)).count("finished_late") == MAX_LATE_REPORTS
    assert await ledger_violations(services) == []


async def test_a_lease_that_runs_out_makes_the_call_unknown(services: AppServices, clock: Clock) -> None:  # R46
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r", 1000)
    clock.advance(1000)
    assert await services.gate.get_outcome("default", approval_id) == Finished("unknown", None, "", approval_id)
    with pytest.raises(LeaseLost):
        await services.gate.finish("default", approval_id, execution.fence, ok=True, payload=OK)
    assert await status(services, approval_id) == "unknown"
    assert (await event_kinds(services))[-2:] == ["lost", "finished_late"]
    with pytest.raises(AlreadyStarted):
        await services.gate.start("default", approval_id, "r")
    assert await ledger_violations(services) == []


async def test_a_renewed_lease_holds(services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r", 1000)
    clock.advance(900)
    await services.gate.renew("default", approval_id, execution.fence, 1000)
    clock.advance(900)
    await services.worker.sweep()
    done = await services.gate.finish("default", approval_id, execution.fence, ok=False, payload=Payload(error="boom"))
    assert done.status == "failed"
    with pytest.raises(LeaseLost):
        await services.gate.renew("default", approval_id, execution.fence)


async def test_an_idempotent_call_is_started_again_with_the_same_key_and_the_next_fence(
    services: AppServices, clock: Clock
) -> None:  # R46
    spec = ToolSpec("put", "write", idempotent=True)
    approval_id = await propose_pending(services, spec=spec)
    await approve(services, approval_id)
    first = await services.gate.start("default", approval_id, "r1", 1000)
    with pytest.raises(AlreadyStarted):
        await services.gate.start("default", approval_id, "r2")
    clock.advance(1000)
    if has_remote_gate(services):  # there it is only said to be idempotent, which gives one start
        assert await services.gate.get_outcome("default", approval_id) == Finished("unknown", approval_id=approval_id)
        with pytest.raises(AlreadyStarted):
            await services.gate.start("default", approval_id, "r2")
        return
    assert isinstance(await services.gate.get_outcome("default", approval_id), Proceed)
    second = await services.gate.start("default", approval_id, "r2", 1000)
    assert (second.fence, second.idempotency_key) == (first.fence + 1, first.idempotency_key)
    with pytest.raises(LeaseLost):
        await services.gate.finish("default", approval_id, first.fence, ok=True, payload=OK)
    assert (await services.gate.finish("default", approval_id, second.fence, ok=True, payload=OK)).status == "succeeded"
    assert await ledger_violations(services) == []


async def test_a_cancelled_call_does_not_run(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    await services.gate.cancel("default", approval_id, "agent", "changed my mind")
    await services.gate.cancel("default", approval_id, "agent")  # twice is once
    with pytest.raises(NotApproved):
        await services.gate.start("default", approval_id, "r")
    assert await services.gate.check(call(), WRITE) == Refused("changed my mind", "cancelled", approval_id)


async def test_a_wait_comes_back_with_the_answer(services: AppServices) -> None:  # R11
    approval_id = await propose_pending(services)
    waiting = asyncio.create_task(services.gate.wait("default", approval_id))
    await services.inbox.decide("default", approval_id, Respond("use the other one"), BOB)
    assert await waiting == Answered("use the other one", approval_id)


async def test_a_wait_ends_when_its_time_is_up(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    outcome = await services.gate.wait("default", approval_id, 0)
    assert isinstance(outcome, Waiting)
    assert await status(services, approval_id) == "pending"


async def test_a_rejection_reaches_the_agent_when_the_undo_window_is_over(services: AppServices, clock: Clock) -> None:
    approval_id = await propose_pending(services)
    await services.inbox.decide("default", approval_id, Reject("no"), BOB)
    assert isinstance(await services.gate.get_outcome("default", approval_id), Waiting)
    clock.advance(7_999)
    assert isinstance(await services.gate.get_outcome("default", approval_id), Waiting)
    clock.advance(1)
    assert await services.gate.get_outcome("default", approval_id) == Refused("no", "rejected", approval_id)


async def test_an_unanswered_call_times_out_without_a_worker(services: AppServices, clock: Clock) -> None:  # R5
    approval_id = await propose_pending(services)
    clock.advance(86_400_000)
    outcome = await services.gate.wait("default", approval_id)
    assert isinstance(outcome, Refused)
    assert "timed out" in outcome.reason
    assert await status(services, approval_id) == "expired"


async def test_each_setting_has_its_own_deadline(services: AppServices) -> None:  # R5
    for setting, window in (("chat", 600_000), ("queue", 86_400_000), ("paused", 86_400_000)):
        approval_id = await propose_pending(services, setting, setting=setting)
        assert (await services.store.get("default", approval_id)).approval.deadlines.expires_at == START + window
    approval_id = await propose_pending(services, "short", expires_in=1_000)
    assert (await services.store.get("default", approval_id)).approval.deadlines.expires_at == START + 1_000
    approval_id = await propose_pending(services, "long", expires_in=10**9)
    assert (await services.store.get("default", approval_id)).approval.deadlines.expires_at == START + 86_400_000


async def test_nothing_is_approved_or_started_while_the_clock_is_behind_the_ledger(
    services: AppServices, clock: Clock
) -> None:
    first, second = await propose_pending(services, 1), await propose_pending(services, 2)
    await approve(services, first)
    clock.advance(-3_600_000)
    with pytest.raises(ClockBehind):
        await approve(services, second)
    with pytest.raises(ClockBehind):
        await services.gate.start("default", first, "r")
    clock.advance(3_600_000)
    assert await approve(services, second) == "approved"
    assert await ledger_violations(services) == []


async def test_arguments_that_do_not_fit_the_schema_are_sent_back(services: AppServices) -> None:  # R27
    spec = ToolSpec("t", "write", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    with pytest.raises(InvalidRequest, match="/n"):
        await services.gate.check(call(1, {"n": "one"}, tool="t"), spec)
    assert await event_kinds(services) == []


async def test_secret_values_are_nowhere_but_in_their_own_row(services: AppServices, database: Database) -> None:
    spec = ToolSpec("login", "write", secret=("password",), describe="Log in as {user} with {password}")
    canary = "hunter2-canary"
    approval_id = await propose_pending(services, args={"user": "zoe", "password": canary}, spec=spec)
    view = await services.inbox.show("default", approval_id)
    assert canary not in repr(view.card) + repr(view.timeline) + str(view.stored.payload.sentence)
    await approve(services, approval_id)
    assert canary.encode() in (await services.gate.start("default", approval_id, "r")).args
    holding = [table for table in database.tables() if canary in repr(database.sql(f"select * from {table}"))]
    assert holding == ["payloads"]
    shown = database.sql("select shown, sentence from payloads")
    assert canary not in repr(shown)


async def test_a_preview_is_shown_and_a_failing_one_stops_nothing(services: AppServices) -> None:  # R45
    async def rows(args: object) -> str:
        return "3 rows"

    def broken(args: object) -> str:
        raise ValueError("secret detail")

    good = await propose_pending(services, 1, ToolSpec("a", "write", preview=rows))
    bad = await propose_pending(services, 2, ToolSpec("b", "write", preview=broken))
    for approval_id, words in ((good, "3 rows"), (bad, "No preview: ValueError.")):
        card = (await services.inbox.show("default", approval_id)).card
        shown = ("", words) if has_remote_gate(services) else (words, "")  # from there it is the agent's word
        assert (card.preview, card.agent_preview) == shown


async def test_a_tool_gets_the_version_of_what_people_saw_back_also_after_an_edit(services: AppServices) -> None:  # R45
    versions = iter(("version 1", "version 2"))

    def shown(args: object) -> Preview:
        return Preview("3 rows", next(versions))

    spec = ToolSpec("delete_file", "write", preview=shown)
    seen, edited = [await propose_pending(services, number, spec) for number in (1, 2)]
    plain = await propose_pending(services, 3, ToolSpec("delete_file", "write", preview=lambda args: "3 rows"))
    for approval_id in (seen, plain):
        assert await approve(services, approval_id) == "approved"
    saw = Acknowledgement((await services.store.get("default", edited)).approval.args_sha256)
    await services.inbox.decide("default", edited, Edit({"path": "/y"}, saw), BOB)
    started = [await services.gate.start("default", each, "r") for each in (seen, edited, plain)]
    wanted = ["", "", ""] if has_remote_gate(services) else ["version 1", "version 2", ""]
    assert [each.preview_version for each in started] == wanted


async def test_a_version_that_was_shown_before_holds_for_the_call(database: Database, clock: Clock) -> None:  # R45
    async with open_services(database, clock) as services:
        gate = services.gate.with_confirmed_version("version 1")
        for number, shown in enumerate([Preview("3 rows", "version 1"), "3 rows", ToolFailed("No answer.")]):
            spec = ToolSpec("delete_file", "write", preview=lambda args, shown=shown: return_or_raise(shown))
            outcome = await gate.check(call(number), spec)
            assert isinstance(outcome, Waiting)
            await approve(services, outcome.approval_id)
            started = await gate.start("default", outcome.approval_id, "r")
            assert started.preview_version == "version 1"
        changed = ToolSpec("delete_file", "write", preview=lambda args: Preview("3 rows", "version 2"))
        with pytest.raises(CallWouldFail, match="not as it was when the person was asked"):
            await gate.check(call("later"), changed)
        assert (await event_kinds(services))[-1] == "denied"


@pytest.mark.parametrize("allowed_by", ["rule", "grant"])
async def test_a_confirmed_version_holds_for_a_call_that_is_allowed_by_now(
    database: Database, clock: Clock, allowed_by: str
) -> None:  # R45, R51
    rules = "version: 1\nrules:\n  - {name: free, tools: [delete_file], then: allow}\n"
    async with open_services(database, clock, rules if allowed_by == "rule" else "version: 1\n") as services:
        spec = ToolSpec("delete_file", "write", preview=lambda args: Preview("3 rows", "version 1"))
        if allowed_by == "grant":
            await services.inbox.grant(make_grant(services, spec), BOB)
        for number, (gate, version) in enumerate(
            [(services.gate.with_confirmed_version("version 1"), "version 1"), (services.gate, "")]
        ):
            outcome = await gate.check(call(number), spec)
            assert isinstance(outcome, Proceed)
            started = await gate.start("default", outcome.approval_id, "r")
            assert started.preview_version == version
        assert await ledger_violations(services) == []


async def test_a_copy_of_a_request_s_gate_keeps_the_epoch_in_which_its_call_was_made(
    database: Database, clock: Clock
) -> None:  # R35
    async with open_services(database, clock) as services:
        gate = services.gate.with_fence(1)
        services.gate.in_force.invalidate_all()  # teams or pins change, while the call has those of before
        assert gate.epoch is not services.gate.in_force.epoch
        assert gate.with_confirmed_version("").epoch is gate.epoch


def return_or_raise(shown: object) -> object:
    if isinstance(shown, Exception):
        raise shown
    return shown


# R35, R41, R47
async def test_a_call_that_its_preview_knows_to_fail_is_recorded_and_not_asked_about(
    database: Database, clock: Clock
) -> None:
    def missing(args: Mapping[str, object]) -> str:
        raise CallWouldFail(f"There is no {args['path']}, with the key {args['key']}.")

    rules = "version: 1\nrules:\n  - {name: ask me, tools: [delete_file], then: ask}\n"
    spec = ToolSpec("delete_file", "destructive", secret=("key",), preview=missing)
    async with open_services(database, clock, rules) as services:
        with pytest.raises(CallWouldFail, match=r"^There is no /x, with the key \[hidden\]\.$"):
            await services.gate.check(call(1, {"path": "/x", "key": "hunter2"}), spec)
        assert await event_kinds(services) == ["policy_changed", "denied"]
        assert database.sql("select * from approvals") == []
        *_, entry = [entry async for page in services.store.entries("default") for entry in page]
        data, content = json.loads(entry.data), json.loads(entry.content or b"{}")
        assert (data["by"], data["rule"]) == ("preview", "ask me")
        assert content["reason"] == "There is no /x, with the key [hidden]."
        assert await ledger_violations(services) == []
        assert "hunter2" not in repr(database.sql("select * from contents"))
        (recorded,) = [each async for page in services.store.recorded_calls("default", 0) for each in page]
        assert recorded.verdict == "ask"  # a rehearsal compares what the policy said


# R35, R41, R52
async def test_a_failing_call_with_long_arguments_is_recorded_without_them(database: Database, clock: Clock) -> None:
    def missing(args: object) -> str:
        raise CallWouldFail("There is no such file.")

    spec = ToolSpec("delete_file", "destructive", preview=missing)
    async with open_services(database, clock) as services:
        for number, size in enumerate((10, 100_000)):
            with pytest.raises(CallWouldFail):
                await services.gate.check(call(number, {"path": "x" * size}), spec)
        entries = [entry async for page in services.store.entries("default") for entry in page]
        assert [len(entry.content or b"") < 2_000 for entry in entries] == [True, True]
        assert await services.store.count_recorded_calls("default") == (1, 1)
        (recorded,) = [each async for page in services.store.recorded_calls("default", 0) for each in page]
        assert recorded.call.args == b'{"path":"xxxxxxxxxx"}'


# R34, R35
async def test_a_known_call_keeps_its_outcome_whatever_its_preview_says_now(services: AppServices) -> None:
    asked: list[object] = []

    def vanishing(args: object) -> str:
        asked.append(args)
        if len(asked) > 1:
            raise CallWouldFail("It is gone.")
        return "One file."

    spec = ToolSpec("delete_file", "destructive", preview=vanishing)
    first = await services.gate.check(call(1), spec)
    assert isinstance(first, Waiting)
    assert await services.gate.check(call(1), spec) == first


# R34, R35
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ToolFailed("No answer."), "This may fail: No answer."),
        (EffectUnknown("Hm."), "This may fail: Hm."),
        (TimeoutError(), "No preview: TimeoutError."),
        (ConnectionError("to 10.0.0.1"), "No preview: ConnectionError."),
    ],
)
async def test_a_look_up_that_only_failed_stops_no_question(
    services: AppServices, error: Exception, words: str
) -> None:
    def broken(args: object) -> str:
        raise error

    approval_id = await propose_pending(services, 1, ToolSpec("delete_file", "write", preview=broken))
    card = (await services.inbox.show("default", approval_id)).card
    assert (card.preview or card.agent_preview) == words


async def test_a_grant_covers_a_call_once_and_only_in_its_scope(
    services: AppServices, clock: Clock
) -> None:  # R20, R51
    draft = make_grant(services, WRITE, max_uses=1, when='args.path.startsWith("/tmp/")')
    await services.inbox.grant(draft, BOB)
    outside = await services.gate.check(call(1, {"path": "/etc/x"}), WRITE)
    assert isinstance(outside, Waiting)
    race = await asyncio.gather(*(services.gate.check(call(n), WRITE) for n in range(2, 6)))
    assert sorted(type(outcome).__name__ for outcome in race) == ["Proceed", "Waiting", "Waiting", "Waiting"]
    grants = await services.inbox.grants("default")
    assert [(g.uses, g.created_by) for g in grants] == [(1, "bob")]
    assert await ledger_violations(services) == []


async def test_a_revoked_or_expired_grant_covers_nothing(services: AppServices, clock: Clock) -> None:  # R51
    for number, grant_id in enumerate(("revoked", "expired")):
        end = START + 1_000 * (number + 1)
        await services.inbox.grant(make_grant(services, WRITE, id=grant_id, expires_at=end), BOB)
    await services.inbox.revoke("default", "revoked", BOB)
    clock.advance(2_000)
    assert isinstance(await services.gate.check(call(), WRITE), Waiting)


async def test_a_question_can_only_be_answered(services: AppServices) -> None:  # R37
    spec = ToolSpec("request_human_input", "read", decisions=("respond",))
    asked = propose("request_human_input", {"question": "Which?", "choices": ["a", "b"]}, "run", "q")
    outcome = await services.gate.ask(asked, spec)
    assert isinstance(outcome, Waiting)
    with pytest.raises(Exception, match="allowed: respond"):
        await approve(services, outcome.approval_id)
    with pytest.raises(Exception, match="does not fit the question"):
        await services.inbox.decide("default", outcome.approval_id, Respond("c"), BOB)
    await services.inbox.decide("default", outcome.approval_id, Respond("a"), BOB)
    assert await services.gate.get_outcome("default", outcome.approval_id) == Answered("a", outcome.approval_id)


async def test_a_viewer_or_an_agent_never_decides(services: AppServices) -> None:  # R48
    approval_id = await propose_pending(services)
    for role in ("viewer", "agent"):
        with pytest.raises(Exception, match="may not decide"):
            await approve(services, approval_id, Reviewer("x", role))
    assert (await event_kinds(services)) == ["proposed", "decision_refused", "decision_refused"]


def make_grant(services: AppServices, spec: ToolSpec, **scope: object) -> Grant:
    """A grant as a person asks for it: who creates it and when is set by the inbox."""
    unset = {"created_by": "", "teams": frozenset(), "role": "", "created_at": 0}
    whole = {"id": "g1", "tool": spec.name, "spec_sha256": recorded_spec(services, spec).sha256, "expires_at": LATER}
    return Grant(**{"workspace": "default", **unset, **whole, **scope})
