"""Messages to the model about a call: one for each outcome, the same in every interface."""

import json

import pytest

from interlock.core.errors import CallMismatch, EffectUnknown, Error, InvalidRequest, ToolFailed
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.integrations.claude_code import denial_reason
from interlock.integrations.mcp_gate.call import outcome_result
from interlock.presenters.model_message import (
    error_message,
    message_text,
    outcome_response,
    plain_text,
    refusal_message,
    to_model_message,
)
from interlock.sdk.session import to_not_run_error

UNKNOWN = "pay was started, but its outcome is unknown. Do not call it again: a person has to check first."
REFUSALS = [
    Refused("Not here.", "denied"),
    Refused("Too much.", "rejected", "id"),
    Refused("The call timed out: nobody decided or started it in time.", "expired", "id"),
    Refused("The call was cancelled.", "cancelled", "id"),
]
ANSWERS = ["Ask Eve first.", {"n": 3}, ["red"], 0, False, "", None]


# R17, R35
@pytest.mark.parametrize("refused", REFUSALS)
def test_a_refused_call_gives_the_model_one_result(refused: Refused) -> None:
    assert to_model_message(refused, "pay") == {
        "success": False,
        "cancelled": True,
        "declined": True,
        "status": refused.status,
        "reason": refused.reason,
        "error": f"Access denied: {refused.reason}",
    }
    assert plain_text(refused, "pay") == f"Access denied: {refused.reason}"


def test_a_refusal_without_a_reason_says_that_approval_is_required() -> None:
    words = "pay requires approval and was not permitted"
    result = refusal_message(Refused(""), "pay")
    assert (result["status"], result["reason"], result["error"]) == ("denied", words, f"Access denied: {words}")


@pytest.mark.parametrize("result", [{"id": 7}, "done", None, 0])
def test_a_call_that_succeeded_before_gives_its_result(result: object) -> None:
    assert to_model_message(Finished("succeeded", result), "pay") == result
    assert plain_text(Finished("succeeded", result), "pay") == message_text(result)


# R46
@pytest.mark.parametrize(
    ("outcome", "status", "error"),
    [
        (Finished("failed", None, "Boom."), "failed", "Boom."),
        (Finished("failed"), "failed", "The tool failed."),
        (Finished("unknown"), "unknown", UNKNOWN),
    ],
)
def test_a_call_without_a_result_says_how_it_ended(outcome: Outcome, status: str, error: str) -> None:
    assert to_model_message(outcome, "pay") == {"success": False, "status": status, "error": error}
    assert plain_text(outcome, "pay") == error


@pytest.mark.parametrize("outcome", [Waiting("id"), Proceed(b"{}")])
def test_nothing_is_told_of_a_call_that_waits_or_may_run(outcome: Outcome) -> None:
    for tell in (to_model_message, plain_text):
        with pytest.raises(TypeError, match="There is nothing to tell"):
            tell(outcome, "pay")


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (InvalidRequest("/to is missing."), "invalid", "/to is missing."),
        (ToolFailed("The other side said no."), "failed", "The other side said no."),
        (EffectUnknown("It hung up."), "unknown", UNKNOWN),
        (CallMismatch("It had other arguments."), "call_mismatch", "It had other arguments."),
    ],
)
def test_an_error_instead_of_an_outcome_is_told_in_the_same_shape(error: Error, status: str, words: str) -> None:
    assert error_message(error, "pay") == {"success": False, "status": status, "error": words}


# R11, R35
@pytest.mark.parametrize("said", ANSWERS)
def test_what_a_person_answered_is_told_in_their_own_words_everywhere(said: object) -> None:
    answered, text = Answered(said, "id"), said if isinstance(said, str) else json.dumps(said)
    assert to_model_message(answered, "pay") == said
    assert outcome_response(answered, "pay") == said
    assert to_not_run_error(answered, "pay").result == said
    assert denial_reason(answered, "pay") == text
    result = outcome_result(answered, "pay", has_output_schema=False, earlier=False)
    assert (result["content"], result["isError"]) == ([{"type": "text", "text": text}], False)


# R35
@pytest.mark.parametrize("outcome", [*REFUSALS, Finished("failed", None, "Boom."), Finished("unknown")])
def test_the_chat_and_programs_are_told_the_same_of_a_call_without_a_result(outcome: Outcome) -> None:
    told = to_model_message(outcome, "pay")
    assert outcome_response(outcome, "pay") == told
    assert to_not_run_error(outcome, "pay").result == told
    assert plain_text(outcome, "pay") in denial_reason(outcome, "pay")
    result = outcome_result(outcome, "pay", has_output_schema=False, earlier=False)
    assert plain_text(outcome, "pay") in result["content"][0]["text"]
