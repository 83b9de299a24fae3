"""Calls from external systems: ids of their own, and arguments that do not match the schema."""

import asyncio
import json
from uuid import uuid4

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.call import ToolSpec
from interlock.core.decision import Acknowledgement, Edit, Reject, Respond
from interlock.core.errors import CallMismatch, InvalidDecision, InvalidRequest, Problem
from interlock.core.outcome import Proceed, Refused, Waiting
from tests.databases import Database
from tests.support import BOB, READ, WRITE, Clock, approve, call, event_kinds, ledger_violations, open_services, status

ID = "0b0f6f5e-6a56-4d9c-9f0a-0d6c3b1f2a77"
MONEY = ToolSpec(
    "fund_transfer",
    "write",
    schema={
        "type": "object",
        "properties": {"amount": {"type": "number", "exclusiveMinimum": 0}, "to": {"type": "string"}},
        "required": ["amount", "to"],
    },
)
BAD = {"amount": "ten", "to": "shop"}


async def propose_invalid(services: AppServices, number: int = 1, spec: ToolSpec = MONEY) -> str:
    outcome = await services.gate.check(call(number, BAD, tool=spec.name), spec, accept_invalid=True)
    assert isinstance(outcome, Waiting), outcome
    return outcome.approval_id


# Ids


async def test_a_request_has_the_id_that_it_was_given_and_is_one_request(services: AppServices) -> None:  # R22, R24
    first = await services.gate.check(call(), WRITE, approval_id=ID)
    assert isinstance(first, Waiting)
    assert first.approval_id == ID
    assert await services.gate.check(call(), WRITE, approval_id=ID) == first
    assert await services.gate.check(call(), WRITE) == first
    assert await event_kinds(services) == ["proposed"]


async def test_one_id_belongs_to_one_call(services: AppServices) -> None:  # R22, R24
    await services.gate.check(call(), WRITE, approval_id=ID)
    for other, given in ((call(2), ID), (call(), str(uuid4())), (call(1, {"path": "/"}), ID)):
        with pytest.raises(CallMismatch):
            await services.gate.check(other, WRITE, approval_id=given)
    with pytest.raises(CallMismatch):
        await services.gate.ask(call(3), WRITE, approval_id=ID)
    assert await event_kinds(services) == ["proposed"]


async def test_an_id_is_checked_where_the_call_is_known_before_its_transaction(services: AppServices) -> None:  # R24
    previewed = ToolSpec("delete_file", "destructive", preview=lambda _: "much")
    await services.gate.check(call(), previewed, approval_id=ID)
    with pytest.raises(CallMismatch):
        await services.gate.check(call(), previewed, approval_id=str(uuid4()))


async def test_other_workspaces_have_ids_of_their_own(services: AppServices) -> None:  # R22
    for workspace in ("default", "other"):
        outcome = await services.gate.check(call(workspace=workspace), WRITE, approval_id=ID)
        assert isinstance(outcome, Waiting)
        assert outcome.approval_id == ID
        assert await event_kinds(services, workspace) == ["proposed"]


@pytest.mark.parametrize("given", ["x", ID.upper(), ID.replace("-", ""), f"{{{ID}}}", f"urn:uuid:{ID}", f" {ID}"])
async def test_an_id_has_one_spelling(services: AppServices, given: str) -> None:  # R22
    with pytest.raises(InvalidRequest, match="UUID"):
        await services.gate.check(call(), WRITE, approval_id=given)
    assert await event_kinds(services) == []


async def test_of_two_calls_that_race_for_an_id_one_gets_it_and_no_neighbour_suffers(
    services: AppServices,
) -> None:  # R24
    wanted = [services.gate.check(call(n), WRITE, approval_id=ID) for n in range(4)]
    others = [services.gate.check(call(f"n{n}"), WRITE) for n in range(20)]
    results = await asyncio.gather(*wanted, *others, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results[:4]) == ["CallMismatch"] * 3 + ["Waiting"]
    assert {type(each) for each in results[4:]} == {Waiting}
    assert await event_kinds(services) == ["proposed"] * 21
    assert await ledger_violations(services) == []


async def test_of_two_processes_that_race_for_an_id_one_gets_it(database: Database, clock: Clock) -> None:  # R24
    async with open_services(database, clock) as one, open_services(database, clock) as two:
        for number in range(10):
            given = str(uuid4())
            work = [
                services.gate.check(call(f"{number}-{who}"), WRITE, approval_id=given)
                for who, services in enumerate((one, two))
            ]
            results = await asyncio.gather(*work, return_exceptions=True)
            assert sorted(type(each).__name__ for each in results) == ["CallMismatch", "Waiting"]
        assert await event_kinds(one) == ["proposed"] * 10
        assert await ledger_violations(two) == []


async def test_a_read_with_an_id_gets_a_row(services: AppServices) -> None:  # R22
    outcome = await services.gate.check(call(tool=READ.name), READ, approval_id=ID)
    assert isinstance(outcome, Proceed)
    assert outcome.approval_id == ID
    assert await status(services, ID) == "approved"


# Invalid arguments


async def test_an_invalid_call_is_refused_unless_the_caller_accepts_it(services: AppServices) -> None:  # R22, R27
    with pytest.raises(InvalidRequest, match="/amount"):
        await services.gate.check(call(1, BAD, tool=MONEY.name), MONEY)
    assert await event_kinds(services) == []
    approval_id = await propose_invalid(services)
    assert await propose_invalid(services) == approval_id
    assert await event_kinds(services) == ["proposed"]


async def test_the_card_of_an_invalid_call_lists_its_errors_and_it_cannot_be_approved(
    services: AppServices,
) -> None:  # R22, R27, R41
    approval_id = await propose_invalid(services)
    view = await services.inbox.show("default", approval_id)
    (finding,) = view.card.findings
    assert (finding.id, finding.level, finding.pointer) == ("misfit:/amount", "alarm", "/amount")
    assert "number" in finding.message
    assert [field.findings for field in view.card.fields if field.pointer == "/amount"] == [("misfit:/amount",)]
    with pytest.raises(InvalidDecision) as caught:
        await approve(services, approval_id)  # with all alarms acknowledged
    assert [problem.pointer for problem in caught.value.problems] == ["/amount"]
    assert await status(services, approval_id) == "pending"
    assert await event_kinds(services) == ["proposed", "decision_refused"]
    assert json.loads(view.timeline[0].content or b"{}")["misfits"] == list(map(str, caught.value.problems))
    assert isinstance(caught.value.problems[0], Problem)


async def test_an_invalid_call_can_be_edited_into_a_valid_one(services: AppServices) -> None:  # R12, R27
    approval_id = await propose_invalid(services)
    seen = Acknowledgement((await services.store.get("default", approval_id)).approval.args_sha256)
    with pytest.raises(InvalidDecision):
        await services.inbox.decide("default", approval_id, Edit({"amount": -1, "to": "shop"}, seen), BOB)
    done = await services.inbox.decide("default", approval_id, Edit({"amount": 10, "to": "shop"}, seen), BOB)
    assert (done.status, done.findings.alarms, done.findings.schema_errors) == ("approved", (), ())
    stored = (await services.store.get("default", approval_id)).approval
    assert stored.findings.schema_errors == ()
    assert (await services.inbox.show("default", approval_id)).card.findings == ()
    execution = await services.gate.start("default", approval_id, "r")
    assert json.loads(execution.args) == {"amount": 10, "to": "shop"}
    assert await ledger_violations(services) == []


async def test_an_invalid_call_can_be_rejected_or_answered(services: AppServices) -> None:  # R27
    first, second = await propose_invalid(services), await propose_invalid(services, 2)
    await services.inbox.decide("default", first, Reject("Nonsense."), BOB)
    await services.inbox.decide("default", second, Respond("Send a number."), BOB)
    assert [await status(services, each) for each in (first, second)] == ["rejected", "responded"]


async def test_an_allowed_call_asks_if_its_arguments_are_invalid(database: Database, clock: Clock) -> None:  # R27
    rules = """
version: 1
rules:
  - {name: never, tools: [wipe], then: deny, reason: No.}
  - {name: all, tools: ["*"], then: allow}
"""
    async with open_services(database, clock, rules) as services:
        for number, effect in enumerate(("read", "write")):
            spec = ToolSpec(f"t{number}", effect, schema=MONEY.schema)
            approval_id = await propose_invalid(services, number, spec)
            with pytest.raises(InvalidDecision):
                await approve(services, approval_id)
        wipe = ToolSpec("wipe", "destructive", schema=MONEY.schema)
        assert isinstance(await services.gate.check(call(9, BAD, tool="wipe"), wipe, accept_invalid=True), Refused)
        fits = await services.gate.check(call(8, {"amount": 1, "to": "x"}, tool="t1"), spec, accept_invalid=True)
        assert isinstance(fits, Proceed)
