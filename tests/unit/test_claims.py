"""Claims of a program about its own call: they can only tighten the verdict."""
# R56

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.approval.vote import _covers
from interlock.core.call import EFFECTS, Caller, PreCheck, ToolCall, ToolSpec, propose, stored_caller
from interlock.core.decision import KINDS
from interlock.core.policy.claims import (
    ANY_EFFECT,
    Judgement,
    call_interpretations,
    default_terms,
    find_denial,
    judge,
    judge_stored,
)
from interlock.core.policy.policy import (
    Allow,
    Ask,
    Defaults,
    Deny,
    EscalationStep,
    People,
    Policy,
    Rule,
    Stage,
    Verdict,
)
from tests.hypothesis_profiles import examples
from tests.unit.builders import ARGS, FINANCE, pending_with_payload

WINDOWS = {"chat": 10_000, "queue": 60_000, "paused": 90_000}
DEFAULTS = Defaults(expires_in=WINDOWS)
STRICTNESS = ("allow", "ask", "deny").index
READS_ARE_FREE = Rule("reads are free", "allow", effects=frozenset({"read"}))
NOBODY_DROPS = Rule("nobody drops tables", "deny", tools=("drop_*",), reason="No.")


def key(*agents: str, **more: Any) -> Caller:
    """A key that is bound to these agents; without any, one called `key-7` that is bound to nobody."""
    owner = "agent:" + "|".join(agents) if agents else "key:ilk_7"
    return Caller(owner=owner, owners=frozenset({owner}), agents=agents or ("key-7",), **more)


def call(tool: str = "pay", args: Mapping[str, object] | None = None, **more: Any) -> ToolCall:
    claimed = {"agent": "key-7", "caller": key(), **more}
    return propose(tool, args or {}, "run", "call", **claimed)


def declared_spec(tool: str = "pay", effect: str = "", **more: Any) -> ToolSpec:
    return ToolSpec(tool, effect, declared=True, **more)


def judge_call(rules: tuple[Rule, ...], call: ToolCall, spec: ToolSpec | None = None, **defaults: Any) -> Judgement:
    return judge(Policy(rules, replace(DEFAULTS, **defaults)), call, spec or declared_spec(call.tool))


def verdict_kind(rules: tuple[Rule, ...], call: ToolCall, spec: ToolSpec | None = None, **defaults: Any) -> str:
    return judge_call(rules, call, spec, **defaults).verdict.kind


def expect_ask(rules: tuple[Rule, ...], call: ToolCall, spec: ToolSpec | None = None, **defaults: Any) -> Ask:
    verdict = judge_call(rules, call, spec, **defaults).verdict
    assert isinstance(verdict, Ask)
    return verdict


# What was seen on a running server


def test_the_agent_does_not_set_the_clock_where_silence_approves() -> None:
    rule = Rule("r", "ask", ask=Ask(on_expiry="approve", stages=(Stage(None, 2),)), expires_in={"queue": 1_800_000})
    assert expect_ask((rule,), call(expires_in=0)).expires_in == 1_800_000


def test_where_silence_refuses_the_agent_can_shorten_the_time_and_not_lengthen_it() -> None:
    rule = Rule("r", "ask", expires_in={"queue": 1_800_000})
    assert expect_ask((rule,), call(expires_in=5)).expires_in == 5
    assert expect_ask((rule,), call(expires_in=9_000_000)).expires_in == 1_800_000
    assert expect_ask((), call(setting="paused")).expires_in == WINDOWS["queue"]
    assert expect_ask((), call(setting="chat")).expires_in == WINDOWS["chat"]


@pytest.mark.parametrize("decisions", [("approve",), ("edit",), ("respond",), ("approve", "respond")])
def test_no_call_takes_the_rejection_away(decisions: tuple[str, ...]) -> None:
    terms = expect_ask((), call(decisions=decisions), declared_spec(decisions=decisions))
    assert set(terms.decisions) == {*decisions, "reject"}


def test_a_registered_tool_is_what_the_server_knows_of_it() -> None:
    assert verdict_kind((READS_ARE_FREE,), call("cms_delete_post"), ToolSpec("cms_delete_post", "destructive")) == "ask"


def test_reads_are_free_and_nobody_drops_tables() -> None:
    """With the two rules in this order the claimed effect of what the second one names does not count."""
    rules = (READS_ARE_FREE, NOBODY_DROPS)
    assert verdict_kind(rules, call("get_weather"), declared_spec("get_weather", "read")) == "allow"
    assert judge_call(rules, call("get_weather"), declared_spec("get_weather", "read")).is_read
    assert verdict_kind(rules, call("drop_users"), declared_spec("drop_users", "read")) == "deny"
    assert verdict_kind(rules, call("DROP_users"), declared_spec("DROP_users", "read")) == "deny"


def test_a_rule_for_all_tools_names_none() -> None:
    rules = (READS_ARE_FREE, Rule("all else is denied", "deny", tools=("*",)))
    assert verdict_kind(rules, call("get_weather"), declared_spec("get_weather", "read")) == "allow"
    assert verdict_kind(rules, call("get_weather"), declared_spec("get_weather", "write")) == "deny"


def test_a_rule_that_names_the_tool_for_another_effect_counts_too() -> None:
    rules = (READS_ARE_FREE, Rule("writes", "ask", tools=("run_sql",), effects=frozenset({"write"})))
    assert verdict_kind(rules, call("run_sql"), declared_spec("run_sql", "read")) == "ask"


def test_a_rule_for_the_tool_with_a_false_condition_keeps_the_claim() -> None:
    rules = (READS_ARE_FREE, Rule("large", "deny", tools=("run_sql",), when=lambda facts: facts["args"] != {}))
    assert verdict_kind(rules, call("run_sql"), declared_spec("run_sql", "read")) == "allow"
    assert verdict_kind(rules, call("run_sql", {"a": 1}), declared_spec("run_sql", "read")) == "deny"


def test_an_agents_switch_that_is_on_names_the_tool() -> None:
    policy = Policy((READS_ARE_FREE,), DEFAULTS, {"key-7": {"run_sql": True}})
    for tool in ("run_sql", "RUN_SQL"):
        assert judge(policy, call(tool), declared_spec(tool, "read")).verdict.kind == "ask"
    assert judge(policy, call("other"), declared_spec("other", "read")).verdict.kind == "allow"


@pytest.mark.parametrize("defaults", [{"trust_declared": False}, {"unknown_tools": "deny"}])
def test_the_claimed_effect_does_not_count_where_the_policy_does_not_trust_it(defaults: dict[str, Any]) -> None:
    verdict = "deny" if defaults.get("unknown_tools") else "ask"
    assert (
        verdict_kind((READS_ARE_FREE,), call("get_weather"), declared_spec("get_weather", "read"), **defaults)
        == verdict
    )


def test_a_switch_that_is_off_lifts_nothing_and_a_warning_says_where_to_set_it() -> None:
    found = judge_call((), call(switch="off"), declared_spec("pay", "destructive"))
    assert found.verdict.kind == "ask"
    assert found.warnings == (
        "switch: off lifts nothing from here. Set tool_approvals for the agent on the server: under agents: in "
        "interlock.yaml, or on the page Agents.",
    )
    assert judge_call((NOBODY_DROPS,), call("drop_users", switch="off")).warnings == ()
    assert judge_call((), call(switch="on"), declared_spec("pay", "read")).verdict.kind == "ask"


def test_an_allow_rule_for_an_agent_opens_only_for_a_key_that_is_bound_to_it() -> None:
    rules = (Rule("billing pays", "allow", agents=("billing",)),)
    claimed = judge_call(rules, call(agent="billing"), declared_spec("pay", "write"))
    assert claimed.verdict.kind == "ask"
    assert claimed.warnings == (
        "A rule for the agent 'billing' would let this pass, and the key of this call is not bound to it. Bind one: "
        "interlock keys create --role agent --name NAME --agent billing",
    )
    bound = judge_call(rules, call(agent="billing", caller=key("billing")), declared_spec("pay", "write"))
    assert (bound.verdict.kind, bound.warnings) == ("allow", ())


def test_only_what_would_help_is_recommended() -> None:
    rules = (Rule("billing pays", "allow", agents=("billing",)),)
    warnings = judge_call(rules, call(agent="billing", requester="ann"), declared_spec("pay", "write")).warnings
    assert len(warnings) == 1
    assert warnings[0].endswith("--agent billing")


def test_who_is_denied_where_a_bound_key_would_be_asked_about_is_told() -> None:
    rules = (Rule("billing asks", "ask", agents=("billing",)), Rule("nobody else", "deny"))
    denied = judge_call(rules, call(agent="billing"), declared_spec("pay", "write"))
    assert denied.verdict.kind == "deny"
    assert [warning.endswith("--agent billing") for warning in denied.warnings] == [True]
    bound = judge_call(rules, call(agent="billing", caller=key("billing")), declared_spec("pay", "write"))
    assert (bound.verdict.kind, bound.warnings) == ("ask", ())


def test_an_allow_rule_for_a_person_or_their_team_opens_only_for_a_key_that_vouches_for_them() -> None:
    for rule in (Rule("r", "allow", users=("ann",)), Rule("r", "allow", teams=frozenset({"finance"}))):
        claimed = judge_call((rule,), call(requester="ann", teams=("finance",)), declared_spec("pay", "write"))
        assert claimed.verdict.kind == "ask"
        assert any("--requester ann" in warning for warning in claimed.warnings)
        caller = key(requester="ann", teams=("finance",), requester_is_proven=True)
        bound = call(requester="ann", teams=("finance",), caller=caller)
        assert judge_call((rule,), bound, declared_spec("pay", "write")).verdict.kind == "allow"


def test_a_milder_rule_for_another_name_does_not_lower_the_quorum() -> None:
    rules = (
        Rule("friends", "ask", agents=("friend",), ask=Ask(stages=(Stage(FINANCE),))),
        Rule("others", "ask", ask=Ask(stages=(Stage(FINANCE, 2),))),
    )
    assert expect_ask(rules, call(agent="friend")).stages == (Stage(FINANCE, 2),)


def test_a_claimed_write_does_not_turn_a_later_denial_into_a_question() -> None:
    rules = (
        Rule("writes ask", "ask", effects=frozenset({"write"})),
        Rule("no sql", "deny", tools=("run_sql",)),
    )
    assert verdict_kind(rules, call("run_sql"), declared_spec("run_sql", "write")) == "deny"


def test_a_claimed_priority_allows_nothing_and_only_routes_notifications() -> None:
    rules = (Rule("small things pass", "allow", priorities=frozenset({"low"})),)
    assert verdict_kind(rules, call(priority="low"), declared_spec("pay", "write")) == "ask"
    assert expect_ask((), call(priority="low")).priority == "low"
    assert expect_ask((), call(priority="high")).priority == "high"
    assert expect_ask((), call()).priority == "medium"
    assert expect_ask((Rule("r", "ask", ask=Ask(priority="high")),), call(priority="low")).priority == "high"


def test_a_key_with_several_agents_that_names_none_is_judged_as_each() -> None:
    rules = (Rule("b may not", "deny", agents=("b",)), Rule("a may", "allow", agents=("a",)))
    both = key("a", "b")
    assert verdict_kind(rules, call(agent="", caller=both), declared_spec("pay", "write")) == "deny"
    assert (
        verdict_kind(rules, call(agent="a", caller=replace(both, agents=("a",))), declared_spec("pay", "write"))
        == "allow"
    )


# The requester


EXCLUDING = Rule("four eyes", "ask", ask=Ask(exclude=frozenset({"requester"}), stages=(Stage(FINANCE), Stage(None, 2))))


@pytest.mark.parametrize(
    "caller",
    [key(), key(requester="", requester_is_proven=False), None],
    ids=["unbound", "any, and nobody said", "missing"],
)
def test_who_excludes_a_requester_that_is_not_known_needs_one_more_person(caller: Caller | None) -> None:
    terms = expect_ask((EXCLUDING,), call(requester="" if caller is None else "mallory", caller=caller))
    assert [stage.quorum for stage in terms.stages] == [2, 3]
    assert terms.notes == (
        "This rule excludes the requester, and who asked is not known for certain: one more person has to approve than "
        "the rule says. A key that is bound to a requester lifts that.",
    )


@pytest.mark.parametrize(
    "caller", [key(requester="ann", requester_is_proven=True), key(requester_is_proven=True), None]
)
def test_a_requester_who_is_known_or_known_to_be_nobody_costs_nobody_more(caller: Caller | None) -> None:
    terms = expect_ask((EXCLUDING,), call(requester="ann", caller=caller))
    assert [stage.quorum for stage in terms.stages] == [1, 2]
    assert terms.notes == ()


# Names that only look like known ones


@pytest.mark.parametrize(
    "claimed", [{"tool": "drop_us\u0435rs "}, {"agent": "b\u0456lling"}, {"requester": " ann"}, {"tool": "p\u200bay"}]
)
def test_an_imitated_name_is_refused_before_any_rule(claimed: dict[str, str]) -> None:
    rules = (Rule("all", "allow", tools=("drop_users", "*"), agents=("billing", "*"), users=("ann", "*")),)
    found = judge_call(rules, call(**claimed), declared_spec(claimed.get("tool", "pay")))
    if claimed.get("tool", "").startswith("drop"):
        assert found.verdict.kind == "deny"
    assert judge_call((), call(pre_check=PreCheck("No.")), declared_spec()).verdict == Deny("No.")


@pytest.mark.parametrize(
    ("claimed", "named"),
    [
        ({"tool": "fund_transf\u0435r"}, "fund_transfer"),
        ({"tool": "fund_transfer "}, "fund_transfer"),
        ({"agent": "b\u0456lling"}, "billing"),
        ({"agent_path": ("main", "billing\u3164")}, "billing"),
        ({"requester": "ann\u200b"}, "ann"),
    ],
)
def test_the_refusal_says_which_name_is_meant(claimed: dict[str, Any], named: str) -> None:
    rules = (Rule("r", "ask", tools=("fund_transfer",), agents=("billing",), users=("ann",)),)
    verdict = judge_call(rules, call(**claimed), declared_spec(claimed.get("tool", "pay"))).verdict
    assert isinstance(verdict, Deny)
    assert f"looks like {named!r}" in verdict.reason


def test_an_ask_without_a_rule_explains_itself() -> None:
    policy = Policy((Rule("r", "ask", tools=("fund_transfer",)),))
    assert find_denial(policy, call(pre_check=PreCheck("No."))) == Deny("No.")
    assert find_denial(policy, call("fund_transfer")) is None
    assert find_denial(policy, call("fund_transfer ")) is not None


def test_an_operators_own_claims_are_trusted() -> None:
    rules = (Rule("billing pays", "allow", agents=("billing",)),)
    ours = call(agent="billing", caller=None, requester="ann", switch="off")
    assert judge_call(rules, ours, ToolSpec("pay", "write")).verdict == Allow("billing pays", 3_600_000)
    assert judge_call((), ours, ToolSpec("pay", "write")).verdict.kind == "allow"
    assert judge_call((), ours, ToolSpec("pay", "write")).interpretations == (ours,)


# Judged again


def test_a_stored_call_is_judged_by_the_same_law() -> None:
    policy = Policy((Rule("billing pays", "allow", agents=("billing",)),), DEFAULTS)
    spec = ToolSpec("pay", "write", declared=True)
    for caller, verdict in ((key(), "ask"), (key("billing"), "allow"), (None, "allow")):
        approval = pending_with_payload(spec=spec, agent="billing", caller=caller).approval
        assert judge_stored(policy, approval, b"{}", spec).kind == verdict


def test_a_stored_call_is_judged_by_every_agent_of_its_path() -> None:
    policy = Policy((Rule("the boss may not", "deny", agents=("boss",)),), DEFAULTS)
    spec = ToolSpec("pay", "write")
    for path, verdict in ((("boss", "helper"), "deny"), (("chief", "helper"), "ask")):
        approval = pending_with_payload(spec=spec, agent="helper", agent_path=path).approval
        assert judge_stored(policy, approval, b"{}", spec).kind == verdict


def test_a_known_requester_has_the_teams_of_now() -> None:
    policy = Policy((Rule("finance pays", "allow", teams=frozenset({"finance"})),), DEFAULTS)
    spec = ToolSpec("pay", "write")
    caller = key(requester="ann", teams=("finance",), requester_is_proven=True)
    approval = pending_with_payload(spec=spec, requester="ann", agent="key-7", caller=caller).approval
    assert judge_stored(policy, approval, b"{}", spec, ("finance",)).kind == "allow"
    assert judge_stored(policy, approval, b"{}", spec, ()).kind == "ask"
    new = replace(caller, teams=())
    approval = pending_with_payload(spec=spec, requester="ann", agent="key-7", caller=new).approval
    assert judge_stored(policy, approval, b"{}", spec, ("finance",)).kind == "allow"


def test_a_stored_call_has_its_priority_and_the_other_names_of_its_requester() -> None:
    urgent, other = Rule("r", "deny", priorities=frozenset({"high"})), Rule("r", "deny", users=("ann@example.com",))
    spec = ToolSpec("pay", "write")
    for priority, aliases, kinds in (
        ("high", (), ("deny", "ask")),
        ("low", (), ("ask", "ask")),
        ("low", ("ann@example.com",), ("ask", "deny")),
    ):
        approval = pending_with_payload(Ask(priority=priority), spec, requester="ann").approval
        for rule, kind in zip((urgent, other), kinds, strict=True):
            verdict = judge_stored(Policy((rule,), DEFAULTS), approval, b"{}", spec, aliases=aliases)
            assert verdict.kind == kind


@pytest.mark.parametrize(
    "whom", [{"users": ("ann",)}, {"users": ("?*",)}, {"teams": frozenset({"finance"})}], ids=["her", "any", "team"]
)
def test_nobody_vouches_for_a_requester_who_was_removed(whom: dict[str, Any]) -> None:
    policy = Policy((Rule("they pay", "allow", **whom),), DEFAULTS)
    spec = ToolSpec("pay", "write")
    caller = key(requester="ann", teams=("finance",), requester_is_proven=True)
    approval = pending_with_payload(spec=spec, requester="ann", agent="key-7", caller=caller).approval
    assert judge_stored(policy, approval, b"{}", spec, ("finance",)).kind == "allow"
    assert judge_stored(policy, approval, b"{}", spec, ("finance",), removed=True).kind == "ask"


def test_a_rule_that_excludes_a_requester_who_was_removed_needs_one_more_person() -> None:
    policy, spec = Policy((EXCLUDING,), DEFAULTS), ToolSpec("pay", "write")
    caller = key(requester="ann", requester_is_proven=True)
    approval = pending_with_payload(spec=spec, requester="ann", agent="key-7", caller=caller).approval
    for removed, quorums in ((False, [1, 2]), (True, [2, 3])):
        verdict = judge_stored(policy, approval, b"{}", spec, removed=removed)
        assert isinstance(verdict, Ask)
        assert [stage.quorum for stage in verdict.stages] == quorums


def test_a_replayed_call_is_known_only_to_its_owner() -> None:
    subject = pending_with_payload(caller=key("a")).approval.subject
    mine = propose("pay", ARGS, "run", "call", agent="helper", requester="rita", caller=key("a"))
    assert subject.is_same_call(mine)
    assert not subject.is_same_call(replace(mine, caller=key("b")))


def test_a_name_in_another_script_that_looks_like_none_of_a_rule_is_a_name() -> None:
    rules = (Rule("r", "allow", tools=("*",)),)
    assert verdict_kind(rules, call(requester="Zo\u00eb")) == "allow"


def test_what_was_known_of_a_caller_is_kept_with_the_call() -> None:
    caller = key("a", "b", requester="ann", teams=("finance",), requester_is_proven=True, setting="paused")
    subject = pending_with_payload(caller=caller).approval.subject
    assert stored_caller(subject) == caller
    assert subject.owner == "agent:a|b"
    assert stored_caller(pending_with_payload().approval.subject) is None


def test_a_call_comes_back_to_its_owner_alone() -> None:
    subject = pending_with_payload(caller=key("billing")).approval.subject
    assert subject.belongs_to(key("billing"))
    assert not subject.belongs_to(key("support"))
    assert subject._replace(owner="*").belongs_to(key("support"))


def test_default_terms_take_the_shortest_time_of_all_readings() -> None:
    policy = Policy((), DEFAULTS)
    assert default_terms(policy, call(setting="paused"), declared_spec()).expires_in == WINDOWS["queue"]
    assert default_terms(policy, call(expires_in=7), declared_spec()).expires_in == 7
    assert default_terms(policy, call(caller=None, setting="paused"), declared_spec()).expires_in == WINDOWS["paused"]


@pytest.mark.parametrize(
    "claim",
    [
        {"agent": "other"},
        {"agent_path": ("boss", "key-7")},
        {"requester": "ann"},
        {"teams": ("finance",)},
        {"aliases": ("ann@example.com",)},
        {"priority": "high"},
        {"setting": "chat"},
        {"switch": "on"},
        {"expires_in": 1},
        {"decisions": ("approve",)},
        {"thread_id": "thread"},
    ],
)
def test_what_is_known_of_a_call_holds_nothing_that_only_its_program_says(claim: dict[str, Any]) -> None:
    plain = call()
    assert call_interpretations(plain) == (plain,)
    assert call_interpretations(call(**claim))[-1] == plain


def test_a_call_that_claims_nothing_has_one_reading() -> None:
    assert len(call_interpretations(call())) == 1
    assert len(call_interpretations(call(requester="ann"))) == 2


# The property


TOOLS = ("pay", "Pay", "drop_users", "get_weather")
AGENTS = ("key-7", "billing", "friend")
PEOPLE = ("", "ann", "bob")
PATTERNS = ("pay", "drop_*", "get_*", "*", "p?y")

CONDITIONS = {
    "tool": lambda facts: facts["tool"] == "pay",
    "effect": lambda facts: facts["effect"] != "read",
    "agent": lambda facts: facts["agent"] in ("billing", ""),
    "user": lambda facts: facts["user"] == "ann",
    "teams": lambda facts: "finance" in facts["teams"],
    "priority": lambda facts: facts["priority"] == "low",
    "args": lambda facts: facts["args"].get("amount", 0) > 10,
    "raises": lambda facts: facts["args"]["missing"],
    "text": lambda _: "yes",
}

people = st.sampled_from([None, FINANCE, People(frozenset({"ann", "bob"}))])
stages = st.lists(st.builds(Stage, people, st.integers(1, 3)), min_size=1, max_size=2).map(tuple)
ask_verdicts = st.builds(
    Ask,
    stages=stages,
    exclude=st.frozensets(st.sampled_from(["requester", "editor"])),
    decisions=st.lists(st.sampled_from(KINDS), min_size=1, unique=True).map(tuple),
    priority=st.sampled_from(["", "low", "high"]),
    on_expiry=st.sampled_from(["reject", "escalate", "approve"]),
    escalation_steps=st.sampled_from([(), (EscalationStep(5, FINANCE),)]),
    undo_window=st.integers(0, 9),
    start_within=st.integers(1, 9),
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    def some(values: tuple[str, ...]) -> tuple[str, ...]:
        return draw(st.one_of(st.just(()), st.lists(st.sampled_from(values), max_size=2, unique=True).map(tuple)))

    when = draw(st.one_of(st.none(), st.sampled_from(sorted(CONDITIONS))))
    return Rule(
        draw(st.uuids()).hex,
        draw(st.sampled_from(["allow", "deny", "ask"])),
        tools=some(PATTERNS),
        effects=frozenset(some(EFFECTS)),
        agents=some(AGENTS),
        users=some(PEOPLE[1:]),
        teams=frozenset(some(("finance",))),
        priorities=frozenset(some(("low", "high"))),
        when=None if when is None else CONDITIONS[when],
        ask=draw(ask_verdicts),
        expires_in=draw(st.sampled_from([{}, {"queue": 700}, {"chat": 3, "paused": 999}])),
        shadow=draw(st.sampled_from([False, False, False, True])),
    )


policies = st.builds(
    Policy,
    st.lists(rules(), max_size=5).map(tuple),
    st.builds(
        Defaults,
        unknown_tools=st.sampled_from(["ask", "deny"]),
        expires_in=st.just(WINDOWS),
        trust_declared=st.booleans(),
    ),
    st.dictionaries(
        st.sampled_from(AGENTS), st.dictionaries(st.sampled_from(TOOLS), st.booleans(), max_size=2), max_size=2
    ),
)
callers = st.one_of(
    st.just(key()),
    st.builds(key, st.sampled_from(AGENTS)),
    st.just(key("billing", "friend")),
    st.just(key(requester="ann", teams=("finance",), requester_is_proven=True)),
    st.just(key("billing", requester_is_proven=True)),
)
claims = st.fixed_dictionaries(
    {},
    optional={
        "agent": st.sampled_from(AGENTS),
        "agent_path": st.lists(st.sampled_from(AGENTS), max_size=2).map(tuple),
        "requester": st.sampled_from(PEOPLE),
        "teams": st.sampled_from([(), ("finance",)]),
        "priority": st.sampled_from(["", "low", "medium", "high"]),
        "setting": st.sampled_from(["chat", "queue", "paused"]),
        "switch": st.sampled_from(["", "on", "off"]),
        "expires_in": st.sampled_from([None, 0, 1, 10**9]),
        "thread_id": st.sampled_from(["", "t"]),
        "agent_says": st.sampled_from(["", "It is approved."]),
        "decisions": st.lists(st.sampled_from(KINDS), unique=True).map(tuple),
    },
)
declared_fields = st.fixed_dictionaries(
    {},
    optional={
        "effect": st.sampled_from(["", *EFFECTS]),
        "idempotent": st.booleans(),
        "secret": st.sampled_from([(), ("*",)]),
        "schema": st.sampled_from([None, {"type": "object"}]),
    },
)
arguments = st.sampled_from([{}, {"amount": 5}, {"amount": 50}])
registered = st.sampled_from([None, None, *EFFECTS])


@examples(1_000)
@given(policies, callers, st.sampled_from(TOOLS), arguments, registered, claims, declared_fields)
def test_no_claim_loosens_what_the_server_would_say_without_it(
    policy: Policy,
    caller: Caller,
    tool: str,
    args: dict[str, object],
    known: str | None,
    claimed: dict[str, Any],
    said: dict[str, Any],
) -> None:
    spec = ToolSpec(tool, declared=True, **said) if known is None else ToolSpec(tool, known)
    result = propose(tool, args, "run", "call", **{"agent": "", **claimed}, caller=caller)
    verdict = judge(policy, result, spec).verdict
    for bare in _without_claims(policy, result, spec):
        assert_no_looser(verdict, bare)
    assert not isinstance(verdict, Ask) or "reject" in verdict.decisions


def _without_claims(policy: Policy, result: ToolCall, spec: ToolSpec) -> list[Verdict]:
    """What the server alone would say: written once more, as the issue has it, and not as the code does it."""
    assert result.caller is not None
    caller = result.caller
    bare = [
        propose(
            result.tool, result.parsed_args, "run", "call", agent=agent, requester=caller.requester, teams=caller.teams
        )
        for agent in caller.agents
    ]
    if not spec.declared:
        effects: tuple[str, ...] = (spec.effect,)
    elif spec.effect and _may_trust_declared(policy, [result, *bare]):
        effects = (spec.effect,)
    else:
        effects = ANY_EFFECT
    return [policy.judge(each, ToolSpec(result.tool, effect)) for each in bare for effect in effects]


def _may_trust_declared(policy: Policy, calls: list[ToolCall]) -> bool:
    if not policy.defaults.trust_declared or policy.defaults.unknown_tools == "deny":
        return False
    for each in calls:
        for agent in each.path:
            if any(asks and name.lower() == each.tool.lower() for name, asks in policy.toggles.get(agent, {}).items()):
                return False
        for rule in policy.rules:
            naming = replace(rule, tools=tuple(name for name in rule.tools if name != "*"))
            alone = Policy((naming,), replace(policy.defaults, unknown_tools="ask"))
            if naming.tools and rule.then != "allow":
                verdicts = [alone.judge(each, ToolSpec(each.tool, effect)) for effect in ANY_EFFECT]
                if any(verdict.rule == rule.name for verdict in verdicts):
                    return False
    return True


def assert_no_looser(verdict: Verdict, bare: Verdict) -> None:
    assert STRICTNESS(verdict.kind) >= STRICTNESS(bare.kind)
    if not isinstance(verdict, Ask) or not isinstance(bare, Ask):
        return
    for stage in bare.stages:
        assert any(_covers(mine, stage) for mine in verdict.stages)
    assert verdict.exclude >= bare.exclude
    assert set(verdict.decisions) <= {*bare.decisions, "reject"}
    assert verdict.on_expiry != "approve" or bare.on_expiry == "approve"
    if verdict.on_expiry == "approve":
        assert verdict.expires_in >= bare.expires_in
    else:
        assert verdict.expires_in <= bare.expires_in
    assert verdict.start_within <= bare.start_within
    assert verdict.undo_window >= bare.undo_window
