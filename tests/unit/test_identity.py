"""Identity: names that cannot be confused, roles that never grow, and links to accounts of channels."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from interlock.core.decision import Reviewer
from interlock.core.errors import Forbidden, InvalidRequest, NotFound, RecentSignInRequired
from interlock.core.identity import (
    IDENTITY_LINK_TTL,
    MAX_TOKEN,
    RECENT_SIGN_IN,
    ROLES,
    ApiKey,
    IdentityLink,
    KeyBindings,
    Principal,
    agents_owner,
    check_bindings,
    check_email,
    check_full_rights,
    check_may_delegate,
    check_name,
    check_names,
    check_new_person_name,
    check_own_key,
    check_person_name,
    check_recent_sign_in,
    check_role,
    check_workspace,
    is_name,
    lesser_role,
    read_identity_link,
    sign_identity_link,
)


def test_an_agent_is_named_as_one_in_the_record() -> None:  # R41
    agent, person = Principal("default", "office", "agent"), Principal("default", "bob", "reviewer", via="web")
    assert (agent.is_agent, agent.actor) == (True, "agent:office")
    assert (person.is_agent, person.actor) == (False, "bob")
    assert person.reviewer() == Reviewer("bob", "reviewer", teams=frozenset(), via="web")


def test_a_person_brings_what_they_came_by_into_the_record() -> None:
    bob = Principal("default", "bob", "reviewer", credential="ilk_aaaaaaaa", address="192.0.2.7")
    assert bob.reviewer().trace == {"via": "key", "credential": "ilk_aaaaaaaa", "address": "192.0.2.7"}
    assert Reviewer("bob").trace == {"via": "library"}


def test_calls_belong_to_the_agents_of_a_key_else_to_the_first_key_of_its_rotations() -> None:
    bound = Principal("default", "bot", "agent", credential="ilk_2", root="ilk_1", agents=("b", "a"))
    loose = Principal("default", "bot", "agent", credential="ilk_2")
    assert (bound.owner, bound.owners) == ("agent:a|b", {"agent:a|b", "agent:a", "agent:b", "key:ilk_1"})
    assert (loose.owner, loose.owners) == ("key:ilk_2", {"key:ilk_2"})


def test_no_two_sets_of_agents_own_the_same_calls() -> None:
    sets: list[tuple[str, ...]] = [("a", "b"), ("a|b",), ("a|b", "c"), ("a", "b|c"), ("a\\", "b"), ("a\\|b",), ("a\\",)]
    owners = [Principal("default", "k", "agent", agents=agents, credential="ilk_1").owner for agents in sets]
    assert len(set(owners)) == len(sets)
    one = Principal("default", "k", "agent", agents=("a|b",), credential="ilk_1")
    assert one.owners == {"agent:a\\|b", "key:ilk_1"}
    assert agents_owner("b", "a") == "agent:a|b"
    assert agents_owner("a\\", "b|") == r"agent:a\\|b\|"


def test_a_key_acts_for_one_person_or_for_what_its_binding_says() -> None:
    named = {
        word: Principal("default", "bot", "agent", requester=word).on_behalf_of for word in ("", "any", "none", "bob")
    }
    assert named == {"": "", "any": "", "none": "", "bob": "bob"}


def test_a_key_counts_until_it_is_revoked_or_expires() -> None:
    key = ApiKey("ilk_a", workspace="default", name="bot", role="agent", person="", created_by="ada", created_at=0)
    assert key.is_valid_at(10**15)
    assert [replace(key, expires_at=5).is_valid_at(now) for now in (4, 5)] == [True, False]
    assert not replace(key, revoked_at=1).is_valid_at(0)
    assert (key.first_key_id, replace(key, root="ilk_b").first_key_id) == ("ilk_a", "ilk_b")


@pytest.mark.parametrize(
    ("role", "agents", "requester", "unbound"),
    [
        ("agent", (), "", True),
        ("agent", ("office",), "", True),
        ("agent", (), "none", True),
        ("agent", ("office",), "none", False),
        ("viewer", (), "", False),
    ],
)
def test_a_key_that_may_say_any_name_is_unbound(
    role: str, agents: tuple[str, ...], requester: str, unbound: bool
) -> None:
    key = ApiKey(
        "ilk_a",
        workspace="default",
        name="bot",
        role=role,
        person="",
        created_by="ada",
        created_at=0,
        agents=agents,
        requester=requester,
    )
    assert key.is_unbound is unbound


def test_only_an_agents_key_is_bound_and_only_to_what_can_be_seen() -> None:
    check_bindings("agent", KeyBindings(("office",), ("mail_*",), "bob", 0, 10**9))
    check_bindings("viewer", KeyBindings())
    for role, wrong in [
        ("viewer", KeyBindings(("office",))),
        ("viewer", KeyBindings(pending=0)),
        ("agent", KeyBindings(per_minute=-1)),
        ("agent", KeyBindings(pending=10**9 + 1)),
        ("agent", KeyBindings((" ",))),
        ("agent", KeyBindings((), ("",))),
        ("agent", KeyBindings((), ("a\u202eb",))),
        ("agent", KeyBindings((), ("x",) * 65)),
        ("agent", KeyBindings(requester="policy")),
    ]:
        with pytest.raises(InvalidRequest):
            check_bindings(role, wrong)


def test_nobody_is_called_as_a_requester_can_be_said() -> None:
    check_person_name("bob")
    for word in ("any", "none"):
        with pytest.raises(InvalidRequest, match="reserved word"):
            check_person_name(word)


def test_a_sign_in_is_recent_for_five_minutes_and_keys_have_none() -> None:
    bob = Principal("default", "bob", "admin", via="web", signed_in_at=1_000)
    check_recent_sign_in(bob, 1_000 + RECENT_SIGN_IN)
    with pytest.raises(RecentSignInRequired) as refused:
        check_recent_sign_in(bob, 1_001 + RECENT_SIGN_IN)
    assert refused.value.message == (
        "This needs a sign-in of the last 5 minutes. Sign in again with your password, by a link or through your "
        "provider, then repeat it."
    )
    check_recent_sign_in(Principal("default", "bob", "admin"), 10**15)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("other", ROLES)
def test_of_two_roles_the_one_with_fewer_rights_counts(role: str, other: str) -> None:  # R48
    assert ROLES.index(lesser_role(role, other)) == min(ROLES.index(role), ROLES.index(other))


def test_a_role_that_nobody_knows_has_no_rights() -> None:  # R48
    assert lesser_role("root", "admin") == lesser_role("admin", "root") == "agent"
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


@pytest.mark.parametrize(
    ("check", "given", "said"),
    [
        (check_name, " bob", '" bob" cannot be a name: 1 to 200 visible characters, no backslash.'),
        (check_name, "a\u202eb", '"a\\u{202e}b" cannot be a name: 1 to 200 visible characters, no backslash.'),
        (check_name, "policy", "'policy' is a name that Interlock uses itself. Choose another."),
        (check_person_name, "any", "'any' is a reserved word for the requester of a key. Choose another name."),
        (
            check_new_person_name,
            "a/b",
            "'a/b' cannot be the name of a person: it is a part of a web address. Leave out /.",
        ),
        (check_workspace, "Acme", '"Acme" cannot be a workspace: 1 to 63 of a-z, 0-9 and -.'),
        (check_email, "ann", '"ann" is not an e-mail address, such as ann@example.com.'),
        (check_role, "root", "There is no role 'root'. It is one of agent, viewer, reviewer, admin."),
    ],
)
def test_a_refusal_says_what_was_given_and_what_is_wanted(check: Callable[[str], None], given: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check(given)
    assert refused.value.message == said


def test_a_new_person_can_have_an_address() -> None:
    check_new_person_name("ann.lee@example.com?x")
    for name in (".", "..", "a/", "/"):
        with pytest.raises(InvalidRequest, match="web address"):
            check_new_person_name(name)
    check_person_name("a/b")  # people who have such a name stay


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


def effective_role(role: str, person_role: str = "admin", **more: int) -> Principal:
    return Principal(
        "default", "ada", role, credential="ilk_mine", person_role=person_role, expires_at=more.get("expires_at")
    )


@pytest.mark.parametrize("role", ROLES[1:])
@pytest.mark.parametrize("other", ROLES[1:])
def test_a_key_reaches_its_persons_keys_of_at_most_its_role(role: str, other: str) -> None:
    key = ApiKey(
        "ilk_other", workspace="default", name="laptop", role=other, person="ada", created_by="ada", created_at=0
    )
    if ROLES.index(other) > ROLES.index(role):
        with pytest.raises(Forbidden, match="cannot rotate or end one for more"):
            check_own_key(effective_role(role), key)
    else:
        check_own_key(effective_role(role), key)


def test_a_key_reaches_itself_and_a_session_every_key() -> None:
    mine = ApiKey(
        "ilk_mine", workspace="default", name="laptop", role="admin", person="ada", created_by="ada", created_at=0
    )
    other = replace(mine, id="ilk_other")
    demoted = effective_role("viewer", "viewer")  # of somebody who was an admin once
    check_own_key(demoted, mine)
    check_own_key(Principal("default", "ada", "viewer", via="web"), other)
    with pytest.raises(Forbidden):
        check_own_key(demoted, other)


def test_what_concerns_the_person_takes_a_session_or_a_key_of_their_role() -> None:
    check_full_rights(effective_role("admin"))
    check_full_rights(Principal("default", "ada", "admin", via="web"))
    with pytest.raises(Forbidden, match="a key for a reviewer, and are admin here"):
        check_full_rights(effective_role("reviewer"))


def test_nobody_lends_what_they_do_not_have() -> None:
    check_may_delegate(effective_role("reviewer", "reviewer"), 10**15)
    check_may_delegate(effective_role("reviewer", "reviewer", expires_at=1_000), 1_000)
    check_may_delegate(effective_role("reviewer", "reviewer", expires_at=1_000), None)
    with pytest.raises(Forbidden, match="expires before that"):
        check_may_delegate(effective_role("reviewer", "reviewer", expires_at=1_000), 1_001)
    with pytest.raises(Forbidden, match="Viewers cannot decide"):
        check_may_delegate(effective_role("viewer", "viewer"), None)


KEY = b"k" * 32
NOW = 1_800_000_000_000
LINK_CLAIM = IdentityLink("slack", "T1:U1", NOW + IDENTITY_LINK_TTL)


def test_a_link_says_who_it_was_given_to_until_it_expires() -> None:
    token = sign_identity_link(KEY, "default", LINK_CLAIM)
    assert read_identity_link(KEY, "default", token, NOW) == LINK_CLAIM
    assert read_identity_link(KEY, "default", token, LINK_CLAIM.expires_at - 1) == LINK_CLAIM
    with pytest.raises(NotFound):
        read_identity_link(KEY, "default", token, LINK_CLAIM.expires_at)


@pytest.mark.parametrize("external_id", ["", "U", "U1", "U12"])
def test_a_link_needs_no_escapes_in_an_address(external_id: str) -> None:
    claim = LINK_CLAIM._replace(external_id=external_id)
    token = sign_identity_link(KEY, "default", claim)
    assert re.fullmatch(r"[A-Za-z0-9_-]+\.[0-9a-f]{64}", token)
    assert read_identity_link(KEY, "default", token, NOW) == claim


def test_a_link_holds_for_its_key_and_workspace_alone() -> None:
    token = sign_identity_link(KEY, "default", LINK_CLAIM)
    for key, workspace in ((b"x" * 32, "default"), (KEY, "other")):
        with pytest.raises(NotFound):
            read_identity_link(key, workspace, token, NOW)


@pytest.mark.parametrize("forge", [lambda t: "", lambda t: t + "0", lambda t: "A" + t[1:], lambda t: t.split(".")[0]])
def test_an_altered_link_is_refused(forge: Callable[[str], str]) -> None:
    with pytest.raises(NotFound):
        read_identity_link(KEY, "default", forge(sign_identity_link(KEY, "default", LINK_CLAIM)), NOW)


@pytest.mark.parametrize("token", ["é.é", "." + "a" * MAX_TOKEN])
def test_a_link_that_is_too_long_or_not_ascii_is_refused(token: str) -> None:
    with pytest.raises(NotFound):
        read_identity_link(KEY, "default", token, NOW)


def test_a_link_that_is_too_long_is_refused_also_if_it_is_ours() -> None:
    with pytest.raises(NotFound):
        read_identity_link(
            KEY, "default", sign_identity_link(KEY, "default", LINK_CLAIM._replace(external_id="U" * MAX_TOKEN)), NOW
        )
