"""A standing permission: scoped, expiring, revocable, and never more than its maker's own yes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, Forbidden, InvalidRequest
from interlock.core.grant import MAX_TERM, Grant, covers, make, revoke, usable, use
from interlock.core.policy import Ask, Condition, Facts, People, Stage
from tests.unit.builders import (
    ADMIN,
    AGENT,
    ALICE,
    BOB,
    FINANCE,
    LEGAL,
    NOW,
    PAY,
    VIEWER,
    at,
    behind,
    call,
    users,
)

DAY = 24 * 3_600_000
DRAFT = Grant("g1", "default", "pay", PAY.sha256, "", frozenset(), "", 0, NOW + DAY)
GRANT = make(DRAFT, ALICE, at()).state


def never(source: str) -> Condition:
    raise AssertionError(f"{source} was compiled for nothing")


def covered(grant: Grant = GRANT, terms: Ask = Ask(), now: int = NOW, **more: Any) -> bool:  # noqa: B008  frozen
    spec = more.pop("spec", PAY)
    return covers(grant, call(**more), spec, terms, more.pop("compiled", never), now)


def when(condition: Condition, **more: Any) -> bool:
    def compiled(source: str) -> Condition:
        assert source == "args.amount < 10"
        return condition

    return covers(replace(GRANT, when="args.amount < 10"), call(**more), PAY, Ask(), compiled, NOW)


# --- making


# R51
def test_a_grant_is_its_makers() -> None:
    change = make(
        replace(DRAFT, created_by="eve", role="admin", uses=-99, revoked_at=5, max_uses=3), ALICE, at(NOW + 1)
    )
    grant = change.state
    assert (grant.created_by, grant.role, grant.teams) == ("alice", "reviewer", frozenset({"finance"}))
    assert (grant.created_at, grant.uses, grant.revoked_at) == (NOW + 1, 0, None)
    (event,) = change.events
    assert (event.kind, event.actor, event.approval_id) == ("granted", "alice", "")
    assert event.data == {"grant": "g1", "tool": "pay", "expires_at": NOW + DAY, "max_uses": 3}
    assert event.content == {"agent": "*", "when": "", "reason": "", "via": "web"}


# R51
@pytest.mark.parametrize("maker", [VIEWER, AGENT, Reviewer("rita", "user")])
def test_only_reviewers_and_admins_make_grants(maker: Reviewer) -> None:
    assert make(DRAFT, ADMIN, at()).state.created_by == "root"
    with pytest.raises(Forbidden):
        make(DRAFT, maker, at())


# R51
def test_a_grant_ends_in_the_future_and_within_a_year() -> None:
    assert make(replace(DRAFT, expires_at=NOW + 1), ALICE, at()).state.expires_at == NOW + 1
    assert make(replace(DRAFT, expires_at=NOW + MAX_TERM), ALICE, at()).state.expires_at == NOW + MAX_TERM
    assert MAX_TERM == 366 * DAY
    for end in (NOW, NOW - 1, NOW + MAX_TERM + 1):
        with pytest.raises(InvalidRequest, match="within a year"):
            make(replace(DRAFT, expires_at=end), ALICE, at())


# R51
def test_a_grant_is_good_for_at_least_one_use() -> None:
    assert make(replace(DRAFT, max_uses=1), ALICE, at()).state.max_uses == 1
    for uses in (0, -1):
        with pytest.raises(InvalidRequest, match="at least one use"):
            make(replace(DRAFT, max_uses=uses), ALICE, at())


# --- revoking and using


# R51
def test_a_grant_can_be_revoked_by_its_maker_or_an_admin() -> None:
    change = revoke(GRANT, ALICE, at(NOW + 5))
    assert change.state.revoked_at == NOW + 5
    (event,) = change.events
    assert (event.kind, event.actor, event.data, event.content) == (
        "grant_revoked",
        "alice",
        {"grant": "g1"},
        {"via": "web"},
    )
    assert revoke(GRANT, ADMIN, at()).state.revoked_at == NOW
    with pytest.raises(Forbidden, match="alice made this grant"):
        revoke(GRANT, BOB, at())


# R24, R51
def test_a_second_revocation_changes_nothing() -> None:
    gone = revoke(GRANT, ALICE, at()).state
    again = revoke(gone, ALICE, at(NOW + 9))
    assert (again.state, again.events) == (gone, ())


# R51
def test_a_grant_is_usable_within_its_time_and_uses() -> None:
    assert usable(GRANT, NOW + DAY - 1)
    assert not usable(GRANT, NOW + DAY)
    assert not usable(replace(GRANT, revoked_at=NOW), NOW)
    assert usable(replace(GRANT, max_uses=2, uses=1), NOW)
    assert not usable(replace(GRANT, max_uses=2, uses=2), NOW)
    assert usable(replace(GRANT, uses=10**6), NOW), "without a limit there is none"


# R51
def test_uses_are_counted_and_the_last_one_is_the_last() -> None:
    last = use(replace(GRANT, max_uses=1), at())
    assert last.uses == 1
    for grant, moment in ((last, at()), (GRANT, at(NOW + DAY)), (GRANT, behind())):
        with pytest.raises(Conflict, match="used up, expired or revoked") as caught:
            use(grant, moment)
        assert caught.value.ids == {"grant_id": "g1"}


# --- what it covers


# R20, R51
def test_a_grant_covers_its_own_tool_workspace_and_agents_only() -> None:
    assert covered()
    assert not covered(tool="refund")
    assert not covered(workspace="other")
    assert covered(replace(GRANT, agent="help*"))
    assert covered(replace(GRANT, agent="helper"))
    assert not covered(replace(GRANT, agent="helpe"))
    assert not covered(replace(GRANT, agent="Helper"))
    assert not covered(replace(GRANT, agent="helper"), agent="")


# R47, R51
def test_a_grant_ends_with_the_definition_that_the_person_agreed_to() -> None:
    assert not covered(spec=replace(PAY, describe="Pay {amount}"))
    assert not covered(spec=replace(PAY, effect="destructive"))


# R51
def test_a_grant_covers_nothing_when_it_is_over() -> None:
    assert not covered(now=NOW + DAY)
    assert not covered(replace(GRANT, revoked_at=NOW))
    assert not covered(replace(GRANT, max_uses=1, uses=1))


# R48, R51
@pytest.mark.parametrize("stages", [(Stage(None, 2),), (Stage(FINANCE, 2),), (Stage(), Stage()), ()])
def test_a_grant_never_fills_a_quorum(stages: tuple[Stage, ...]) -> None:
    assert not covered(terms=Ask(stages=stages))


# R48, R51
@pytest.mark.parametrize(
    ("approvers", "expected"),
    [(None, True), (FINANCE, True), (users("alice"), True), (LEGAL, False), (users("bob"), False), (People(), False)],
)
def test_a_grant_covers_only_what_its_maker_may_approve(approvers: People | None, expected: bool) -> None:
    assert covered(terms=Ask(stages=(Stage(approvers),))) is expected


# R48, R51
def test_a_maker_without_a_deciding_role_covers_nothing_where_reviewers_decide() -> None:
    assert not covered(replace(GRANT, role="viewer"))


# R48, R51
def test_a_grant_is_no_way_around_the_exclusion_of_the_requester() -> None:
    alone = Ask(exclude=frozenset({"requester"}))
    assert not covered(terms=alone, requester="alice")
    assert covered(terms=alone)
    assert covered(terms=Ask(), requester="alice")


# R11, R51
def test_where_approving_is_no_answer_a_grant_is_none() -> None:
    assert not covered(terms=Ask(decisions=("respond", "reject")))


# --- conditions


# R38, R51
def test_a_condition_limits_the_arguments() -> None:
    def small(facts: Facts) -> object:
        return facts["args"]["amount"] < 10

    assert when(small)
    assert not when(small, args={"amount": 10})
    assert not when(small, args={"to": "ann"}), "what cannot be looked at is not covered"


def raises(_: Facts) -> object:
    raise ValueError


# R51
@pytest.mark.parametrize("odd", [raises, lambda _: 1, lambda _: "true", lambda _: None, lambda _: [1], lambda: True])
def test_a_condition_in_doubt_covers_nothing(odd: Condition) -> None:
    assert not when(odd)


# R51
def test_a_condition_that_does_not_compile_covers_nothing() -> None:
    def broken(_: str) -> Condition:
        raise SyntaxError

    assert not covers(replace(GRANT, when="("), call(), PAY, Ask(), broken, NOW)


# R48, R51
@given(st.lists(st.builds(Stage, st.none() | st.just(FINANCE), st.integers(1, 4)), min_size=1, max_size=3).map(tuple))
def test_a_grant_is_one_persons_yes(stages: tuple[Stage, ...]) -> None:
    assert covered(terms=Ask(stages=stages)) == (sum(stage.quorum for stage in stages) == 1)
