"""Votes: who may decide, for whom a vote counts, and when a quorum is reached."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.core.approval.approval import Approval, TimerProgress, decide, delegate
from interlock.core.approval.vote import (
    Delegation,
    effective_voter,
    has_open_vote,
    open_stage,
    stricter_terms,
    stricter_verdict,
    total_quorum,
)
from interlock.core.decision import KINDS, Reviewer
from interlock.core.errors import Forbidden
from interlock.core.policy.policy import Allow, Ask, Deny, EscalationStep, People, Stage, Verdict
from tests.hypothesis_profiles import examples
from tests.unit.builders import (
    ADMIN,
    AGENT,
    ALICE,
    BOB,
    CAROL,
    DAVE,
    FINANCE,
    LEGAL,
    TWO_OF_FINANCE,
    VIEWER,
    approve,
    ask_verdicts,
    at,
    pending,
    users,
)

RITA = Reviewer("rita", "user")  # the requester, who is no reviewer
TWO_STAGES = Ask("finance, then legal", (Stage(FINANCE, 2), Stage(LEGAL)))


def vote(approval: Approval, *reviewers: Reviewer) -> Approval:
    for reviewer in reviewers:
        change = decide(approval, approve(approval), reviewer, at())
        assert change.error is None, change.error
        approval = change.state
    return approval


def away_user(person: Reviewer, to: People) -> Delegation:
    return Delegation(person.name, person.teams, person.role, to)


def votes_by_stage(approval: Approval) -> list[tuple[str, str, int]]:
    return [(vote.by, vote.on_behalf_of, vote.stage) for vote in approval.votes]


# --- who may decide


# R48
@pytest.mark.parametrize(
    ("reviewer", "may"),
    [(DAVE, True), (ADMIN, True), (RITA, True), (replace(RITA, name="ulf"), False), (VIEWER, False), (AGENT, False)],
)
def test_without_approvers_the_requester_and_every_reviewer_may_decide(reviewer: Reviewer, may: bool) -> None:
    approval = pending()
    assert has_open_vote(approval, reviewer) is may
    assert effective_voter(approval, reviewer, 0) == (reviewer.name if may else None)


# R48
@pytest.mark.parametrize("role", ["viewer", "agent"])
def test_viewers_and_agents_never_decide_whatever_they_are_called(role: str) -> None:
    terms = Ask(stages=(Stage(People(frozenset({"rita", "vic"}), frozenset({"finance"}))),))
    for approval in (pending(), pending(terms)):
        for name in ("rita", "vic"):
            assert effective_voter(approval, Reviewer(name, role, teams=frozenset({"finance"})), 0) is None


# R48
@pytest.mark.parametrize(
    ("reviewer", "may"), [(ALICE, True), (DAVE, True), (CAROL, False), (ADMIN, False), (RITA, False)]
)
def test_a_rule_with_approvers_sends_the_call_to_them_alone(reviewer: Reviewer, may: bool) -> None:
    approval = pending(Ask(stages=(Stage(People(frozenset({"dave"}), frozenset({"finance"}))),)))
    assert has_open_vote(approval, reviewer) is may


# R48
def test_the_requester_can_be_excluded() -> None:
    approval = pending(Ask(exclude=frozenset({"requester"})), requester="alice")
    assert effective_voter(approval, ALICE, 0) is None
    assert effective_voter(approval, BOB, 0) == "bob"
    assert effective_voter(pending(requester="alice"), ALICE, 0) == "alice"


# R48
def test_editors_can_be_excluded() -> None:
    edited = replace(pending(Ask(exclude=frozenset({"editor"}))), editors=("alice",))
    assert effective_voter(edited, ALICE, 0) is None
    assert effective_voter(edited, BOB, 0) == "bob"
    assert effective_voter(replace(edited, terms=Ask()), ALICE, 0) == "alice"


# R28, R48
def test_an_escalation_adds_people_from_its_time_on() -> None:
    escalation_steps = (EscalationStep(10, LEGAL), EscalationStep(20, users("dave")))
    waiting = pending(Ask(stages=(Stage(FINANCE),), escalation_steps=escalation_steps))
    may = [
        [
            effective_voter(replace(waiting, timers=waiting.timers._replace(escalated=n)), reviewer, 0) is not None
            for reviewer in (ALICE, CAROL, DAVE)
        ]
        for n in range(3)
    ]
    assert may == [[True, False, False], [True, True, False], [True, True, True]]


# --- how many


# R48
def test_a_quorum_needs_different_people() -> None:
    once = vote(pending(TWO_OF_FINANCE), ALICE)
    assert (once.status, total_quorum(once)) == ("pending", 2)
    assert vote(once, BOB).status == "approved"


# R24, R48
def test_the_same_person_twice_changes_nothing_not_even_through_another_channel() -> None:
    once = vote(pending(TWO_OF_FINANCE), ALICE)
    again = decide(once, approve(once), replace(ALICE, via="slack"), at(1_000_001))
    assert (again.state, again.events, again.error) == (once, (), None)
    assert again.state is once


# R48
def test_stages_come_one_after_the_other() -> None:
    waiting = pending(TWO_STAGES)
    assert (open_stage(waiting), total_quorum(waiting)) == (0, 3)
    early = decide(waiting, approve(waiting), CAROL, at())
    assert isinstance(early.error, Forbidden)
    assert "Another stage" in early.error.message
    second = vote(waiting, ALICE, BOB)
    assert (open_stage(second), second.status) == (1, "pending")
    done = vote(second, CAROL)
    assert (done.status, open_stage(done)) == ("approved", 2)
    assert votes_by_stage(done) == [("alice", "alice", 0), ("bob", "bob", 0), ("carol", "carol", 1)]


# R48
def test_people_of_a_stage_that_is_full_have_nothing_left_to_decide() -> None:
    second = vote(pending(TWO_STAGES), ALICE, BOB)
    assert not has_open_vote(second, ALICE)
    assert has_open_vote(second, CAROL)
    assert has_open_vote(pending(TWO_STAGES), CAROL), "a later stage may end it early"


# R48
def test_one_person_cannot_fill_two_stages() -> None:
    both = Reviewer("eve", "reviewer", teams=frozenset({"finance", "legal"}))
    once = vote(pending(Ask(stages=(Stage(FINANCE), Stage(LEGAL)))), both)
    assert decide(once, approve(once), both, at()).state is once
    assert vote(once, CAROL).status == "approved"


# --- delegation


def delegate_to(approval: Approval, by: Reviewer, to: People) -> Approval:
    return delegate(approval, to, by, at()).state


# R40
def test_a_delegate_votes_in_the_delegators_seat() -> None:
    waiting = delegate_to(pending(TWO_OF_FINANCE), ALICE, users("dave"))
    once = vote(waiting, DAVE)
    assert votes_by_stage(once) == [("dave", "alice", 0)]
    assert decide(once, approve(once), ALICE, at()).state is once, "the seat has voted"
    assert vote(once, BOB).status == "approved"


# R40, R48
def test_a_delegate_fills_one_seat_however_many_delegate() -> None:
    waiting = delegate_to(delegate_to(pending(TWO_OF_FINANCE), ALICE, users("dave")), BOB, users("dave"))
    once = vote(waiting, DAVE)
    assert decide(once, approve(once), DAVE, at()).state is once
    assert once.status == "pending"


# R40, R48
def test_a_delegate_who_comes_after_the_delegator_changes_nothing() -> None:
    once = vote(delegate_to(pending(TWO_OF_FINANCE), ALICE, users("dave")), ALICE)
    assert decide(once, approve(once), DAVE, at()).state is once


# R40, R48
def test_a_delegation_gives_nobody_a_second_vote_in_a_later_stage() -> None:
    once = vote(delegate_to(pending(Ask(stages=(Stage(FINANCE), Stage(LEGAL)))), CAROL, users("alice")), ALICE)
    assert effective_voter(once, ALICE, 1) == "carol"
    assert decide(once, approve(once), ALICE, at()).state is once
    assert vote(once, CAROL).status == "approved"


# R40, R48
def test_who_has_a_seat_keeps_it_and_takes_no_second_one() -> None:
    once = vote(delegate_to(pending(TWO_OF_FINANCE), ALICE, users("bob")), BOB)
    assert votes_by_stage(once) == [("bob", "bob", 0)]
    assert decide(once, approve(once), BOB, at()).state is once
    assert vote(once, ALICE).status == "approved"


# R40
def test_a_team_can_be_delegated_to() -> None:
    assert effective_voter(delegate_to(pending(TWO_OF_FINANCE), ALICE, LEGAL), CAROL, 0) == "alice"


# R40, R48
def test_a_delegate_who_is_excluded_has_no_seat() -> None:
    terms = replace(TWO_OF_FINANCE, exclude=frozenset({"requester"}))
    waiting = delegate_to(pending(terms, requester="dave"), ALICE, users("dave", "carol"))
    assert effective_voter(waiting, DAVE, 0) is None
    assert effective_voter(waiting, CAROL, 0) == "alice"


# R40, R48
def test_a_delegation_ends_where_its_maker_is_excluded() -> None:
    terms = replace(TWO_OF_FINANCE, exclude=frozenset({"editor"}))
    waiting = delegate_to(pending(terms), ALICE, users("dave"))
    assert effective_voter(waiting, DAVE, 0) == "alice"
    assert effective_voter(replace(waiting, editors=("alice",)), DAVE, 0) is None


# R40, R48
@pytest.mark.parametrize("reviewer", [VIEWER, AGENT])
def test_a_delegation_makes_no_decider_of_a_viewer_or_an_agent(reviewer: Reviewer) -> None:
    waiting = delegate_to(pending(TWO_OF_FINANCE), ALICE, People(frozenset({"vic", "robot"}), frozenset({"finance"})))
    assert effective_voter(waiting, reviewer, 0) is None
    assert not has_open_vote(waiting, reviewer)


# R40, R48
@pytest.mark.parametrize("role", ["viewer", "agent"])
def test_who_may_not_decide_has_nothing_to_delegate(role: str) -> None:
    passed = Delegation("alice", frozenset({"finance"}), role, users("dave"))
    assert effective_voter(replace(pending(TWO_OF_FINANCE), delegations=(passed,)), DAVE, 0) is None


# R40, R48
def test_a_delegate_of_several_people_takes_a_seat_that_is_free() -> None:
    waiting = delegate_to(delegate_to(pending(TWO_OF_FINANCE), ALICE, users("dave")), BOB, users("dave"))
    assert [effective_voter(vote(waiting, *first), DAVE, 0) for first in ((), (ALICE,), (BOB,))] == [
        "alice",
        "bob",
        "alice",
    ]


# R40
def test_a_stand_in_votes_in_the_seat_of_somebody_who_is_away() -> None:
    waiting, stand_in = pending(TWO_OF_FINANCE), replace(DAVE, delegations_to_me=(away_user(ALICE, users("dave")),))
    assert effective_voter(waiting, DAVE, 0) is None
    change = decide(waiting, approve(waiting), stand_in, at())
    assert votes_by_stage(change.state) == [("dave", "alice", 0)]
    assert (change.events[0].content or {})["seat"] == "alice"


# R40, R48
def test_a_stand_in_for_two_has_one_vote() -> None:
    both = replace(DAVE, delegations_to_me=(away_user(ALICE, users("dave")), away_user(BOB, users("dave"))))
    once = vote(pending(TWO_OF_FINANCE), both)
    again = decide(once, approve(once), both, at())
    assert (again.state, again.events) == (once, ())
    own = replace(ALICE, delegations_to_me=(away_user(BOB, users("alice")),))
    assert votes_by_stage(vote(pending(TWO_OF_FINANCE), own, own)) == [("alice", "alice", 0)]


# R40, R48
@pytest.mark.parametrize(
    ("exclude", "requester", "editors"),
    [("requester", "alice", ()), ("requester", "dave", ()), ("editor", "", ("alice",)), ("editor", "", ("dave",))],
)
def test_a_stand_in_takes_no_seat_that_is_excluded(exclude: str, requester: str, editors: tuple[str, ...]) -> None:
    waiting = pending(replace(TWO_OF_FINANCE, exclude=frozenset({exclude})), requester=requester)
    waiting = replace(waiting, editors=editors)
    assert effective_voter(waiting, replace(DAVE, delegations_to_me=(away_user(ALICE, users("dave")),)), 0) is None


# R40, R48
def test_nobody_stands_in_who_was_not_named_or_may_not_decide() -> None:
    waiting, covered = pending(TWO_OF_FINANCE), (away_user(ALICE, users("dave", "vic")),)
    assert effective_voter(waiting, replace(CAROL, delegations_to_me=covered), 0) is None
    assert effective_voter(waiting, replace(VIEWER, delegations_to_me=covered), 0) is None
    assert effective_voter(waiting, replace(DAVE, delegations_to_me=(away_user(CAROL, users("dave")),)), 0) is None


# R40
def test_a_delegation_gives_no_more_than_its_maker_has() -> None:
    waiting = delegate_to(pending(TWO_STAGES), ALICE, users("dave"))
    assert effective_voter(waiting, DAVE, 0) == "alice"
    assert effective_voter(waiting, DAVE, 1) is None
    assert effective_voter(waiting, Reviewer("ulf", "reviewer"), 0) is None


# --- the stricter of two terms


TEAMS = {
    "alice": {"finance"},
    "bob": {"finance", "legal"},
    "carol": {"legal"},
    "dave": {"ops"},
    "rita": {"finance", "ops"},
    "sam": set[str](),
    "tim": {"finance", "legal", "ops"},
}
MANY_VOTERS = tuple(Reviewer(name, "reviewer", teams=frozenset(teams)) for name, teams in TEAMS.items())


def is_fulfilled(terms: Ask, votes: list[tuple[str, int]], escalated: int) -> bool:
    """Whether these people, each in one stage at most, would have been enough under these terms."""
    model = replace(pending(terms), timers=TimerProgress(escalated=escalated))
    seats = [
        [by for by, _ in votes if effective_voter(model, person(by), number)] for number in range(len(terms.stages))
    ]
    return can_assign(seats, [stage.quorum for stage in terms.stages])


def person(name: str) -> Reviewer:
    return next(each for each in MANY_VOTERS if each.name == name)


def can_assign(seats: list[list[str]], wanted: list[int]) -> bool:
    """A matching of people to places, each person once."""
    places = [stage for stage, number in enumerate(wanted) for _ in range(number)]
    taken: dict[str, int] = {}

    def place(number: int, tried: set[str]) -> bool:
        for name in seats[places[number]]:
            if name not in tried:
                tried.add(name)
                if name not in taken or place(taken[name], tried):
                    taken[name] = number
                    return True
        return False

    return all(place(number, set()) for number in range(len(places)))


def escalations_until(terms: Ask, elapsed: int) -> int:
    return sum(escalation_step.after <= elapsed for escalation_step in terms.escalation_steps)


# R48, R50
@examples(400)
@given(ask_verdicts, ask_verdicts, st.permutations(MANY_VOTERS), st.integers(0, 10))
def test_what_satisfies_the_stricter_terms_satisfies_both(
    old: Ask, new: Ask, crowd: list[Reviewer], elapsed: int
) -> None:
    both = stricter_terms(old, new)
    approval = replace(
        pending(replace(both, decisions=KINDS)), timers=TimerProgress(escalated=escalations_until(both, elapsed))
    )
    for reviewer in crowd:
        if approval.status == "pending":
            approval = decide(approval, approve(approval), reviewer, at()).state
    assume(approval.status == "approved")
    votes = [(vote.by, vote.stage) for vote in approval.votes]
    for terms in (old, new):
        assert is_fulfilled(terms, votes, escalations_until(terms, elapsed)), terms


# R50
@given(ask_verdicts, ask_verdicts)
def test_the_stricter_terms_loosen_nothing(old: Ask, new: Ask) -> None:
    for both in (stricter_terms(old, new), stricter_terms(new, old)):
        assert both.exclude == old.exclude | new.exclude
        assert set(both.decisions) == set(old.decisions) & set(new.decisions)
        assert both.start_within == min(old.start_within, new.start_within)
        assert both.undo_window == max(old.undo_window, new.undo_window)
        assert both.priority in (old.priority, new.priority)
        assert "high" not in {old.priority, new.priority} or both.priority == "high"
        assert both.on_expiry != "approve" or old.on_expiry == new.on_expiry == "approve"
        assert total_quorum(pending(both)) >= max(total_quorum(pending(old)), total_quorum(pending(new)))
    assert (stricter_terms(old, new).expires_in, stricter_terms(old, new).remind) == (old.expires_in, old.remind)


# R50
@given(ask_verdicts, ask_verdicts)
def test_the_stricter_terms_are_the_same_the_other_way_round_but_for_the_order_of_stages(old: Ask, new: Ask) -> None:
    there, back = stricter_terms(old, new), stricter_terms(new, old)
    assert Counter(there.stages) == Counter(back.stages) or equivalent(old, new)
    assert set(there.decisions) == set(back.decisions)
    assert there.exclude == back.exclude


def equivalent(old: Ask, new: Ask) -> bool:
    """Each fulfils the other by the letter, as two spellings of the same people do."""
    return stricter_terms(old, new).stages == old.stages and stricter_terms(new, old).stages == new.stages


# R50
@given(ask_verdicts)
def test_terms_are_as_strict_as_themselves(terms: Ask) -> None:
    assert stricter_terms(terms, terms) == terms


# R50
@pytest.mark.parametrize(
    ("old", "new", "expected", "rule"),
    [
        (Stage(), Stage(FINANCE), (Stage(FINANCE),), "new"),
        (Stage(FINANCE), Stage(), (Stage(FINANCE),), "old"),
        (Stage(FINANCE, 1), Stage(FINANCE, 2), (Stage(FINANCE, 2),), "new"),
        (Stage(FINANCE), Stage(LEGAL), (Stage(FINANCE), Stage(LEGAL)), "new"),
        (Stage(users("a", "b")), Stage(users("a")), (Stage(users("a")),), "new"),
        (Stage(None, 2), Stage(FINANCE, 1), (Stage(None, 2), Stage(FINANCE, 1)), "new"),
    ],
)
def test_stages_that_imply_the_others_replace_them_and_others_are_added(
    old: Stage, new: Stage, expected: tuple[Stage, ...], rule: str
) -> None:
    both = stricter_terms(Ask("old", (old,)), Ask("new", (new,)))
    assert (both.stages, both.rule) == (expected, rule)


# R28, R50
def test_a_ladder_that_only_one_side_has_lets_nobody_in() -> None:
    escalation_steps = (EscalationStep(10, LEGAL, ("pager",)), EscalationStep(20, users("dave")))
    old = Ask("old", (Stage(FINANCE),), escalation_steps=escalation_steps)
    both = stricter_terms(old, Ask("new", (Stage(FINANCE, 2),), escalation_steps=escalation_steps[1:]))
    assert both.escalation_steps == (EscalationStep(10, People(), ("pager",)), escalation_steps[1]), (
        "it still reminds, at the same times"
    )
    climbed_up = replace(pending(both), timers=TimerProgress(escalated=2))
    assert effective_voter(climbed_up, CAROL, 0) is None
    assert effective_voter(climbed_up, DAVE, 0) == "dave"


# --- the stricter of two verdicts

verdicts = st.one_of(
    ask_verdicts,
    st.builds(Allow, st.just("allow"), st.integers(1, 3)),
    st.builds(Deny, st.just("No."), st.sampled_from(("one", "other"))),
)
STRICTNESS = ("allow", "ask", "deny")


# R5, R50
@given(verdicts, verdicts)
def test_the_stricter_verdict_denies_before_it_asks_and_asks_before_it_allows(one: Verdict, other: Verdict) -> None:
    strictest = max(one.kind, other.kind, key=STRICTNESS.index)
    assert stricter_verdict(one, other).kind == stricter_verdict(other, one).kind == strictest


# R50
@given(ask_verdicts, ask_verdicts)
def test_two_asks_become_terms_that_loosen_neither_and_can_be_rejected(one: Ask, other: Ask) -> None:
    both = stricter_verdict(one, other)
    assert isinstance(both, Ask)
    joined = stricter_terms(one, other)
    assert (both.stages, both.exclude, both.escalation_steps) == (
        joined.stages,
        joined.exclude,
        joined.escalation_steps,
    )
    assert set(both.decisions) - {"reject"} == set(joined.decisions) - {"reject"}
    assert "reject" in both.decisions or both.decisions == ("respond",)
    assert both.on_expiry != "approve" or one.on_expiry == other.on_expiry == "approve"
    window = max if both.on_expiry == "approve" else min
    assert both.expires_in == window(one.expires_in, other.expires_in)


# R50
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("approve",), KINDS, ("approve", "reject")),
        (("approve",), ("respond",), ("reject",)),
        (("respond",), ("respond",), ("respond",)),
        (("respond",), KINDS, ("respond",)),
        (("edit", "approve"), ("edit", "approve"), ("approve", "edit", "reject")),
    ],
)
def test_nobody_loses_the_right_to_reject_by_what_the_other_side_says(
    one: tuple[str, ...], other: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    both = stricter_verdict(Ask(decisions=one), Ask(decisions=other))
    assert isinstance(both, Ask)
    assert both.decisions == expected


@pytest.mark.parametrize("ask_first", [True, False])
def test_an_ask_beside_an_allow_stands_and_can_be_rejected(*, ask_first: bool) -> None:
    ask, allow = Ask("two people", (Stage(FINANCE, 2),), decisions=("approve",)), Allow("reads")
    both = stricter_verdict(ask, allow) if ask_first else stricter_verdict(allow, ask)
    assert both == replace(ask, decisions=("approve", "reject"))


# R50
def test_the_shorter_deadline_holds_with_its_reminders_and_both_sides_are_told() -> None:
    day = Ask("day", expires_in=86_400_000, remind=(43_200_000,), channels=("mail", "slack"))
    hour = Ask("hour", expires_in=3_600_000, remind=(1_800_000,), channels=("slack", "pager"))
    both = stricter_verdict(day, hour)
    assert isinstance(both, Ask)
    assert (both.expires_in, both.remind) == (3_600_000, (1_800_000,))
    assert both.channels == ("mail", "slack", "pager")


# R50
def test_where_silence_approves_on_both_sides_the_longer_deadline_holds() -> None:
    soon, late = Ask(on_expiry="approve", expires_in=0), Ask(on_expiry="approve", expires_in=1_800_000)
    for both in (stricter_verdict(soon, late), stricter_verdict(late, soon)):
        assert isinstance(both, Ask)
        assert (both.on_expiry, both.expires_in) == ("approve", 1_800_000)
    one_sided = stricter_verdict(soon, replace(late, on_expiry="reject"))
    assert isinstance(one_sided, Ask)
    assert (one_sided.on_expiry, one_sided.expires_in) == ("reject", 0)


def test_two_allows_are_one_that_is_started_within_the_shorter_time() -> None:
    assert stricter_verdict(Allow("one", 2), Allow("other", 1)) == Allow("one", 1)
    assert stricter_verdict(Allow("one", 1), Allow("other", 2)) == Allow("one", 1)


def test_the_first_of_two_denials_is_the_one_that_is_told() -> None:
    assert stricter_verdict(Deny("First."), Deny("Second.")) == Deny("First.")


# R50
@given(ask_verdicts)
def test_a_verdict_joined_with_itself_stays_as_it_is_but_for_reject(terms: Ask) -> None:
    both = stricter_verdict(terms, terms)
    assert isinstance(both, Ask)
    assert both is terms or both == replace(terms, decisions=both.decisions)


def test_the_crowd_is_large_enough_to_fulfil_some_terms() -> None:
    reached = [
        is_fulfilled(Ask(stages=(Stage(one, n), Stage(other))), [(each.name, 0) for each in MANY_VOTERS], 0)
        for one, other, n in product((None, FINANCE), (LEGAL, None), (1, 3))
    ]
    assert all(reached)


def test_stages_that_are_there_already_are_not_added_again() -> None:
    finance, legal = Stage(FINANCE, 2), Stage(LEGAL)
    both = stricter_terms(Ask(stages=(finance,)), Ask(stages=(legal,)))
    assert both.stages == (finance, legal)
    assert stricter_terms(both, Ask(stages=(legal,))).stages == (finance, legal)
    assert stricter_terms(both, Ask(stages=(legal, legal))).stages == (finance, legal, legal)
