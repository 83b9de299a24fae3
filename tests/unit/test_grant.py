"""Grants: scoped, expiring, revocable, and never wider than their maker's own approval."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.call import ToolSpec
from interlock.core.canonical import canonical
from interlock.core.decision import MAX_COMMENT, Reviewer
from interlock.core.errors import Conflict, Forbidden, InvalidRequest
from interlock.core.grant import (
    MAX_TERM,
    MAX_USES,
    Amounts,
    Grant,
    check_budget_argument,
    covers,
    covers_all,
    has_budget_for,
    is_usable,
    make,
    revoke,
    state_at,
    use,
)
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.core.ledger.expected_tables import scope_sha256
from interlock.core.policy.policy import Ask, Condition, Facts, People, Stage
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
    at_with_clock_behind,
    call,
    users,
)

DAY = 24 * 3_600_000
NOTHING = Amounts(b"{}")
DRAFT = Grant(
    id="g1",
    workspace="default",
    tool="pay",
    spec_sha256=PAY.sha256,
    created_by="",
    teams=frozenset(),
    role="",
    created_at=0,
    expires_at=NOW + DAY,
)
GRANT = make(DRAFT, ALICE, at()).state
BUDGET = make(replace(DRAFT, budget="10.50", budget_of="amount"), ALICE, at()).state


def never_compiled(source: str) -> Condition:
    raise AssertionError(f"{source} was compiled for nothing")


def is_covered(grant: Grant = GRANT, terms: Ask = Ask(), now: int = NOW, **more: Any) -> bool:  # noqa: B008  frozen
    spec = more.pop("spec", PAY)
    return covers(grant, call(**more), spec, terms, more.pop("compiled", never_compiled), now)


def amounts(amount: object) -> Amounts:
    return Amounts(canonical({"amount": amount}))


def condition_of_grant(condition: Condition, **more: Any) -> bool:
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
    assert event.data == {
        "grant": "g1",
        "tool": "pay",
        "spec": PAY.sha256,
        "expires_at": NOW + DAY,
        "max_uses": 3,
        "budget_of": "",
        "budget": "",
        "role": "reviewer",
        "scope": scope_sha256(grant),
    }
    assert event.content == {"agent": "*", "when": "", "reason": "", "via": "web"}


# R51
def test_a_grant_begins_with_its_whole_budget_in_one_spelling() -> None:
    change = make(replace(DRAFT, budget="0500.50", budget_of="/sum/net", spent="-9", reason="rent"), ALICE, at())
    grant = change.state
    assert (grant.budget_of, grant.budget, grant.spent, grant.budget_left) == ("/sum/net", "500.5", "0", "500.5")
    (event,) = change.events
    assert (event.data["budget_of"], event.data["budget"]) == ("/sum/net", "500.5")
    assert event.content is not None
    assert event.content["reason"] == "rent"


# R51
@pytest.mark.parametrize(
    "maker",
    [
        VIEWER,
        AGENT,
        Reviewer("rita", "user"),
        Reviewer("policy", "admin"),
        Reviewer(SYSTEM_ACTOR, "admin"),
        Reviewer("agent:helper", "admin"),
        Reviewer("runner:host:1", "admin"),
        Reviewer("", "admin"),
    ],
)
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
    assert make(replace(DRAFT, max_uses=MAX_USES), ALICE, at()).state.max_uses == MAX_USES
    for uses in (0, -1, MAX_USES + 1):
        with pytest.raises(InvalidRequest, match="at least one use"):
            make(replace(DRAFT, max_uses=uses), ALICE, at())


# R51
@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"tool": ""}, "The tool"),
        ({"agent": "a\nb"}, "The agent"),
        ({"agent": "a" * 201}, "The agent"),
        ({"reason": "a" * (MAX_COMMENT + 1)}, "The reason"),
        ({"reason": "\x00"}, "NUL"),
        ({"budget": "5"}, "takes two"),
        ({"budget_of": "amount"}, "takes two"),
        ({"budget": "-5", "budget_of": "amount"}, "above 0"),
        ({"budget": "5", "budget_of": "a" * 201}, "What a budget counts"),
        ({"budget": "5", "budget_of": "/items/*/amount"}, "one number"),
    ],
)
def test_a_grant_that_makes_no_sense_is_not_made(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        make(replace(DRAFT, **wrong), ALICE, at())


# R51
def test_a_budget_has_to_be_countable_with_its_tool() -> None:
    closed = {"type": "object", "properties": {"amount": {}, "card": {}}, "additionalProperties": False}
    spec = ToolSpec("pay", "write", schema=closed, secret=("/card/*", "pin"))
    for place in ("amount", "/amount", "/card", ""):
        check_budget_argument(replace(DRAFT, budget_of=place), spec)
    check_budget_argument(replace(DRAFT, budget_of="anything"), PAY)
    with pytest.raises(InvalidRequest, match=r"no argument 'amont' to count .* amount, card"):
        check_budget_argument(replace(DRAFT, budget_of="/amont"), spec)
    for place in ("/card/limit", "/card/limit/net"):
        with pytest.raises(InvalidRequest, match="is secret"):
            check_budget_argument(replace(DRAFT, budget_of=place), spec)
    with pytest.raises(InvalidRequest, match="There are: none"):
        check_budget_argument(
            replace(DRAFT, budget_of="x"), ToolSpec("t", schema={"properties": {}, "additionalProperties": False})
        )


# --- revoking and using


# R51
def test_a_grant_can_be_revoked_by_its_maker_or_an_admin() -> None:
    change = revoke(GRANT, ALICE, at(NOW + 5), "the project is over")
    assert change.state.revoked_at == NOW + 5
    (event,) = change.events
    assert (event.kind, event.actor, event.data, event.content) == (
        "grant_revoked",
        "alice",
        {"grant": "g1", "tool": "pay"},
        {"reason": "the project is over", "via": "web"},
    )
    assert revoke(GRANT, ADMIN, at()).state.revoked_at == NOW
    with pytest.raises(Forbidden, match="alice made this grant"):
        revoke(GRANT, BOB, at())
    with pytest.raises(InvalidRequest, match="The reason"):
        revoke(GRANT, ALICE, at(), "a" * (MAX_COMMENT + 1))


# R24, R51
def test_a_second_revocation_changes_nothing() -> None:
    gone = revoke(GRANT, ALICE, at()).state
    again = revoke(gone, ALICE, at(NOW + 9))
    assert (again.state, again.events) == (gone, ())


# R51
def test_a_grant_is_usable_within_its_time_and_uses() -> None:
    assert is_usable(GRANT, NOW + DAY - 1)
    assert not is_usable(GRANT, NOW + DAY)
    assert not is_usable(replace(GRANT, revoked_at=NOW), NOW)
    assert is_usable(replace(GRANT, max_uses=2, uses=1), NOW)
    assert not is_usable(replace(GRANT, max_uses=2, uses=2), NOW)
    assert is_usable(replace(GRANT, uses=10**6), NOW), "without a limit there is none"


# R51
@pytest.mark.parametrize(
    ("changes", "now", "state"),
    [
        ({}, NOW, "active"),
        ({"max_uses": 2, "uses": 1}, NOW, "active"),
        ({"max_uses": 2, "uses": 2}, NOW, "used up"),
        ({"max_uses": 2, "uses": 3}, NOW, "used up"),
        ({"budget": "5", "budget_of": "amount", "spent": "4.99"}, NOW, "active"),
        ({"budget": "5", "budget_of": "amount", "spent": "5"}, NOW, "used up"),
        ({}, NOW + DAY, "expired"),
        ({"max_uses": 1, "uses": 1}, NOW + DAY, "used up"),
        ({"max_uses": 1, "uses": 1, "revoked_at": NOW}, NOW + DAY, "revoked"),
    ],
)
def test_the_state_of_a_grant_is_by_the_clock(changes: dict[str, Any], now: int, state: str) -> None:
    assert state_at(replace(GRANT, **changes), now) == state


# R51
def test_uses_are_counted_and_the_last_one_is_the_last() -> None:
    last = use(replace(GRANT, max_uses=1), NOTHING, at())
    assert (last.uses, last.uses_left, last.spent) == (1, 0, "0")
    assert (GRANT.uses_left, GRANT.budget_left) == (None, None)
    for grant, moment in ((last, at()), (GRANT, at(NOW + DAY)), (GRANT, at_with_clock_behind())):
        with pytest.raises(Conflict, match="used up, expired or revoked") as caught:
            use(grant, NOTHING, moment)
        assert caught.value.ids == {"grant_id": "g1"}


# R51
def test_amounts_are_added_up_exactly() -> None:
    grant = BUDGET
    for amount in (0.1, 0.2, 10, 0):
        grant = use(grant, amounts(amount), at())
    assert (grant.uses, grant.spent, grant.budget_left) == (4, "10.3", "0.2")
    assert has_budget_for(grant, amounts(0.2))
    assert not has_budget_for(grant, amounts(0.2000000000000001))
    with pytest.raises(Conflict):
        use(grant, amounts(0.21), at())
    assert state_at(use(grant, amounts(0.2), at()), NOW) == "used up"


# R51
@pytest.mark.parametrize("amount", [-1, -0.01, True, False, None, "5", [5], {"net": 5}, 10.51, 11, 10**39, 1e300])
def test_an_amount_that_cannot_be_counted_or_afforded_is_not_covered(amount: object) -> None:
    assert not has_budget_for(BUDGET, amounts(amount))
    assert has_budget_for(GRANT, amounts(amount)), "without a budget any will do"


# R51
def test_a_missing_amount_is_not_covered() -> None:
    assert not has_budget_for(BUDGET, NOTHING)
    with pytest.raises(Conflict):
        use(BUDGET, NOTHING, at())


NUMBERS = st.integers(-5, 10**39) | st.floats(0, 20) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
BUDGETS = st.integers(1, 10**40 - 1).map(str) | st.decimals("0.01", 100, places=2).map(str)


# R51
@given(st.none() | st.integers(1, 5), BUDGETS, st.lists(NUMBERS, max_size=30))
def test_no_sequence_of_uses_exceeds_the_budget_or_the_uses(
    max_uses: int | None, budget: str, tried: list[object]
) -> None:
    grant = make(replace(DRAFT, max_uses=max_uses, budget=budget, budget_of="amount"), ALICE, at()).state
    total, count = Fraction(0), 0
    for amount in tried:
        try:
            grant = use(grant, amounts(amount), at())
        except Conflict:
            continue
        assert isinstance(amount, int | float)
        total, count = total + Fraction(Decimal(repr(amount))), count + 1
        assert Fraction(grant.spent) == total <= Fraction(budget)
        assert grant.uses == count <= (max_uses or len(tried))
    assert Fraction(grant.budget_left or "") == Fraction(budget) - total


# --- what it covers


# R20, R51
def test_a_grant_covers_its_own_tool_workspace_and_agents_only() -> None:
    assert is_covered()
    assert not is_covered(tool="refund")
    assert not is_covered(workspace="other")
    assert is_covered(replace(GRANT, agent="help*"))
    assert is_covered(replace(GRANT, agent="helper"))
    assert not is_covered(replace(GRANT, agent="helpe"))
    assert not is_covered(replace(GRANT, agent="Helper"))
    assert not is_covered(replace(GRANT, agent="helper"), agent="")
    assert not is_covered(replace(GRANT, agent="bot[1]"), agent="bot1")
    assert is_covered(replace(GRANT, agent="bot[1]"), agent="bot[1]")


# R47, R51
def test_a_grant_ends_with_the_definition_that_the_person_agreed_to() -> None:
    assert not is_covered(spec=replace(PAY, describe="Pay {amount}"))
    assert not is_covered(spec=replace(PAY, effect="destructive"))


# R51
def test_a_grant_covers_nothing_when_it_is_over() -> None:
    assert not is_covered(now=NOW + DAY)
    assert not is_covered(replace(GRANT, revoked_at=NOW))
    assert not is_covered(replace(GRANT, max_uses=1, uses=1))


# R48, R51
@pytest.mark.parametrize("stages", [(Stage(None, 2),), (Stage(FINANCE, 2),), (Stage(), Stage()), ()])
def test_a_grant_never_fills_a_quorum(stages: tuple[Stage, ...]) -> None:
    assert not is_covered(terms=Ask(stages=stages))


# R48, R51
@pytest.mark.parametrize(
    ("approvers", "expected"),
    [(None, True), (FINANCE, True), (users("alice"), True), (LEGAL, False), (users("bob"), False), (People(), False)],
)
def test_a_grant_covers_only_what_its_maker_may_approve(approvers: People | None, expected: bool) -> None:
    assert is_covered(terms=Ask(stages=(Stage(approvers),))) is expected


# R48, R51
def test_a_maker_without_a_deciding_role_covers_nothing_where_reviewers_decide() -> None:
    assert not is_covered(replace(GRANT, role="viewer"))


# R48, R51
def test_a_grant_is_no_way_around_the_exclusion_of_the_requester() -> None:
    alone = Ask(exclude=frozenset({"requester"}))
    assert not is_covered(terms=alone, requester="alice")
    assert is_covered(terms=alone)
    assert is_covered(terms=Ask(), requester="alice")


# R11, R51
def test_where_approving_is_no_answer_a_grant_is_none() -> None:
    assert not is_covered(terms=Ask(decisions=("respond", "reject")))


# --- conditions


# R38, R51
def test_a_condition_limits_the_arguments() -> None:
    def small(facts: Facts) -> object:
        return facts["args"]["amount"] < 10

    assert condition_of_grant(small)
    assert not condition_of_grant(small, args={"amount": 10})
    assert not condition_of_grant(small, args={"to": "ann"}), "what cannot be looked at is not covered"


def raise_error(_: Facts) -> object:
    raise ValueError


# R51
@pytest.mark.parametrize(
    "odd", [raise_error, lambda _: 1, lambda _: "true", lambda _: None, lambda _: [1], lambda: True]
)
def test_a_condition_in_doubt_covers_nothing(odd: Condition) -> None:
    assert not condition_of_grant(odd)


# R51
def test_a_condition_that_does_not_compile_covers_nothing() -> None:
    def broken(_: str) -> Condition:
        raise SyntaxError

    assert not covers(replace(GRANT, when="("), call(), PAY, Ask(), broken, NOW)


# R48, R51
@given(st.lists(st.builds(Stage, st.none() | st.just(FINANCE), st.integers(1, 4)), min_size=1, max_size=3).map(tuple))
def test_a_grant_is_one_persons_yes(stages: tuple[Stage, ...]) -> None:
    assert is_covered(terms=Ask(stages=stages)) == (sum(stage.quorum for stage in stages) == 1)


def test_a_grant_covers_a_call_only_if_it_does_in_every_way_that_it_can_be_read() -> None:
    scoped = replace(GRANT, agent="helper")
    assert covers_all(scoped, [call()], ["write"], PAY, Ask(), never_compiled, NOW)
    assert not covers_all(scoped, [call(), call(agent="other")], ["write"], PAY, Ask(), never_compiled, NOW)
