"""Removal and demotion of a person: which votes, delegations and grants end."""

from dataclasses import replace

import pytest

from interlock.core.approval.approval import Approval, Discussion, decide, delegate
from interlock.core.approval.vote import Delegation
from interlock.core.decision import Reviewer
from interlock.core.grant import Grant
from interlock.core.policy.policy import Ask, People, Stage
from interlock.core.removal import UpdatedMember, keeps_grant, withdraw_participation, without_person
from tests.unit.builders import ALICE, BOB, CAROL, DAVE, FINANCE, LEGAL, TWO_OF_FINANCE, approve, at, pending, users

TEAM = frozenset({"finance"})
REMOVED = UpdatedMember("alice")
TWO_VOTERS = Ask("finance, then legal", (Stage(FINANCE, 2), Stage(LEGAL)))


def vote(approval: Approval, *reviewers: Reviewer) -> Approval:
    for reviewer in reviewers:
        approval = decide(approval, approve(approval), reviewer, at()).state
    return approval


def voters(approval: Approval | None) -> list[str]:
    assert approval is not None
    return [vote.by for vote in approval.votes]


def without_member(approval: Approval, who: UpdatedMember) -> Approval:
    change = withdraw_participation(approval, who, "root")
    return approval if change is None else change.state


def test_somebody_who_is_gone_leaves_no_vote_delegation_or_assignment() -> None:
    asked = replace(vote(pending(TWO_OF_FINANCE), ALICE), discussion=Discussion(claimed_by="alice"))
    change = withdraw_participation(asked, REMOVED, "root")
    assert change is not None
    assert (change.state.votes, change.state.discussion.claimed_by, change.state.version) == ((), "", asked.version + 1)
    (event,) = change.events
    assert (event.kind, event.actor, event.approval_id) == ("reviewer_removed", "root", asked.id)
    assert (event.data["user"], event.data["voters"], event.data["status"]) == ("alice", ["alice"], "pending")


def test_what_others_did_stays() -> None:
    asked = replace(vote(pending(TWO_OF_FINANCE), BOB), discussion=Discussion(claimed_by="bob"))
    assert withdraw_participation(asked, REMOVED, "root") is None


@pytest.mark.parametrize(
    ("who", "counts"),
    [
        (UpdatedMember("alice", "reviewer", TEAM), True),
        (UpdatedMember("alice", "admin", TEAM | {"ops"}), True),
        (UpdatedMember("alice", "reviewer", frozenset({"ops"})), False),
        (UpdatedMember("alice", "viewer", TEAM), False),
        (REMOVED, False),
    ],
)
def test_a_vote_counts_while_its_voter_may_still_cast_it(who: UpdatedMember, counts: bool) -> None:
    assert voters(without_member(vote(pending(TWO_OF_FINANCE), ALICE), who)) == (["alice"] if counts else [])


def test_a_requester_who_is_gone_has_no_vote_either() -> None:
    asked = vote(pending(Ask(stages=(Stage(quorum=2),))), Reviewer("rita", "user"))
    assert voters(asked) == ["rita"]
    assert voters(without_member(asked, UpdatedMember("rita"))) == []


def test_a_vote_in_the_seat_of_somebody_who_is_gone_is_void() -> None:
    passed = delegate(pending(TWO_OF_FINANCE), users("dave"), ALICE, at()).state
    asked = vote(passed, DAVE)
    assert [(vote.by, vote.on_behalf_of) for vote in asked.votes] == [("dave", "alice")]
    after = without_member(asked, REMOVED)
    assert (after.votes, after.delegations) == ((), ())
    kept = without_member(asked, UpdatedMember("alice", "reviewer", TEAM))
    assert kept is asked


def test_a_vote_that_somebody_cast_for_another_ends_with_their_role() -> None:
    asked = vote(delegate(pending(TWO_OF_FINANCE), users("dave"), ALICE, at()).state, DAVE)
    assert voters(without_member(asked, UpdatedMember("dave", "reviewer"))) == ["dave"]
    demoted = without_member(asked, UpdatedMember("dave", "viewer"))
    assert (voters(demoted), demoted.delegations) == ([], ())


@pytest.mark.parametrize(
    ("who", "holds"),
    [
        (UpdatedMember("alice", "admin", TEAM), True),
        (UpdatedMember("alice", "reviewer", TEAM), True),
        (UpdatedMember("alice", "viewer", TEAM), False),
        (UpdatedMember("alice", "reviewer", frozenset()), False),
        (REMOVED, False),
    ],
)
def test_a_delegation_holds_while_they_have_what_they_passed_on(who: UpdatedMember, holds: bool) -> None:
    asked = delegate(pending(TWO_OF_FINANCE), users("dave"), ALICE, at()).state
    assert bool(without_member(asked, who).delegations) is holds


def test_a_delegation_to_several_goes_on_without_the_one_who_left() -> None:
    to = People(frozenset({"bob", "dave"}), frozenset({"legal"}))
    asked = replace(pending(TWO_OF_FINANCE), delegations=(Delegation("alice", TEAM, "reviewer", to),))
    (only,) = without_member(asked, UpdatedMember("dave")).delegations
    assert only.to == People(frozenset({"bob"}), frozenset({"legal"}))
    assert without_member(asked, UpdatedMember("dave", "reviewer")) is asked


def test_votes_of_other_stages_stay() -> None:
    asked = vote(pending(TWO_VOTERS), ALICE, BOB)
    assert voters(vote(without_member(asked, UpdatedMember("bob")), CAROL)) == ["alice"], (
        "legal waits until finance has two again"
    )


@pytest.mark.parametrize(
    ("who", "lives"),
    [
        (UpdatedMember("alice", "reviewer", TEAM), True),
        (UpdatedMember("alice", "admin", TEAM | {"ops"}), True),
        (UpdatedMember("alice", "reviewer", frozenset()), False),
        (UpdatedMember("alice", "viewer", TEAM), False),
        (REMOVED, False),
    ],
)
def test_a_grant_lives_as_long_as_its_maker_may_do_what_they_might(who: UpdatedMember, lives: bool) -> None:
    grant = Grant(
        id="g",
        workspace="default",
        tool="pay",
        spec_sha256="spec",
        created_by="alice",
        teams=TEAM,
        role="reviewer",
        created_at=0,
        expires_at=1,
    )
    assert keeps_grant(grant, who) is lives


def test_an_admins_grant_ends_when_they_are_one_no_more() -> None:
    grant = Grant(
        id="g",
        workspace="default",
        tool="pay",
        spec_sha256="spec",
        created_by="root",
        teams=frozenset(),
        role="admin",
        created_at=0,
        expires_at=1,
    )
    assert not keeps_grant(grant, UpdatedMember("root", "reviewer"))


def test_people_without_somebody_are_the_others_or_nobody() -> None:
    assert without_person(None, "bob") is None
    assert without_person(users("bob"), "bob") is None
    assert without_person(users("bob", "eve"), "bob") == users("eve")
    assert without_person(People(frozenset({"bob"}), TEAM), "bob") == People(frozenset(), TEAM)
