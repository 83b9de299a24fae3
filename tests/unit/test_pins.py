"""Pinned tools: a declared definition that differs from its pin asks, under any rule. R57"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from interlock.core.approval.execute import start
from interlock.core.call import Caller, PreCheck, ToolCall, ToolSpec, parse_spec, propose
from interlock.core.errors import BindingBroken, Conflict, InvalidRequest
from interlock.core.pins import (
    MAX_PINS,
    Pin,
    Pins,
    check_pin_limit,
    check_pin_name,
    lookalike_error,
    make_pinned_spec,
    naming_rule_text,
    pin_mismatch_reason,
    spec_differences,
    trusts_declared,
)
from interlock.core.policy.claims import judge
from interlock.core.policy.policy import Allow, Ask, Defaults, Deny, People, Policy, Rule, Stage
from interlock.storage.engine.read_counts import MAX_NAMES, ReadCounter
from tests.unit.builders import NOW, at, pending, store_row

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}
PINNED = ToolSpec("send", "write", schema=SCHEMA, secret=("token",), idempotent=True)
LEASE = 60_000


def declared_spec(effect: str = "", schema: Mapping[str, object] | None = None, **more: Any) -> ToolSpec:
    return ToolSpec("send", effect, schema=schema, declared=True, **more)


def pin(tool: str, effect: str = "read") -> Pin:
    return Pin(tool, ToolSpec(tool, effect).definition, "bot", "ada", 1)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (declared_spec(), ()),
        (declared_spec("write", SCHEMA, secret=("token",), idempotent=True), ()),
        (declared_spec("write", idempotent=True), ()),
        (declared_spec(secret=("/token",)), ()),
        (declared_spec("read", idempotent=True), ("effect read instead of write",)),
        (declared_spec(schema={"type": "object"}, idempotent=True), ("another schema",)),
        (declared_spec(secret=("token", "to")), ("other secret fields",)),
        (declared_spec("write"), ("not idempotent",)),
        (declared_spec(schema=SCHEMA), ("not idempotent",)),
    ],
)
def test_what_is_declared_is_compared_and_what_is_not_has_not_changed(
    declared: ToolSpec, words: tuple[str, ...]
) -> None:
    assert spec_differences(PINNED, declared) == words


def test_a_claimed_idempotence_differs_from_a_pin_without_it() -> None:
    assert spec_differences(replace(PINNED, idempotent=False), declared_spec(idempotent=True)) == ("idempotent",)


def test_a_pin_without_a_schema_has_none_that_could_change() -> None:
    assert (
        spec_differences(replace(PINNED, schema=None), declared_spec("write", {"type": "array"}, idempotent=True)) == ()
    )


def test_the_order_of_a_schema_is_no_change() -> None:
    turned = {"properties": {"to": {"type": "string"}}, "type": "object"}
    assert spec_differences(PINNED, declared_spec("write", turned, idempotent=True)) == ()


def test_a_pin_holds_the_definition_and_nothing_of_one_call() -> None:
    whole = ToolSpec(
        "send",
        "write",
        schema=SCHEMA,
        describe="Send it",
        preview=lambda _: "",
        secret=("token",),
        idempotent=True,
        confirm="chat",
        decisions=("approve",),
        declared=True,
    )
    assert make_pinned_spec(whole) == PINNED
    assert parse_spec(Pin("send", make_pinned_spec(whole).definition, "", "ada", 1).definition) == PINNED
    assert Pin("send", PINNED.definition, "", "ada", 1).spec == PINNED


def test_a_pin_needs_an_effect() -> None:
    with pytest.raises(InvalidRequest) as refused:
        make_pinned_spec(declared_spec())
    assert refused.value.message == "Nobody said what send does. Give its effect: read, write or destructive."
    assert make_pinned_spec(declared_spec(), "destructive").effect == "destructive"
    assert make_pinned_spec(declared_spec("read"), "write").effect == "write"


def test_a_pinned_name_is_found_in_any_case() -> None:
    pins = Pins((pin("Bash"), pin("größe")))
    assert [each.tool for each in (pins.find("Bash"), pins.find("bash"), pins.find("GRÖSSE")) if each] == [
        "Bash",
        "Bash",
        "größe",
    ]
    assert pins.find("basher") is None
    assert Pins().find("bash") is None


def test_one_tool_has_one_pin_whatever_the_case_of_its_name() -> None:
    pins = Pins((pin("Bash"),))
    check_pin_name(pins, "Bash")
    check_pin_name(pins, "zsh")
    with pytest.raises(Conflict) as refused:
        check_pin_name(pins, "bash")
    assert refused.value.message == (
        "Bash is pinned, and names that differ in case alone are one tool. Unpin it first."
    )


def test_tools_that_a_rule_or_a_switch_names_are_pinned_one_by_one() -> None:
    policy = Policy(
        (
            Rule("all reads", "allow", tools=("get_*",)),
            Rule("tried out", "deny", tools=("get_*",), shadow=True),
            Rule("everything asks", "ask", tools=("*",)),
            Rule("nobody drops", "deny", tools=("drop_*",)),
        ),
        toggles={"bot": {"send": True, "get_time": False}},
    )
    assert naming_rule_text(policy, "DROP_users", "bot") == "the rule 'nobody drops' names it"
    assert naming_rule_text(policy, "send", "bot") == "a switch of the agent bot names it"
    assert (naming_rule_text(policy, "send", "other"), naming_rule_text(policy, "get_time", "bot")) == ("", "")


@pytest.mark.parametrize(
    ("defaults", "believed"),
    [(Defaults(), True), (Defaults(trust_declared=False), False), (Defaults(unknown_tools="deny"), False)],
)
def test_a_policy_takes_an_agents_word_or_does_not(defaults: Defaults, believed: bool) -> None:
    assert trusts_declared(Policy((), defaults)) is believed


# What a doubt does to a verdict


def call(doubt: str = "", **more: Any) -> ToolCall:
    caller = Caller(owner="key:1", owners=frozenset({"key:1"}), agents=("bot",))
    return propose("send", {}, "run", "call", agent="bot", caller=caller, pre_check=PreCheck(ask_reason=doubt), **more)


def test_a_doubt_is_empty_only_where_nothing_differs() -> None:
    assert pin_mismatch_reason(PINNED, declared_spec()) == ""
    assert "effect read instead of write, not idempotent" in pin_mismatch_reason(PINNED, declared_spec("read"))


def test_a_doubted_call_is_asked_about_although_a_rule_allows_it() -> None:
    policy = Policy((Rule("free", "allow"),))
    assert isinstance(judge(policy, call(), PINNED).verdict, Allow)
    asked = judge(policy, call("It changed."), PINNED).verdict
    assert isinstance(asked, Ask)
    assert asked.notes == ("It changed.",)
    assert "reject" in asked.decisions


def test_a_doubt_takes_nothing_from_a_rule_that_asks_or_denies() -> None:
    two = Ask(stages=(Stage(People(teams=frozenset({"finance"})), 2),))
    asked = judge(Policy((Rule("two", "ask", ask=two),)), call("It changed."), PINNED).verdict
    assert isinstance(asked, Ask)
    assert asked.stages == two.stages
    assert asked.notes == ("It changed.",)
    denied = judge(Policy((Rule("no", "deny", reason="No."),)), call("It changed."), PINNED).verdict
    assert denied == Deny("No.", "no")


def test_an_interface_fills_the_terms_of_a_doubted_call_too() -> None:
    asked = judge(Policy((Rule("free", "allow"),)), call("It changed."), PINNED, lambda ask, _: replace(ask, rule="x"))
    assert isinstance(asked.verdict, Ask)
    assert asked.verdict.rule == "x"


# What a program shows at the start


def test_a_program_starts_what_it_proposed_with_the_definition_that_it_has_itself() -> None:
    own = declared_spec("read")
    caller = Caller(owner="key:1", owners=frozenset({"key:1"}), agents=("bot",), spec_sha256=own.sha256)
    asked = pending(spec=replace(PINNED, secret=()), caller=caller)
    approval = replace(asked, status="approved", deadlines=asked.deadlines._replace(start_by=NOW + LEASE))
    for sha256 in ("", own.sha256, approval.subject.spec_sha256):
        assert start(store_row(approval), "r1", LEASE, sha256, at(), runner_is_dead=False).state.status == "running"
    with pytest.raises(BindingBroken, match="definition changed"):
        start(store_row(approval), "r1", LEASE, declared_spec("write").sha256, at(), runner_is_dead=False)


def test_a_name_that_looks_like_a_pinned_one_is_not_pinned_beside_it() -> None:
    pins = Pins((pin("send"),))
    for name in ("send", "sand"):
        check_pin_name(pins, name)
    with pytest.raises(Conflict) as refused:
        check_pin_name(pins, "s\u0435nd")
    assert refused.value.message == (
        r"s\u{435}nd looks like send, which is pinned: it is not pinned. If that is the wrong one, unpin it first."
    )
    assert refused.value.ids == {"tool": "s\u0435nd"}
    assert lookalike_error("s\u0435nd", "send", "registered").message == (
        r"s\u{435}nd looks like send, which is registered: it is not pinned."
    )


def test_a_workspace_has_room_for_so_many_pins() -> None:
    full = Pins(tuple(Pin(f"tool {number}", b"{}", "", "ada", 0) for number in range(MAX_PINS - 1)))
    check_pin_limit(full, 1)
    with pytest.raises(Conflict) as refused:
        check_pin_limit(full, 2)
    assert refused.value.message == (
        "A workspace has at most 10,000 pins; 9,999 are there, and 2 more were wanted. Nothing was pinned. Unpin tools "
        "that nobody calls any more: interlock tools unpin TOOL"
    )


def test_reads_of_too_many_tools_are_counted_under_one_name() -> None:
    counter = ReadCounter(lambda: NOW)
    for number in range(MAX_NAMES + 2):
        counter.count("default", f"tool {number}")
    reads = {tool: count for (_, tool, _), count in counter.drain().reads.items()}
    assert len(reads) == MAX_NAMES + 1
    assert reads["(other)"] == 2  # as it is in databases already
