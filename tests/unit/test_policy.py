"""The policy: ordered rules, first match wins, errors tighten."""

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.policy import policy as policies
from interlock.core.policy.policy import (
    BUDGET_FACT,
    FACTS,
    HALF_TIME,
    Allow,
    Ask,
    Defaults,
    Deny,
    EscalationStep,
    Facts,
    MatchKey,
    People,
    Policy,
    Rule,
    Stage,
    Verdict,
    VerdictKind,
    call_facts,
    mixed_alphabets_reason,
    parse_terms,
)
from tests.hypothesis_profiles import examples
from tests.unit.builders import FINANCE, ask_verdicts, call

READ, WRITE, DESTROY = ToolSpec("look", "read"), ToolSpec("pay", "write"), ToolSpec("drop", "destructive")
DAY = 86_400_000
UNKNOWN = ToolSpec("odd")


def verdict(*rules: Rule, spec: ToolSpec = WRITE, defaults: Defaults | None = None, **more: Any) -> Verdict:
    toggles = more.pop("toggles", {})
    return Policy(rules, defaults or Defaults(), toggles).judge(call(tool=spec.name, **more), spec)


def raise_error(_: Facts) -> object:
    raise ZeroDivisionError


def is_denied_by(rule: Rule, spec: ToolSpec = WRITE, **more: Any) -> bool:
    """Whether a rule that denies takes effect; without a match the call is asked about."""
    return isinstance(verdict(rule, spec=spec, **more), Deny)


# R34
def test_a_verdict_names_its_kind_and_the_kind_is_no_part_of_the_terms() -> None:
    assert [made.kind for made in (Allow(), Deny("no"), Ask())] == ["allow", "deny", "ask"]
    assert b"kind" not in Ask().snapshot


# --- without a rule


# R1
def test_reads_run_at_once_and_all_else_asks() -> None:
    assert verdict(spec=READ) == Allow()
    assert isinstance(verdict(spec=WRITE), Ask)
    assert isinstance(verdict(spec=DESTROY), Ask)


# R1
def test_an_unknown_tool_asks_or_is_denied_and_never_runs() -> None:
    assert isinstance(verdict(spec=UNKNOWN), Ask)
    assert verdict(spec=UNKNOWN, defaults=Defaults(unknown_tools="deny")) == Deny("odd is not a known tool.")
    assert isinstance(verdict(spec=UNKNOWN, toggles={"helper": {"odd": False}}), Ask)
    assert isinstance(verdict(spec=WRITE, defaults=Defaults(unknown_tools="deny")), Ask), "this one is known"


# R1, R34
def test_a_claim_about_the_effect_counts_only_where_the_policy_trusts_it() -> None:
    claimed = ToolSpec("look", "read", declared=True)
    wary = Defaults(trust_declared=False)
    assert verdict(spec=claimed) == Allow()
    assert isinstance(verdict(spec=claimed, defaults=wary), Ask)
    assert verdict(spec=READ, defaults=wary) == Allow(), "a registered tool makes no claim"
    reads_are_free = Rule("reads", "allow", effects=frozenset({"read"}))
    assert isinstance(verdict(reads_are_free, spec=claimed, defaults=wary), Ask)
    assert Policy(defaults=wary).trusted_effect(claimed) == ""
    assert Policy(defaults=wary).trusted_effect(READ) == "read"


def test_what_is_refused_since_it_is_only_declared_says_how_to_vouch_for_it() -> None:
    how = "An admin can pin it: interlock tools pin look --effect EFFECT"
    strict = Defaults(unknown_tools="deny", trust_declared=False)
    look, change = ToolSpec("look", "read", declared=True), ToolSpec("look", "write", declared=True)
    assert verdict(spec=look, defaults=strict) == Deny(f"look is not a known tool. {how}")
    reads = Rule("reads", "allow", effects=frozenset({"read"}))
    rest = Rule("rest", "deny", reason="Agents may only read here.")
    wary = Defaults(trust_declared=False)
    result = f"Agents may only read here. That look is a read is only declared by its agent. {how}"
    assert verdict(reads, rest, spec=look, defaults=wary) == Deny(result, "rest")
    assert verdict(reads, rest, spec=change, defaults=wary) == Deny("Agents may only read here.", "rest")
    assert verdict(reads, rest, spec=UNKNOWN, defaults=wary) == Deny("Agents may only read here.", "rest")


# R5
@pytest.mark.parametrize(("setting", "window"), [("chat", 600_000), ("queue", DAY), ("paused", DAY)])
def test_each_setting_has_its_time_limit(setting: str, window: int) -> None:
    terms = verdict(setting=setting)
    assert isinstance(terms, Ask)
    assert (terms.expires_in, terms.remind) == (window, (HALF_TIME,))


def test_defaults_reach_the_terms() -> None:
    escalation_steps = (EscalationStep(5, FINANCE, ("pager",)),)
    defaults = Defaults(
        unknown_tools="ask",
        expires_in={"queue": 9},
        on_expiry="escalate",
        undo_window=1,
        start_within=2,
        remind=(3,),
        escalation_steps=escalation_steps,
    )
    assert verdict(defaults=defaults, priority="low") == Ask(
        "",
        priority="low",
        expires_in=9,
        on_expiry="escalate",
        escalation_steps=escalation_steps,
        remind=(3,),
        undo_window=1,
        start_within=2,
    )
    assert verdict(spec=READ, defaults=defaults) == Allow("", 2)


# --- first match wins


# R34
# R5
@pytest.mark.parametrize("first", ["allow", "deny"])
def test_by_two_policies_the_stricter_verdict_holds(first: VerdictKind) -> None:
    second: VerdictKind = "deny" if first == "allow" else "allow"
    one, other = Policy((Rule("one", first),)), Policy((Rule("other", second),))
    assert one.judge(call(), WRITE).kind == first
    assert replace(one, second_policy=other).judge(call(), WRITE).kind == "deny"


def test_the_first_rule_that_matches_wins() -> None:
    allow, deny, ask = Rule("a", "allow"), Rule("d", "deny"), Rule("q", "ask")
    assert verdict(allow, deny, ask) == Allow("a")
    assert isinstance(verdict(deny, allow, ask), Deny)
    assert verdict(ask, deny).rule == "q"
    assert verdict(Rule("never", "deny", tools=("other",)), allow, deny) == Allow("a")
    assert verdict(Rule("no", "deny", when=lambda _: False), allow, deny) == Allow("a")


def test_when_no_condition_holds_the_default_counts() -> None:
    no = Rule("no", "deny", when=lambda _: False)
    assert verdict(no, replace(no, name="nor this"), spec=READ) == Allow()
    assert isinstance(verdict(no), Ask)


def test_a_denial_says_why() -> None:
    assert verdict(Rule("d", "deny", reason="Not today.")) == Deny("Not today.", "d")
    assert verdict(Rule("d", "deny")) == Deny("The rule 'd' forbids pay.", "d")


def test_an_allowing_rule_gives_the_time_to_start() -> None:
    assert verdict(Rule("a", "allow"), defaults=Defaults(start_within=7)) == Allow("a", 7)


# --- matchers


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("pay", "pay", True),
        ("pay", "pay2", False),
        ("pay", "Pay", True),
        ("p*", "pay", True),
        ("*", "pay", True),
        ("*y", "pay", True),
        ("p?y", "pay", True),
        ("p?", "pay", False),
        ("p[ab]y", "pay", False),
        ("p[ab]y", "p[ab]y", True),
        ("p[ab]*", "p[ab]y", True),
        ("p[!b]y", "pay", False),
        ("[ab]", "[ab]", True),
        ("p", "pay", False),
        ("pay*", "pay", True),
        ("pay.x", "pay_x", False),
    ],
)
def test_tools_are_matched_by_globs(pattern: str, tool: str, matches: bool) -> None:
    assert is_denied_by(Rule("r", "deny", tools=("nothing", pattern)), ToolSpec(tool, "write")) is matches
    assert is_denied_by(Rule("r", "deny", users=(pattern,)), requester=tool) is matches
    assert is_denied_by(Rule("r", "deny", agents=(pattern,)), agent=tool) is matches


def test_effects_priorities_and_teams_are_matched() -> None:
    assert is_denied_by(Rule("r", "deny", effects=frozenset({"write", "read"})))
    assert not is_denied_by(Rule("r", "deny", effects=frozenset({"destructive"})))
    assert is_denied_by(Rule("r", "deny", priorities=frozenset({"high"})), priority="high")
    assert not is_denied_by(Rule("r", "deny", priorities=frozenset({"high"})))
    assert is_denied_by(Rule("r", "deny", teams=frozenset({"ops"})), teams=("dev", "ops"))
    assert not is_denied_by(Rule("r", "deny", teams=frozenset({"ops"})), teams=("dev",))
    assert not is_denied_by(Rule("r", "deny", teams=frozenset({"ops"})))


def test_all_matchers_have_to_match() -> None:
    rule = Rule(
        "r",
        "deny",
        tools=("pay",),
        effects=frozenset({"write"}),
        agents=("helper",),
        users=("rita",),
        when=lambda _: True,
    )
    assert is_denied_by(rule)
    for field, value in (("tools", ("x",)), ("effects", frozenset({"read"})), ("agents", ("x",)), ("users", ("x",))):
        assert not is_denied_by(replace(rule, **{field: value}))


# R13
def test_a_tightening_rule_holds_for_sub_agents_and_a_loosening_one_needs_the_whole_path() -> None:
    path = ("root", "child")
    deny, allow = Rule("d", "deny", agents=("root",)), Rule("a", "allow", agents=("child",))
    assert is_denied_by(deny, agent="child", agent_path=path)
    assert not is_denied_by(deny, agent="child", agent_path=("other", "child"))
    assert isinstance(verdict(allow, agent="child", agent_path=path), Ask)
    assert isinstance(verdict(replace(allow, agents=("root",)), agent="child", agent_path=path), Ask)
    assert verdict(replace(allow, agents=("child", "r*")), agent="child", agent_path=path) == Allow("a")
    assert isinstance(verdict(replace(allow, agents=("*",)), agent=""), Ask), "nobody is not every agent"
    assert not is_denied_by(deny, agent="")


# --- conditions


# R38
def test_a_condition_looks_at_the_facts_of_the_call() -> None:
    seen: list[Facts] = []

    def note(facts: Facts) -> object:
        seen.append(facts)
        return True

    is_denied_by(Rule("r", "deny", when=note), teams=("dev",), priority="low", agent="b", agent_path=("a", "b"))
    (facts,) = seen
    assert tuple(facts) == (*FACTS, "aliases", BUDGET_FACT), "what rules look at beside that is not for conditions"
    assert {name: facts[name] for name in FACTS} == {
        "args": {"amount": 5, "to": "ann"},
        "tool": "pay",
        "effect": "write",
        "agent": "b",
        "user": "rita",
        "teams": ["dev"],
        "priority": "low",
    }
    assert call_facts(call(agent=""), "read")["agent"] == ""


# R38
def test_a_condition_on_an_argument_decides() -> None:
    large = Rule("large", "deny", when=lambda facts: facts["args"]["amount"] > 1_000)
    assert isinstance(verdict(large, args={"amount": 1_001}), Deny)
    assert isinstance(verdict(large, args={"amount": 1_000}), Ask)


# R38
@pytest.mark.parametrize(
    "odd", [raise_error, lambda _: None, lambda _: 1, lambda _: 0, lambda _: "true", lambda _: [], lambda: True]
)
def test_a_condition_in_doubt_holds_for_deny_and_ask_and_never_for_allow(odd: Callable[[Facts], object]) -> None:
    assert isinstance(verdict(Rule("r", "deny", when=odd), spec=READ), Deny)
    assert verdict(Rule("r", "ask", when=odd), spec=READ).rule == "r"
    assert verdict(Rule("r", "allow", when=odd)).rule == "", "the default asks"
    assert isinstance(verdict(Rule("r", "allow", when=odd)), Ask)


# --- toggles


# R9, R10
@pytest.mark.parametrize(
    ("spec", "toggle", "asks"),
    [(READ, True, True), (READ, False, False), (WRITE, True, True), (WRITE, False, False), (DESTROY, False, False)],
)
def test_without_a_rule_the_toggle_decides(spec: ToolSpec, toggle: bool, asks: bool) -> None:
    toggles = {"helper": {spec.name: toggle, "other": not toggle}}
    assert isinstance(verdict(spec=spec, toggles=toggles), Ask) is asks
    assert isinstance(verdict(spec=spec, toggles={"somebody else": toggles["helper"]}), Ask) is (spec is not READ)


# R10
def test_a_toggle_turns_a_rules_allow_into_a_question_and_weakens_no_rule() -> None:
    on, off = {"helper": {"pay": True}}, {"helper": {"pay": False}}
    allow = Rule("a", "allow", expires_in={"queue": 5})
    assert verdict(allow, toggles=on) == Ask("a", expires_in=5, remind=(HALF_TIME,))
    assert verdict(allow, toggles=off) == Allow("a")
    assert isinstance(verdict(Rule("d", "deny"), toggles=on), Deny)
    assert isinstance(verdict(Rule("d", "deny"), toggles=off), Deny)
    assert isinstance(verdict(Rule("q", "ask"), toggles=off), Ask)


# R13
@pytest.mark.parametrize("parent", [True, False, None])
@pytest.mark.parametrize("child", [True, False, None])
@pytest.mark.parametrize("spec", [READ, WRITE])
def test_toggles_fold_over_the_path_by_or(parent: bool | None, child: bool | None, spec: ToolSpec) -> None:
    named = {"parent": parent, "child": child}
    toggles = {agent: {spec.name: toggle} for agent, toggle in named.items() if toggle is not None}
    default = spec is not READ
    expected = any(default if toggle is None else toggle for toggle in named.values())
    judged = verdict(spec=spec, toggles=toggles, agent="child", agent_path=("parent", "child"))
    assert isinstance(judged, Ask) is expected
    by_rule = verdict(Rule("a", "allow"), spec=spec, toggles=toggles, agent="child", agent_path=("parent", "child"))
    assert isinstance(by_rule, Ask) is bool(parent or child)


# --- switches that an agent's own configuration gives


# R9, R54
@pytest.mark.parametrize(
    ("spec", "switch", "asks"),
    [
        *((READ, "", False), (READ, "on", True), (READ, "off", False)),
        *((WRITE, "", True), (WRITE, "on", True), (WRITE, "off", False)),
        *((UNKNOWN, "", True), (UNKNOWN, "on", True), (UNKNOWN, "off", True)),
    ],
)
def test_without_a_rule_the_switch_decides_but_a_tool_that_nobody_knows_asks(
    spec: ToolSpec, switch: str, asks: bool
) -> None:
    assert isinstance(verdict(spec=spec, switch=switch), Ask) is asks


# R9, R54
def test_a_switch_turns_a_rules_allow_into_a_question_and_weakens_no_rule() -> None:
    allow = Rule("a", "allow")
    assert isinstance(verdict(allow, switch="on"), Ask)
    assert verdict(allow, switch="off") == Allow("a")
    for switch in ("on", "off"):
        assert isinstance(verdict(Rule("d", "deny"), switch=switch), Deny)
        assert isinstance(verdict(Rule("q", "ask"), switch=switch), Ask)
        assert isinstance(verdict(spec=UNKNOWN, defaults=Defaults(unknown_tools="deny"), switch=switch), Deny)


# R10, R54
@pytest.mark.parametrize(
    ("toggle", "switch", "asks"), [(True, "off", True), (False, "on", True), (False, "off", False), (True, "on", True)]
)
def test_of_a_toggle_and_a_switch_the_stricter_counts(toggle: bool, switch: str, asks: bool) -> None:
    assert isinstance(verdict(toggles={"helper": {"pay": toggle}}, switch=switch), Ask) is asks


# R54
def test_the_switch_of_a_program_whose_claims_do_not_count_does_not_count() -> None:
    claimed = replace(WRITE, declared=True)
    distrusting = Defaults(trust_declared=False)
    assert isinstance(verdict(spec=claimed, defaults=distrusting, switch="off"), Ask)
    assert verdict(spec=claimed, defaults=Defaults(trust_declared=True), switch="off") == Allow()


# --- terms


# R5
def test_a_call_can_only_shorten_the_time_that_the_rule_gives() -> None:
    rule = Rule("r", "ask", expires_in={"queue": 1_000})
    for wanted, given_time in ((None, 1_000), (5, 5), (0, 0), (2_000, 1_000)):
        assert verdict(rule, expires_in=wanted) == Ask("r", expires_in=given_time)
    assert verdict(rule, setting="chat") == Ask("r", expires_in=600_000)


# R11
def test_a_tool_narrows_the_answers_of_a_rule_and_adds_none() -> None:
    rule = Rule("r", "ask", ask=Ask(decisions=("reject", "approve", "edit")))
    narrow = replace(WRITE, decisions=("approve", "respond", "reject"))
    assert verdict(rule).decisions == ("reject", "approve", "edit")
    assert verdict(rule, spec=narrow).decisions == ("reject", "approve")
    assert verdict(spec=narrow).decisions == ("approve", "respond", "reject")


# R22, R26
@pytest.mark.parametrize(
    ("rules", "wanted", "priority"),
    [
        ((), "", "medium"),
        ((), "high", "high"),
        ((Rule("r", "ask", ask=Ask(priority="low")),), "high", "low"),
        ((Rule("r", "ask", ask=Ask(priority="")),), "high", "high"),
        ((Rule("r", "ask", ask=Ask(priority="")),), "", "medium"),
        ((Rule("r", "allow", ask=Ask(priority="low")),), "high", "high"),
    ],
)
def test_a_rule_that_asks_sets_the_priority(rules: tuple[Rule, ...], wanted: str, priority: str) -> None:
    assert verdict(*rules, priority=wanted, toggles={"helper": {"pay": True}}).priority == priority


def test_the_rules_terms_are_kept() -> None:
    own = Ask(
        "x",
        (Stage(FINANCE, 2),),
        exclude=frozenset({"requester"}),
        decisions=("approve",),
        priority="high",
        expires_in=1,
        on_expiry="approve",
        remind=(4,),
    )
    expected = replace(own, rule="r", expires_in=DAY)
    assert verdict(Rule("r", "ask", ask=own)) == expected


def test_the_same_terms_are_one_object() -> None:
    policy = Policy((Rule("r", "ask"),))
    assert policy.judge(call(), WRITE) is policy.judge(call({"amount": 9}), WRITE)
    assert policy.judge(call(), WRITE) is not policy.judge(call(priority="high", setting="chat"), WRITE)


# R48
@given(ask_verdicts)
def test_terms_can_be_read_back_from_their_snapshot(terms: Ask) -> None:
    assert parse_terms(terms.snapshot) == terms
    assert parse_terms(terms.snapshot).sha256 == terms.sha256


# R47, R48
@given(ask_verdicts, ask_verdicts)
def test_different_terms_have_different_digests(one: Ask, other: Ask) -> None:
    assert (one == other) == (one.sha256 == other.sha256)


# R48
def test_people_are_named_or_belong_to_a_team() -> None:
    people = People(frozenset({"ann"}), frozenset({"ops"}))
    assert people.include("ann", frozenset())
    assert people.include("bob", frozenset({"dev", "ops"}))
    assert not people.include("bob", frozenset({"dev"}))
    assert not People().include("", frozenset())


# --- shadow rules


# R52
def test_a_shadow_rule_is_told_and_not_applied() -> None:
    rules = (
        Rule("s1", "deny", shadow=True),
        Rule("s2", "ask", tools=("other",), shadow=True),
        Rule("s3", "allow", when=lambda facts: facts["user"] == "rita", shadow=True),
        Rule("s4", "deny", when=lambda _: False, shadow=True),
        Rule("s5", "allow", when=raise_error, shadow=True),
        Rule("real", "allow"),
    )
    policy = Policy(rules)
    assert policy.judge(call(), WRITE) == Allow("real")
    assert policy.shadow_verdicts(call(), WRITE) == (("s1", "deny"), ("s3", "allow"))
    assert Policy(rules[-1:]).shadow_verdicts(call(), WRITE) == ()


# R52
def test_a_shadow_rule_that_would_not_be_reached_does_nothing() -> None:
    shadow, real = Rule("s", "deny", shadow=True), Rule("real", "ask", tools=("pay",))
    assert Policy((real, shadow)).shadow_verdicts(call(), WRITE) == ()
    assert Policy((real, shadow)).shadow_verdicts(call(tool="drop"), DESTROY) == (("s", "deny"),)
    assert Policy((shadow, real)).shadow_verdicts(call(), WRITE) == (("s", "deny"),)


# R52
def test_a_switched_tool_would_be_asked_about_even_where_a_shadow_rule_allows() -> None:
    policy = Policy((Rule("s", "allow", shadow=True),), toggles={"helper": {"pay": True}})
    assert policy.shadow_verdicts(call(), WRITE) == (("s", "ask"),)
    assert policy.shadow_verdicts(call(agent="other"), WRITE) == (("s", "allow"),)


def test_mixed_alphabets_are_told_with_what_to_do() -> None:
    assert mixed_alphabets_reason("X") == (
        "A name in this call mixes alphabets within one word, as names do that imitate others: X. Write each word in "
        "letters of one alphabet."
    )


# --- the index


names = st.sampled_from(["a", "ab", "abc", "b", "ba", "c", "[ab]"])
globs = st.sampled_from(["a", "ab", "b", "*", "a*", "?b", "[ab]", "ab*c", "*c", "b?", ""])
patterns = st.lists(globs, max_size=2).map(tuple)
CONDITIONS: tuple[Callable[[Facts], object] | None, ...] = (
    None,
    lambda _: True,
    lambda _: False,
    lambda _: 1,
    raise_error,
)
random_rules = st.builds(
    Rule,
    st.uuids().map(str),
    st.sampled_from(["allow", "deny", "ask"]),
    tools=patterns,
    effects=st.frozensets(st.sampled_from(["read", "write", ""]), max_size=1),
    agents=patterns,
    users=patterns,
    teams=st.frozensets(st.sampled_from(["t1", "t2"]), max_size=1),
    priorities=st.frozensets(st.sampled_from(["low", "high"]), max_size=1),
    when=st.sampled_from(CONDITIONS),
    shadow=st.sampled_from([False, False, False, True]),
)
random_calls = st.builds(
    lambda tool, user, path, teams, priority: propose(
        tool, {}, "run", "call", requester=user, agent_path=path, teams=teams, priority=priority
    ),
    names,
    names | st.just(""),
    st.lists(names, max_size=3).map(tuple),
    st.lists(st.sampled_from(["t1", "t2"]), max_size=2).map(tuple),
    st.sampled_from(["", "low", "high"]),
)
random_toggles = st.dictionaries(names, st.dictionaries(names, st.booleans(), max_size=3), max_size=3)


def naive_verdict(policy: Policy, made: ToolCall, effect: str) -> tuple[str, str]:
    """A naive reference: checks one rule after the other and returns the verdict and its rule."""
    toggles = [policy.toggles.get(agent, {}) for agent in made.path]
    for rule in policy.rules:
        if not rule.shadow and naive_matches(rule, made, effect):
            forced = rule.then == "allow" and any(toggle.get(made.tool) is True for toggle in toggles)
            return ("ask" if forced else rule.then), rule.name
    default = effect != "read"
    asks_here = any(toggle.get(made.tool, default) for toggle in toggles or [{}])
    return ("ask" if asks_here or not effect else "allow"), ""


def naive_matches(rule: Rule, made: ToolCall, effect: str) -> bool:
    def hit(some: tuple[str, ...], name: str) -> bool:
        return not some or any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in some)

    path = [hit(rule.agents, agent) for agent in made.path]
    enough = all(path) and path if rule.then == "allow" else any(path)
    if rule.agents and not enough:
        return False
    fits = {
        "tool": hit(rule.tools, made.tool),
        "user": hit(rule.users, made.requester),
        "effect": not rule.effects or effect in rule.effects,
        "priority": not rule.priorities or made.priority in rule.priorities,
        "team": not rule.teams or bool(rule.teams & set(made.teams)),
    }
    holds = {None: True, CONDITIONS[1]: True, CONDITIONS[2]: False}.get(rule.when, rule.then != "allow")
    return holds and all(fits.values())


# R52
@examples(300)
@given(
    rules=st.lists(random_rules, max_size=6).map(tuple),
    made=random_calls,
    effect=st.sampled_from(["read", "write", ""]),
    toggles=random_toggles,
)
def test_a_shadow_is_what_the_rule_would_do_if_it_alone_were_enforced(
    rules: tuple[Rule, ...], made: ToolCall, effect: str, toggles: dict[str, dict[str, bool]]
) -> None:
    expected = []
    for place, rule in enumerate(rules):
        enforced = (*rules[:place], replace(rule, shadow=False), *rules[place + 1 :])
        kind, by = naive_verdict(Policy(enforced, toggles=toggles), made, effect)
        expected += [(by, kind)] if rule.shadow and by == rule.name else []
    assert list(Policy(rules, toggles=toggles).shadow_verdicts(made, ToolSpec(made.tool, effect))) == expected


# R15, R34
@examples(500)
@given(
    st.lists(random_rules, max_size=8).map(tuple),
    random_toggles,
    st.lists(random_calls, min_size=1, max_size=4),
    st.sampled_from(["", "read", "write"]),
)
def test_the_index_gives_what_a_linear_look_gives(
    rules: tuple[Rule, ...], toggles: dict[str, dict[str, bool]], calls: list[ToolCall], effect: str
) -> None:
    policy = Policy(rules, toggles=toggles)
    for made in calls + calls:
        judged = policy.judge(made, ToolSpec(made.tool, effect))
        assert (type(judged).__name__.lower(), judged.rule) == naive_verdict(policy, made, effect)


@pytest.fixture
def checked_rules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the rules that were looked at."""
    counted: list[str] = []
    matches = Rule.matches

    def counting(rule: Rule, key: MatchKey) -> bool:
        counted.append(rule.name)
        return matches(rule, key)

    monkeypatch.setattr(Rule, "matches", counting)
    return counted


# R15
def test_looking_up_does_not_grow_with_the_rules(checked_rules: list[str]) -> None:
    many = [
        Rule(f"{number}", "deny", **matcher)
        for number in range(2_500)
        for matcher in (
            {"tools": (f"tool{number}",)},
            {"tools": (f"pack{number}_*",)},
            {"agents": (f"agent{number}",)},
            {"users": (f"user{number}",)},
        )
    ]
    mine = Rule("mine", "allow", tools=("pay", "refund"))
    policy = Policy((*many, mine, Rule("last", "ask")))
    assert len(policy.rules) > 10_000
    assert policy.judge(call(), WRITE) == Allow("mine")
    assert checked_rules == ["mine", "last"], "a new key costs its own rules only"
    checked_rules.clear()
    assert policy.judge(call({"amount": 7}), WRITE) == Allow("mine")
    assert checked_rules == [], "a known key costs none"
    policy.judge(call(tool="pack9_x", requester="user7", agent="agent8"), ToolSpec("pack9_x", "write"))
    assert checked_rules == ["7", "8", "9", "last"]
    checked_rules.clear()
    policy.judge(call(tool="tool12"), ToolSpec("tool12", "write"))
    assert checked_rules == ["12", "last"], "tool1 is another tool"


def test_what_is_remembered_of_rules_that_name_a_tool_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MAX_CACHED", 2)
    policy = Policy((Rule("r", "ask", tools=("pay*",)),))
    named = [policy.tightens_by_name(call(tool=tool), ("write",)) for tool in ("pay", "pay2", "look", "pay")]
    assert named == [True, True, False, True]


# R15
def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch, checked_rules: list[str]) -> None:
    monkeypatch.setattr(policies, "MAX_CACHED", 3)
    policy = Policy((Rule("r", "ask"),))
    judged = [policy.judge(call(requester=f"u{n}", expires_in=n), WRITE) for n in (1, 2, 3, 1, 4, 1)]
    assert [terms.expires_in for terms in judged if isinstance(terms, Ask)] == [1, 2, 3, 1, 4, 1]
    assert judged[3] is judged[0]
    assert judged[5] is not judged[0]
    assert len(checked_rules) == 5, "the fourth new key threw away what was known of the first"


# R56
def test_a_condition_is_tried_with_names_as_they_are_written_and_folded() -> None:
    for then, holds in (("deny", True), ("ask", True), ("allow", False)):
        rule = Rule("r", then, when=lambda facts: facts["tool"] == "pay")
        assert rule.holds(call_facts(call(tool="PAY"), "read")) is holds
        assert rule.holds(call_facts(call(tool="pay"), "read"))
    assert not Rule("r", "allow", when=lambda facts: facts["tool"] != "pay").holds(call_facts(call(tool="PAY"), "read"))


# R56
def test_a_rule_that_tightens_knows_a_person_by_their_other_names() -> None:
    known = call(requester="mallory", aliases=("Mallory@Example.com",))
    by_address = {"users": ("*@example.com",)}
    for then in ("deny", "ask", "allow"):
        assert Policy((Rule("r", then, **by_address),)).judge(known, ToolSpec("pay", "write")).rule == (
            "" if then == "allow" else "r"
        )
    for then, holds in (("deny", True), ("ask", True), ("allow", False)):
        rule = Rule("r", then, when=lambda facts: facts["user"] == "mallory@example.com")
        assert rule.holds(call_facts(known, "read")) is holds
        assert not Rule("r", then, when=lambda facts: facts["user"] == "eve").holds(call_facts(known, "read"))
