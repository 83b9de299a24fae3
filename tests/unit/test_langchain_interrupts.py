"""Answers from LangGraph front ends, parsed strictly; none of it needs the framework."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from interlock.core.call import ToolSpec
from interlock.core.canonical import canonical
from interlock.core.decision import Acknowledgement, Approve, Edit, Reject, Respond
from interlock.core.errors import InvalidDecision
from interlock.integrations.langchain.interrupts import (
    InterruptMark,
    InterruptRequest,
    coerce_arguments,
    kept_switches,
    parse_decision,
    read_mark,
    read_switch,
    safe_sentence,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "urgent": {"type": "boolean"},
        "tags": {"type": "array"},
        "more": {"type": "object"},
        "text": {"type": "string"},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "level": {"$ref": "#/$defs/Level"},
        "loop": {"$ref": "#/$defs/Loop"},
        "color": {"enum": ["1", "2"]},
        "open": {},
    },
    "$defs": {"Level": {"type": "integer", "enum": [1, 2]}, "Loop": {"$ref": "#/$defs/Loop"}},
}
SPEC = ToolSpec("send_mail", "write", schema=SCHEMA)
SHOWN_ARGS = InterruptMark("approval-1", "a" * 64, 0)
SEEN = Acknowledgement("a" * 64)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(["type", "args"]), inner),
    max_leaves=8,
)
# Answers that decide something or nearly do: arbitrary JSON almost never does.
DECISIONS = st.fixed_dictionaries(
    {"type": st.sampled_from(["approve", "accept", "reject", "ignore", "respond", "response", "edit", "APPROVE"])},
    optional={
        "args": st.none() | st.text(max_size=3) | st.just({"action": "send_mail", "args": {"count": 2}}) | JSON,
        "message": st.text(max_size=3) | JSON,
        "edited_action": st.just({"name": "send_mail", "args": {"count": 2}}) | JSON,
        "args_sha256": st.sampled_from(["a" * 64, "b" * 64]),
        "also": JSON,
    },
)
ANSWERS = st.one_of(
    DECISIONS,
    st.lists(DECISIONS, min_size=1, max_size=2),
    st.lists(DECISIONS, min_size=1, max_size=2).map(lambda decisions: {"decisions": decisions}),
    JSON,
)


# R16
@pytest.mark.parametrize(
    ("name", "sent", "read"),
    [
        ("count", "3", 3),
        ("count", "three", "three"),
        ("count", "true", "true"),
        ("count", 3, 3),
        ("share", "0.5", 0.5),
        ("share", "2", 2),
        ("urgent", "true", True),
        ("urgent", "1", "1"),
        ("tags", '["a"]', ["a"]),
        ("tags", '{"a": 1}', '{"a": 1}'),
        ("more", '{"a": 1}', {"a": 1}),
        ("text", "3", "3"),
        ("either", "3", "3"),
        ("maybe", "null", None),
        ("maybe", "4", 4),
        ("level", "2", 2),
        ("loop", "2", "2"),
        ("color", "1", "1"),
        ("open", "1", "1"),
        ("not in the schema", "1", "1"),
    ],
)
def test_a_text_is_read_as_what_the_schema_asks_for_and_else_left_alone(name: str, sent: object, read: object) -> None:
    assert coerce_arguments({name: sent}, SCHEMA) == {name: read}


# R16
@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ({"decisions": [{"type": "approve"}]}, Approve(SEEN)),
        ({"type": "approve", "approval_id": "approval-1", "args_sha256": "a" * 64}, Approve(SEEN)),
        ([{"type": "accept", "args": None}], Approve(SEEN)),
        ({"type": "reject"}, Reject("", SEEN)),
        ({"type": "reject", "message": "no"}, Reject("no", SEEN)),
        ([{"type": "ignore", "args": None}], Reject("", SEEN)),
        ({"type": "respond", "message": "Ask Eve"}, Respond("Ask Eve", seen=SEEN)),
        ([{"type": "response", "args": "Ask Eve"}], Respond("Ask Eve", seen=SEEN)),
        (
            {"type": "edit", "edited_action": {"name": "send_mail", "args": {"count": "2"}}},
            Edit(canonical({"count": 2}), SEEN),
        ),
        (
            [{"type": "edit", "args": {"action": "send_mail", "args": {"count": 2}}}],
            Edit(canonical({"count": 2}), SEEN),
        ),
    ],
)
def test_both_shapes_say_the_same_four_things(answer: object, decision: object) -> None:
    assert parse_decision(answer, SPEC, SHOWN_ARGS) == decision


# R16
@pytest.mark.parametrize(
    "answer",
    [
        "approve",
        True,
        None,
        [],
        {},
        [{"type": "accept"}, {"type": "accept"}],
        {"decisions": []},
        {"decisions": {"type": ["approve"]}},
        {"type": True},
        {"type": "APPROVE"},
        {"type": "respond"},
        {"type": "respond", "message": ""},
        {"type": "response", "message": "in the wrong place"},
        {"type": "edit"},
        {"type": "edit", "edited_action": {"name": "send_mail"}},
        {"type": "edit", "edited_action": {"name": "erase", "args": {}}},
        {"type": "edit", "edited_action": {"args": {}}},
        {"type": "edit", "edited_action": {"name": "send_mail", "args": {"share": float("nan")}}},
        {"type": "approve", "approval_id": "approval-2"},
        {"type": "approve", "args_sha256": "b" * 64},
        {"type": "approve", "approval_id": None},
    ],
)
def test_what_is_not_exactly_one_decision_about_this_call_decides_nothing(answer: object) -> None:
    with pytest.raises(InvalidDecision, match="Nothing was decided"):
        parse_decision(answer, SPEC, SHOWN_ARGS)


# R16
@example({"decisions": [{"type": "approve"}]})
@example([{"type": "accept", "args": None}])
@example({"type": "reject", "message": "approve"})
@example([{"type": "ignore", "args": None}])
@example({"type": "respond", "message": "approve"})
@example([{"type": "edit", "args": {"action": "send_mail", "args": {"count": 2}}}])
@example("approve")
@given(ANSWERS)
def test_no_answer_trips_the_reading_and_only_a_plain_approval_approves(answer: Any) -> None:
    try:
        decision = parse_decision(answer, SPEC, SHOWN_ARGS)
    except InvalidDecision:
        event("decides nothing")
        return
    event(decision.kind)
    inner = answer.get("decisions", answer) if isinstance(answer, dict) else answer
    one = inner[0] if isinstance(inner, list) else inner
    assert isinstance(decision, Approve) == (one["type"] in ("approve", "accept"))


# R16
@pytest.mark.parametrize("shape", ["hitl", "legacy"])
def test_what_was_shown_is_known_again_in_either_shape(shape: Any) -> None:
    question = InterruptRequest(
        approval_id="approval-1", args_sha256="a" * 64, spec=SPEC, args={"count": 1}, words="Send?", answered=2
    )
    assert read_mark(question.value(shape)) == InterruptMark("approval-1", "a" * 64, 2)


def test_only_the_decisions_that_the_tool_takes_are_offered() -> None:
    spec = ToolSpec("send_mail", "write", decisions=("approve", "reject"))
    question = InterruptRequest(approval_id="approval-1", args_sha256="a" * 64, spec=spec, args={}, words="Send?")
    assert question.value("hitl")["review_configs"][0]["allowed_decisions"] == ["approve", "reject"]
    allowed = {"allow_accept": True, "allow_ignore": True, "allow_respond": False, "allow_edit": False}
    assert question.value("legacy")[0]["config"] == allowed


@pytest.mark.parametrize("value", [None, "Really?", [], [1, 2], {"approval_id": 1}, {"approval_id": "approval-1"}])
def test_an_interrupt_that_is_somebody_elses_has_no_mark(value: object) -> None:
    assert read_mark(value) is None


@pytest.mark.parametrize(
    ("to", "shown"),
    [
        ("Ada Lovelace, ada@example.com", "Mail Ada Lovelace, ada@example.com?"),
        ("Zoë", "Mail Zoë?"),
        ("[Ada](https://evil.example)", "Execute send_mail?"),
        ("https://evil.example", "Execute send_mail?"),
        ("www.evil.example", "Execute send_mail?"),
        ("![](x)", "Execute send_mail?"),
        ("<b>Ada</b>", "Execute send_mail?"),
        ("**Ada**", "Execute send_mail?"),
        ("Ada?\nAgent: nobody.", "Execute send_mail?"),
        ("Ad\u202ea", "Execute send_mail?"),
        ("Ad\u200ba", "Execute send_mail?"),
    ],
)
def test_an_argument_makes_no_markup_and_no_line_in_what_front_ends_show(to: str, shown: str) -> None:
    assert safe_sentence(ToolSpec("send_mail", "write", describe="Mail {to}?"), {"to": to}) == shown


MARKED, LIFTED = {"tool_approvals": {"pay": True}}, {"tool_approvals": {"pay": False}}


@pytest.mark.parametrize(
    ("configurable", "switch"),
    [
        ({}, ""),
        ({"tool_approvals": {}}, "off"),
        (MARKED, "on"),
        (LIFTED, "off"),
        ({"mcp_config": MARKED}, "on"),
        ({"rag": MARKED}, "on"),
        ({"mcp_config": LIFTED}, "off"),
        ({"mcp_config": LIFTED, "rag": MARKED}, "on"),
        ({**LIFTED, "rag": MARKED}, "on"),
        ({"mcp_config": {"tool_approvals": {"other": False}}}, ""),
        ({"mcp_config": {"url": "https://mcp.example"}, "rag": None}, ""),
        ({"mcp_config": {"tool_approvals": {"pay": "true"}}}, "on"),
        ({"mcp_config": {"tool_approvals": {"pay": None}}}, "on"),
        ({"mcp_config": {"tool_approvals": ["pay"]}}, ""),
    ],
)
def test_a_switch_of_any_map_asks_and_only_false_lifts(configurable: dict[str, Any], switch: str) -> None:  # R9
    assert read_switch(configurable, "pay", from_config=True) == switch
    assert read_switch(configurable, "pay", from_config=False) == ("on" if switch == "on" else "")
    resumed = json.loads(json.dumps(kept_switches(configurable)))
    assert read_switch(resumed, "pay", from_config=True) == switch
    assert read_switch(json.loads(json.dumps(kept_switches(resumed))), "pay", from_config=True) == switch


def test_nothing_but_the_switches_of_a_section_is_kept() -> None:  # R9
    section = {"url": "https://mcp.example", "token": "secret", **MARKED}
    assert "secret" not in json.dumps(kept_switches({"mcp_config": section, "user": "ada"}))
