"""Parsing of decisions: strict, so that nothing ambiguous becomes an approval."""

import math
from dataclasses import replace
from typing import Any

import pytest

from interlock.core.decision import (
    KINDS,
    MAX_COMMENT,
    MAX_MESSAGE,
    Acknowledgement,
    Approve,
    Edit,
    Reject,
    Respond,
    read_decision,
    read_decision_with_digest,
)
from interlock.core.errors import InvalidDecision

SHA = "a" * 64


def pointers(body: object) -> list[str]:
    """Where the complaints point."""
    with pytest.raises(InvalidDecision) as caught:
        read_decision(body)
    return [problem.pointer for problem in caught.value.problems]


# R11
def test_the_four_answers_are_read() -> None:
    more = {"args_sha256": SHA, "reason": "why", "comment": "note", "acknowledged": ["f1", "f2"]}
    seen = Acknowledgement(SHA, ("f1", "f2"), "why", "note")
    assert read_decision({"kind": "approve", **more}) == Approve(seen)
    assert read_decision({"kind": "reject", **more}) == Reject(seen.reason, replace(seen, reason=""))
    assert read_decision({"kind": "edit", "args": {"b": 1, "a": 2.0}, **more}) == Edit(b'{"a":2,"b":1}', seen)
    assert read_decision({"kind": "respond", "message": "hi", **more}) == Respond("hi", None, seen)
    assert read_decision({"kind": "respond", "answer": [1], **more}) == Respond("", [1], seen)


# R11
def test_every_decision_says_its_kind() -> None:
    assert tuple(each.kind for each in (Approve(), Edit(b"{}"), Respond("x"), Reject())) == KINDS


# R12
def test_an_edit_is_an_object_or_its_canonical_bytes() -> None:
    assert Edit({"b": 1.0, "a": 2}).data == Edit(b'{"a":2,"b":1}').data == b'{"a":2,"b":1}'


@pytest.mark.parametrize("absent", [{}, {"args_sha256": None, "reason": None}, {"args_sha256": ""}])
def test_what_is_not_said_is_empty(absent: dict[str, object]) -> None:
    assert read_decision({"kind": "approve", **absent}) == Approve(Acknowledgement())


# R34
@pytest.mark.parametrize("body", [True, 1, "yes", "approve", None, [], ["approve"], [{"kind": "approve"}]])
def test_what_is_no_object_decides_nothing(body: object) -> None:
    assert pointers(body) == [""]


# R34
@pytest.mark.parametrize("kind", [None, True, 1, "", "yes", "APPROVE", "approved", "approve ", ["approve"], {}])
def test_an_unknown_kind_decides_nothing(kind: object) -> None:
    assert pointers({"kind": kind}) == ["/kind"]


def test_a_missing_kind_decides_nothing() -> None:
    assert pointers({"args_sha256": SHA}) == ["/kind"]


# R34
@pytest.mark.parametrize("field", ["approved", "confirmed", "reviewer", "by", "Kind", "argsSha256"])
def test_an_unknown_field_is_refused(field: str) -> None:
    assert pointers({"kind": "approve", field: True}) == [f"/{field}"]


def test_all_unknown_fields_are_named_in_order() -> None:
    assert pointers({"kind": "approve", "z": 1, "b": 2, 5: 3}) == ["/5", "/b", "/z"]


# R12, R27
@pytest.mark.parametrize("args", [None, [], "text", 1, {"a": math.nan}, {"a": "\x00"}, {1: 1}, {"a": "\ud800"}])
def test_an_edit_carries_arguments_as_an_object(args: object) -> None:
    assert pointers({"kind": "edit", "args": args}) == ["/args"]


# R11
@pytest.mark.parametrize("body", [{}, {"message": ""}, {"message": None, "answer": None}])
def test_a_response_says_something(body: dict[str, object]) -> None:
    assert pointers({"kind": "respond", **body}) == ["/message"]


# R27
@pytest.mark.parametrize("answer", [math.inf, {"a": "\x00"}, object(), "x" * 1_100_000])
def test_an_answer_that_cannot_be_stored_is_refused_before_it_counts(answer: object) -> None:
    assert pointers({"kind": "respond", "answer": answer}) == ["/answer"]


@pytest.mark.parametrize("answer", [False, 0, "", [], {}])
def test_an_answer_may_be_empty_but_not_missing(answer: object) -> None:
    assert read_decision({"kind": "respond", "answer": answer}) == Respond("", answer, Acknowledgement())


# R22, R27
@pytest.mark.parametrize(
    ("field", "limit"),
    [("args_sha256", 64), ("reason", MAX_COMMENT), ("comment", MAX_COMMENT), ("message", MAX_MESSAGE)],
)
def test_texts_are_bounded(field: str, limit: int) -> None:
    read_decision({"kind": "respond", "message": "m", field: "x" * limit})
    for bad in ("x" * (limit + 1), 5, True, ["x"], "a\x00", "\ud800"):
        assert pointers({"kind": "respond", "message": "m", field: bad}) == [f"/{field}"]


def test_a_comment_holds_500_characters() -> None:
    assert MAX_COMMENT == 500  # R22


@pytest.mark.parametrize("acknowledged", ["f1", None, 5, [1], {"f1": True}, ["f1", None]])
def test_acknowledged_is_a_list_of_ids(acknowledged: object) -> None:
    assert pointers({"kind": "approve", "acknowledged": acknowledged}) == ["/acknowledged"]


def test_only_an_edit_carries_arguments() -> None:
    for kind in ("approve", "respond", "reject"):
        assert pointers({"kind": kind, "args": {"amount": 1}, "message": "x"}) == ["/args"]


# R21
@pytest.mark.parametrize("make", [Approve, lambda **more: Edit(b"{}", **more), Respond, Reject])
def test_the_kind_of_a_decision_cannot_be_said_otherwise(make: Any) -> None:
    with pytest.raises(TypeError):
        make(kind="approve")


@pytest.mark.parametrize("given", [{}, {"args_sha256": ""}, {"args_sha256": "ab"}])
def test_where_there_is_a_place_for_what_was_seen_nothing_is_decided_without_it(given: dict[str, str]) -> None:
    with pytest.raises(InvalidDecision, match="carries args_sha256"):
        read_decision_with_digest({"kind": "reject", **given})
    assert read_decision_with_digest({"kind": "reject", "args_sha256": "0" * 64}).seen.args_sha256 == "0" * 64
