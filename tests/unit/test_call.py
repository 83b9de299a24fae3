"""Tool calls: size limits, redaction of secrets, and the binding that an approval covers."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import (
    MAX_NAME,
    MAX_NAMES,
    MAX_TEXT_LENGTH,
    SECRET_MARKER,
    Args,
    PreCheck,
    Subject,
    ToolSpec,
    fingerprint,
    make_subject,
    parse_spec,
    propose,
    redact,
    redacted_sha256,
    restore,
    secret_texts,
)
from interlock.core.canonical import canonical, digest, read_canonical
from interlock.core.errors import InvalidRequest, Problem
from interlock.core.policy.claims import ANY_EFFECT
from tests.unit.builders import KEY, PAY, any_text, call, json_values, pending_with_payload


def fingerprint_mark(value: object, key: bytes = KEY) -> dict[str, str]:
    return {SECRET_MARKER: fingerprint(value, key)}


def subject(**more: object) -> Subject:
    return make_subject(call(), PAY, "medium", "nonce")._replace(**more)


# --- the call


# R47
def test_a_call_holds_the_canonical_bytes_of_its_arguments() -> None:
    made = propose("pay", {"b": 1.0, "a": "é"}, "run", "call")
    assert made.args == '{"a":"é","b":1}'.encode()
    assert made.parsed_args == {"a": "é", "b": 1}


# R47
def test_what_the_caller_changes_later_does_not_reach_the_call() -> None:
    args = {"to": ["ann"]}
    made = propose("pay", args, "run", "call")
    args["to"].append("eve")
    assert made.parsed_args == {"to": ["ann"]}


def test_a_call_can_be_renamed_and_is_otherwise_unchanged() -> None:
    made = call()
    assert made.with_call_id("second") == replace(made, call_id="second")
    assert made.with_call_id("second").parsed_args == made.parsed_args


# R13
@pytest.mark.parametrize(
    ("agent", "agent_path", "path"),
    [("", (), ()), ("a", (), ("a",)), ("b", ("a", "b"), ("a", "b")), ("", ("a", "b"), ("a", "b"))],
)
def test_the_path_runs_from_the_outermost_agent_to_the_one_that_calls(
    agent: str, agent_path: tuple[str, ...], path: tuple[str, ...]
) -> None:
    assert call(agent=agent, agent_path=agent_path).path == path
    assert pending_with_payload(agent=agent, agent_path=agent_path).approval.subject.path == path


# R27
@pytest.mark.parametrize("args", [None, [], "text", 1, True, [("a", 1)]])
def test_arguments_are_an_object(args: object) -> None:
    with pytest.raises(InvalidRequest, match="are an object"):
        call(args)


# R27
@pytest.mark.parametrize("field", ["tool", "run_id", "call_id", "workspace", "agent", "thread_id", "requester"])
def test_names_are_bounded(field: str) -> None:
    given_names = {"tool": "pay", "run_id": "run", "call_id": "call"}
    longest = {**given_names, field: "n" * MAX_NAME}
    assert getattr(propose(args={}, **longest), field) == "n" * MAX_NAME
    for bad in ("n" * (MAX_NAME + 1), "n" * MAX_NAME + "\u200b", "a\nb", "a\x00", "a\x7f", "\ud800", None, 5):
        with pytest.raises(InvalidRequest, match=f"^{field} is"):
            propose(args={}, **{**given_names, field: bad})


# R56
@pytest.mark.parametrize(("field", "taken"), [("tool", True), ("agent", True), ("requester", True), ("run_id", False)])
def test_a_name_with_unseen_characters_is_taken_only_to_be_refused_on_record(field: str, taken: bool) -> None:
    given = {"tool": "pay", "run_id": "run", "call_id": "call", field: "a\u202eb"}
    if taken:
        assert getattr(propose(args={}, **given), field) == "a\u202eb"
    else:
        with pytest.raises(InvalidRequest, match=f"^{field} is"):
            propose(args={}, **given)


# R27
@pytest.mark.parametrize("field", ["tool", "run_id", "call_id", "workspace"])
def test_names_that_make_the_key_are_not_empty(field: str) -> None:
    with pytest.raises(InvalidRequest, match=field):
        propose(args={}, **{"tool": "pay", "run_id": "run", "call_id": "call", field: ""})


def test_one_letter_is_a_name() -> None:
    made = propose("t", {}, "r", "c", workspace="w")
    assert (made.tool, made.run_id, made.call_id, made.workspace) == ("t", "r", "c", "w")


@pytest.mark.parametrize("field", ["agent", "thread_id", "requester", "priority", "agent_says"])
def test_names_that_describe_may_be_empty(field: str) -> None:
    assert getattr(call(**{field: ""}), field) == ""


# R5, R22
@pytest.mark.parametrize(
    ("field", "choices"),
    [("priority", ("low", "medium", "high")), ("setting", ("chat", "queue", "paused")), ("switch", ("", "on", "off"))],
)
def test_these_are_the_choices(field: str, choices: tuple[str, ...]) -> None:
    assert [getattr(call(**{field: choice}), field) for choice in choices] == list(choices)


# R22, R27
@pytest.mark.parametrize(
    ("field", "value"), [("priority", "urgent"), ("priority", 1), ("setting", ""), ("setting", "later")]
)
def test_choices_are_closed(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=rf"{field} is .*; it is one of \w+, \w+, \w+\.$"):
        call(**{field: value})


# R9, R27
@pytest.mark.parametrize("value", ["maybe", "On", True, None])
def test_a_switch_is_on_off_or_not_said(value: object) -> None:
    with pytest.raises(InvalidRequest, match=r"switch is .*; it is one of .*on, off"):
        call(switch=value)


# R27
@pytest.mark.parametrize("field", ["agent_path", "teams"])
def test_lists_of_names_are_bounded(field: str) -> None:
    names = ("n" * MAX_NAME,) * MAX_NAMES
    assert getattr(call(**{field: names}), field) == names
    for bad in (("n",) * (MAX_NAMES + 1), ["n"], "n", None, ("",), ("a\n",), (1,), ("n" * (MAX_NAME + 1),)):
        with pytest.raises(InvalidRequest, match=field):
            call(**{field: bad})


# R27
@pytest.mark.parametrize("words", ["w" * (MAX_TEXT_LENGTH + 1), None, 5, "a\x00", "\ud800"])
def test_what_the_agent_says_is_bounded(words: object) -> None:
    assert call(agent_says="w" * MAX_TEXT_LENGTH).agent_says == "w" * MAX_TEXT_LENGTH
    with pytest.raises(InvalidRequest):
        call(agent_says=words)


# R5, R27
@pytest.mark.parametrize("expires_in", [-1, 1.5, "5", True])
def test_a_time_limit_is_a_whole_number_of_milliseconds(expires_in: object) -> None:
    assert call(expires_in=0).expires_in == 0
    assert call(expires_in=None).expires_in is None
    with pytest.raises(InvalidRequest, match="expires_in"):
        call(expires_in=expires_in)


# --- the tool


# R1, R19
@pytest.mark.parametrize(
    "fields", [{"name": ""}, {"name": "a\n"}, {"effect": "harmless"}, {"confirm": "mail"}, {"effect": "READ"}]
)
def test_a_tool_with_an_odd_definition_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        ToolSpec(**{"name": "pay", **fields})


FULL_SUBJECT = ToolSpec(
    "pay",
    "destructive",
    schema={"type": "object", "properties": {"a": {"type": "string"}}},
    describe="Pay {a}?",
    preview=None,
    secret=("/a", "/b/*"),
    idempotent=True,
    confirm="chat",
    decisions=("approve", "reject"),
    declared=True,
)


# R47
@pytest.mark.parametrize("spec", [PAY, FULL_SUBJECT, ToolSpec("x"), replace(FULL_SUBJECT, schema=None)])
def test_a_definition_can_be_read_back(spec: ToolSpec) -> None:
    assert parse_spec(spec.definition) == spec
    assert parse_spec(spec.definition).sha256 == spec.sha256 == digest(spec.definition)


# R47
def test_code_is_no_part_of_the_definition() -> None:
    spec = replace(FULL_SUBJECT, describe=lambda _: "Pay!", preview=lambda _: "rows")
    again = parse_spec(spec.definition)
    assert again.sha256 == spec.sha256
    assert (again.describe, again.preview) == ("", None)


# R47
@pytest.mark.parametrize(
    "fields",
    [
        {"name": "paid"},
        {"effect": "write"},
        {"schema": {"type": "object"}},
        {"describe": "Pay?"},
        {"secret": ("/a",)},
        {"idempotent": False},
        {"confirm": ""},
        {"decisions": ("approve",)},
        {"declared": False},
    ],
)
def test_every_change_of_a_definition_changes_its_digest(fields: dict[str, object]) -> None:
    assert replace(FULL_SUBJECT, **fields).sha256 != FULL_SUBJECT.sha256


# R53
@pytest.mark.parametrize(
    ("schema", "known"),
    [
        (None, None),
        ({}, None),
        ({"properties": {"a": {}}}, None),
        ({"properties": {"a": {}}, "additionalProperties": True}, None),
        ({"additionalProperties": False}, None),
        ({"properties": ["a"], "additionalProperties": False}, None),
        ({"properties": {"a": {}, "b": {}}, "additionalProperties": False}, {"a", "b"}),
    ],
)
def test_the_arguments_that_a_schema_knows(schema: Mapping[str, object] | None, known: set[str] | None) -> None:
    assert ToolSpec("x", schema=schema).known_arguments == known


# R2
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a\u202eb", "Send 'a\u202eb' 1"),
        ("a\\b\nc", "Send 'a\\b\nc' 1"),
        ("it's", 'Send "it\'s" 1'),
        ('a "b"', "Send 'a \"b\"' 1"),
        ('it\'s "b"', "Send 'it''s \"b\"' 1"),
    ],
)
def test_a_quoted_argument_is_left_for_the_card_to_escape(text: str, sentence: str) -> None:
    assert ToolSpec("x", describe="Send {a!r} {n!r}").described({"a": text, "n": 1}) == sentence


def test_a_tool_describes_a_call_in_one_sentence() -> None:
    shown = {"title": "Fix login", "n": 2}
    assert ToolSpec("x", describe="Create {title!r}, {n} times").sentence(shown) == "Create 'Fix login', 2 times"
    assert ToolSpec("x", describe=lambda args: f"Create {args['title']}").sentence(shown) == "Create Fix login"


def raise_error(_: Args) -> str:
    raise RuntimeError


# R2
@pytest.mark.parametrize(
    "describe", ["", "Create {missing}", "{", "{0}", "{a.b}", raise_error, lambda _: "", lambda _: None, lambda: "x"]
)
def test_without_a_sentence_of_its_own_the_tool_and_its_arguments_are_named(describe: str) -> None:
    assert ToolSpec("pay", describe=describe).sentence({"a": 1}) == "Pay: a = 1"


# R2
def test_a_sentence_is_bounded_and_always_text() -> None:
    assert ToolSpec("x", describe=lambda _: "w" * (MAX_TEXT_LENGTH + 1)).sentence({}) == "w" * MAX_TEXT_LENGTH
    assert ToolSpec("x", describe=lambda _: 5).sentence({}) == "5"


# --- secrets


ARGS = {
    "password": "hunter2",
    "user": "ann",
    "cards": [{"number": "4111", "name": "A"}, {"number": "4222", "name": "B"}],
    "deep": {"a/b": {"c~d": "x"}},
    "none": None,
    "list": ["p", "q"],
}


def redact_fields(*secret: str) -> tuple[Mapping[str, object], frozenset[str]]:
    shown = redact(canonical(ARGS), ToolSpec("x", secret=secret), KEY)
    assert shown.data == canonical(shown.value)
    assert shown.sha256 == digest(shown.data)
    return shown.value, shown.secrets


def test_without_secrets_people_see_the_very_bytes() -> None:
    data = canonical(ARGS)
    shown = redact(data, PAY, KEY)
    assert (shown.data, shown.value, shown.secrets) == (data, ARGS, frozenset())


# design rule 11
@pytest.mark.parametrize(
    ("secret", "pointers"),
    [
        ("password", {"/password"}),
        ("/password", {"/password"}),
        ("/cards/*/number", {"/cards/0/number", "/cards/1/number"}),
        ("/cards/1/number", {"/cards/1/number"}),
        ("/cards/*", {"/cards/0", "/cards/1"}),
        ("/cards", {"/cards"}),
        ("/list/*", {"/list/0", "/list/1"}),
        ("/deep/a~1b/c~0d", {"/deep/a~1b/c~0d"}),
        ("/deep/*/*", {"/deep/a~1b/c~0d"}),
        ("/none", set()),
        ("/missing", set()),
        ("/user/first", set()),
        ("/cards/7", set()),
        ("/cards/*/number/x", set()),
        ("", set()),
    ],
)
def test_a_pointer_hides_what_it_points_at_and_nothing_else(secret: str, pointers: set[str]) -> None:
    value, found = redact_fields(secret)
    assert found == pointers
    assert {pointer for pointer, _ in differences(ARGS, value)} == pointers
    for _, (old, new) in differences(ARGS, value):
        assert new == fingerprint_mark(old)


def differences(old: object, new: object, pointer: str = "") -> list[tuple[str, tuple[object, object]]]:
    """Where two values differ; what became a mark is one difference."""
    match old, new:
        case dict(), dict() if SECRET_MARKER not in new:
            steps = [(name.replace("~", "~0").replace("/", "~1"), old[name], new[name]) for name in old]
        case list(), list():
            steps = [(str(number), *pair) for number, pair in enumerate(zip(old, new, strict=True))]
        case _:
            return [] if old == new else [(pointer, (old, new))]
    return [found for name, *pair in steps for found in differences(*pair, f"{pointer}/{name}")]


# design rule 11
def test_overlapping_pointers_hide_the_outer_value_whole() -> None:
    value, found = redact_fields("/cards/0/number", "/cards/0", "password")
    assert found == {"/cards/0", "/password"}
    assert value["cards"] == [fingerprint_mark(ARGS["cards"][0]), ARGS["cards"][1]]


def test_a_fingerprint_is_keyed_short_and_tells_values_apart() -> None:
    assert fingerprint("a", KEY) == fingerprint("a", KEY)
    assert fingerprint("a", KEY) != fingerprint("b", KEY)
    assert fingerprint("a", KEY) != fingerprint("a", b"other")
    assert fingerprint(1, KEY) != fingerprint(True, KEY)
    assert len(fingerprint("a", KEY)) == 32


# R47
def test_two_secrets_give_two_digests() -> None:
    spec = ToolSpec("x", secret=("password",))
    one, other = (redact(canonical({"password": text}), spec, KEY).sha256 for text in ("a", "b"))
    assert one != other


# R12
def test_an_edit_that_returns_fingerprints_keeps_the_stored_secrets() -> None:
    spec = ToolSpec("x", secret=("password", "/cards/*/number"))
    shown = redact(canonical(ARGS), spec, KEY)
    edited = {**shown.value, "user": "bob"}
    assert restore(edited, canonical(ARGS), spec, KEY) == ({**ARGS, "user": "bob"}, ())


# R12
def test_an_edit_can_replace_a_secret() -> None:
    spec = ToolSpec("x", secret=("password",))
    assert restore({"password": "new"}, canonical(ARGS), spec, KEY) == ({"password": "new"}, ())


# R12
def test_a_fingerprint_of_no_stored_secret_is_a_problem_at_its_place() -> None:
    spec = ToolSpec("x", secret=("password", "/list/*"))
    _, problems = restore(
        {"password": fingerprint_mark("guess"), "list": [fingerprint_mark("p"), fingerprint_mark("hunter2")]},
        canonical(ARGS),
        spec,
        KEY,
    )
    assert problems == (Problem("/password", "This fingerprint belongs to no stored secret."),)


# design rule 11
def test_a_fingerprint_outside_of_the_secret_fields_is_only_text() -> None:
    spec = ToolSpec("x", secret=("password",))
    stolen = {"note": fingerprint_mark("hunter2"), "password": fingerprint_mark("hunter2")}
    assert restore(stolen, canonical(ARGS), spec, KEY) == (
        {"note": fingerprint_mark("hunter2"), "password": "hunter2"},
        (),
    )


@pytest.mark.parametrize(
    "odd", [{SECRET_MARKER: 5}, {SECRET_MARKER: fingerprint_mark("hunter2")[SECRET_MARKER], "more": 1}, {}, "x", None]
)
def test_what_is_no_fingerprint_is_taken_as_it_is(odd: object) -> None:
    spec = ToolSpec("x", secret=("password",))
    assert restore({"password": odd}, canonical(ARGS), spec, KEY) == ({"password": odd}, ())


POINTERS = st.lists(st.sampled_from(["a", "/a/*", "/*/b", "/b/0", "/c/d"]), max_size=3).map(tuple)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), json_values, max_size=4)


# R12, R47
@given(OBJECTS, POINTERS)
def test_hiding_and_putting_back_changes_nothing(args: dict[str, object], secret: tuple[str, ...]) -> None:
    spec, data = ToolSpec("x", secret=secret), canonical(args)
    whole, problems = restore(redact(data, spec, KEY).value, data, spec, KEY)
    assert (canonical(whole), problems) == (data, ())


# design rule 11
@given(any_text.filter(lambda text: len(text) > 6), POINTERS)
def test_no_secret_text_is_left_in_what_people_see(text: str, secret: tuple[str, ...]) -> None:
    shown = redact(canonical({"z": {"b": text}}), ToolSpec("x", secret=(*secret, "/z/b")), KEY)
    assert canonical(text)[1:-1] not in shown.data


# design rule 11
def test_secret_texts_come_longest_first_so_that_hiding_leaves_no_half() -> None:
    args = {"a": "pw", "b": ["a-pw-long", 5, "", None, {"c": "x"}, "z"], "open": "not secret"}
    assert secret_texts(canonical(args), ToolSpec("x", secret=("a", "/b/*"))) == ["a-pw-long", "pw", "z"]
    assert secret_texts(canonical(args), PAY) == []


# --- the binding


# R47
@pytest.mark.parametrize("field", ["workspace", "run_id", "call_id", "tool", "spec_sha256", "nonce"])
def test_each_bound_field_changes_the_binding(field: str) -> None:
    assert subject(**{field: "other"}).binding("args", "terms") != subject().binding("args", "terms")


# R47
def test_arguments_terms_and_hidden_bytes_change_the_binding() -> None:
    bindings = [
        subject().binding("args", "terms"),
        subject().binding("other", "terms"),
        subject().binding("args", "other"),
        subject().binding("terms", "args"),
        subject().binding("args", "terms", b"{}"),
        subject().binding("args", "terms", b'{"a":1}'),
    ]
    assert len(set(bindings)) == len(bindings)
    assert bindings[0] == subject().binding("args", "terms")


# R47
def test_the_borders_between_bound_fields_cannot_be_moved() -> None:
    one = subject(run_id='a","b', call_id="c").binding("args", "terms")
    other = subject(run_id="a", call_id='b","c').binding("args", "terms")
    assert one != other


# R24, R47
def test_a_call_that_comes_back_is_the_same_by_tool_and_bytes_alone() -> None:
    assert subject().is_same_call(call())
    assert subject().is_same_call(call(thread_id="elsewhere", priority="high", agent_says="please"))
    assert not subject().is_same_call(call({"amount": 6, "to": "ann"}))
    assert not subject().is_same_call(call(tool="refund"))


# R41
def test_a_subject_holds_what_the_approval_is_about() -> None:
    made = call(agent_path=("root", "helper"), thread_id="t1", workspace="w")
    about = make_subject(made, replace(PAY, idempotent=True), "high", "n")
    assert (about.workspace, about.run_id, about.call_id, about.tool) == ("w", "run", "call", "pay")
    assert (about.agent, about.agent_path, about.thread_id) == ("helper", ("root", "helper"), "t1")
    assert (about.requester, about.priority, about.effect, about.idempotent) == ("rita", "high", "write", True)
    assert about.spec_sha256 == replace(PAY, idempotent=True).sha256
    assert about.proposed != digest(made.args), "the arguments may be secret, so their digest is salted"
    assert read_canonical(made.args) == made.parsed_args


@pytest.mark.parametrize(
    ("known", "doubted", "result"),
    [("write", "", "write"), ("write", "read", "write"), ("write", "destructive", "destructive"), ("", "read", "read")],
)
def test_people_see_the_stricter_effect_of_a_doubted_call(known: str, doubted: str, result: str) -> None:
    doubtful = replace(call(), pre_check=PreCheck(ask_reason="Why?", declared_effect=doubted))
    assert make_subject(doubtful, replace(PAY, effect=known), "medium", "n").effect == result


@pytest.mark.parametrize(
    ("claimed", "effects", "result"),
    [
        ("read", ANY_EFFECT, ""),
        ("write", ANY_EFFECT, "write"),
        ("destructive", ANY_EFFECT, "destructive"),
        ("", ANY_EFFECT, ""),
        ("read", ("read",), "read"),
    ],
)
def test_an_effect_that_is_not_believed_looks_no_more_harmless_than_none(
    claimed: str, effects: tuple[str, ...], result: str
) -> None:
    spec = replace(PAY, effect=claimed, declared=True)
    assert make_subject(call(), spec, "medium", "n", effects).effect == result


def test_a_call_has_no_other_fields() -> None:
    with pytest.raises(TypeError, match="A call has no colour"):
        propose("pay", {}, "run", "call", colour="red")


@pytest.mark.parametrize("secret", [(), ("password",), ("/none",)])
def test_the_digest_of_what_is_shown_is_found_without_the_rest(secret: tuple[str, ...]) -> None:
    data, spec = canonical({"password": "a", "to": "b"}), ToolSpec("x", secret=secret)
    assert redacted_sha256(data, spec, KEY) == redact(data, spec, KEY).sha256
