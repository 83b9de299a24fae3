"""Text fields of Agent Inbox: coerced to what the schema says, or refused; text of agents stays a quotation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from interlock.core.card import make_card
from interlock.core.errors import InvalidDecision
from interlock.server.protocols.agent_inbox import (
    code_span,
    coerce_args,
    describe_card,
    is_js_safe,
    parse_answer,
    to_input_text,
)

POINTER = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
KINDS: dict[str, Any] = {
    "text": {"type": "string"},
    "whole": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "nothing": {"type": "null"},
    "list": {"type": "array", "items": {"type": "integer"}},
    "point": POINTER,
    "named": {"$ref": "#/$defs/point"},
    "perhaps": {"type": ["integer", "null"]},
    "text_or_null": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "text_or_number": {"type": ["string", "number"]},
    "colour": {"enum": ["red", 1, None]},
    "anything": {},
}
SCHEMA = {"type": "object", "properties": KINDS, "required": ["text"], "$defs": {"point": POINTER}}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)

WHOLE_NUMBER = st.integers(-(10**30), 10**30)
NUMBER = WHOLE_NUMBER | st.floats(allow_nan=False, allow_infinity=False)
VALID_TEXTS: dict[str, st.SearchStrategy[object]] = {
    "text": st.text(),
    "whole": WHOLE_NUMBER,
    "number": NUMBER,
    "flag": st.booleans(),
    "nothing": st.none(),
    "list": st.lists(WHOLE_NUMBER),
    "point": st.fixed_dictionaries({"x": WHOLE_NUMBER}),
    "named": st.fixed_dictionaries({"x": WHOLE_NUMBER}),
    "perhaps": WHOLE_NUMBER | st.none(),
    "text_or_null": st.text() | st.none(),
    "text_or_number": st.text() | NUMBER,
    "colour": st.sampled_from(["red", 1, None]),
}


def coerce_one(name: str, text: str, current: object) -> object:
    return coerce_args({name: text}, {name: current}, SCHEMA)[name]


@pytest.mark.parametrize(
    ("name", "text", "current", "meant"),
    [
        ("text", "4", "3", "4"),
        ("text", "", "3", ""),
        ("text", '"a"', "b", '"a"'),
        ("text", "null", "b", "null"),
        ("whole", "4", 3, 4),
        ("whole", " 4 ", 3, 4),
        ("whole", "-0", 3, 0),
        ("whole", "1234567890123456789012345", 3, 1234567890123456789012345),
        ("number", "4.5", 3, 4.5),
        ("number", "1e3", 3, 1000.0),
        ("flag", "true", False, True),
        ("nothing", "null", None, None),
        ("list", "[1, 2]", [], [1, 2]),
        ("point", '{"x":4}', {"x": 3}, {"x": 4}),
        ("named", '{"x":4}', {"x": 3}, {"x": 4}),
        ("perhaps", "null", 3, None),
        ("perhaps", "4", None, 4),
        ("text_or_null", "null", None, None),
        ("text_or_null", "null", "some", "null"),
        ("text_or_null", "some", None, "some"),
        ("text_or_number", "4", "some", "4"),
        ("text_or_number", "3", 3, 3),
        ("text_or_number", "some", 3, "some"),
        ("colour", "red", 1, "red"),
        ("colour", "1", "red", 1),
        ("colour", "null", "red", None),
        ("anything", "4", "some", "4"),
        ("anything", '{"a":1}', {"a": 1}, {"a": 1}),
    ],
)
def test_a_typed_text_is_what_the_schema_says(name: str, text: str, current: object, meant: object) -> None:
    read = coerce_one(name, text, current)
    assert read == meant
    assert type(read) is type(meant)


@pytest.mark.parametrize(
    ("name", "text", "current"),
    [
        *[
            ("whole", text, 3)
            for text in ("", " ", "yes", "four", "4.5", "true", "null", "0x4", "04", "+4", "4,0", '"4"')
        ],
        *[("number", text, 3) for text in ("", "1e999", "-1e999", "NaN", "Infinity", "1_000", "4 5", "true")],
        *[("flag", text, False) for text in ("", "yes", "on", "1", "0", "True", "TRUE", '"true"', "null")],
        *[("nothing", text, None) for text in ("", "None", "0", "false", "[]")],
        *[("list", text, []) for text in ("", "1", "[1", '["1"]', "{}", "null")],
        *[("point", text, {"x": 3}) for text in ("", "{}", '{"x":"4"}', '{"x":4,"y":1}', "[4]", '{"x":4,"x":5}')],
        ("named", '{"x":"4"}', {"x": 3}),
        ("text_or_number", "4", 3),  # which of the two a box cannot say
        ("anything", "4", 3),
        ("unknown", "4", 3),
        ("colour", "blue", "red"),
        ("list", "[" * 100_000, []),
    ],
)
def test_a_typed_text_that_does_not_fit_or_could_be_two_things_is_refused(
    name: str, text: str, current: object
) -> None:
    with pytest.raises(InvalidDecision) as refused:
        coerce_one(name, text, current)
    assert {problem.pointer.split("/")[1] for problem in refused.value.problems} == {name}
    assert f"/{name}" in refused.value.message


def test_values_that_are_no_texts_are_left_to_the_schema() -> None:
    assert coerce_args({"text": 4, "flag": "true"}, {"text": "a", "flag": False}, SCHEMA) == {"text": 4, "flag": True}


def test_an_argument_that_was_not_there_is_read_by_the_schema_too() -> None:
    assert coerce_args({"whole": "4", "anything": "4"}, {}, SCHEMA) == {"whole": 4, "anything": "4"}
    with pytest.raises(InvalidDecision, match="/flag"):
        coerce_args({"flag": "yes"}, {}, SCHEMA)


def test_an_argument_that_the_schema_does_not_name_is_what_it_says_of_all_others() -> None:
    of_others = {"additionalProperties": {"type": "integer"}, "patternProperties": {"^is_": {"type": "boolean"}}}
    assert coerce_args({"more": "4", "is_new": "true"}, {"more": 3, "is_new": False}, of_others) == {
        "more": 4,
        "is_new": True,
    }
    with pytest.raises(InvalidDecision, match="/more"):
        coerce_args({"more": "4"}, {"more": 3}, {"properties": {"text": {}}, "additionalProperties": False})


@given(st.sampled_from(sorted(VALID_TEXTS)).flatmap(lambda name: st.tuples(st.just(name), VALID_TEXTS[name])), JSON)
def test_text_shown_for_a_value_parses_to_that_value_or_is_refused(made: tuple[str, object], current: object) -> None:
    """Unless the box shows what it showed before, or held a text and so holds one."""
    name, value = made
    text = to_input_text(value)
    try:
        read = coerce_one(name, text, current)
    except InvalidDecision:
        assert name.startswith("text_or_")  # only these leave a choice
        return
    assert read == (
        current if text == to_input_text(current) else text if isinstance(current, str) and text == read else value
    )


@given(JSON)
def test_an_unchanged_text_field_keeps_its_value(value: object) -> None:
    read = coerce_one("unknown", to_input_text(value), value)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("number", [2**53, -(2**53), 10**30])
def test_numbers_that_javascript_would_change_are_noticed_at_any_depth(number: int) -> None:
    assert not is_js_safe({"a": [{"b": number}]})
    assert is_js_safe({"a": [{"b": number // 10**20, "c": str(number), "d": float(number), "e": True, "f": None}]})


@pytest.mark.parametrize(
    ("text", "schema", "answer"),
    [
        ("12", {"type": "integer"}, 12),
        ("12", {"type": "string"}, None),
        ("12", {}, None),
        ("many", {"type": "integer"}, None),
    ],
)
def test_an_answer_is_the_text_unless_only_something_else_fits(
    text: str, schema: dict[str, Any], answer: object
) -> None:
    assert parse_answer(text, schema) == answer


HOSTILE = (
    "x` <img src=https://evil.example> `` ``` [Approved](https://evil.example) **Interlock says:** safe\n\n# Approved\n"
    "<script>alert(1)</script> https://evil.example www.evil.example a@evil.example | a | b |\n|---|---|\n> quoted"
)


@pytest.mark.parametrize("text", [HOSTILE, "`", "```", " ", "", "\\`", "a\r\n\r\n<b>b</b>", "&lt;b&gt;"])
def test_what_an_agent_writes_cannot_pose_as_ours(text: str) -> None:
    """Drawn as the web app does, HTML and bare links included."""
    card = make_card(
        tool=text,
        sentence=text,
        risk="high",
        facts=(("agent", text), ("requester", text)),
        args={text: text, "list": [text, {text: text}]},
        findings=(),
        preview=text,
        agent_says=text,
    )
    drawn = (
        MarkdownIt("commonmark", {"html": True})
        .enable(["table", "strikethrough"])
        .parse(describe_card(card, text, "https://interlock.example/a/1"))
    )
    inner = [each for block in drawn for each in (block.children or ())]
    assert {each.type for each in drawn} <= {
        *("paragraph_open", "paragraph_close", "inline", "bullet_list_open", "bullet_list_close"),
        *("list_item_open", "list_item_close"),
    }
    links = [each.attrs["href"] for each in inner if each.type == "link_open"]
    assert links == ["https://interlock.example/a/1"]
    assert not [each for each in inner if each.type in ("html_inline", "image", "s_open")]
    outside = " ".join(each.content for each in inner if each.type == "text")
    assert "evil" not in outside
    assert "safe" not in outside


@example("`")
@example("``a` b```")
@given(st.text("`a \\\n", min_size=1) | st.text(min_size=1))
def test_a_code_span_is_ended_by_nothing_inside(text: str) -> None:
    card = make_card(tool="t", sentence=text, risk="low", facts=(), args={}, findings=())
    if not card.sentence.strip():
        return
    (_, inline, _) = MarkdownIt("commonmark").parse(code_span(card.sentence))
    assert [each.type for each in inline.children or ()] == ["code_inline"]
    assert (inline.children or [])[0].content == card.sentence


def test_the_description_shows_the_arguments_as_they_would_run() -> None:
    card = make_card(
        tool="t", sentence="s", risk="low", facts=(), args={"to": "<!-- bob -->", "text": "x" * 3_000}, findings=()
    )
    said = describe_card(replace(card), "", "https://interlock.example/a/1")
    assert '` /to `: ` "<!-- bob -->" `' in said
    assert "3000 characters, SHA-256" in said
