"""Who is there: names that can be told from others, roles that never grow."""

import pytest

from interlock.core.decision import Reviewer
from interlock.core.errors import InvalidRequest
from interlock.core.identity import (
    ROLES,
    Principal,
    check_email,
    check_name,
    check_names,
    check_role,
    check_workspace,
    is_name,
    lesser,
)


def test_an_agent_is_named_as_one_in_the_record() -> None:  # R41
    agent, person = Principal("default", "office", "agent"), Principal("default", "bob", "reviewer", via="web")
    assert (agent.is_agent, agent.actor) == (True, "agent:office")
    assert (person.is_agent, person.actor) == (False, "bob")
    assert person.reviewer() == Reviewer("bob", "reviewer", frozenset(), "web")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("other", ROLES)
def test_of_two_roles_the_one_with_fewer_rights_counts(role: str, other: str) -> None:  # R48
    assert ROLES.index(lesser(role, other)) == min(ROLES.index(role), ROLES.index(other))


def test_a_role_that_nobody_knows_has_no_rights() -> None:  # R48
    assert lesser("root", "admin") == lesser("admin", "root") == "agent"
    check_role("admin")
    with pytest.raises(InvalidRequest, match="There is no role 'root'"):
        check_role("root")


@pytest.mark.parametrize("name", ["bob", "Ann Lee", "bob@example.com", "Zoë", "x" * 200])
def test_what_can_be_seen_is_a_name(name: str) -> None:
    check_name(name)
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "x" * 201, " bob", "bob ", "a\u202eb", "a\\b", "a\nb", "\ud800", "interlock", "policy", "agent:x", "runner:x"],
)
def test_what_could_be_taken_for_something_else_is_no_name(name: str) -> None:  # R53
    with pytest.raises(InvalidRequest):
        check_name(name)
    assert not is_name(name)


def test_a_message_holds_little_of_what_was_given() -> None:
    for check in (check_name, check_workspace, check_email, check_role):
        with pytest.raises(InvalidRequest) as caught:
            check("x" * 1_000_000)
        assert len(caught.value.message) < 400


def test_names_are_counted_before_they_are_looked_at() -> None:
    check_names([f"team{number}" for number in range(64)])
    for names in ([f"team{number}" for number in range(65)], ["ops", " "]):
        with pytest.raises(InvalidRequest):
            check_names(names)


def test_a_workspace_has_a_plain_name() -> None:
    for name in ("a", "acme-2", "x" * 63):
        check_workspace(name)
    for name in ("", "Acme", "a_b", "x" * 64, "a\n"):
        with pytest.raises(InvalidRequest, match="cannot be a workspace"):
            check_workspace(name)


def test_an_address_has_two_sides() -> None:
    for email in ("", "ann@example.com", "a+b@example"):
        check_email(email)
    for email in ("ann", "@example.com", "ann@", "a@b@c", "a b@c", "a\u202e@b", f"{'x' * 200}@b"):
        with pytest.raises(InvalidRequest, match="not an e-mail address"):
            check_email(email)
