"""Arguments that do not match the tool's schema and were accepted all the same."""

import pytest

from interlock.core.approval.approval import decide, expire
from interlock.core.approval.propose import check_approval_id, check_same_call, id_taken_error
from interlock.core.approval.vote import schema_error, schema_findings
from interlock.core.card import Finding
from interlock.core.errors import CallMismatch, InvalidDecision, InvalidRequest, Problem
from interlock.core.ledger.erasure import erase_content
from interlock.core.policy.policy import Ask
from tests.unit.builders import (
    ALICE,
    NOW,
    approve,
    at,
    call,
    edit,
    pending,
    pending_with_payload,
    prepare_edit,
    reject,
    respond,
)

SCHEMA_ERRORS = (Problem("/amount", "not a number"), Problem("", "to is missing"))
ALARMS = ("misfit:/amount", "misfit:")


# R22, R27
def test_each_place_that_does_not_fit_is_one_alarm() -> None:
    twice = (*SCHEMA_ERRORS, Problem("/amount", "too\u202esmall"))
    assert schema_findings(twice) == (
        Finding(ALARMS[0], "misfit", "alarm", "/amount", "Does not fit the tool: not a number; too\\u{202e}small."),
        Finding(ALARMS[1], "misfit", "alarm", "", "Does not fit the tool: to is missing."),
    )
    assert schema_findings(()) == ()


# R22, R27, R41
def test_an_invalid_call_cannot_be_approved_even_if_acknowledged() -> None:
    approval = pending(alarms=ALARMS, misfits=SCHEMA_ERRORS)
    change = decide(approval, approve(approval, *ALARMS), ALICE, at())
    assert change.state is approval
    assert [event.kind for event in change.events] == ["decision_refused"]
    assert isinstance(change.error, InvalidDecision)
    assert change.error.to_json() == {
        "error": "invalid_decision",
        "message": "The arguments do not fit the tool's schema: /amount: not a number; /: to is missing. "
        "Edit the call, or reject it.",
        "approval_id": approval.id,
        "problems": [
            {"pointer": "/amount", "message": "not a number"},
            {"pointer": "", "message": "to is missing"},
        ],
    }


# R22, R27
def test_an_invalid_call_can_be_rejected_answered_and_edited_into_a_valid_one() -> None:
    approval = pending(alarms=ALARMS, misfits=SCHEMA_ERRORS)
    assert decide(approval, reject(approval), ALICE, at()).state.status == "rejected"
    assert decide(approval, respond(approval), ALICE, at()).state.status == "responded"
    edited = decide(approval, edit(approval), ALICE, at(), prepare_edit(approval)).state
    assert (edited.status, edited.findings.alarms, edited.findings.misfits) == ("approved", (), ())


# R28
def test_silence_does_not_approve_an_invalid_call() -> None:
    approval = pending(Ask(on_expiry="approve"), alarms=ALARMS, misfits=SCHEMA_ERRORS)
    assert expire(approval, at(NOW + 10**9)).state.status == "expired"


# R41
def test_the_record_says_what_did_not_fit_and_erasing_takes_it() -> None:
    stored = pending_with_payload(alarms=ALARMS, misfits=SCHEMA_ERRORS)
    assert stored.approval.findings.misfits == SCHEMA_ERRORS
    assert erase_content(stored.approval, "ada", NOW).findings.misfits == ()


# R22, R24
def test_a_call_known_under_another_id_is_refused_with_that_id() -> None:
    approval = pending()
    check_same_call(approval, call())
    check_same_call(approval, call(), approval.id)
    with pytest.raises(CallMismatch) as caught:
        check_same_call(approval, call(), "another")
    assert caught.value.message == "This call is known under another approval id."
    assert caught.value.ids == {}


# R22, R24
def test_an_id_that_is_taken_is_refused() -> None:
    error = id_taken_error()
    assert error.message == "This approval id belongs to another call. Use a new one."
    assert (error.code, error.ids) == ("call_mismatch", {})


def test_the_error_names_each_invalid_argument() -> None:
    error = schema_error(SCHEMA_ERRORS)
    assert error.ids["problems"][0] == {"pointer": "/amount", "message": "not a number"}  # type: ignore[index]
    assert "/amount: not a number; /: to is missing" in error.message


@pytest.mark.parametrize("given", ["x", "0192F0C1-2b3d-7c4e-9f60-718293a4b5c6", "0192f0c12b3d7c4e9f60718293a4b5c6"])
def test_an_approval_id_has_one_spelling(given: str) -> None:
    with pytest.raises(InvalidRequest):
        check_approval_id(given)
    check_approval_id("")
    check_approval_id("0192f0c1-2b3d-7c4e-9f60-718293a4b5c6")
