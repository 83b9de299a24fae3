"""Policy diff: the differences of two policies in the words of the policy file."""

import random

import pytest

from interlock.core.policy.policy import Policy
from interlock.policy.conditions import compile_condition
from interlock.policy.diff import FieldDifference, PolicyDifference, RuleDifference, diff_policies
from interlock.policy.file import load_policy
from interlock.policy.templates import TEMPLATE_NAMES, read_template


def policy(text: str) -> Policy:
    return load_policy(text, compile_condition).policy


def policy_with_rules(*lines: str) -> Policy:
    return policy("rules:\n" + "".join(f"  - {{{line}}}\n" for line in lines) if lines else "")


def rules_named(*names: str) -> Policy:
    """Rules that differ in more than their names."""
    return policy_with_rules(*(f"name: {name}, tools: [tool_{name}], then: ask" for name in names))


def changes(difference: PolicyDifference) -> list[tuple[str, str]]:
    return [(each.kind, each.rule) for each in difference.rules]


# R52
def test_a_policy_does_not_differ_from_itself() -> None:
    for name in TEMPLATE_NAMES:
        assert not diff_policies(policy(read_template(name)), policy(read_template(name)))


# R52
def test_comments_and_layout_are_no_difference() -> None:
    assert not diff_policies(
        policy("rules: [{name: a, then: ask}]"), policy("# a\nrules:\n  - then: ask\n    name: a\n")
    )


# R52
def test_rules_are_added_and_removed_in_their_places() -> None:
    found = diff_policies(rules_named("a", "b", "c"), rules_named("a", "x", "c"))
    assert changes(found) == [("removed", "b"), ("added", "x")]
    assert [(each.old_place, each.new_place) for each in found.rules] == [(2, None), (None, 2)]
    assert found.rules[1].changes == (FieldDifference("then", "", "ask"), FieldDifference("tools", "", "tool_x"))
    assert found.rules[0].changes == (FieldDifference("then", "ask", ""), FieldDifference("tools", "tool_b", ""))


# R52
def test_a_changed_rule_says_what_changed_in_it() -> None:
    old = policy_with_rules("name: pay, tools: [pay], when: args.amount > 5, then: ask")
    new = policy_with_rules(
        "name: pay, tools: [pay, refund], then: ask, quorum: 2, approvers: {teams: [finance]}, mode: shadow"
    )
    (found,) = diff_policies(old, new).rules
    assert (found.kind, found.old_place, found.new_place, found.moved) == ("changed", 1, 1, False)
    assert {each.key: (each.old, each.new) for each in found.changes} == {
        "tools": ("pay", "pay, refund"),
        "when": ("args.amount > 5", ""),
        "approvers": ("", "2 of team finance"),
        "mode": ("", "shadow"),
    }


# R52
@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("effect: [write, read], then: ask", "effect", "read, write"),
        ("agents: [a, b], then: ask", "agents", "a, b"),
        ("users: [ann], then: ask", "users", "ann"),
        ("teams: [ops], then: ask", "teams", "ops"),
        ("priorities: [low], then: ask", "priorities", "low"),
        ("then: ask, reason: why", "reason", "why"),
        ("then: ask, quorum: 2", "approvers", "2 of anybody who may decide"),
        (
            "then: ask, stages: [{approvers: {users: [ann], teams: [ops]}}, {quorum: 2}]",
            "approvers",
            "1 of ann or team ops, then 2 of anybody who may decide",
        ),
        ("then: ask, exclude: [requester, editor]", "exclude", "editor, requester"),
        ("then: ask, decisions: [approve, reject]", "decisions", "approve, reject"),
        ("then: ask, priority: high", "priority", "high"),
        ("then: ask, expires_in: 7m", "expires_in", "7m"),
        ("then: ask, expires_in: {chat: 1m, queue: 2m}", "expires_in", "chat 1m, queue 2m"),
        ("then: ask, on_expiry: approve", "on_expiry", "approve"),
        ("then: ask, remind: [10s, 20s]", "remind", "10s, 20s"),
        ("then: ask, undo_window: 1s", "undo_window", "1s"),
        ("then: ask, start_within: 5m", "start_within", "5m"),
        (
            "then: ask, escalate: [{after: 1m, to: {teams: [leads]}, channels: [pager]}]",
            "escalate",
            "after 1m to team leads by pager",
        ),
        ("then: ask, escalate: [{after: 1m, channels: [pager]}]", "escalate", "after 1m to nobody new by pager"),
        ("then: ask, escalate: [{after: 1m, to: {users: [ann]}}]", "escalate", "after 1m to ann"),
    ],
)
def test_every_key_of_a_rule_is_told(line: str, key: str, value: str) -> None:
    (found,) = diff_policies(policy_with_rules("name: a, then: ask"), policy_with_rules(f"name: a, {line}")).rules
    assert found.changes == (FieldDifference(key, "", value),)


# R52
@pytest.mark.parametrize(
    ("new", "moved"),
    [
        ("abcd", ""),
        ("bacd", "b"),
        ("bcda", "a"),
        ("dabc", "d"),
        ("acbd", "c"),
        ("dcba", "dcb"),
    ],
)
def test_the_fewest_moves_are_told(new: str, moved: str) -> None:
    found = diff_policies(rules_named(*"abcd"), rules_named(*new))
    assert changes(found) == [("moved", name) for name in moved]


def test_moves_and_the_rest_explain_the_new_order() -> None:
    chance = random.Random(7)
    for _ in range(50):
        old = "".join(chance.sample("abcdef", 4))
        new = "".join(chance.sample("abcdef", 4))
        found = diff_policies(rules_named(*old), rules_named(*new)).rules
        touched = {each.rule for each in found}
        assert [name for name in old if name not in touched] == [name for name in new if name not in touched]
        assert {each.rule for each in found if each.kind == "added"} == set(new) - set(old)
        assert {each.rule for each in found if each.kind == "removed"} == set(old) - set(new)


def test_a_rule_that_moved_and_changed_is_told_once() -> None:
    old = policy_with_rules("name: a, then: ask", "name: b, tools: [x], then: ask")
    new = policy_with_rules("name: b, tools: [y], then: ask", "name: a, then: ask")
    (found,) = diff_policies(old, new).rules
    assert (found.kind, found.rule, found.moved, found.old_place, found.new_place) == ("changed", "b", True, 2, 1)


def test_a_rule_with_another_name_and_nothing_else_is_renamed() -> None:
    old = policy_with_rules("name: old name, tools: [x], then: deny")
    (found,) = diff_policies(old, policy_with_rules("name: new name, tools: [x], then: deny")).rules
    assert found == RuleDifference(
        rule="new name", old_place=1, new_place=1, changes=(), moved=False, old_name="old name"
    )
    assert found.kind == "renamed"
    assert changes(diff_policies(old, policy_with_rules("name: new name, tools: [y], then: deny"))) == [
        ("removed", "old name"),
        ("added", "new name"),
    ]


# R52
def test_a_changed_default_is_told_once_and_not_in_every_rule() -> None:
    old = policy("defaults: {undo_window: 8s}\nrules: [{name: a, then: ask}, {name: b, then: ask}]")
    new = policy(
        "defaults: {undo_window: 9s, unknown_tools: deny, expires_in: 7m, remind: 1m, trust_declared: false}\n"
        "rules: [{name: a, then: ask}, {name: b, then: ask}]"
    )
    found = diff_policies(old, new)
    assert found.rules == ()
    assert found.defaults == (
        FieldDifference("unknown_tools", "ask", "deny"),
        FieldDifference("expires_in", "chat 10m, paused 1d, queue 1d", "7m"),
        FieldDifference("undo_window", "8s", "9s"),
        FieldDifference("remind", "half of the time", "1m"),
        FieldDifference("trust_declared", "true", "false"),
    )


def test_switches_of_agents_are_told() -> None:
    old = policy("agents: {helper: {tool_approvals: {pay: true, mail: false}}}")
    found = diff_policies(old, policy("agents: {helper: {tool_approvals: {mail: true}}}"))
    assert found.agents == (FieldDifference("helper.mail", "false", "true"), FieldDifference("helper.pay", "true", ""))
    assert bool(found)
