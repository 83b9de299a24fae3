"""Policy explanations: the verdict of the claims rule and its steps, and the possible verdicts of a tool."""
# R56

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import Caller, PreCheck, ToolSpec, propose
from interlock.core.policy.claims import judge
from interlock.core.policy.policy import Ask, Defaults, Policy, Rule, Stage, VerdictKind
from interlock.policy.explain import Explanation, explain, possible_verdicts
from tests.hypothesis_profiles import examples
from tests.unit.test_claims import (
    READS_ARE_FREE,
    TOOLS,
    arguments,
    call,
    callers,
    claims,
    declared_fields,
    declared_spec,
    key,
    policies,
    registered,
)

WORDS = {"allow": "allowed", "ask": "asked", "deny": "denied"}


both = st.builds(lambda policy, also: replace(policy, second_policy=also), policies, st.one_of(st.none(), policies))
of_server = st.builds(
    PreCheck,
    ask_reason=st.sampled_from(["", "It is declared otherwise."]),
    deny_reason=st.sampled_from(["", "It looks like another."]),
)


@examples(1_000)
@given(
    both,
    st.one_of(st.none(), callers),
    st.sampled_from((*TOOLS, "p\u0430y")),
    arguments,
    registered,
    claims,
    declared_fields,
    of_server,
)
def test_an_explanation_gives_the_verdict_and_the_steps_to_it(
    policy: Policy,
    caller: Caller | None,
    tool: str,
    args: dict[str, object],
    known: str | None,
    claimed: dict[str, Any],
    said: dict[str, Any],
    pre_check: PreCheck,
) -> None:
    spec = ToolSpec(tool, declared=True, **said) if known is None else ToolSpec(tool, known)
    made = propose(tool, args, "run", "call", **{"agent": "", **claimed}, caller=caller)
    made = replace(made, pre_check=pre_check)
    explained = explain(policy, made, spec)
    assert explained.verdict == judge(policy, made, spec).verdict
    assert WORDS[explained.verdict.kind] in explained.conclusion.lower()
    assert_led_to(explained, policy)


def assert_led_to(explained: Explanation, policy: Policy) -> None:
    *before, last = explained.steps or (None,)
    assert not [step for step in before if step and step.holds and not step.shadow], "the first that holds decides"
    if not explained.rule:
        return
    assert last is not None
    assert (last.rule, last.holds, last.shadow) == (explained.rule, True, False)
    switched = last.then == "allow" and "say so" in explained.conclusion
    assert explained.verdict.kind == ("ask" if switched else last.then)
    assert explained.rule in {rule.name for rule in policy.rules}


def test_an_ignored_claim_is_explained_as_ignored() -> None:
    strict = Policy((READS_ARE_FREE,), Defaults(unknown_tools="deny", trust_declared=False))
    explained = explain(strict, call("look_up"), declared_spec("look_up", "read"))
    assert [step.why for step in explained.steps] == ["its effect is not that of an unknown tool"]
    assert explained.conclusion.startswith(
        "no rule matched; by the default for unknown tools: denied: look_up is not a known"
    )
    assert explained.notes[0].startswith(
        "What the call declares about its tool (read) is ignored, because the policy has trust_declared off."
    )
    assert (
        "refuses unknown tools"
        in explain(Policy((), Defaults(unknown_tools="deny")), call(), declared_spec(effect="read")).notes[0]
    )
    named = Policy((READS_ARE_FREE, Rule("no", "deny", tools=("pay",))))
    assert "names the tool" in explain(named, call(), declared_spec(effect="read")).notes[0]
    assert explain(Policy(), call(), declared_spec()).notes[0].startswith("Nobody says what pay does.")


def test_terms_of_several_rules_are_said_to_be_joined() -> None:
    rules = (Rule("friends", "ask", agents=("friend",)), Rule("others", "ask", ask=Ask(stages=(Stage(None, 2),))))
    explained = explain(Policy(rules), call(agent="friend"), ToolSpec("pay", "write"))
    assert explained.rule == "friends"
    assert 'the rule "others" would ask too' in explained.notes[0]


def test_a_policy_file_beside_the_one_in_force_is_told_by_its_own_rule() -> None:
    policy = Policy((Rule("free", "allow"),), second_policy=Policy((Rule("closed", "deny"),)))
    explained = explain(policy, call(caller=key()), ToolSpec("pay", "write"))
    assert (explained.verdict.kind, explained.rule) == ("deny", "")
    assert 'by the rule "free": allowed' in explained.conclusion
    assert 'by the rule "closed": denied' in explained.conclusion


def test_a_condition_that_holds_for_a_name_as_people_read_it_says_so() -> None:
    rule = Rule("r", "deny", when=lambda facts: facts["tool"] == "pay")
    explained = explain(Policy((rule,)), call("PAY"), declared_spec("PAY", "write"))
    assert [step.why for step in explained.steps] == ["its condition is true for a name as people read it"]


def test_a_switch_of_the_call_itself_is_named() -> None:
    result = explain(Policy((READS_ARE_FREE,)), call(switch="on"), ToolSpec("pay", "read"))
    assert "because the call's own switches say so" in result.conclusion


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


def call_of_spec(spec: ToolSpec, **args: object) -> Any:
    return propose(spec.name, args, "run", "call", agent="bot")


def possible_verdicts_by_effect(policy: Policy, spec: ToolSpec) -> set[VerdictKind]:
    return {prospect.verdict.kind for prospect in possible_verdicts(policy, call_of_spec(spec), spec)}


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
    assert policy.judge(call_of_spec(spec, n=n), spec).kind in possible_verdicts_by_effect(policy, spec)


def test_it_says_what_gives_each_verdict_and_whether_the_arguments_decide() -> None:  # R9, R10
    rules = (Rule("small", "allow", when=lambda _: True), Rule("others", "ask", tools=("look",)))
    switched = Policy(rules, toggles={"bot": {"pay": True}})
    result = [
        (each.verdict.kind, each.source, each.rule, each.conditional)
        for each in possible_verdicts(switched, call_of_spec(WRITE), WRITE)
    ]
    assert result == [("ask", "switch", "small", True), ("ask", "switch", "", False)]
    result = [
        (each.verdict.kind, each.source, each.rule, each.conditional)
        for each in possible_verdicts(switched, call_of_spec(READ), READ)
    ]
    assert result == [("allow", "rule", "small", True), ("ask", "rule", "others", False)]
    [alone] = possible_verdicts(Policy(toggles={"bot": {"pay": False}}), call_of_spec(UNKNOWN), UNKNOWN)
    assert (alone.verdict.kind, alone.source) == ("ask", "default")
