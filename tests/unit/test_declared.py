"""Tools declared only by an agent's program: which of their texts people read, and which are used."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import RedactedArgs, ToolSpec, redact
from interlock.core.canonical import canonical
from interlock.core.card import escape_invisible
from interlock.core.declared import (
    AgentText,
    call_findings,
    call_sentence,
    card_texts,
    declared_effect_hint,
    shown_schema,
    stored_preview,
)
from interlock.core.ledger.event import Payload

SQL = ToolSpec("run_sql", "write", describe=AgentText("Look at the weather"), declared=True)
DROP: dict[str, object] = {"sql": "DROP TABLE users"}


def redact_args(args: dict[str, object], spec: ToolSpec = SQL) -> RedactedArgs:
    return redact(canonical(args), spec, b"key")


def card_sentence(args: dict[str, object], spec: ToolSpec = SQL) -> str:
    return call_sentence(spec, redact_args(args, spec))


# The server's sentence


def test_the_sentence_says_what_is_called_with_what() -> None:
    assert card_sentence(DROP) == "Run run_sql: sql = DROP TABLE users"
    assert card_sentence({}) == "Run run_sql"
    assert card_sentence({"b": [1, "x"], "a": 2.5, "c": None, "path": "/etc/passwd"}) == (
        'Run run_sql: a = 2.5, b = [1,"x"], c = null, path = /etc/passwd'
    )


def test_a_registered_tool_keeps_its_own_sentence() -> None:
    assert card_sentence(DROP, ToolSpec("run_sql", describe="Run {sql}")) == "Run DROP TABLE users"


@pytest.mark.parametrize("describe", ["", "Run {sqll}", lambda _: "", lambda args: args["sqll"]])
def test_a_known_tool_without_words_of_its_own_gets_the_servers_sentence(describe: Any) -> None:
    known = ToolSpec("run_sql", "write", describe=describe, secret=("password",))
    assert card_sentence(DROP, known) == "Run run_sql: sql = DROP TABLE users"
    assert card_sentence({**DROP, "password": "hunter2"}, known).startswith(
        "Run run_sql: password = (hidden), sql = DROP"
    )


def test_a_description_of_one_call_is_no_sentence_of_a_known_tool_either() -> None:
    known = ToolSpec("run_sql", "write", describe=AgentText("Look at the weather"))
    assert card_sentence(DROP, known) == "Run run_sql: sql = DROP TABLE users"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x, b = 2", '"x, b = 2"'),
        ("true", '"true"'),
        ("12", '"12"'),
        ("", '""'),
        (" a ", '" a "'),
        ('say "hi"', '"say ""hi"""'),
        ("(hidden)", '"(hidden)"'),
        ("\u0301a", '"◌\u0301a"'),
        ("◌\u0301a", '"◌◌\u0301a"'),
        ("a" * 161, f'"{"a" * 160}"… (161 characters)'),
    ],
)
def test_a_text_that_could_read_as_something_else_is_quoted(text: str, shown: str) -> None:
    assert card_sentence({"a": text}) == f"Run run_sql: a = {shown}"


def test_long_values_names_and_many_arguments_are_cut_where_one_sees_it() -> None:
    assert card_sentence({"a": list(range(200))}).endswith("… (691 characters)")
    assert card_sentence({"n" * 61: 1}) == f'Run run_sql: "{"n" * 60}"… (61 characters) = 1'
    assert card_sentence({str(number): 1 for number in range(9)}).endswith("7 = 1, and 1 more argument")
    assert card_sentence({str(number): 1 for number in range(10)}).endswith("7 = 1, and 2 more arguments")
    assert card_sentence({}, ToolSpec("run: a = 1", declared=True)) == 'Run "run: a = 1"'


def test_a_secret_is_hidden_in_the_sentence_at_any_depth() -> None:
    spec = ToolSpec("login", "write", secret=("pass/word", "/pass~1word", "/more/*/key"), declared=True)
    said = card_sentence({"pass/word": "hunter22", "more": [{"key": "hunter23"}]}, spec)
    assert said.endswith('"pass/word" = (hidden)')
    assert "hunter" not in said


@given(
    st.dictionaries(st.text(max_size=3), st.text(max_size=6) | st.integers() | st.booleans(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.text(max_size=6) | st.integers() | st.booleans(), max_size=2),
)
def test_different_short_arguments_never_read_alike(one: dict[str, object], other: dict[str, object]) -> None:
    alphabet = str.maketrans({"\0": "0"})
    one, other = ({k.translate(alphabet): v for k, v in each.items()} for each in (one, other))
    one, other = ({k: v.translate(alphabet) if isinstance(v, str) else v for k, v in e.items()} for e in (one, other))
    if canonical(one) != canonical(other):
        assert escape_invisible(card_sentence(one)) != escape_invisible(card_sentence(other))


# The agent's words


def stored_payload(spec: ToolSpec, args: dict[str, object], preview: str = "") -> Payload:
    shown = redact_args(args, spec)
    return Payload(
        canonical(args),
        None,
        call_sentence(spec, shown),
        None,
        stored_preview(spec, canonical(args), shown, preview) or None,
    )


def test_what_the_agent_says_of_its_call_is_kept_as_its_words() -> None:
    words = card_texts(SQL, stored_payload(SQL, DROP, "Sunny."), redact_args(DROP))
    assert words == ("Run run_sql: sql = DROP TABLE users", "", "Look at the weather", "Sunny.")
    silent = ToolSpec("run_sql", "write", declared=True)
    assert card_texts(silent, stored_payload(silent, DROP), redact_args(DROP)) == (
        "Run run_sql: sql = DROP TABLE users",
        "",
        "",
        "",
    )


def test_an_agent_may_say_only_what_it_does_or_only_what_comes_of_it() -> None:
    silent = ToolSpec("run_sql", "write", declared=True)
    described = card_texts(SQL, stored_payload(SQL, DROP), redact_args(DROP))
    shown = card_texts(silent, stored_payload(silent, DROP, "Sunny."), redact_args(DROP))
    assert (described[2:], shown[2:]) == (("Look at the weather", ""), ("", "Sunny."))


def test_the_words_of_one_call_stay_the_agents_where_the_definition_is_known() -> None:
    known = ToolSpec("run_sql", "write", describe=AgentText("Look at the weather"))
    words = card_texts(ToolSpec("run_sql", "write"), stored_payload(known, DROP, "Sunny."), redact_args(DROP))
    assert words == ("Run run_sql: sql = DROP TABLE users", "", "Look at the weather", "Sunny.")


def test_a_registered_tools_preview_is_its_own_whatever_it_begins_with() -> None:
    registered = ToolSpec("run_sql", describe="Run {sql}")
    assert card_texts(registered, stored_payload(registered, DROP, "1 row"), redact_args(DROP)) == (
        "Run DROP TABLE users",
        "1 row",
        "",
        "",
    )
    forged = stored_payload(SQL, DROP, "Sunny.").preview or ""
    assert card_texts(registered, stored_payload(registered, DROP, forged), redact_args(DROP)).preview == f" {forged}"


def test_the_agents_words_are_kept_without_the_secrets_of_the_call() -> None:
    spec = ToolSpec("login", describe=AgentText("As ann with hunter22"), secret=("password",), declared=True)
    args: dict[str, object] = {"password": "hunter22"}
    words = card_texts(spec, stored_payload(spec, args, "hunter22!"), redact_args(args, spec))
    assert words[2:] == ("As ann with [hidden]", "[hidden]!")


@pytest.mark.parametrize(
    ("stored", "description"),
    [
        ("Look at the weather", "Look at the weather"),
        ("Execute run_sql?", ""),
        ("Run run_sql: sql = DROP TABLE users", ""),
    ],
)
def test_a_row_from_before_shows_the_servers_sentence_too(stored: str, description: str) -> None:
    words = card_texts(SQL, Payload(canonical(DROP), None, stored, None, "Sunny."), redact_args(DROP))
    assert words == ("Run run_sql: sql = DROP TABLE users", "", description, "Sunny.")


def test_of_an_erased_row_nothing_is_said() -> None:
    assert card_texts(SQL, Payload(), redact_args({})) == ("", "", "", "")


# Secrets


def test_secrets_that_only_the_agent_declared_are_one_alarm() -> None:
    spec = ToolSpec("login", secret=("*",), declared=True)
    shown = redact_args({"user": "ann", "password": "x", "none": None}, spec)
    (finding,) = call_findings(spec, shown.value, shown.secrets)
    assert (finding.id, finding.level, finding.pointer) == ("agent_secret:", "alarm", "")
    assert finding.message == "The agent hides 2 arguments from you: password, user."


def test_many_hidden_arguments_are_counted_and_long_names_cut() -> None:
    spec = ToolSpec("login", secret=("*",), declared=True)
    shown = redact_args({**{f"a{number}": 1 for number in range(10)}, "z" * 100: 1, "zz": 2}, spec)
    (finding,) = call_findings(spec, shown.value, shown.secrets)
    assert finding.message.startswith("The agent hides 12 arguments from you: a0, ")
    assert finding.message.endswith("a9, 2 more.")
    shown = redact_args({f"a{number}": 1 for number in range(10)}, spec)
    (finding,) = call_findings(spec, shown.value, shown.secrets)
    assert finding.message == "The agent hides 10 arguments from you: a0, a1, a2, a3, a4, a5, a6, a7, a8, a9."
    one = ToolSpec("login", secret=("z" * 100,), declared=True)
    shown = redact_args({"z" * 100: 1}, one)
    (finding,) = call_findings(one, shown.value, shown.secrets)
    assert finding.message == f"The agent hides 1 argument from you: {'z' * 30}…{'z' * 30}."


@pytest.mark.parametrize("spec", [ToolSpec("t", secret=("a",)), ToolSpec("t", secret=("b",), declared=True)])
def test_there_is_none_where_the_tool_is_registered_or_nothing_is_hidden(spec: ToolSpec) -> None:
    shown = redact_args({"a": "x"}, spec)
    assert call_findings(spec, shown.value, shown.secrets) == ()


# The schema

SCHEMA = {
    "title": "Safe",
    "type": "object",
    "required": ["to"],
    "properties": {
        "title": {"type": "string", "title": "Recipient of nothing", "description": "Harmless", "format": "email"},
        "to": {"anyOf": [{"const": "a", "title": "Ada"}, True], "default": "a", "examples": ["a"], "x-order": 1},
        "list": {"type": "array", "items": {"type": "string", "readOnly": True}, "prefixItems": [{"title": "x"}]},
    },
    "additionalProperties": False,
    "$defs": {"d": {"$comment": "x", "minimum": 1}, "e": True},
}


def test_what_only_the_agent_says_about_the_looks_of_its_schema_is_left_out() -> None:
    assert shown_schema(ToolSpec("t", schema=SCHEMA, declared=True)) == {
        "type": "object",
        "required": ["to"],
        "properties": {
            "title": {"type": "string"},
            "to": {"anyOf": [{"const": "a"}, True]},
            "list": {"type": "array", "items": {"type": "string"}, "prefixItems": [{}]},
        },
        "additionalProperties": False,
        "$defs": {"d": {"minimum": 1}, "e": True},
    }


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("type", "object"),
        ("enum", [1, {"title": "One"}]),
        ("const", {"title": "One"}),
        ("multipleOf", 2),
        ("minimum", 1),
        ("maximum", 1),
        ("exclusiveMinimum", 1),
        ("exclusiveMaximum", 1),
        ("minLength", 1),
        ("maxLength", 1),
        ("pattern", "^a"),
        ("minItems", 1),
        ("maxItems", 1),
        ("uniqueItems", True),
        ("minContains", 1),
        ("maxContains", 1),
        ("minProperties", 1),
        ("maxProperties", 1),
        ("required", ["title"]),
        ("dependentRequired", {"title": ["description"]}),
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("$id", "https://example.com/a"),
        ("$ref", "#/$defs/title"),
        ("$anchor", "title"),
        ("$dynamicRef", "#title"),
        ("$dynamicAnchor", "title"),
    ],
)
def test_what_an_agents_schema_says_about_values_is_shown_whole(keyword: str, value: object) -> None:
    said = {keyword: value, "title": "Safe"}
    assert shown_schema(ToolSpec("t", schema=said, declared=True)) == {keyword: value}


@pytest.mark.parametrize(
    "keyword",
    [
        *("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"),
        *("contains", "propertyNames", "not", "if", "then", "else"),
    ],
)
def test_a_schema_inside_an_agents_schema_is_shown_by_its_values_too(keyword: str) -> None:
    said = {keyword: {"title": "Safe", "minimum": 1}}
    assert shown_schema(ToolSpec("t", schema=said, declared=True)) == {keyword: {"minimum": 1}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "prefixItems", "items"])
def test_of_several_schemas_in_a_row_each_is_shown_by_its_values(keyword: str) -> None:
    said = {keyword: [{"title": "Safe", "minimum": 1}, False]}
    assert shown_schema(ToolSpec("t", schema=said, declared=True)) == {keyword: [{"minimum": 1}, False]}


@pytest.mark.parametrize("keyword", ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"])
def test_of_several_schemas_with_names_each_is_shown_by_its_values(keyword: str) -> None:
    said = {keyword: {"title": {"title": "Safe", "minimum": 1}, "examples": False}}
    shown = {keyword: {"title": {"minimum": 1}, "examples": False}}
    assert shown_schema(ToolSpec("t", schema=said, declared=True)) == shown


def test_a_registered_schema_is_shown_as_it_is() -> None:
    assert shown_schema(ToolSpec("t", schema=SCHEMA)) == SCHEMA
    assert shown_schema(ToolSpec("t", declared=True)) is None


# The effect


@pytest.mark.parametrize(
    ("spec", "effect", "said"),
    [
        (ToolSpec("look", "read", declared=True), "", True),
        (ToolSpec("look", "write", declared=True), "", False),  # the same rules as without an effect
        (ToolSpec("look", "read", declared=True), "read", False),  # believed
        (ToolSpec("look", declared=True), "", False),
        (ToolSpec("look", "read"), "", False),
    ],
)
def test_what_to_do_is_said_where_rules_would_believe_another_effect(spec: ToolSpec, effect: str, said: bool) -> None:
    rules = {"": ["rest"], "write": ["rest"], "read": ["reads", "rest"]}
    hint = (
        " That look is a read is only declared by its agent. An admin can pin it: interlock tools pin look "
        "--effect EFFECT"
    )
    assert declared_effect_hint(spec, effect, lambda effect: rules[effect]) == (hint if said else "")
