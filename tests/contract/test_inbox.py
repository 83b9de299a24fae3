"""The inbox: the people's API."""

import asyncio
import json

import pytest

from interlock.app.bootstrap import AppServices
from interlock.app.inbox import MAX_REFUSALS
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, Respond, Reviewer
from interlock.core.errors import (
    AlreadyDecided,
    Conflict,
    DeniedNow,
    DigestMismatch,
    Error,
    Expired,
    FindingsNotAcknowledged,
    Forbidden,
    InvalidDecision,
    Misconfigured,
)
from interlock.core.grant import Grant
from interlock.core.ledger.event import Stored
from interlock.core.outcome import Finished, Proceed
from interlock.core.policy.policy import People
from tests.databases import Database
from tests.support import (
    ADA,
    BOB,
    EVE,
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

MONEY = ToolSpec(
    "fund_transfer",
    "write",
    schema={
        "type": "object",
        "properties": {"amount": {"type": "number"}, "to": {"type": "string"}},
        "required": ["amount", "to"],
        "additionalProperties": False,
    },
)
RULES = """
version: 1
rules:
  - name: never to the moon
    tools: [fund_transfer]
    when: args.to == "moon"
    then: deny
    reason: Nobody lives there.
  - name: large transfers
    tools: [fund_transfer]
    when: args.amount > 1000.0
    then: ask
    approvers: {teams: [finance]}
    quorum: 2
    exclude: [requester]
  - name: small transfers
    tools: [fund_transfer]
    then: ask
"""


@pytest.fixture
async def bank_services(database: Database, clock: Clock):  # type: ignore[no-untyped-def]
    async with open_services(database, clock, RULES) as services:
        yield services


async def transfer(bank: AppServices, amount: float, number: int = 1, **more: object) -> str:
    asked = {"requester": "zoe", **more}
    return await propose_pending(bank, number, MONEY, args={"amount": amount, "to": "shop"}, **asked)


async def args_sha256(services: AppServices, approval_id: str) -> str:
    return (await services.store.get("default", approval_id)).approval.args_sha256


async def test_a_second_decision_gets_the_recorded_one(services: AppServices) -> None:  # R24
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    with pytest.raises(AlreadyDecided) as caught:
        await services.inbox.decide("default", approval_id, Reject(), EVE)
    assert caught.value.to_json()["decision"] == {"kind": "approve", "by": "bob", "at": START, "reason": ""}


async def test_a_registered_tool_is_shown_with_the_order_of_its_schema(services: AppServices) -> None:  # R53
    schema = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "number"}}}
    spec = ToolSpec("pay", "write", schema=schema)
    approval_id = await propose_pending(services, 1, spec, args={"amount": 1, "to": "ann"})
    services.inbox.find_registered_spec = lambda workspace, tool: (
        spec if (workspace, tool) == ("default", "pay") else None
    )
    shown = (await services.inbox.show("default", approval_id)).spec.schema
    assert shown is not None
    assert json.dumps(shown) == json.dumps(schema)


async def test_of_thirty_people_at_once_one_decides(services: AppServices) -> None:
    approval_id = await propose_pending(services)
    people = [Reviewer(f"p{n}") for n in range(30)]
    decisions = [Approve() if n % 2 else Reject() for n in range(30)]
    work = (services.inbox.decide("default", approval_id, d, p) for d, p in zip(decisions, people, strict=True))
    results = await asyncio.gather(*work, return_exceptions=True)
    winners = [r for r in results if not isinstance(r, BaseException)]
    standing = [r for r in results if isinstance(r, AlreadyDecided)]
    assert (len(winners), len(standing)) == (1, 29)
    by = winners[0].decision.by  # type: ignore[union-attr]
    assert {r.to_json()["decision"]["by"] for r in standing} == {by}  # type: ignore[index]


async def test_two_people_have_to_agree_on_a_large_transfer(bank_services: AppServices) -> None:  # R48
    approval_id = await transfer(bank_services, 5000, requester="zoe")
    assert await approve(bank_services, approval_id, BOB) == "pending"
    assert await approve(bank_services, approval_id, BOB) == "pending"  # twice is once
    assert await approve(bank_services, approval_id, EVE) == "approved"
    assert (await event_kinds(bank_services))[1:] == ["proposed", "voted", "approved"]
    assert await ledger_violations(bank_services) == []


async def test_two_of_two_at_the_same_moment_approve_once(bank_services: AppServices) -> None:
    approval_id = await transfer(bank_services, 5000)
    await asyncio.gather(approve(bank_services, approval_id, BOB), approve(bank_services, approval_id, EVE))
    assert await status(bank_services, approval_id) == "approved"
    assert await ledger_violations(bank_services) == []


async def test_outsiders_and_the_requester_cannot_vote_and_the_attempt_is_kept(
    bank_services: AppServices,
) -> None:  # R41, R48
    approval_id = await transfer(bank_services, 5000, requester="bob")
    for person in (ADA, BOB):
        with pytest.raises(Forbidden):
            await approve(bank_services, approval_id, person)
    assert (await event_kinds(bank_services))[2:] == ["decision_refused", "decision_refused"]
    assert await status(bank_services, approval_id) == "pending"


async def test_a_decision_on_other_arguments_than_shown_is_refused(services: AppServices) -> None:  # R47
    approval_id = await propose_pending(services)
    with pytest.raises(DigestMismatch):
        await services.inbox.decide("default", approval_id, Approve(Acknowledgement("0" * 64)), BOB)
    assert await status(services, approval_id) == "pending"


async def test_an_edit_is_checked_judged_and_runs_as_edited(bank_services: AppServices) -> None:  # R11, R12, R50
    approval_id = await transfer(bank_services, 10)
    seen = Acknowledgement(await args_sha256(bank_services, approval_id))
    for bad, where in (
        (b'{"amount":"ten","to":"shop"}', "/amount"),
        (b'{"amount":1}', "to"),
        (b'{"amount":1,"to":"a","x":1}', "x"),
    ):
        with pytest.raises(InvalidDecision, match=where):
            await bank_services.inbox.decide("default", approval_id, Edit(bad, seen), BOB)
    with pytest.raises(DeniedNow, match="Nobody lives there"):
        await bank_services.inbox.decide("default", approval_id, Edit(b'{"amount":1,"to":"moon"}', seen), BOB)
    assert await status(bank_services, approval_id) == "pending"
    done = await bank_services.inbox.decide("default", approval_id, Edit(b'{"amount":20,"to":"shop"}', seen), BOB)
    assert (done.status, done.editors) == ("approved", ("bob",))
    assert await bank_services.gate.get_outcome("default", approval_id) == Proceed(
        b'{"amount":20,"to":"shop"}', approval_id
    )
    assert (await event_kinds(bank_services))[-2:] == ["edited", "approved"]
    assert await ledger_violations(bank_services) == []


async def test_an_edit_into_a_stricter_rule_needs_the_stricter_quorum(bank_services: AppServices) -> None:  # R50
    approval_id = await transfer(bank_services, 10)
    edit = Edit({"to": "shop", "amount": 9000}, Acknowledgement(await args_sha256(bank_services, approval_id)))
    edited = await bank_services.inbox.decide("default", approval_id, edit, BOB)
    assert (edited.status, len(edited.votes)) == ("pending", 1)
    assert await approve(bank_services, approval_id, EVE) == "approved"
    assert await ledger_violations(bank_services) == []


async def test_an_edit_into_a_looser_rule_keeps_the_strict_one_and_voids_votes(
    bank_services: AppServices,
) -> None:  # R50
    approval_id = await transfer(bank_services, 5000)
    await approve(bank_services, approval_id, EVE)
    edit = Edit(b'{"amount":1,"to":"shop"}', Acknowledgement(await args_sha256(bank_services, approval_id)))
    edited = await bank_services.inbox.decide("default", approval_id, edit, BOB)
    assert (edited.status, [vote.by for vote in edited.votes]) == ("pending", ["bob"])
    assert await approve(bank_services, approval_id, EVE) == "approved"


async def test_an_edit_of_what_somebody_else_edited_meanwhile_is_refused(bank_services: AppServices) -> None:
    approval_id = await transfer(bank_services, 5000)
    seen = Acknowledgement(await args_sha256(bank_services, approval_id))
    await bank_services.inbox.decide("default", approval_id, Edit(b'{"amount":6000,"to":"shop"}', seen), BOB)
    with pytest.raises(DigestMismatch):
        await bank_services.inbox.decide("default", approval_id, Edit(b'{"amount":7000,"to":"shop"}', seen), EVE)


async def test_a_secret_stays_when_an_edit_returns_its_fingerprint(services: AppServices) -> None:
    spec = ToolSpec("login", "write", secret=("password",))
    approval_id = await propose_pending(services, args={"user": "zoe", "password": "hunter2"}, spec=spec)
    stored = await services.store.get("default", approval_id)
    shown = (stored.payload.shown or b"").replace(b"zoe", b"max")
    seen = Acknowledgement(stored.approval.args_sha256)
    await services.inbox.decide("default", approval_id, Edit(shown, seen), BOB)
    assert (await services.gate.start("default", approval_id, "r")).args == b'{"password":"hunter2","user":"max"}'
    other = await propose_pending(services, 2, args={"user": "zoe", "password": "other"}, spec=spec)
    with pytest.raises(InvalidDecision, match="fingerprint"):
        await services.inbox.decide(
            "default", other, Edit(shown, Acknowledgement(await args_sha256(services, other))), BOB
        )


async def test_deceptive_arguments_need_an_acknowledgement(services: AppServices) -> None:  # R53
    approval_id = await propose_pending(services, args={"path": "/tmp/\u202egpj.exe"})
    sha = await args_sha256(services, approval_id)
    with pytest.raises(FindingsNotAcknowledged) as caught:
        await services.inbox.decide("default", approval_id, Approve(Acknowledgement(sha)), BOB)
    alarms = caught.value.ids["findings"]
    with pytest.raises(DigestMismatch):  # an interface that sends no digest has not shown the card
        await services.inbox.decide("default", approval_id, Approve(), BOB)
    await services.inbox.decide("default", approval_id, Approve(Acknowledgement(sha, tuple(alarms))), BOB)  # type: ignore[arg-type]
    assert await status(services, approval_id) == "approved"


async def test_a_rejection_can_be_undone_until_the_agent_hears_of_it(
    services: AppServices, clock: Clock
) -> None:  # R14
    approval_id = await propose_pending(services)
    await services.inbox.decide("default", approval_id, Reject(), BOB)
    with pytest.raises(Forbidden):
        await services.inbox.undo("default", approval_id, EVE)
    clock.advance(7_999)
    await services.inbox.undo("default", approval_id, BOB)
    assert await approve(services, approval_id) == "approved"
    other = await propose_pending(services, 2)
    await services.inbox.decide("default", other, Reject(), BOB)
    clock.advance(8_000)
    with pytest.raises(Expired):
        await services.inbox.undo("default", other, ADA)
    with pytest.raises(Conflict):
        await services.inbox.undo("default", approval_id, ADA)
    assert await ledger_violations(services) == []


async def test_a_decision_at_the_deadline_never_counts(services: AppServices, clock: Clock) -> None:
    early, late = await propose_pending(services, 1), await propose_pending(services, 2)
    clock.advance(86_400_000 - 1)
    assert await approve(services, early) == "approved"
    clock.advance(1)
    with pytest.raises(Expired):
        await approve(services, late)
    assert await status(services, late) == "expired"
    assert await ledger_violations(services) == []


async def test_a_delegate_votes_in_the_delegators_seat(bank_services: AppServices) -> None:  # R40
    approval_id = await transfer(bank_services, 5000)
    await bank_services.inbox.delegate("default", approval_id, People(users=frozenset({"kim"})), BOB)
    kim = Reviewer("kim")
    assert await approve(bank_services, approval_id, kim) == "pending"
    assert await approve(bank_services, approval_id, BOB) == "pending"  # the seat has voted
    with pytest.raises(Forbidden):
        await bank_services.inbox.delegate("default", approval_id, People(users=frozenset({"max"})), Reviewer("max"))
    assert await approve(bank_services, approval_id, EVE) == "approved"


async def test_bulk_gives_one_result_each(services: AppServices) -> None:  # R42
    first, second = await propose_pending(services, 1), await propose_pending(services, 2)
    results = await services.inbox.bulk("default", [(first, Approve()), ("nope", Approve()), (second, Reject())], BOB)
    assert [r.code if isinstance(r, Error) else r.status for r in results] == ["approved", "not_found", "rejected"]


async def test_an_unknown_outcome_is_resolved_by_a_person_who_looked(services: AppServices) -> None:  # R46
    approval_id = await propose_pending(services)
    await approve(services, approval_id)
    execution = await services.gate.start("default", approval_id, "r")
    await services.gate.abandon("default", approval_id, execution.fence)
    with pytest.raises(Forbidden):
        await services.inbox.resolve_unknown("default", approval_id, Reviewer("x", "viewer"), ok=True)
    await services.inbox.resolve_unknown("default", approval_id, BOB, ok=True, note="it is gone", result={"ok": True})
    assert await services.gate.check(call(), WRITE) == Finished("succeeded", {"ok": True}, "", approval_id)
    with pytest.raises(Conflict):
        await services.inbox.resolve_unknown("default", approval_id, BOB, ok=False)
    assert await ledger_violations(services) == []


async def test_stages_are_decided_one_after_the_other(database: Database, clock: Clock) -> None:  # R48
    rules = """
version: 1
rules:
  - name: two stages
    tools: [delete_file]
    then: ask
    stages:
      - {approvers: {teams: [finance]}}
      - {approvers: {users: [ada]}}
"""
    async with open_services(database, clock, rules) as services:
        approval_id = await propose_pending(services)
        with pytest.raises(Forbidden, match="first"):
            await approve(services, approval_id, ADA)
        assert await approve(services, approval_id, BOB) == "pending"
        assert await approve(services, approval_id, ADA) == "approved"
        assert await ledger_violations(services) == []


async def test_an_answer_that_the_rule_does_not_allow_is_refused(database: Database, clock: Clock) -> None:  # R11
    rules = "version: 1\nrules:\n  - {name: strict, then: ask, decisions: [approve, reject]}\n"
    async with open_services(database, clock, rules) as services:
        approval_id = await propose_pending(services)
        for decision in (Respond("hm"), Edit(b"{}", Acknowledgement(await args_sha256(services, approval_id)))):
            with pytest.raises(InvalidDecision, match="allowed: approve, reject"):
                await services.inbox.decide("default", approval_id, decision, BOB)


async def test_a_grant_with_a_bad_condition_is_refused_when_it_is_made(services: AppServices) -> None:  # R51
    draft = Grant(
        id="g",
        workspace="default",
        tool="t",
        spec_sha256="x",
        created_by="",
        teams=frozenset(),
        role="",
        created_at=0,
        expires_at=START + 1000,
        when="args.amont >",
    )
    with pytest.raises(Misconfigured):
        await services.inbox.grant(draft, BOB)
    assert await event_kinds(services) == []


async def test_the_card_shows_everything_and_the_timeline_everybody(bank_services: AppServices) -> None:  # R2, R41
    approval_id = await transfer(bank_services, 5000, requester="zoe", agent="payer", agent_says="trust me")
    await approve(bank_services, approval_id, BOB)
    view = await bank_services.inbox.show("default", approval_id)
    assert [field.name for field in view.card.fields] == ["amount", "to"]
    assert dict(view.card.facts) == {"requester": "zoe", "agent": "payer", "rule": "large transfers"}
    assert view.card.agent_says == "trust me"
    assert [(entry.kind, entry.actor) for entry in view.timeline] == [("proposed", "agent:payer"), ("voted", "bob")]
    assert view.card.sentence == "Fund transfer: amount = 5000, to = shop"


async def test_what_a_decision_would_come_to_is_known_after_an_edit_too(bank_services: AppServices) -> None:
    approval_id = await transfer(bank_services, 5000)
    await bank_services.inbox.check_decision(
        "default", approval_id, Approve(Acknowledgement(await args_sha256(bank_services, approval_id))), EVE
    )
    edited = Edit({"amount": 6000, "to": "shop"}, Acknowledgement(await args_sha256(bank_services, approval_id)))
    assert (await bank_services.inbox.decide("default", approval_id, edited, BOB)).status == "pending"
    await bank_services.inbox.check_decision(
        "default", approval_id, Approve(Acknowledgement(await args_sha256(bank_services, approval_id))), EVE
    )
    assert await approve(bank_services, approval_id, EVE) == "approved"


async def test_what_a_late_decision_is_told_is_stored_after_many_refusals_too(database: Database, clock: Clock) -> None:
    rules = "version: 1\nrules:\n  - {name: silence is consent, then: ask, expires_in: 30s, on_expiry: approve}\n"
    async with open_services(database, clock, rules) as services:
        approval_id = await propose_pending(services)
        for _ in range(MAX_REFUSALS + 1):  # the last one is not recorded
            with pytest.raises(DigestMismatch):
                await services.inbox.decide("default", approval_id, Approve(Acknowledgement("0" * 64)), BOB)
        assert (await event_kinds(services)).count("decision_refused") == MAX_REFUSALS
        clock.advance(30_000)
        with pytest.raises(AlreadyDecided) as raised:
            await approve(services, approval_id)
        assert raised.value.ids["status"] == "approved"
        assert await status(services, approval_id) == "approved"
        assert (await event_kinds(services)).count("decision_refused") == MAX_REFUSALS


async def test_an_edit_that_another_overtakes_is_told_of_it_after_many_refusals_too(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval_id = await propose_pending(services)
    shown = (await services.store.get("default", approval_id)).approval
    for _ in range(MAX_REFUSALS + 1):
        with pytest.raises(DigestMismatch):
            await services.inbox.decide("default", approval_id, Approve(Acknowledgement("0" * 64)), BOB)
    read, seen = services.store.get, Acknowledgement(shown.args_sha256)

    async def read_and_be_overtaken(workspace: str, wanted: str) -> Stored:
        monkeypatch.setattr(services.store, "get", read)
        stored = await read(workspace, wanted)
        await services.inbox.decide("default", approval_id, Edit({"path": "/eve"}, seen), EVE)
        return stored

    monkeypatch.setattr(services.store, "get", read_and_be_overtaken)
    with pytest.raises(AlreadyDecided):
        await services.inbox.decide("default", approval_id, Edit({"path": "/bob"}, seen), BOB)
