"""Policy explanations: the verdict of the claims rule, and steps that lead to it. R56"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import Caller, Objection, ToolSpec, propose
from interlock.core.policy.claims import judge
from interlock.core.policy.policy import Ask, Defaults, Policy, Rule, Stage
from interlock.policy.explain import Explanation, explain
from tests.properties import examples
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
    Objection,
    doubt=st.sampled_from(["", "It is declared otherwise."]),
    refusal=st.sampled_from(["", "It looks like another."]),
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
    objection: Objection,
) -> None:
    spec = ToolSpec(tool, declared=True, **said) if known is None else ToolSpec(tool, known)
    made = propose(tool, args, "run", "call", **{"agent": "", **claimed}, caller=caller)
    made = replace(made, objection=objection)
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
        "What the call says of its tool (read) does not count, because the policy has trust_declared off."
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
