"""The policy file: its meaning, and the messages for its errors."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.core.policy.policy import HALF_TIME, Allow, Ask, Defaults, Deny, EscalationStep, People, Policy, Stage
from interlock.policy.conditions import compile_condition
from interlock.policy.explain import explain
from interlock.policy.file import KnownNames, LoadedPolicy, load_policy
from interlock.runtime.durations import MAX_DURATION, format_duration, parse_duration

DOCS = Path(__file__).parents[2] / "docs" / "policy.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
MINUTE = 60_000


def load(text: str, names: KnownNames | None = None) -> LoadedPolicy:
    return load_policy(text, compile_condition, names)


def policy(*rules: str, more: str = "") -> Policy:
    return load(policy_text(*rules, more=more)).policy


def policy_text(*rules: str, more: str = "") -> str:
    lines = [f"  - {{name: rule {number}, {rule}}}\n" for number, rule in enumerate(rules, 1)]
    return f"{more}\nrules:\n{''.join(lines)}" if rules else more


def complaints(text: str, names: KnownNames | None = None) -> list[str]:
    with pytest.raises(Misconfigured) as caught:
        load(text, names)
    return caught.value.message.splitlines()


def call(tool: str = "pay", args: dict[str, object] | None = None, **more: object) -> ToolCall:
    return propose(tool, args or {}, "run", "call", **more)


def expect_ask(loaded: Policy, each: ToolCall | None = None) -> Ask:
    verdict = loaded.judge(each or call(), ToolSpec("pay", "write"))
    assert isinstance(verdict, Ask)
    return verdict


# --- what it means ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_of_the_documentation_loads(text: str) -> None:
    loaded = load(text)
    assert loaded.policy.sha256 == sha256(text.encode()).hexdigest()


def test_the_first_example_means_what_it_says() -> None:  # R34, R38, R48
    loaded = load(EXAMPLES[0]).policy
    large = call("fund_transfer", {"amount": 5_000, "recipient": "a@b.example"})
    verdict = loaded.judge(large, ToolSpec("fund_transfer", "write"))
    assert verdict == Ask(
        "large transfers need two people from finance",
        (Stage(People(teams=frozenset({"finance"})), 2),),
        exclude=frozenset({"requester"}),
        decisions=("approve", "reject"),
        priority="high",
        expires_in=30 * MINUTE,
        on_expiry="escalate",
        escalation_steps=(EscalationStep(10 * MINUTE, People(teams=frozenset({"finance-leads"})), ("pagerduty",)),),
        remind=(HALF_TIME,),
    )
    assert loaded.judge(call("drop_users"), ToolSpec("drop_users", "destructive")) == Deny(
        "Dropping tables is not allowed.", "nobody drops tables"
    )
    assert loaded.judge(call("list"), ToolSpec("list", "read")) == Allow("reads are free")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "rules: []", "version: 1\nrules: []\n", "{}", "null"])
def test_an_empty_policy_is_the_defaults(text: str) -> None:
    loaded = load(text)
    assert (loaded.policy.rules, loaded.policy.defaults, loaded.warnings) == ((), Defaults(), ())


def test_defaults_fill_what_a_rule_does_not_say() -> None:
    defaults = "defaults: {expires_in: {chat: 1m}, undo_window: 0s, start_within: 2h, remind: 30s}"
    terms = expect_ask(policy("then: ask", more=defaults), call(setting="chat"))
    assert (terms.expires_in, terms.undo_window, terms.start_within, terms.remind) == (
        MINUTE,
        0,
        120 * MINUTE,
        (30_000,),
    )
    assert (
        expect_ask(policy("then: ask, expires_in: 3m", more=defaults), call(setting="paused")).expires_in == 3 * MINUTE
    )


def test_default_steps_hold_for_rules_without_their_own() -> None:  # R28
    more = (
        "defaults: {on_expiry: escalate, escalate: [{after: 90s, to: {users: [eve]}}, {after: 60s, channels: [pager]}]}"
    )
    terms = expect_ask(policy("then: ask", more=more))
    assert terms.on_expiry == "escalate"
    assert [escalation_step.after for escalation_step in terms.escalation_steps] == [60_000, 90_000]


def test_the_priority_of_a_call_stays_unless_the_rule_sets_one() -> None:
    assert expect_ask(policy("then: ask"), call(priority="low")).priority == "low"
    assert expect_ask(policy("then: ask, priority: high"), call(priority="low")).priority == "high"


def test_stages_and_exclusions_are_read() -> None:  # R48
    rule = "then: ask, stages: [{approvers: {teams: [a]}}, {approvers: {users: [x, y]}, quorum: 2}], exclude: editors"
    terms = expect_ask(policy(rule))
    assert terms.stages == (Stage(People(teams=frozenset("a"))), Stage(People(frozenset("xy")), 2))
    assert terms.exclude == {"editor"}


def test_only_true_and_false_are_truth_values() -> None:
    loaded = policy("tools: [on, no, y, off, 'true'], then: deny")
    assert loaded.rules[0].tools == ("on", "no", "y", "off", "true")


def test_a_rule_keeps_its_condition_as_it_was_written() -> None:  # R52
    loaded = policy("then: ask, when: args.amount > 5", "then: ask")
    assert [rule.source for rule in loaded.rules] == ["args.amount > 5", ""]


def test_json_is_read_too() -> None:
    body = {"version": 1, "rules": [{"name": "money \U0001f4b6", "tools": ["pay"], "then": "deny", "reason": "a/b\t"}]}
    for text in (json.dumps(body), json.dumps(body, indent="\t"), json.dumps(body, ensure_ascii=False)):
        assert load(text).policy.rules[0].name == "money \U0001f4b6"


def test_the_toggle_that_asks_wins() -> None:  # R9
    text = "agents: {bob: {tool_approvals: {a: false, b: true, c: false}}}"
    loaded = load_policy(text, compile_condition, None, {"bob": {"a": True, "b": False}, "eve": {"a": False}})
    assert loaded.policy.toggles == {"bob": {"a": True, "b": True, "c": False}, "eve": {"a": False}}


def test_trust_can_be_withdrawn_at_either_place() -> None:
    for text in ("trust_declared: false", "defaults: {trust_declared: false}"):
        assert load(text).policy.defaults.trust_declared is False


# --- what is said when it is wrong ------------------------------------------------------------------------------------


def test_all_complaints_come_at_once_with_their_lines() -> None:
    text = """\
version: 2
rules:
  - name: pay
    tool: [pay]
    then: ask
    qourum: 2
    expires_in: 30
  - name: pay
    then: alow
    when: amount > 5
"""
    assert complaints(text) == [
        "line 1: version must be a whole number from 1 to 1, not 2",
        'line 4: unknown key "tool" in a rule; did you mean "tools"?',
        'line 6: unknown key "qourum" in a rule; did you mean "quorum"?',
        "line 7: expires_in is 30 without a unit; write 30s if seconds are meant",
        'line 8: the rule of line 3 is called "pay" too; names are unique',
        'line 9: then is "alow"; did you mean "allow"?',
        'line 10: when: The condition uses an unknown name "amount"; did you mean "args.amount"?'
        " It can see args, tool, effect, agent, user, teams, priority.",
    ]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('then: ask, quorum: "2"', 'quorum must be a whole number from 1 to 100, not the text "2"'),
        ("then: ask, quorum: true", "quorum must be a whole number from 1 to 100, not true"),
        ("then: ask, quorum: 0", "quorum must be a whole number"),
        ("then: ask, quorum: 1.5", "quorum must be a whole number"),
        ("then: ask, approvers: {users: [ann]}, quorum: 2", "quorum is 2, but only 1 may decide"),
        ("then: ask, approvers: {}", "approvers names nobody"),
        ("then: ask, approvers: [ann]", "approvers must be a mapping of keys to values, not a list"),
        ("then: ask, approvers: {user: ann}", 'unknown key "user" in approvers; did you mean "users"?'),
        ("then: ask, stages: [{quorum: 1}], quorum: 2", "quorum goes into each of the stages"),
        ("then: ask, stages: []", "stages is an empty list"),
        ("then: allow, approvers: {teams: [a]}", "approvers goes with then: ask, and this rule says then: allow"),
        ("then: deny, expires_in: 5m", "expires_in goes with then: ask"),
        ("then: ask, tools: []", "tools is an empty list"),
        ("then: ask, tools: [12]", "tools must be a text, not 12"),
        ("then: ask, tools: [true]", "tools must be a text, not true"),
        ("then: ask, tools: ''", "tools is empty"),
        ("then: ask, tools: null", "tools is empty; give it a value or remove the key"),
        ("then: ask, effect: delete", 'unknown effect "delete"; it is one of destructive, read, write'),
        ("then: ask, when: true", "when must be a text, not true"),
        ("then: ask, exclude: [me]", 'unknown exclusion "me"'),
        ("then: ask, decisions: [approved]", 'unknown decision "approved"; did you mean "approve"?'),
        ("then: ask, priority: urgent", 'priority is "urgent"; it is one of high, low, medium'),
        ("then: ask, expires_in: 0s", "expires_in is 0s; it must be at least 1ms"),
        ("then: ask, expires_in: {chat: soon}", 'chat: "soon" is not a duration'),
        ("then: ask, expires_in: {chats: 1m}", 'unknown key "chats" in expires_in; did you mean "chat"?'),
        ("then: ask, expires_in: 9999d", "too long"),
        ("then: ask, on_expiry: escalate", "on_expiry: escalate needs escalate steps in the rule or the defaults"),
        (
            "then: ask, escalate: [{after: 25h, channels: [x]}]",
            "escalate after 25h never happens: the request expires after 1d",
        ),
        ("then: ask, escalate: [{after: 1m}]", "an escalate step reaches nobody"),
        ("then: ask, escalate: [{channels: [x]}]", "an escalate step needs after"),
        ("then: ask, remind: [25h]", "remind after 25h never happens"),
        ("then: ask, mode: dry", 'mode is "dry"; it is one of enforce, shadow'),
        ("tools: [x]", "a rule needs then: allow, deny or ask"),
    ],
)
def test_a_wrong_rule_is_refused(rule: str, words: str) -> None:
    found = complaints(policy_text(rule))
    assert len(found) == 1
    assert found[0].startswith("line 3: ")
    assert words in found[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: [{then: ask}]", "line 1: a rule needs a name"),
        ("rules: [null]", "a rule must be a mapping of keys to values, not nothing"),
        ("rules: {name: x}", "rules must be a list, not a mapping"),
        ("[]", "a policy must be a mapping of keys to values, not a list"),
        ("defaults: {on_expiry: approve}", "only a rule may say on_expiry: approve, never the defaults"),
        ("defaults: {on_expiry: escalate}\nrules: [{name: a, then: ask}]", "needs escalate steps in the defaults"),
        ("defaults: {unknown_tools: allow}", 'unknown_tools is "allow"; it is one of ask, deny'),
        ("defaults: {trust_declared: True}", "trust_declared must be true or false"),
        ("trust_declared: 0", "trust_declared must be true or false, not 0"),
        ("agents: {bob: {tool_approvals: {pay: yes}}}", 'pay must be true or false, not the text "yes"'),
        ("agents: {bob: {tool_approval: {}}}", 'did you mean "tool_approvals"?'),
        ("rules: []\nrules: []", 'line 2: the key "rules" appears twice'),
        ("a: &x [1]\nb: *x", "line 2: aliases are not accepted; write out what *x stands for"),
        ("rules: !!python/object:os.system []", "tags (!…) are not accepted"),
        ("version: !!int 1", "tags (!…) are not accepted"),
        ("version: 1\n---\nversion: 1", "line 2: a second document begins here"),
        ("rules:\n\t- x", "line 2: this is not YAML"),
        ("rules: [", "this is not YAML"),
        ("? [a]\n: b", "a key is a plain text"),
        ("rules: " + "[" * 100 + "]" * 100, "the nesting is deeper than 64 levels"),
        ("- " * 100_000, "the nesting is deeper than 64 levels"),
        ("# " + "x" * (5 * 1024 * 1024), "at most 5 MiB"),
        ("version: \x00", "this is not YAML"),
        ("version: \ud800", "half a surrogate pair"),
    ],
)
def test_a_wrong_file_is_refused(text: str, words: str) -> None:
    assert words in "\n".join(complaints(text))


def test_a_flood_of_complaints_is_cut() -> None:
    found = complaints(policy_text(*["then: maybe"] * 80))
    assert len(found) == 51
    assert found[-1] == "… and 30 more"


def test_unknown_names_are_refused_where_the_names_are_known() -> None:  # R30
    names = KnownNames(frozenset({"finance"}), frozenset({"slack"}), None, frozenset({"ann"}))
    rule = (
        "then: ask, users: [an, '*@x.example'], teams: [finanse], approvers: {users: [ana], teams: [finances]},"
        " escalate: [{after: 1m, to: {teams: [legal]}, channels: [slak]}]"
    )
    assert sorted(complaints(policy_text(rule), names)) == [
        'line 3: unknown channel "slak"; did you mean "slack"?',
        'line 3: unknown team "finances"; did you mean "finance"?',
        'line 3: unknown team "finanse"; did you mean "finance"?',
        'line 3: unknown team "legal"; it is one of finance',
        'line 3: unknown user "an"; did you mean "ann"?',
        'line 3: unknown user "ana"; did you mean "ann"?',
    ]
    assert load(policy_text(rule)).policy.rules  # nothing is known, so nothing is checked


def test_a_rule_says_where_it_is_told() -> None:  # R26
    assert policy("then: ask, channels: [slack, '#finance-ops']").rules[0].ask.channels == ("slack", "#finance-ops")
    assert complaints(policy_text("then: deny, channels: slack")) == [
        "line 3: channels goes with then: ask, and this rule says then: deny"
    ]


def test_places_need_a_channel_that_has_some() -> None:  # R26
    rule = "then: ask, channels: '#finance-ops', escalate: [{after: 1m, channels: [pager, '#ops']}]"
    names = KnownNames(channels=frozenset({"pager"}))
    assert load(policy_text(rule), names).policy.rules
    assert complaints(policy_text(rule), replace(names, has_destinations=False)) == [
        'line 3: "#finance-ops" is a place, and no channel has places',
        'line 3: "#ops" is a place, and no channel has places',
    ]
    assert complaints(policy_text("then: ask, channels: 5"), names) == complaints(policy_text("then: ask, channels: 5"))


def test_reminders_of_the_configuration_hold_where_the_policy_says_nothing() -> None:  # R28
    def reminds(rule: str, more: str = "") -> tuple[int, ...]:
        loaded = load_policy(policy_text(rule, more=more), compile_condition, reminders=(60_000,))
        return loaded.policy.rules[0].ask.remind

    assert reminds("then: ask") == (60_000,)
    assert reminds("then: ask", "defaults: {remind: 2m}") == (120_000,)
    assert reminds("then: ask, remind: [3m]", "defaults: {remind: 2m}") == (180_000,)
    assert reminds("then: ask, remind: []") == ()
    assert reminds("then: ask, expires_in: 30s") == (60_000,)  # and never happens, which is no mistake of the policy
    assert load_policy("version: 1", compile_condition, reminders=(60_000,)).policy.default_ask.remind == (60_000,)


def test_escalation_counts_for_the_quorum() -> None:
    rule = "then: ask, approvers: {users: [ann]}, quorum: 2, escalate: [{after: 1m, to: {users: [bob]}}]"
    assert policy(rule).rules[0].ask.stages[0].quorum == 2


# --- what is only worth a warning -------------------------------------------------------------------------------------


def test_a_pattern_that_matches_no_registered_tool_is_a_warning() -> None:
    names = KnownNames(tools=frozenset({"cms_delete_page"}))
    text = policy_text("tools: [cms_*, pay, drop_*], then: deny", more="agents: {bob: {tool_approvals: {fly: true}}}")
    assert load(text, names).warnings == (
        'line 1: tool_approvals: no registered tool is called "fly"',
        'line 3: no registered tool matches "drop_*"',
        'line 3: no registered tool matches "pay"',
    )


def test_a_set_of_letters_is_no_wildcard_and_warned_of() -> None:
    names = KnownNames(tools=frozenset({"pay[eu]", "drop_a"}))
    result = load(policy_text("tools: [drop_?, 'pay[eu]'], agents: ['bot[12]'], users: ['[ab]*'], then: deny"), names)
    warned = "stands for itself: only * and ? are wildcards. Write a pattern for each letter"
    assert result.warnings == (f'line 3: "[ab]*" {warned}', f'line 3: "bot[12]" {warned}')


@pytest.mark.parametrize(
    ("first", "second", "unreachable"),
    [
        ("then: allow", "tools: [pay], then: deny", True),
        ("tools: [pay, send], then: allow", "tools: [send], effect: write, then: deny", True),
        ("effect: read, then: allow", "effect: read, then: deny", True),
        ("agents: [bob], then: deny", "agents: [bob], then: allow", True),
        ("agents: [bob], then: allow", "agents: [bob], then: deny", False),  # the first needs all of the path
        ("tools: [pay], then: allow, mode: shadow", "tools: [pay], then: deny", False),
        ("tools: [pay], then: allow", "tools: [pay], then: deny, mode: shadow", False),
        ("tools: [pay], when: args.x > 1, then: allow", "tools: [pay], then: deny", False),
        ("tools: [pay], effect: read, then: allow", "tools: [pay], then: deny", False),
        ("tools: [pay], then: allow", "tools: [pay, send], then: deny", False),
    ],
)
def test_a_rule_that_is_never_reached_is_a_warning(first: str, second: str, unreachable: bool) -> None:
    warnings = load(policy_text(first, second)).warnings
    expected = 'line 4: the rule "rule 2" is never reached: "rule 1" before it takes all it could match'
    assert warnings == ((expected,) if unreachable else ())


def test_a_step_that_comes_too_late_for_some_is_a_warning() -> None:
    loaded = load(policy_text("then: ask, remind: 11m"))
    assert loaded.warnings == ("line 3: remind after 11m never happens in chat, where requests expire earlier",)


# --- why -------------------------------------------------------------------------------------------------------------


def test_an_explanation_names_every_rule_up_to_the_one_that_decides() -> None:
    text = policy_text(
        "tools: [drop_*], then: deny",
        "effect: read, then: allow",
        "tools: [pay], when: args.amount > 100, then: deny",
        "when: args.currency == 'EUR', then: allow",
        "when: args.amount, then: allow",
        "then: deny, mode: shadow",
        "when: args.note == '', then: ask",
        "then: deny",
    )
    loaded = load(text)
    explanation = explain(loaded.policy, call(args={"amount": 5}), ToolSpec("pay", "write"), loaded.rule_lines)
    assert explanation.rule == "rule 7"
    false, true = "which counts as false for allow", "which counts as true for ask and deny"
    assert explanation.lines() == [
        'line 3: "rule 1" (deny): no, its tools do not include pay',
        'line 4: "rule 2" (allow): no, its effect is not write',
        'line 5: "rule 3" (deny): no, its condition is false',
        f"line 6: \"rule 4\" (allow): no, its condition failed (there is no 'currency'), {false}",
        f'line 7: "rule 5" (allow): no, its condition gave int instead of true or false, {false}',
        'line 8: "rule 6" (deny, shadow): yes, it matches and has no condition',
        f"line 9: \"rule 7\" (ask): yes, its condition failed (there is no 'note'), {true}",
        'by the rule "rule 7": asked',
    ]


@pytest.mark.parametrize(
    ("text", "effect", "why"),
    [
        ("", "read", "no rule matched; by the default for read tools: allowed"),
        ("", "", "no rule matched; by the default for unknown tools: asked"),
        (
            "defaults: {unknown_tools: deny}",
            "",
            "no rule matched; by the default for unknown tools: denied: pay is not a known tool.",
        ),
        (
            "agents: {bob: {tool_approvals: {pay: false}}}",
            "write",
            "no rule matched; by the agent's tool_approvals: allowed",
        ),
        (
            "agents: {bob: {tool_approvals: {pay: true}}}\nrules: [{name: a, then: allow}]",
            "read",
            'by the rule "a": asked, because the agent\'s tool_approvals say so',
        ),
    ],
)
def test_an_explanation_says_who_decided_when_no_rule_did(text: str, effect: str, why: str) -> None:
    explanation = explain(load(text).policy, call(agent="bob"), ToolSpec("pay", effect))
    assert explanation.conclusion.startswith(why)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("agents: [eve], then: deny", "its agents do not include bob"),
        ("users: [ann], then: deny", "its users do not include nobody"),
        ("teams: [legal], then: deny", "its teams do not include a person without a team"),
        ("priorities: [low], then: deny", "its priorities do not include a call without a priority"),
    ],
)
def test_an_explanation_names_the_matcher_that_did_not_fit(rule: str, why: str) -> None:
    explanation = explain(policy(rule), call(agent="bob"), ToolSpec("pay", "write"))
    assert [step.why for step in explanation.steps] == [why]


def test_an_explanation_knows_a_person_by_their_address_as_the_rules_do() -> None:
    draft = policy("users: [ann@example.com], then: deny")
    explanation = explain(draft, call(requester="ann", aliases=("ann@example.com",)), ToolSpec("pay", "write"))
    assert [step.holds for step in explanation.steps] == [True]
    assert (explanation.verdict.kind, explanation.rule) == ("deny", explanation.steps[0].rule)


# --- for any input ----------------------------------------------------------------------------------------------------


def test_ten_thousand_rules_load() -> None:  # R15; within a second on a quiet machine
    rules = [f"tools: [tool_{n}], when: 'args.amount > {n}.0 || args.to == \"{n}\"', then: ask" for n in range(10_000)]
    assert len(policy(*rules).rules) == 10_000


@given(st.integers(0, MAX_DURATION))
def test_a_shown_duration_is_read_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "1.5h", "5M", "1h30m", "\u0665m", "5m\n", "9" * 50 + "s"])
def test_what_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_duration(text)


KEYS = ("name", "then", "tools", "when", "quorum", "approvers", "users", "teams", "rules", "defaults", "expires_in")
MORE_KEYS = ("chat", "escalate", "after", "to", "remind", "stages", "agents", "tool_approvals", "on_expiry", "version")
SIGNS = ("1", "0", "true", "null", "5m", "ask", "deny", "args.x>1", '"*"', *"&*!-[]{}:,|>?#'", "\n", " ", ": ", "  ")
WORDS = st.sampled_from((*KEYS, *MORE_KEYS, *SIGNS))


@example(["version", ": ", "1", "\n", "rules", ": ", "[]"])
@given(st.lists(st.one_of(WORDS, st.text(max_size=3))))
def test_any_text_is_a_policy_or_misconfigured(words: list[str]) -> None:
    assert load_or_complaints("".join(words)) in (LoadedPolicy, Misconfigured)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=20,
)


# Rules that load or nearly do: arbitrary structures almost never do.
CLOSE_RULES = st.fixed_dictionaries(
    {"then": st.sampled_from(["ask", "allow", "deny"])},
    optional={
        "tools": st.lists(st.sampled_from(["pay", "get_*", "*"]), min_size=1, max_size=2),
        "when": st.sampled_from(["args.x > 1", "args.x >"]),
        "quorum": st.integers(0, 3),
        "expires_in": st.sampled_from(["5m", "1d", "5"]),
        "approvers": st.fixed_dictionaries({}, optional={"users": st.just(["ann"]), "teams": st.just(["finance"])}),
        "on_expiry": st.sampled_from(["reject", "approve", "no"]),
    },
)


@example({"version": 1}, [{"then": "ask", "tools": ["pay"]}])
@given(
    st.just({"version": 1}) | st.dictionaries(WORDS, VALUES),
    st.lists(CLOSE_RULES | st.dictionaries(WORDS, VALUES), max_size=3),
)
def test_any_structure_is_a_policy_or_misconfigured(top: dict[str, object], rules: list[object]) -> None:
    found = load_or_complaints(json.dumps({**top, "rules": rules}))
    event(found.__name__)
    assert found in (LoadedPolicy, Misconfigured)


def load_or_complaints(text: str) -> type:
    try:
        return type(load(text))
    except Misconfigured as error:
        return type(error)
