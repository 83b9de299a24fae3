"""Policy rehearsal: a draft applied to recorded calls, with the changes by tool and rule."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import ToolSpec, propose
from interlock.core.ledger.chain import Entry, Head, make_entry
from interlock.core.ledger.event import Event
from interlock.core.policy.analysis import (
    RecordedCall,
    Rehearsal,
    RehearsalReport,
    RuleUsage,
    RuleUsageCounter,
    ShadowReport,
    ShadowRuleCounter,
    ShadowRuleUsage,
    VerdictChangeCause,
    judge_recorded,
    rehearse,
)
from interlock.core.policy.policy import Ask, Defaults, People, Policy, Rule, Stage, VerdictKind
from tests.unit.builders import FINANCE, LEGAL

KINDS: tuple[VerdictKind, ...] = ("allow", "deny", "ask")
PAY = ToolSpec("pay", "write")
QUESTION = ToolSpec("request_human_input", "read", decisions=("respond",))
ANYBODY = None


def recorded_call(number: int = 1, tool: str = "pay", verdict: VerdictKind = "ask", **more: Any) -> RecordedCall:
    spec = more.pop("spec", ToolSpec(tool, "write"))
    call = propose(tool, {"amount": number}, "run", f"call{number}", **more)
    return RecordedCall(call=call, spec=spec, verdict=verdict, rule="", at=number * 1_000, approval_id=f"id{number}")


def rule(name: str, then: VerdictKind, ask: Ask = Ask(), **more: Any) -> Rule:  # noqa: B008  frozen
    return Rule(name, then, ask=ask, **more)


def amount_above(limit: int) -> Any:
    return lambda facts: facts["args"]["amount"] > limit


def policy_with_verdict(then: VerdictKind, **terms: Any) -> Policy:
    return Policy((rule(f"all {then}", then, Ask(**terms)),))


# --- counting


# R52
@pytest.mark.parametrize("old", KINDS)
@pytest.mark.parametrize("new", KINDS)
def test_every_call_is_counted_by_its_verdict_now_and_by_the_draft(old: VerdictKind, new: VerdictKind) -> None:
    report = rehearse([recorded_call(1), recorded_call(2)], policy_with_verdict(old), policy_with_verdict(new))
    assert (report.calls, report.first, report.last) == (2, 1_000, 2_000)
    assert report.verdict_counts == {(old, new): 2}
    assert report.changed_verdicts == (2 if old != new else 0)
    assert [changed.verdict_pair for changed in report.changed] == ([(old, new)] * 2 if old != new else [])


def test_without_calls_there_is_nothing_to_report() -> None:
    assert rehearse([], policy_with_verdict("ask"), policy_with_verdict("deny")) == RehearsalReport()


# R52
def test_a_change_says_by_which_rule_and_the_gravest_comes_first() -> None:
    old = Policy((rule("pay asks", "ask", tools=("pay",)),))
    draft = Policy(
        (
            rule("small passes", "allow", tools=("pay",), when=lambda f: f["args"]["amount"] <= 1),
            rule("no mail", "deny", tools=("mail",)),
            rule("no post", "deny", tools=("post",)),
            rule("two", "ask", Ask(stages=(Stage(None, 2),)), tools=("pay",)),
        )
    )
    tools = ["pay", "mail", "post", "post", "pay", "pay", "pay"]
    report = rehearse([recorded_call(n, tool) for n, tool in enumerate(tools, 1)], old, draft)
    assert list(report.causes.items()) == [
        (VerdictChangeCause("ask", "allow", "pay asks", "small passes", loosened=True), 1),
        (VerdictChangeCause("ask", "deny", "", "no post", loosened=False), 2),
        (VerdictChangeCause("ask", "deny", "", "no mail", loosened=False), 1),
        (VerdictChangeCause("ask", "ask", "pay asks", "two", loosened=False), 3),
    ]
    assert report.verdict_counts == {("ask", "allow"): 1, ("ask", "deny"): 3, ("ask", "ask"): 3}
    assert (report.changed_verdicts, report.other_terms, report.loosened) == (4, 3, 1)


# R52
def test_calls_that_were_judged_otherwise_when_they_were_made_are_counted() -> None:
    calls = [recorded_call(1, verdict="ask"), recorded_call(2, verdict="allow"), recorded_call(3, verdict="deny")]
    assert rehearse(calls, policy_with_verdict("ask"), policy_with_verdict("ask")).outdated == 2


# --- what is loosened


# R52
@pytest.mark.parametrize(
    ("old", "new", "loosened"),
    [
        (policy_with_verdict("ask"), policy_with_verdict("allow"), True),
        (policy_with_verdict("deny"), policy_with_verdict("allow"), True),
        (policy_with_verdict("deny"), policy_with_verdict("ask"), False),
        (policy_with_verdict("allow"), policy_with_verdict("allow"), False),
        (policy_with_verdict("allow"), policy_with_verdict("deny"), False),
        (policy_with_verdict("ask"), policy_with_verdict("ask", on_expiry="approve"), True),
        (policy_with_verdict("deny"), policy_with_verdict("ask", on_expiry="approve"), True),
        (policy_with_verdict("ask", on_expiry="approve"), policy_with_verdict("allow"), True),
        (policy_with_verdict("ask", on_expiry="approve"), policy_with_verdict("ask"), False),
        (policy_with_verdict("allow"), policy_with_verdict("ask", on_expiry="approve"), False),
    ],
)
def test_what_could_run_without_the_people_who_are_asked_now_is_loosened(
    old: Policy, new: Policy, loosened: bool
) -> None:
    report = rehearse([recorded_call()], old, new)
    assert report.loosened == int(loosened)
    assert [changed.loosened for changed in report.changed] == ([loosened] if report.changed else [])


# --- terms


# R52
@pytest.mark.parametrize(
    "terms",
    [
        {"stages": (Stage(FINANCE),)},
        {"stages": (Stage(None, 2),)},
        {"exclude": frozenset({"requester"})},
        {"decisions": ("approve", "reject")},
        {"on_expiry": "approve"},
        {"undo_window": 1},
    ],
)
def test_the_same_question_on_other_terms_is_a_change(terms: dict[str, Any]) -> None:
    report = rehearse([recorded_call()], policy_with_verdict("ask"), policy_with_verdict("ask", **terms))
    assert (report.changed_verdicts, report.other_terms, len(report.changed)) == (0, 1, 1)


def test_a_rule_that_only_got_another_name_changes_nothing() -> None:
    report = rehearse([recorded_call()], Policy((rule("a", "ask"),)), Policy((rule("b", "ask"),)))
    assert (report.changed_verdicts, report.other_terms, report.changed) == (0, 0, ())


# R52
def test_who_would_have_to_answer_is_counted_for_each_group() -> None:
    two_then_legal = policy_with_verdict("ask", stages=(Stage(FINANCE, 2), Stage(LEGAL)))
    report = rehearse([recorded_call(1), recorded_call(2)], policy_with_verdict("ask"), two_then_legal)
    assert report.answers_needed == {ANYBODY: (2, 0), FINANCE: (0, 4), LEGAL: (0, 2)}
    assert rehearse([recorded_call()], policy_with_verdict("allow"), policy_with_verdict("deny")).answers_needed == {}
    assert rehearse([recorded_call()], two_then_legal, two_then_legal).answers_needed == {
        FINANCE: (2, 2),
        LEGAL: (1, 1),
    }


# R37
def test_a_question_to_people_stays_one_where_reads_are_allowed() -> None:
    asked = recorded_call(spec=QUESTION, tool=QUESTION.name)
    policy = policy_with_verdict("allow")
    assert judge_recorded(policy, asked) == policy.default_ask
    assert judge_recorded(policy_with_verdict("deny"), asked).kind == "deny"
    assert judge_recorded(policy_with_verdict("ask"), asked).kind == "ask"
    assert rehearse([asked], Policy(), policy_with_verdict("allow")).loosened == 0
    for spec in (replace(QUESTION, effect="write"), replace(QUESTION, decisions=("respond", "approve"))):
        assert judge_recorded(policy, replace(asked, spec=spec)).kind == "allow"


# --- what a verdict depends on


# R9, R52
def test_a_rehearsal_looks_at_all_that_a_verdict_depends_on() -> None:
    call = {"agent_path": ("boss", "helper"), "requester": "rita", "teams": ("ops",), "priority": "high"}
    by_all = rule(
        "narrow",
        "deny",
        agents=("helper",),
        users=("rita",),
        teams=frozenset({"ops"}),
        priorities=frozenset({"high"}),
        effects=frozenset({"write"}),
        when=amount_above(0),
    )
    assert rehearse([recorded_call(**call)], Policy(), Policy((by_all,))).verdict_counts == {("ask", "deny"): 1}
    switched = Policy(policy_with_verdict("allow").rules, toggles={"boss": {"pay": True}})
    assert rehearse([recorded_call(**call)], policy_with_verdict("allow"), switched).verdict_counts == {
        ("allow", "ask"): 1
    }
    claimed = recorded_call(spec=ToolSpec("pay", "read", declared=True))
    wary = Policy(defaults=Defaults(trust_declared=False, unknown_tools="deny"))
    assert rehearse([claimed], Policy(), wary).verdict_counts == {("allow", "deny"): 1}


# --- what is kept


# R52
def test_the_gravest_changes_are_kept_then_the_newest() -> None:
    old = Policy((rule("keep", "deny", tools=("mail",)), rule("ask", "ask")))
    new = Policy(
        (
            rule("mail passes", "allow", tools=("mail",)),
            rule("stop", "deny", when=amount_above(6)),
            rule("two", "ask", Ask(stages=(Stage(None, 2),))),
        )
    )
    calls = [recorded_call(n, "mail" if n in (1, 2) else "pay") for n in range(1, 10)]
    every = rehearse(calls, old, new)
    assert [changed.recorded.at // 1_000 for changed in every.changed] == [2, 1, 9, 8, 7, 6, 5, 4, 3]
    assert every.changed[0].loosened
    for keep in range(10):
        assert rehearse(calls, old, new, keep).changed == every.changed[:keep]
        assert rehearse(calls, old, new, keep).causes == every.causes


# R52
def test_a_hundred_changes_are_kept_and_all_are_counted() -> None:
    report = rehearse(map(recorded_call, range(1, 131)), policy_with_verdict("ask"), policy_with_verdict("deny"))
    assert (len(report.changed), report.changed_verdicts) == (100, 130)


# R52
@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 7), st.integers(0, 5))
def test_pages_make_no_difference(numbers: list[int], size: int, keep: int) -> None:
    old, new = Policy((rule("a", "ask", when=amount_above(10)),)), Policy((rule("b", "deny", when=amount_above(20)),))
    calls = [recorded_call(number) for number in numbers]
    paged = Rehearsal(old, new, keep)
    for start in range(0, len(calls), size):
        paged.feed(calls[start : start + size])
    assert paged.report() == rehearse(calls, old, new, keep)


# --- what shadow rules noted


def entries(*events: Event, head: Head | None = None) -> Iterator[Entry]:
    head = head or Head("default")
    for event in events:
        entry = make_entry(event, head, (head.seq + 1) * 1_000, b"salt")
        yield entry
        head = Head("default", entry.seq, entry.link, entry.at)


def event(kind: str, *shadows: tuple[str, str], **data: object) -> Event:
    notes = {"shadow": [{"rule": name, "then": then} for name, then in shadows]} if shadows else {}
    return Event(kind, "agent", data, "id", {"run_id": "run", **notes})


def shadows(*events: Event, since: int = 0) -> ShadowReport:
    shadowing = ShadowRuleCounter(since)
    shadowing.feed(entries(*events))
    return shadowing.report()


# R52
def test_each_shadow_rule_is_told_with_the_verdicts_that_it_would_have_changed() -> None:
    found = shadows(
        event("proposed", ("strict", "deny"), ("loose", "allow")),
        event("allowed", ("strict", "deny"), by="rule"),
        event("denied", ("strict", "deny")),
        event("allowed", ("strict", "deny"), by="grant"),
        event("proposed"),
        event("denied", ("loose", "allow"), by="preview"),
    )
    assert found.calls == 6
    assert found.rules == (
        ShadowRuleUsage("strict", 4, {("ask", "deny"): 2, ("allow", "deny"): 1, ("deny", "deny"): 1}, 1_000, 4_000),
        ShadowRuleUsage("loose", 2, {("ask", "allow"): 2}, 1_000, 6_000),
    )


def test_only_the_beginning_of_a_call_counts() -> None:
    found = shadows(event("approved", ("strict", "deny")), event("voted"), event("denied", ("strict", "deny")))
    assert (found.calls, [shadow.calls for shadow in found.rules]) == (1, [1])


def test_the_word_may_stand_in_the_arguments_of_a_denied_call() -> None:
    odd = Event("denied", "agent", {}, "", {"args": {"shadow": [{"rule": "x", "then": "deny"}]}})
    assert shadows(odd) == ShadowReport(1, 0, ())


def test_erased_notes_are_counted() -> None:
    shadowing = ShadowRuleCounter()
    shadowing.feed(entry._replace(content=None, salt=None) for entry in entries(event("denied", ("strict", "deny"))))
    assert shadowing.report() == ShadowReport(1, 1, ())


def test_what_is_older_does_not_count() -> None:
    some = [event("proposed", ("strict", "deny")) for _ in range(3)]
    found = shadows(*some, since=2_000)
    assert (found.calls, found.rules[0].calls, found.rules[0].first) == (2, 2, 2_000)


def test_rules_that_noted_as_often_come_by_name() -> None:
    found = shadows(event("proposed", ("b", "deny"), ("a", "deny")))
    assert [shadow.rule for shadow in found.rules] == ["a", "b"]


def test_a_group_of_people_is_told_apart_from_another() -> None:
    users = People(frozenset({"ann"}))
    old, new = policy_with_verdict("ask", stages=(Stage(FINANCE),)), policy_with_verdict("ask", stages=(Stage(users),))
    assert rehearse([recorded_call()], old, new).answers_needed == {FINANCE: (1, 0), users: (0, 1)}


# --- how often rules decided


# R52
def test_each_rule_is_told_with_the_calls_that_it_decided() -> None:
    matching = RuleUsageCounter(since=2_000)
    matching.feed(
        entries(
            event("proposed", rule="too old"),
            event("proposed", rule="payments ask"),
            event("allowed", rule="payments ask", by="grant"),
            event("allowed", rule="small", by="rule"),
            event("voted", rule="none of its own"),
            event("denied", rule="payments ask"),
            event("proposed", rule=""),
        )
    )
    found = matching.report()
    assert found == (
        RuleUsage("payments ask", {"ask": 2, "deny": 1}, 6_000),
        RuleUsage("", {"ask": 1}, 7_000),
        RuleUsage("small", {"allow": 1}, 4_000),
    )
    assert [matched.calls for matched in found] == [3, 1, 1]
