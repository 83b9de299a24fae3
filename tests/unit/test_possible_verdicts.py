"""The verdicts that a policy can give for a tool, over all arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import ToolSpec, propose
from interlock.core.policy.policy import Defaults, Policy, Rule, VerdictKind
from interlock.policy.explain import possible_verdicts

WRITE, READ, UNKNOWN = ToolSpec("pay", "write"), ToolSpec("look", "read"), ToolSpec("pay")
RULES = st.builds(
    Rule,
    name=st.just("r"),
    then=st.sampled_from(("allow", "ask", "deny")),
    tools=st.sampled_from(((), ("pay",), ("l*",))),
    effects=st.sampled_from((frozenset(), frozenset({"read"}), frozenset({"write"}))),
    agents=st.sampled_from(((), ("bot",), ("other",))),
    when=st.sampled_from((None, lambda facts: facts["args"]["n"] > 5, lambda _: False, lambda _: 1 / 0)),
    shadow=st.booleans(),
)
TOGGLES = st.dictionaries(st.just("bot"), st.dictionaries(st.sampled_from(("pay", "look")), st.booleans()))


def call(spec: ToolSpec, **args: object) -> Any:
    return propose(spec.name, args, "run", "call", agent="bot")


def possible_verdicts_by_effect(policy: Policy, spec: ToolSpec) -> set[VerdictKind]:
    return {prospect.verdict.kind for prospect in possible_verdicts(policy, call(spec), spec)}


@pytest.mark.parametrize(
    ("spec", "rules", "found"),
    [
        (WRITE, (), {"ask"}),
        (READ, (), {"allow"}),
        (UNKNOWN, (), {"ask"}),
        (WRITE, (Rule("a", "deny"),), {"deny"}),
        (WRITE, (Rule("a", "deny", shadow=True),), {"ask"}),
        (WRITE, (Rule("a", "allow", when=lambda _: True),), {"allow", "ask"}),
        (WRITE, (Rule("a", "allow", when=lambda _: True), Rule("b", "deny"), Rule("c", "ask")), {"allow", "deny"}),
        (WRITE, (Rule("a", "allow", agents=("other",)),), {"ask"}),
    ],
)
def test_every_verdict_that_can_be_reached_is_named_and_no_other(
    spec: ToolSpec, rules: tuple[Rule, ...], found: set[VerdictKind]
) -> None:  # R9, R34
    assert possible_verdicts_by_effect(Policy(rules), spec) == found


def test_a_switch_of_the_agent_is_part_of_it() -> None:  # R9
    assert possible_verdicts_by_effect(Policy(toggles={"bot": {"look": True}}), READ) == {"ask"}
    assert possible_verdicts_by_effect(Policy((Rule("a", "allow"),), toggles={"bot": {"look": True}}), READ) == {"ask"}
    assert possible_verdicts_by_effect(Policy(toggles={"bot": {"pay": False}}), WRITE) == {"allow"}
    assert possible_verdicts_by_effect(Policy(toggles={"bot": {"pay": False}}), UNKNOWN) == {"ask"}
    assert possible_verdicts_by_effect(Policy(defaults=Defaults(unknown_tools="deny")), UNKNOWN) == {"deny"}


@given(
    rules=st.lists(RULES, max_size=5),
    toggles=TOGGLES,
    spec=st.sampled_from((WRITE, READ, UNKNOWN)),
    n=st.integers(0, 10),
)
def test_no_call_gets_a_verdict_that_was_not_foreseen(
    rules: list[Rule], toggles: dict[str, dict[str, bool]], spec: ToolSpec, n: int
) -> None:  # R9, R34
    policy = Policy(tuple(rules), toggles=toggles)
    assert policy.judge(call(spec, n=n), spec).kind in possible_verdicts_by_effect(policy, spec)


def test_it_says_what_gives_each_verdict_and_whether_the_arguments_decide() -> None:  # R9, R10
    rules = (Rule("small", "allow", when=lambda _: True), Rule("others", "ask", tools=("look",)))
    switched = Policy(rules, toggles={"bot": {"pay": True}})
    result = [
        (each.verdict.kind, each.source, each.rule, each.conditional)
        for each in possible_verdicts(switched, call(WRITE), WRITE)
    ]
    assert result == [("ask", "switch", "small", True), ("ask", "switch", "", False)]
    result = [
        (each.verdict.kind, each.source, each.rule, each.conditional)
        for each in possible_verdicts(switched, call(READ), READ)
    ]
    assert result == [("allow", "rule", "small", True), ("ask", "rule", "others", False)]
    [alone] = possible_verdicts(Policy(toggles={"bot": {"pay": False}}), call(UNKNOWN), UNKNOWN)
    assert (alone.verdict.kind, alone.source) == ("ask", "default")
