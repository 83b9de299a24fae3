"""Forms of Slack give back what they were given, whatever the arguments and the schema are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.canonical import canonical
from interlock.notify.channels.slack.blocks import escape, escape_and_cut, escape_code
from interlock.notify.channels.slack.modals import (
    MISSING,
    DecisionForm,
    InvalidInput,
    apply_inputs,
    make_input,
    make_inputs,
    read_inputs,
)
from tests.fakes.slack import view_state
from tests.fakes.slack_validation import view_error

scalars = st.none() | st.booleans() | st.integers(-(10**39), 10**39) | st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
values = st.recursive(
    scalars | words, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)
types = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
shapes = st.fixed_dictionaries(
    {},
    optional={
        "type": types | st.lists(types, max_size=3),
        "enum": st.lists(scalars | words, max_size=12),
        "description": words,
    },
)


@given(st.data())
def test_a_form_that_is_sent_off_untouched_changes_nothing(data: st.DataObject) -> None:  # R25 R27
    args = data.draw(st.dictionaries(words, values, max_size=6))
    names = st.sampled_from(sorted(args)) if args else words
    schema = {
        "properties": data.draw(st.dictionaries(names | words, shapes, max_size=6)),
        "required": data.draw(st.lists(names, max_size=4)) if args else [],  # Slack asks for what is missing
    }
    inputs, left = make_inputs(args, data.draw(st.sampled_from([schema, None])))
    assert {each.name for each in inputs}.isdisjoint(left)
    form = DecisionForm(kind="edit", title="Edit", submit="Change", inputs=inputs)
    view = form.view("metadata")
    assert view_error({"trigger_id": "t", "view": view}) == ""
    typed = {each.name: each for each in inputs}
    missing = [each for each in typed.values() if each.current is MISSING]
    read, wrong = read_inputs(inputs, view_state(view), form.ids)
    assert wrong == {}
    after = apply_inputs(args, inputs, read)
    for each in missing:  # an empty field leaves its argument out, or is what stands for nothing
        assert after.pop(each.name, None) in (None, "")
    before = {name: value for name, value in args.items() if name not in {each.name for each in missing}}
    assert canonical(after) == canonical(before)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(50, 500))
def test_no_text_is_longer_than_allowed_or_more_than_text(text: str, limit: int) -> None:
    for made in (escape_and_cut(text, limit), escape_code(text, limit)):
        assert len(made) <= limit
        assert "<" not in made
        assert ">" not in made
        assert made.count("&") == sum(made.count(each) for each in ("&amp;", "&lt;", "&gt;"))
    assert "`" not in escape_code(text, limit)


@given(st.text(), st.text())
def test_two_texts_are_never_escaped_to_one(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) is (one == other)


@pytest.mark.parametrize(
    ("shape", "typed", "expected"),
    [
        ({"type": "integer"}, "1e400", InvalidInput),
        ({"type": "integer"}, "0x10", InvalidInput),
        ({"type": "integer"}, " 7 ", 7),
        ({"type": "number"}, "NaN", InvalidInput),
        ({"type": "number"}, '"7"', InvalidInput),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"type": ["integer", "null"]}, None, None),
        ({"type": "string"}, "007", "007"),
        ({"type": "string"}, "null", "null"),
        ({"type": ["string", "null"]}, None, None),
        ({"type": ["string", "integer"]}, "7", 7),
        ({"type": ["string", "integer"]}, '"7"', "7"),
        ({"type": "object"}, '{"a": 1, "a": 2}', InvalidInput),
        ({}, "[" * 100, InvalidInput),
    ],
)
def test_what_is_typed_is_read_as_the_schema_says(shape: dict[str, Any], typed: str | None, expected: Any) -> None:
    field = make_input("x", shape, is_required=False)
    if expected is InvalidInput:
        with pytest.raises(InvalidInput):
            field.read({"value": typed})
    else:
        assert field.read({"value": typed}) == expected


@pytest.mark.parametrize("chosen", ["2", "-1", "x", "", "²", "1" * 400])
def test_a_choice_that_was_not_offered_is_none(chosen: str) -> None:
    field = make_input("x", {"enum": ["a", "b"]}, is_required=True)
    with pytest.raises(InvalidInput):
        field.read({"selected_option": {"value": chosen}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden", "a\u202eb"),
        ("control", "a\x07b"),
        ("edges", " a "),
        ("long", "x" * 3_001),
        ("marked", {"$secret": "0123"}),
        ("holder", {"key": {"$secret": "0123"}}),
        ("list", [{"pin": {"$secret": "0123"}}]),
    ],
)
def test_what_a_field_would_change_or_give_away_has_none(name: str, value: object) -> None:
    inputs, left = make_inputs({name: value, "other": "x"}, None, ("/holder/key", "/list/*/pin"))
    assert ([each.name for each in inputs], left) == (["other"], [name])


def test_a_secret_that_is_not_there_yet_is_not_asked_for() -> None:
    inputs, left = make_inputs({}, {"properties": {"pin": {"type": "string"}, "a": {"type": "string"}}}, ("/pin",))
    assert ([each.name for each in inputs], left) == (["a"], ["pin"])


def test_what_slack_unescapes_for_us_counts_as_untouched() -> None:
    field = make_input("x", {"type": "string"}, "a &lt; b", is_required=True)
    assert field.read({"value": "a < b"}) == "a &lt; b"
    assert field.read({"value": "a > b"}) == "a > b"
