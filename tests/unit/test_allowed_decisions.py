"""The decisions that one person could make now."""

from __future__ import annotations

from dataclasses import replace

from interlock.core.approval.approval import ALREADY_VOTED, Findings, decide, decision_blockers, needs_reviewer
from interlock.core.policy.policy import Ask, Stage
from tests.unit.builders import ALICE, BOB, CAROL, FINANCE, LEGAL, NOW, TWO_OF_FINANCE, VIEWER, approve, at, pending


# R11, R48
def test_an_approver_may_make_every_decision_that_the_rule_allows() -> None:
    every = decision_blockers(pending(TWO_OF_FINANCE), ALICE, NOW)
    assert every == dict.fromkeys(("approve", "edit", "respond", "reject"), "")
    found = decision_blockers(pending(Ask(decisions=("approve", "reject"))), ALICE, NOW)
    assert [kind for kind, hindrance in found.items() if not hindrance] == ["approve", "reject"]
    for kind in ("edit", "respond"):
        assert "allowed: approve, reject" in found[kind]


# R48
def test_others_get_the_names_of_the_approvers() -> None:
    for person in (CAROL, VIEWER):
        found = decision_blockers(pending(TWO_OF_FINANCE), person, NOW)
        assert all("It needs team finance" in hindrance for hindrance in found.values())


# R48
def test_who_sits_in_a_later_stage_may_end_it_and_not_approve_yet() -> None:
    found = decision_blockers(pending(Ask("two stages", (Stage(FINANCE), Stage(LEGAL)))), CAROL, NOW)
    assert [kind for kind, hindrance in found.items() if not hindrance] == ["respond", "reject"]


# R48
def test_a_voter_learns_that_the_vote_counted() -> None:
    voted = decide(pending(TWO_OF_FINANCE), approve(pending(TWO_OF_FINANCE)), ALICE, at()).state
    assert decision_blockers(voted, ALICE, NOW)["approve"] == ALREADY_VOTED
    assert decision_blockers(voted, ALICE, NOW)["reject"] == ""
    assert decision_blockers(voted, BOB, NOW)["approve"] == ""


# R53
def test_findings_block_no_decision_once_acknowledged() -> None:
    alarming = replace(pending(), findings=Findings(alarms=("bidi:/to",)))
    assert set(decision_blockers(alarming, ALICE, NOW).values()) == {""}


# R5
def test_after_the_deadline_or_the_decision_nothing_can_be_decided() -> None:
    late = decision_blockers(pending(), ALICE, pending().deadlines.expires_at)
    assert all("expired" in hindrance for hindrance in late.values())
    decided = decide(pending(), approve(pending()), ALICE, at()).state
    assert all("Already decided" in hindrance for hindrance in decision_blockers(decided, BOB, NOW).values())


# R36
def test_what_waits_for_somebody_is_what_needs_their_answer_now() -> None:
    assert needs_reviewer(pending(TWO_OF_FINANCE), ALICE, NOW)
    assert not needs_reviewer(pending(TWO_OF_FINANCE), CAROL, NOW)
    assert not needs_reviewer(pending(TWO_OF_FINANCE), VIEWER, NOW)
    assert needs_reviewer(pending(Ask(decisions=("respond",))), ALICE, NOW)
    stages = pending(Ask("two stages", (Stage(FINANCE), Stage(LEGAL))))
    assert (needs_reviewer(stages, ALICE, NOW), needs_reviewer(stages, CAROL, NOW)) == (True, False)


# R36
def test_what_one_has_voted_on_or_others_decided_waits_for_one_no_longer() -> None:
    voted = decide(pending(TWO_OF_FINANCE), approve(pending(TWO_OF_FINANCE)), ALICE, at()).state
    assert (needs_reviewer(voted, ALICE, NOW), needs_reviewer(voted, BOB, NOW)) == (False, True)
    decided = decide(pending(), approve(pending()), ALICE, at()).state
    assert not needs_reviewer(decided, BOB, NOW)
