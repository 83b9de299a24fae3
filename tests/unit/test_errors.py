"""The error tree and its one JSON shape."""

import re

import pytest

from interlock.core import errors
from interlock.core.errors import (
    CallRefused,
    DeniedNow,
    DigestMismatch,
    Error,
    FindingsNotAcknowledged,
    InvalidDecision,
    InvalidRequest,
    ModelFailed,
    NotFound,
    Problem,
)


def subclasses(kind: type[Error]) -> list[type[Error]]:
    """The subclasses in core; a process that has loaded the server has more."""
    ours = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    return [found for child in ours for found in (child, *subclasses(child))]


def documented_tree() -> dict[str, str]:
    """Name → parent, as the docstring of the module draws it."""
    parents: dict[str, str] = {}
    above = {0: "Error"}
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([ │]*)[├└]── (\w+)", line)
        if found:
            depth = len(found[1]) // 4 + 1
            parents[found[2]] = above[depth - 1]
            above[depth] = found[2]
    return parents


# R21
def test_the_tree_in_the_docstring_is_the_tree_of_the_code() -> None:
    assert documented_tree() == {kind.__name__: kind.__bases__[0].__name__ for kind in subclasses(Error)}


# R21
def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in (Error, *subclasses(Error))]
    assert len(set(codes)) == len(codes)


# R21
@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("Error", 500),
        ("InvalidRequest", 400),
        ("Unauthenticated", 401),
        ("TooManyRequests", 429),
        ("NotFound", 404),
        ("Forbidden", 403),
        ("RecentSignInRequired", 403),
        ("Conflict", 409),
        ("AlreadyDecided", 409),
        ("AlreadyStarted", 409),
        ("NotApproved", 409),
        ("Stale", 409),
        ("DigestMismatch", 409),
        ("CallMismatch", 409),
        ("BindingBroken", 409),
        ("Frozen", 409),
        ("DeniedNow", 409),
        ("LeaseLost", 409),
        ("Expired", 410),
        ("InvalidDecision", 422),
        ("FindingsNotAcknowledged", 422),
        ("StoreUnavailable", 503),
        ("ClockBehind", 503),
        ("Misconfigured", 503),
        ("DeliveryFailed", 502),
        ("ModelFailed", 502),
        ("ToolFailed", 502),
        ("CallWouldFail", 502),
        ("EffectUnknown", 502),
        ("NotRun", 409),
        ("CallRefused", 409),
        ("CallAnswered", 409),
        ("CallFailed", 409),
        ("CallUnknown", 409),
    ],
)
def test_errors_have_the_status_of_the_contract(name: str, status: int) -> None:
    assert getattr(errors, name).status == status


# R21
def test_an_error_has_one_json_shape() -> None:
    error = NotFound("There is none. Look at the list.", approval_id="a1")
    assert error.to_json() == {
        "error": "not_found",
        "message": "There is none. Look at the list.",
        "approval_id": "a1",
    }
    assert str(error) == "There is none. Look at the list."


# R12
def test_an_invalid_decision_points_at_the_fields() -> None:
    error = InvalidDecision("Wrong.", [Problem("/args/a", "too long")], approval_id="a1")
    assert error.to_json() == {
        "error": "invalid_decision",
        "message": "Wrong.",
        "approval_id": "a1",
        "problems": [{"pointer": "/args/a", "message": "too long"}],
    }
    assert FindingsNotAcknowledged("Look.", findings=["f"]).to_json() == {
        "error": "findings_not_acknowledged",
        "message": "Look.",
        "findings": ["f"],
        "problems": [],
    }


@pytest.mark.parametrize(("pointer", "text"), [("/a/0", "/a/0: wrong"), ("", "/: wrong")])
def test_a_problem_reads_as_place_and_complaint(pointer: str, text: str) -> None:
    assert str(Problem(pointer, "wrong")) == text


# R35
def test_a_call_that_did_not_run_carries_what_the_model_is_told() -> None:
    error = CallRefused("Denied.", {"success": False}, approval_id="a1")
    assert (error.result, error.code, error.status) == ({"success": False}, "refused", 409)
    assert error.to_json() == {"error": "refused", "message": "Denied.", "approval_id": "a1"}


# R21
def test_the_text_of_an_error_is_its_message() -> None:
    assert str(InvalidDecision("No.", [Problem("/a", "too long")], approval_id="id")) == "No."
    assert str(CallRefused("No.", {"success": False})) == "No."


# R21: programs depend on these words
def test_the_codes_are_the_ones_that_were_promised() -> None:
    assert {kind.code for kind in (Error, *subclasses(Error))} == {
        "already_decided",
        "already_started",
        "answered",
        "binding_broken",
        "call_mismatch",
        "call_would_fail",
        "clock_behind",
        "conflict",
        "delivery_failed",
        "denied_now",
        "digest_mismatch",
        "effect_unknown",
        "error",
        "expired",
        "failed",
        "findings_not_acknowledged",
        "forbidden",
        "frozen",
        "invalid_decision",
        "invalid_request",
        "lease_lost",
        "misconfigured",
        "model_failed",
        "not_approved",
        "not_found",
        "not_run",
        "recent_sign_in_required",
        "refused",
        "stale",
        "store_unavailable",
        "tool_failed",
        "too_many_requests",
        "unauthenticated",
        "unknown",
    }


def test_a_failed_model_says_whether_another_try_may_help() -> None:
    assert ModelFailed("Overloaded.", is_retryable=True).is_retryable
    assert not ModelFailed("The key is wrong.", is_retryable=False).is_retryable


# R59
def test_what_is_denied_now_is_a_conflict_at_a_start_and_a_wrong_decision_to_a_person() -> None:
    assert DeniedNow("No.").status == 409
    assert DeniedNow("No.").for_decision().status == 422


def test_an_error_points_to_the_fields_that_are_wrong() -> None:  # R41
    twice = [Problem("/comment", "too long"), Problem("/comment", "odd"), Problem("/kind", "unknown")]
    assert InvalidDecision("No.", twice).pointers == ("/comment", "/kind")
    assert FindingsNotAcknowledged("No.").pointers == ("/acknowledged",)
    assert DigestMismatch("No.").pointers == ("/args_sha256",)
    assert InvalidRequest("No.", problems=[{"pointer": "/a", "message": "odd"}]).pointers == ("/a",)
    assert [InvalidRequest("No.").pointers, NotFound("No.").pointers] == [(), ()]
