"""Who is let in, on both databases: keys, people, passwords, sessions, one-time links."""

from __future__ import annotations

import asyncio
import json
from shlex import quote
from typing import cast

import pytest

from interlock.accounts.accounts import (
    CACHE_TTL,
    HOUR,
    IDEMPOTENCY_RETENTION,
    KEY_USE_INTERVAL,
    MAX_FAILURES_PER_ADDRESS,
    MAX_FAILURES_PER_NAME,
    SESSION_LIFETIME,
    Accounts,
)
from interlock.accounts.keys import NEVER_EXPIRES, PERSONAL_KEY_LIFETIME
from interlock.accounts.members import MAX_SESSIONS
from interlock.app.bootstrap import AppServices
from interlock.app.worker import CLEANUP_INTERVAL
from interlock.core.errors import Conflict, InvalidRequest, NotFound, TooManyRequests, Unauthenticated
from interlock.core.identity import KeyBindings, Principal
from interlock.core.ledger.erasure import Erasure
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.core.policy.policy import People
from interlock.core.ports import AccountStore, User
from tests.places import Place
from tests.support import ADA, START, Clock, every_kind, faults, opened

PASSWORD = "correct horse battery"
EventFields = tuple[str, dict[str, object], dict[str, object] | None]


async def events_of_kind(services: AppServices, kind: str) -> list[EventFields]:
    """Actor, data and content of every event of a kind."""
    return [
        (entry.actor, json.loads(entry.data), None if entry.content is None else json.loads(entry.content))
        async for chunk in services.store.entries("default")
        for entry in chunk
        if entry.kind == kind
    ]


async def add_user_with_password(services: AppServices, name: str = "bob", role: str = "reviewer") -> None:
    await services.accounts.add_user("default", name, role, "ada", frozenset({"finance"}))
    await services.accounts.set_password("default", name, PASSWORD, "ada")


async def is_accepted(accounts: Accounts, secret: str) -> bool:
    """Whether a key or a session's token counts."""
    try:
        await (accounts.authenticate_key if secret.startswith("ilk_") else accounts.authenticate_session)(secret)
    except Unauthenticated:
        return False
    return True


# Keys


async def test_a_key_lets_its_agent_in_until_it_is_revoked(services: AppServices) -> None:  # R48
    key, secret = await services.accounts.create_key("default", "office", "agent", "ada")
    assert secret.startswith(f"{key.id}_")
    assert (len(key.id), len(secret)) == (12, 56)
    who = await services.accounts.authenticate_key(secret)
    assert who == Principal("default", "office", "agent", teams=frozenset(), via="key", credential=key.id, root=key.id)
    assert who.actor == "agent:office"
    revoked = await services.accounts.revoke_key("default", key.id, "bob")
    assert revoked.revoked_at == START
    assert not await is_accepted(services.accounts, secret)
    again = await services.accounts.revoke_key("default", key.id, "eve")
    assert again.revoked_at == revoked.revoked_at
    assert [kind for kind in await every_kind(services) if kind.startswith("key")] == ["key_created", "key_revoked"]
    assert await faults(services) == []


async def test_only_the_whole_key_counts(services: AppServices) -> None:  # R48
    _, secret = await services.accounts.create_key("default", "office", "agent", "ada")
    _, other = await services.accounts.create_key("default", "shop", "agent", "ada")
    for wrong in (
        "",
        "ilk_",
        secret[:12],
        secret[:-1],
        secret + "a",
        secret[:13] + other[13:],
        secret.upper(),
        "\ud800",
    ):
        with pytest.raises(Unauthenticated):
            await services.accounts.authenticate_key(wrong)
    assert await is_accepted(services.accounts, secret)


async def test_a_persons_key_has_at_most_the_rights_of_the_person_now(
    services: AppServices, clock: Clock
) -> None:  # R48
    accounts = services.accounts
    await accounts.add_user("default", "bob", "admin", "ada", frozenset({"finance"}))
    await accounts.add_user("default", "ada", "admin", "ada")
    key, secret = await accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    assert await accounts.authenticate_key(secret) == Principal(
        "default",
        "bob",
        "reviewer",
        teams=frozenset({"finance"}),
        via="key",
        credential=secret[:12],
        root=secret[:12],
        person_role="admin",
        expires_at=key.expires_at,
    )
    await accounts.change_user("default", "bob", "ada", role="viewer", teams=frozenset({"ops"}))
    who = await accounts.authenticate_key(secret)
    assert (who.role, who.teams) == ("viewer", frozenset({"ops"}))
    with pytest.raises(InvalidRequest, match="bob is a viewer"):
        await accounts.create_key("default", "phone", "admin", "ada", "bob")
    await accounts.remove_user("default", "bob", "ada")
    assert not await is_accepted(accounts, secret)
    with pytest.raises(Conflict, match="was removed"):
        await accounts.create_key("default", "phone", "viewer", "ada", "bob")
    await accounts.add_user("default", "bob", "admin", "ada")
    clock.forward(CACHE_TTL)
    assert not await is_accepted(accounts, secret), "a key that ended does not come back with its person"


async def test_a_key_adds_the_user_whom_it_belongs_to(services: AppServices) -> None:  # R48
    accounts = services.accounts
    await accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    await accounts.create_key("default", "eve", "admin", "ada")
    await accounts.create_key("default", "shop", "agent", "ada", "carol")
    await accounts.create_key("default", "office", "agent", "ada")
    users = {user.name: user.role for user in await accounts.users("default")}
    assert users == {"bob": "reviewer", "carol": "viewer", "eve": "admin"}
    assert {key.name: key.person for key in await accounts.keys("default")} == {
        "laptop": "bob",
        "eve": "eve",
        "shop": "carol",
        "office": "",
    }


async def test_the_requester_of_an_agents_key_is_a_person_who_is_known(services: AppServices) -> None:
    """A misspelt name would make an account, and a key that acts for it."""
    accounts = services.accounts
    for name in ("carol", "carola", "bob", "gone"):
        await accounts.add_user("default", name, "viewer", "ada", email="bo@example.com" if name == "bob" else "")
    await accounts.remove_user("default", "gone", "ada")
    for person, hint in (
        ("carrol", " Did you mean carol or carola?"),
        ("Carol", " Did you mean carol?"),
        ("BO@example.com", " Did you mean bob?"),
        ("zoë x", ""),
    ):
        with pytest.raises(InvalidRequest) as refused:
            await accounts.create_key("default", "shop", "agent", "ada", "", KeyBindings(requester=person))
        how = f"interlock users add {quote(person)} --role viewer"
        assert str(refused.value) == (
            f"There is no person {person!r} that this key could act for.{hint} To add them: {how}"
        )
    with pytest.raises(Conflict, match="gone was removed"):
        await accounts.create_key("default", "shop", "agent", "ada", "gone")
    assert await accounts.keys("default") == []
    assert len(await accounts.users("default")) == 4


async def test_an_agents_key_has_quotas_of_its_own_and_keeps_them_when_it_is_rotated(services: AppServices) -> None:
    accounts = services.accounts
    key, _ = await accounts.create_key("default", "mailer", "agent", "ada", "", KeyBindings(per_minute=10, pending=0))
    new, secret = await accounts.rotate_key("default", key.id, "ada")
    plain, other = await accounts.create_key("default", "plain", "agent", "ada")
    assert {each.id: (each.per_minute, each.pending) for each in await accounts.keys("default")} == {
        key.id: (10, 0),
        new.id: (10, 0),
        plain.id: (None, None),
    }
    found = [await accounts.authenticate_key(each) for each in (secret, other)]
    assert [(who.per_minute, who.pending) for who in found] == [(10, 0), (None, None)]
    made = [
        data.get("quotas")
        for kind in ("key_created", "key_rotated")
        for _, data, _ in await events_of_kind(services, kind)
    ]
    assert made == [{"per_minute": 10, "pending": 0}, None, {"per_minute": 10, "pending": 0}]
    for wrong in (KeyBindings(per_minute=-1), KeyBindings(pending=10**9 + 1)):
        with pytest.raises(InvalidRequest, match="whole number from 0"):
            await accounts.create_key("default", "mailer", "agent", "ada", "", wrong)
    with pytest.raises(InvalidRequest, match="or has quotas"):
        await accounts.create_key("default", "laptop", "viewer", "ada", "bob", KeyBindings(pending=1))
    assert await faults(services) == []


async def test_a_key_ends_with_one_who_is_only_its_owner(services: AppServices) -> None:  # R48
    await services.accounts.add_user("default", "carol", "viewer", "ada")
    _, secret = await services.accounts.create_key("default", "shop", "agent", "ada", "carol")
    assert (await services.accounts.authenticate_key(secret)).name == "shop"
    await services.accounts.remove_user("default", "carol", "ada")
    assert not await is_accepted(services.accounts, secret)


async def test_a_key_is_bound_to_agents_tools_and_a_requester(services: AppServices) -> None:
    accounts = services.accounts
    for name in ("carol", "dave"):
        await accounts.add_user("default", name, "viewer", "ada")
    bound = KeyBindings(("office", "night shift"), ("mail_*", "pay"), "any")
    key, secret = await accounts.create_key("default", "mailer", "agent", "ada", "", bound)
    assert (await accounts.keys("default"))[0] == key
    who = await accounts.authenticate_key(secret)
    assert (who.agents, who.tools, who.requester, who.on_behalf_of) == (bound.agents, bound.tools, "any", "")
    _, secret = await accounts.create_key("default", "shop", "agent", "ada", "", KeyBindings(requester="carol"))
    who = await accounts.authenticate_key(secret)
    assert (who.requester, who.on_behalf_of) == ("carol", "carol")
    _, secret = await accounts.create_key("default", "desk", "agent", "ada", "dave")
    assert (await accounts.authenticate_key(secret)).requester == "dave", "a user of an agent's key is its requester"
    data = (await events_of_kind(services, "key_created"))[0][1]
    assert data["agents"] == ["office", "night shift"]
    assert (data["tools"], data["requester"]) == (["mail_*", "pay"], "any")


async def test_a_requester_is_said_once_and_is_nobody_called_any(services: AppServices) -> None:
    accounts = services.accounts
    with pytest.raises(InvalidRequest, match="say one of them"):
        await accounts.create_key("default", "desk", "agent", "ada", "dave", KeyBindings(requester="carol"))
    with pytest.raises(InvalidRequest, match="Only an agent's key"):
        await accounts.create_key("default", "desk", "viewer", "ada", "dave", KeyBindings(("office",)))
    for word in ("any", "none"):
        with pytest.raises(InvalidRequest, match="reserved word"):
            await accounts.add_user("default", word, "viewer", "ada")
        with pytest.raises(InvalidRequest, match="reserved word"):
            await accounts.create_key("default", word, "reviewer", "ada")
        with pytest.raises(InvalidRequest, match="reserved word"):
            await accounts.create_key("default", "desk", "agent", "ada", word)
    assert not {user.name for user in await accounts.users("default")} & {"any", "none"}


async def test_a_persons_key_ends_after_90_days_and_an_agents_when_it_was_said(
    services: AppServices, clock: Clock
) -> None:
    accounts = services.accounts
    _, laptop = await accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    _, office = await accounts.create_key("default", "office", "agent", "ada")
    _, brief = await accounts.create_key("default", "brief", "agent", "ada", lifetime=CACHE_TTL // 2)
    assert [await is_accepted(accounts, each) for each in (laptop, office, brief)] == [True, True, True]
    clock.forward(CACHE_TTL // 2)
    with pytest.raises(Unauthenticated, match=r"has expired\. Ask an admin for another: interlock keys"):
        await accounts.authenticate_key(brief)
    clock.forward(PERSONAL_KEY_LIFETIME - CACHE_TTL // 2 - 1)
    assert [await is_accepted(accounts, each) for each in (laptop, office)] == [True, True]
    clock.forward(1)
    assert [await is_accepted(accounts, each) for each in (laptop, office)] == [False, True]
    _, lasting = await accounts.create_key("default", "phone", "reviewer", "ada", "bob", lifetime=NEVER_EXPIRES)
    clock.forward(2 * PERSONAL_KEY_LIFETIME)
    assert await is_accepted(accounts, lasting)
    for lasts in (0, -2):
        with pytest.raises(InvalidRequest, match="Say never"):
            await accounts.create_key("default", "phone", "reviewer", "ada", "bob", lifetime=lasts)


async def test_an_expired_key_tells_its_holder_alone_how_to_make_it_again(services: AppServices, clock: Clock) -> None:
    accounts = services.accounts
    await accounts.add_user("default", "bob", "reviewer", "ada")
    bound = KeyBindings(("office", "night shift"), ("mail_*",), "bob", 10, 0)
    _, mailer = await accounts.create_key("default", "mailer", "agent", "ada", "", bound, lifetime=HOUR)
    _, phone = await accounts.create_key("default", "phone", "viewer", "ada", "bob", lifetime=HOUR)
    _, many = await accounts.create_key(
        "default", "many", "agent", "ada", "", KeyBindings(("a" * 200,) * 9), lifetime=HOUR
    )
    ended, revoked = await accounts.create_key("default", "mailer", "agent", "ada", "", bound, lifetime=HOUR)
    await accounts.revoke_key("default", ended.id, "ada")
    clock.forward(HOUR)
    options = "--agent office --agent 'night shift' --tool 'mail_*' --requester bob --per-minute 10 --pending 0"
    assert (await refusal(accounts, mailer)).endswith(f": interlock keys create --name mailer --role agent {options}")
    assert (await refusal(accounts, phone)).endswith("keys create --name phone --role viewer --user bob")
    assert (await refusal(accounts, many)).endswith(f"interlock keys list --all --json ({many[:12]})")
    for stranger in (mailer[:-1] + "_", mailer[:13] + phone[13:], revoked):
        assert await refusal(accounts, stranger) == (
            "This key does not count: it is unknown or was revoked. Ask an admin for another."
        )


async def refusal(accounts: Accounts, secret: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        await accounts.authenticate_key(secret)
    return str(refused.value)


async def test_a_rotated_key_has_the_same_bindings_and_the_old_one_ends_after_the_overlap(
    services: AppServices, clock: Clock
) -> None:
    accounts = services.accounts
    first, old = await accounts.create_key(
        "default", "mailer", "agent", "ada", "", KeyBindings(("office",), (), "none")
    )
    second, new = await accounts.rotate_key("default", first.id, "eve", overlap=HOUR)
    third, newest = await accounts.rotate_key("default", second.id, "eve", overlap=HOUR)
    assert [key.rotated_from for key in (first, second, third)] == ["", first.id, second.id]
    found = [await accounts.authenticate_key(secret) for secret in (old, new, newest)]
    assert {(who.name, who.agents, who.requester, who.root) for who in found} == {
        ("mailer", ("office",), "none", first.id)
    }
    clock.forward(HOUR)
    assert [await is_accepted(accounts, each) for each in (old, new, newest)] == [False, False, True]
    assert third.expires_at is None
    with pytest.raises(Conflict, match="has ended"):
        await accounts.rotate_key("default", first.id, "eve")
    with pytest.raises(NotFound):
        await accounts.rotate_key("acme", third.id, "eve")
    events = await events_of_kind(services, "key_rotated")
    assert [(actor, data["key"], data["replaces"]) for actor, data, _ in events] == [
        ("eve", second.id, first.id),
        ("eve", third.id, second.id),
    ]
    assert await faults(services) == []


async def test_a_rotated_key_lasts_as_long_as_the_old_one_did(services: AppServices, clock: Clock) -> None:
    key, _ = await services.accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    clock.forward(PERSONAL_KEY_LIFETIME - HOUR)
    new, secret = await services.accounts.rotate_key("default", key.id, "bob", overlap=30 * HOUR)
    assert new.expires_at == clock() + PERSONAL_KEY_LIFETIME
    kept = {each.id: each.expires_at for each in await services.accounts.keys("default")}
    assert kept[key.id] == key.expires_at, "an overlap lengthens nothing"
    clock.forward(PERSONAL_KEY_LIFETIME - 1)
    assert await is_accepted(services.accounts, secret)


async def test_personal_keys_end_with_a_changed_password_and_with_sign_out_everywhere(services: AppServices) -> None:
    """A stolen session may have been used to create a key."""
    accounts = services.accounts
    await add_user_with_password(services)
    ends = (
        lambda: accounts.set_password("default", "bob", "another password", "bob"),
        lambda: accounts.sign_out_everywhere("default", "bob", "bob"),
    )
    _, bot = await accounts.create_key("default", "bot", "agent", "bob", "bob")
    for end in ends:
        _, secret = await accounts.create_key("default", "laptop", "reviewer", "bob", "bob")
        assert await is_accepted(accounts, secret)
        await end()
        assert not await is_accepted(accounts, secret)
    assert await is_accepted(accounts, bot), "an agent's key is not how they themselves come in"
    assert [data["keys"] for _, data, _ in await events_of_kind(services, "signed_out")] == [1]


async def test_a_first_password_ends_no_key(services: AppServices) -> None:
    _, secret = await services.accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    await services.accounts.set_password("default", "bob", PASSWORD, "ada")
    assert await is_accepted(services.accounts, secret)


async def test_the_record_says_by_what_and_from_where_an_account_was_changed(services: AppServices) -> None:
    trace = {"via": "web", "credential": "session 0123", "address": "192.0.2.7"}
    accounts = services.accounts.with_trace(trace)
    await accounts.add_user("default", "bob", "reviewer", "ada")
    key, _ = await accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    await accounts.revoke_key("default", key.id, "ada")
    for kind in ("user_changed", "key_created", "key_revoked"):
        (_, _, content) = (await events_of_kind(services, kind))[0]
        assert content is not None
        assert {name: content[name] for name in trace} == trace


async def test_another_workspaces_keys_are_not_there(services: AppServices) -> None:  # R48
    key, secret = await services.accounts.create_key("default", "office", "agent", "ada")
    with pytest.raises(NotFound):
        await services.accounts.revoke_key("acme", key.id, "eve")
    assert await services.accounts.keys("acme") == []
    assert (await services.accounts.authenticate_key(secret)).workspace == "default"


async def test_a_key_that_is_known_is_not_looked_up_again_for_a_second(place: Place, clock: Clock) -> None:
    async with opened(place, clock) as here, opened(place, clock) as elsewhere:
        key, secret = await here.accounts.create_key("default", "office", "agent", "ada")
        assert await is_accepted(here.accounts, secret)
        await here.accounts.drain()
        await elsewhere.accounts.revoke_key("default", key.id, "ada")
        assert await is_accepted(here.accounts, secret), "no look at the database"
        clock.forward(CACHE_TTL)
        assert not await is_accepted(here.accounts, secret)


async def test_a_look_up_that_began_before_a_revocation_is_not_kept(services: AppServices) -> None:
    """However the two are interleaved: once the revocation is through, the key lets nobody in."""
    for _ in range(20):
        key, secret = await services.accounts.create_key("default", "office", "agent", "ada")
        looks = [asyncio.create_task(is_accepted(services.accounts, secret)) for _ in range(5)]
        await services.accounts.revoke_key("default", key.id, "ada")
        assert not await is_accepted(services.accounts, secret)
        await asyncio.gather(*looks)
        assert not await is_accepted(services.accounts, secret)


async def test_when_a_key_was_used_is_noted_once_a_minute(services: AppServices, clock: Clock) -> None:
    key, secret = await services.accounts.create_key("default", "office", "agent", "ada")
    assert (await services.accounts.keys("default"))[0].used_at is None

    async def used() -> int | None:
        await services.accounts.authenticate_key(secret)
        await services.accounts.drain()
        return (await services.accounts.keys("default"))[0].used_at

    assert await used() == START
    clock.forward(KEY_USE_INTERVAL - 1)
    assert await used() == START
    clock.forward(CACHE_TTL)
    assert await used() == START + KEY_USE_INTERVAL - 1 + CACHE_TTL
    assert await every_kind(services) == ["key_created"], key.id


async def test_many_who_come_at_once_with_one_key_make_one_look_up(services: AppServices, clock: Clock) -> None:
    """Also if the first of them gives up."""
    looks: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            looks.append(name)
            return getattr(services.store.accounts, name)

    accounts = Accounts(cast(AccountStore, Counting()), clock)
    _, secret = await accounts.create_key("default", "office", "agent", "ada")
    first, *others = [asyncio.create_task(accounts.authenticate_key(secret)) for _ in range(50)]
    await asyncio.sleep(0)
    first.cancel()
    found = await asyncio.gather(*others)
    await accounts.drain()
    assert {each.name for each in found} == {"office"}
    assert looks == ["change", "key", "touch_key"]


async def test_unknown_keys_take_no_memory(services: AppServices) -> None:
    for number in range(50):
        assert not await is_accepted(services.accounts, f"ilk_{number:08d}_{'a' * 43}")
    assert services.accounts.cache_size == 0


# People


async def test_people_are_added_changed_and_removed_with_an_author(services: AppServices) -> None:  # R41, R48
    accounts = services.accounts
    bob = await accounts.add_user("default", "bob", "reviewer", "ada", frozenset({"finance"}), "bob@example.com")
    assert bob == User("bob", "reviewer", teams=frozenset({"finance"}), email="bob@example.com")
    with pytest.raises(Conflict, match="there already"):
        await accounts.add_user("default", "bob", "admin", "eve")
    changed = (await accounts.change_user("default", "bob", "eve", teams=frozenset())).user
    assert changed == User("bob", "reviewer", teams=frozenset(), email="bob@example.com")
    assert (await accounts.change_user("default", "bob", "eve", teams=frozenset())).user == changed
    gone = (await accounts.remove_user("default", "bob", "ada")).user
    assert (gone.removed_at, gone.email) == (START, "")
    for change in (
        accounts.change_user("default", "bob", "ada", role="admin"),
        accounts.remove_user("default", "bob", "a"),
    ):
        with pytest.raises(NotFound):
            await change
    data = {"role": "reviewer", "user": "bob", "away_until": None}
    assert await events_of_kind(services, "user_changed") == [
        ("ada", data, {"email": "bob@example.com", "teams": ["finance"]}),
        ("eve", data, {"email": "bob@example.com", "teams": []}),
    ]
    assert await events_of_kind(services, "user_removed") == [("ada", {"sessions": 0, "user": "bob"}, None)]
    assert await faults(services) == []


async def test_removing_somebody_ends_all_they_came_in_by(services: AppServices) -> None:  # R48
    accounts = services.accounts
    await add_user_with_password(services)
    _, secret = await accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    _, token = await accounts.sign_in("default", "bob", PASSWORD)
    link = await accounts.create_link("default", "ada", "bob")
    assert [await is_accepted(accounts, each) for each in (secret, token)] == [True, True]
    await accounts.remove_user("default", "bob", "ada")
    assert [await is_accepted(accounts, each) for each in (secret, token)] == [False, False]
    for way_in in (accounts.sign_in("default", "bob", PASSWORD), accounts.use_link(link)):
        with pytest.raises(Unauthenticated):
            await way_in
    await accounts.add_user("default", "bob", "reviewer", "ada")
    with pytest.raises(Unauthenticated):
        await accounts.sign_in("default", "bob", PASSWORD)
    assert [await is_accepted(accounts, each) for each in (secret, token)] == [False, False]


async def test_the_only_admin_stays(services: AppServices) -> None:
    accounts = services.accounts
    assert await accounts.needs_first_admin("default")
    await accounts.add_user("default", "ada", "admin", SYSTEM_ACTOR)
    assert not await accounts.needs_first_admin("default")
    assert await accounts.needs_first_admin("acme")
    for change in (
        accounts.remove_user("default", "ada", "ada"),
        accounts.change_user("default", "ada", "ada", role="viewer"),
    ):
        with pytest.raises(Conflict, match="only admin"):
            await change
    await accounts.add_user("default", "eve", "admin", "ada")
    await accounts.remove_user("default", "ada", "eve")
    assert not await accounts.needs_first_admin("default")


async def test_two_admins_who_remove_each_other_at_once_leave_one(services: AppServices) -> None:
    """In one batch, where neither would see what the other is about to write."""
    accounts = services.accounts
    for name in ("ada", "eve"):
        await accounts.add_user("default", name, "admin", "ada")
    results = await asyncio.gather(
        accounts.remove_user("default", "ada", "eve"),
        accounts.remove_user("default", "eve", "ada"),
        return_exceptions=True,
    )
    assert sorted(type(result).__name__ for result in results) == ["Conflict", "UserChange"]
    assert not await accounts.needs_first_admin("default")


async def test_who_is_away_says_who_decides_meanwhile(services: AppServices) -> None:  # R40
    accounts, until = services.accounts, START + HOUR
    await accounts.add_user("default", "bob", "reviewer", "ada")
    stand_in = People(frozenset({"eve"}), frozenset({"leads"}))
    away = await accounts.set_away("default", "bob", until, stand_in, "bob")
    assert (away.away_until, away.away_to) == (until, stand_in)
    assert await accounts.users("default") == [away]
    back = await accounts.set_away("default", "bob", None, None, "ada")
    assert back == User("bob")
    assert await events_of_kind(services, "away_changed") == [
        ("bob", {"until": until, "user": "bob"}, {"to": {"teams": ["leads"], "users": ["eve"]}}),
        ("ada", {"until": None, "user": "bob"}, None),
    ]
    for when, to in ((START, stand_in), (until, People()), (until, People(frozenset({" "})))):
        with pytest.raises(InvalidRequest):
            await accounts.set_away("default", "bob", when, to, "bob")


@pytest.mark.parametrize(
    ("name", "role", "team", "email"),
    [
        ("", "viewer", "", ""),
        ("a\u202eb", "viewer", "", ""),
        ("interlock", "viewer", "", ""),
        ("agent:x", "viewer", "", ""),
        ("bob", "boss", "", ""),
        ("bob", "agent", "", ""),
        ("bob", "viewer", " ", ""),
        ("bob", "viewer", "", "bob"),
        ("bob", "viewer", "", "b ob@example.com"),
    ],
)
async def test_what_cannot_be_somebody_is_refused(
    services: AppServices, name: str, role: str, team: str, email: str
) -> None:
    with pytest.raises(InvalidRequest):
        await services.accounts.add_user("default", name, role, "ada", frozenset({team} - {""}), email)
    assert await every_kind(services) == []


async def test_a_workspace_is_made_once_and_listed(services: AppServices) -> None:
    await services.accounts.add_workspace("acme")
    await services.accounts.add_workspace("acme")
    assert ("acme", START) in await services.accounts.workspaces()
    for name in ("", "Acme", "a b", "a" * 64, "ä"):
        with pytest.raises(InvalidRequest, match="cannot be a workspace"):
            await services.accounts.add_workspace(name)


# Passwords and sessions


async def test_a_session_lasts_until_it_is_ended(services: AppServices, clock: Clock) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    who, token = await accounts.sign_in("default", "bob", PASSWORD)
    assert (who.name, who.role, who.teams, who.via) == ("bob", "reviewer", frozenset({"finance"}), "web")
    assert await accounts.authenticate_session(token) == who
    _, other = await accounts.sign_in("default", "bob", PASSWORD)
    await accounts.sign_out(token)
    await accounts.sign_out(token)
    assert not await is_accepted(accounts, token)
    assert await is_accepted(accounts, other)
    clock.forward(SESSION_LIFETIME - 1)
    assert await is_accepted(accounts, other)
    clock.forward(1)
    assert not await is_accepted(accounts, other)
    assert [each[:2] for each in await events_of_kind(services, "signed_in")] == [("bob", {"via": "password"})] * 2
    assert (await events_of_kind(services, "signed_in"))[0][2] == {"credential": who.credential}
    assert await events_of_kind(services, "signed_out") == [("bob", {"sessions": 1}, None)]


async def test_a_wrong_name_and_a_wrong_password_are_told_alike(services: AppServices) -> None:
    await add_user_with_password(services)
    await services.accounts.add_user("default", "eve", "admin", "ada")
    messages = set()
    wrong = (("bob", "wrong password"), ("nobody", PASSWORD), ("eve", ""), ("eve", PASSWORD), ("b\x00b", PASSWORD))
    for name, password in (*wrong, ("bob", "\ud800" * 12), ("bob", PASSWORD * 100), ("a\u202eb", PASSWORD)):
        with pytest.raises(Unauthenticated) as caught:
            await services.accounts.sign_in("default", name, password)
        messages.add(caught.value.message)
    with pytest.raises(Unauthenticated) as caught:
        await services.accounts.sign_in("acme", "bob", PASSWORD)
    assert messages | {caught.value.message} == messages
    assert len(messages) == 1


async def test_a_new_password_ends_the_other_sessions(services: AppServices) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    _, here = await accounts.sign_in("default", "bob", PASSWORD)
    _, there = await accounts.sign_in("default", "bob", PASSWORD)
    await accounts.set_password("default", "bob", "another password", "bob", here)
    assert [await is_accepted(accounts, token) for token in (here, there)] == [True, False]
    with pytest.raises(Unauthenticated):
        await accounts.sign_in("default", "bob", PASSWORD)
    assert (await accounts.sign_in("default", "bob", "another password"))[0].name == "bob"
    assert (await events_of_kind(services, "password_changed"))[-1] == (
        "bob",
        {"keys": 0, "sessions": 1, "user": "bob"},
        None,
    )
    for password in ("too short", "a" * 1025, "\ud800" * 12):
        with pytest.raises(InvalidRequest):
            await accounts.set_password("default", "bob", password, "bob")


async def test_a_password_that_changed_during_a_sign_in_does_not_count(services: AppServices) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    entering = asyncio.create_task(accounts.sign_in("default", "bob", PASSWORD))
    await asyncio.gather(accounts.remove_user("default", "bob", "ada"), entering, return_exceptions=True)
    await accounts.add_user("default", "bob", "reviewer", "ada")
    error = entering.exception()
    assert isinstance(error, Unauthenticated) or not await is_accepted(accounts, entering.result()[1])


async def test_composed_and_decomposed_letters_are_one_password(services: AppServices) -> None:
    await services.accounts.add_user("default", "bob", "viewer", "ada")
    await services.accounts.set_password("default", "bob", "Blücher an der Ähre", "ada")
    decomposed = "Blu\u0308cher an der A\u0308hre"
    assert (await services.accounts.sign_in("default", "bob", decomposed))[0].name == "bob"


async def test_signing_out_everywhere_ends_every_session(services: AppServices) -> None:
    await add_user_with_password(services)
    tokens = [(await services.accounts.sign_in("default", "bob", PASSWORD))[1] for _ in range(3)]
    assert await services.accounts.sign_out_everywhere("default", "bob", "ada") == (3, 0)
    assert not any([await is_accepted(services.accounts, token) for token in tokens])
    assert await events_of_kind(services, "signed_out") == [("ada", {"keys": 0, "sessions": 3, "user": "bob"}, None)]


async def test_a_person_has_a_bounded_number_of_sessions(services: AppServices, clock: Clock) -> None:
    accounts, tokens = services.accounts, []
    for _ in range(MAX_SESSIONS + 2):
        clock.forward(1)
        tokens.append((await accounts.sign_in_by_subject("default", "https://id.example bob", "", "bob", "viewer"))[1])
    assert [await is_accepted(accounts, token) for token in tokens[:3]] == [False, False, True]
    assert await accounts.sign_out_everywhere("default", "bob", "ada") == (MAX_SESSIONS, 0)


async def test_after_five_failures_a_name_has_to_wait(services: AppServices, clock: Clock) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    results = await asyncio.gather(
        *(accounts.sign_in("default", "bob", "wrong password", f"192.0.2.{n}") for n in range(12)),
        return_exceptions=True,
    )
    refused = [result for result in results if isinstance(result, TooManyRequests)]
    assert len(refused) == 12 - MAX_FAILURES_PER_NAME, "also if all come at once"
    assert refused[0].ids == {"retry_after": 60}
    clock.forward(20_500)
    with pytest.raises(TooManyRequests, match="in 40 seconds"):
        await accounts.sign_in("default", "bob", PASSWORD)
    clock.forward(39_500)
    assert (await accounts.sign_in("default", "bob", PASSWORD))[0].name == "bob"


async def test_after_twenty_failures_an_address_has_to_wait(services: AppServices) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    for number in range(MAX_FAILURES_PER_ADDRESS):
        with pytest.raises(Unauthenticated):
            await accounts.sign_in("default", f"name{number}", PASSWORD, f"2001:db8::{number}")
    with pytest.raises(TooManyRequests):
        await accounts.sign_in("default", "bob", PASSWORD, "2001:db8::ffff")
    assert (await accounts.sign_in("default", "bob", PASSWORD, "2001:db8:0:1::1"))[0].name == "bob"


async def test_failures_are_recorded_once_a_second_for_a_name(services: AppServices, clock: Clock) -> None:  # R41
    accounts = services.accounts
    await add_user_with_password(services)
    for name in ("bob", "bob", "nobody", "somebody", "a\u202eb"):
        with pytest.raises(Unauthenticated):
            await accounts.sign_in("default", name, "wrong password", "192.0.2.7")
        await accounts.drain()
    clock.forward(1_000)
    with pytest.raises(Unauthenticated):
        await accounts.sign_in("default", "bob", "wrong password")
    with pytest.raises(Unauthenticated):
        await accounts.sign_in("acme", "bob", "wrong password")
    await accounts.drain()
    assert await events_of_kind(services, "sign_in_failed") == [
        (SYSTEM_ACTOR, {}, {"address": "192.0.2.7", "name": "bob"}),
        (SYSTEM_ACTOR, {}, {"address": "192.0.2.7", "name": "nobody"}),
        (SYSTEM_ACTOR, {}, {"address": "", "name": "bob"}),
    ]
    assert await every_kind(services, "acme") == [], "nobody can make a ledger by a wrong name"
    assert await faults(services) == []


# One-time links


async def test_a_link_makes_the_first_admin_and_is_spent(services: AppServices) -> None:
    accounts = services.accounts
    token = await accounts.create_link("default", SYSTEM_ACTOR, role="admin")
    late = await accounts.create_link("default", SYSTEM_ACTOR, role="admin")
    link = await accounts.inspect_link(token)
    assert (link.person, link.role, link.expires_at) == ("", "admin", START + HOUR)
    for name, password in (("ada", ""), ("", PASSWORD), ("interlock", PASSWORD), ("ada", "short")):
        with pytest.raises(InvalidRequest):
            await accounts.use_link(token, name, password)
    who, session = await accounts.use_link(token, "ada", PASSWORD)
    assert (who.name, who.role) == ("ada", "admin")
    assert await accounts.authenticate_session(session) == who
    assert not await accounts.needs_first_admin("default")
    for spent in (token, late, "a" * 43, "", "\ud800"):
        with pytest.raises(Unauthenticated, match="was used"):
            await accounts.use_link(spent, "eve", PASSWORD)
    assert (await accounts.sign_in("default", "ada", PASSWORD))[0].role == "admin"
    assert await events_of_kind(services, "link_used") == [("ada", {"user": "ada"}, None)]
    assert await faults(services) == []


async def test_a_link_is_used_once_however_many_try(services: AppServices) -> None:  # R24
    token = await services.accounts.create_link("default", "ada", role="reviewer", teams=frozenset({"finance"}))
    results = await asyncio.gather(
        *(services.accounts.use_link(token, f"name{number}", PASSWORD) for number in range(8)), return_exceptions=True
    )
    (won,) = [result for result in results if not isinstance(result, BaseException)]
    assert {type(result) for result in results if isinstance(result, BaseException)} == {Unauthenticated}
    assert won[0].teams == frozenset({"finance"})
    assert [user.name for user in await services.accounts.users("default")] == [won[0].name]


async def test_of_two_processes_one_gets_the_link(place: Place, clock: Clock) -> None:  # R24
    async with opened(place, clock) as here, opened(place, clock) as there:
        for number in range(5):
            token = await here.accounts.create_link("default", "ada", role="viewer")
            results = await asyncio.gather(
                here.accounts.use_link(token, f"here{number}", PASSWORD),
                there.accounts.use_link(token, f"there{number}", PASSWORD),
                return_exceptions=True,
            )
            assert [type(each) for each in results if isinstance(each, BaseException)] == [Unauthenticated]
        assert len(await here.accounts.users("default")) == 5
        assert await faults(here) == []


async def test_somebody_who_is_removed_elsewhere_does_not_stay(place: Place, clock: Clock) -> None:  # R48
    async with opened(place, clock) as here, opened(place, clock) as there:
        for number in range(5):
            name = f"bob{number}"
            await add_user_with_password(here, name)
            entering = asyncio.create_task(here.accounts.sign_in("default", name, PASSWORD))
            await there.accounts.remove_user("default", name, "ada")
            await asyncio.gather(entering, return_exceptions=True)
            clock.forward(CACHE_TTL)
            signed_in = entering.exception() is None and await is_accepted(here.accounts, entering.result()[1])
            assert not signed_in
            await there.accounts.add_user("default", name, "viewer", "ada")
            assert place.sql("select count(*) from sessions where person = ?", name) == [(0,)]


async def test_a_link_takes_nobodys_name(services: AppServices) -> None:  # R48
    accounts = services.accounts
    for name in ("bob", "gone"):
        await accounts.add_user("default", name, "admin", "ada")
    await accounts.remove_user("default", "gone", "bob")
    token = await accounts.create_link("default", "ada", role="viewer")
    for name in ("bob", "gone"):
        with pytest.raises(Conflict, match="Choose another name"):
            await accounts.use_link(token, name, PASSWORD)
    assert (await accounts.use_link(token, "eve", PASSWORD))[0].role == "viewer"


async def test_a_link_for_somebody_signs_them_in_and_can_change_the_password(services: AppServices) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    _, elsewhere = await accounts.sign_in("default", "bob", PASSWORD)
    who, _ = await accounts.use_link(await accounts.create_link("default", "ada", "bob"))
    assert (who.name, who.role) == ("bob", "reviewer")
    assert await is_accepted(accounts, elsewhere)
    link = await accounts.create_link("default", "ada", "bob", "admin")
    who, here = await accounts.use_link(link, "eve", "another password")
    assert (who.name, who.role) == ("bob", "reviewer"), "a link raises nobody who is there"
    assert [await is_accepted(accounts, token) for token in (elsewhere, here)] == [False, True]
    assert (await accounts.sign_in("default", "bob", "another password"))[0].name == "bob"


async def test_a_link_ends_with_its_time(services: AppServices, clock: Clock) -> None:
    token = await services.accounts.create_link("default", "ada", role="viewer", lifetime=1_000)
    clock.forward(1_000)
    for attempt in (services.accounts.inspect_link(token), services.accounts.use_link(token, "eve", PASSWORD)):
        with pytest.raises(Unauthenticated):
            await attempt
    with pytest.raises(NotFound):
        await services.accounts.create_link("default", "ada", "nobody")
    with pytest.raises(InvalidRequest, match="a person or a role"):
        await services.accounts.create_link("default", "ada")
    invited = await services.accounts.create_link("default", "ada", "carol", "viewer")
    assert (await services.accounts.use_link(invited, "eve", PASSWORD))[0].name == "carol"


# People of a provider


async def test_a_provider_vouches_for_somebody_by_their_subject(services: AppServices) -> None:
    accounts, subject = services.accounts, "https://id.example 42"
    with pytest.raises(Unauthenticated, match="Ask an admin"):
        await accounts.sign_in_by_subject("default", subject, "bob@example.com", "bob")
    who, token = await accounts.sign_in_by_subject("default", subject, "bob@example.com", "bob", "viewer")
    assert (who.name, who.role) == ("bob", "viewer")
    assert await accounts.authenticate_session(token) == who
    again, _ = await accounts.sign_in_by_subject("default", subject, "new@example.com", "robert")
    assert again.name == "bob"
    with pytest.raises(Conflict):
        await accounts.sign_in_by_subject("default", "https://id.example 43", "", "bob", "admin")
    with pytest.raises(InvalidRequest):
        await accounts.sign_in_by_subject("default", "", "", "bob", "admin")
    await accounts.remove_user("default", "bob", "ada")
    with pytest.raises(Unauthenticated, match="were removed"):
        await accounts.sign_in_by_subject("default", subject, "bob@example.com", "bob", "viewer")
    with pytest.raises(Conflict):
        await accounts.sign_in_by_subject("default", "https://id.example 44", "", "bob", "viewer")
    await accounts.add_user("default", "bob", "viewer", "ada")
    with pytest.raises(Conflict):
        await accounts.sign_in_by_subject("default", subject, "", "bob", "viewer")
    assert [event[1] for event in await events_of_kind(services, "signed_in")] == [{"via": "oidc"}] * 2


async def test_a_verified_address_leads_to_whom_an_admin_added_with_it(services: AppServices) -> None:
    accounts = services.accounts
    await accounts.add_user("default", "bob", "reviewer", "ada", email="Bob@Example.com")
    for name in ("carol", "dave"):
        await accounts.add_user("default", name, "viewer", "ada", email="both@example.com")
    who, _ = await accounts.sign_in_by_subject("default", "https://id.example 1", "bob@example.com", "b")
    assert (who.name, who.role) == ("bob", "reviewer")
    for subject, email in (("2", "bob@example.com"), ("3", "both@example.com"), ("4", "")):
        with pytest.raises(Unauthenticated):
            await accounts.sign_in_by_subject("default", f"https://id.example {subject}", email, "eve")


# Time, and what is kept


async def test_what_has_ended_is_swept(services: AppServices, place: Place, clock: Clock) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    await accounts.sign_in("default", "bob", PASSWORD)
    await accounts.create_link("default", "ada", "bob")
    place.sql("insert into answers values ('default', 'bob', 'k', 'd', 200, ?, ?)", b"{}", START)
    assert await accounts.sweep() == 0
    clock.forward(HOUR)
    assert await accounts.sweep() == 1
    clock.forward(IDEMPOTENCY_RETENTION)
    assert await accounts.sweep() == 1
    clock.forward(SESSION_LIFETIME)
    assert await accounts.sweep() == 1
    assert [place.sql(f"select count(*) from {table}")[0][0] for table in ("sessions", "links", "answers")] == [0, 0, 0]


async def test_the_worker_sweeps_once_a_minute(services: AppServices, place: Place, clock: Clock) -> None:
    await services.worker.sweep()
    await services.accounts.create_link("default", "ada", role="viewer", lifetime=1_000)
    for forward, left in ((CLEANUP_INTERVAL - 1, 1), (1, 0)):
        clock.forward(forward)
        await services.worker.sweep()
        assert place.sql("select count(*) from links") == [(left,)]


async def test_no_secret_is_kept_anywhere(services: AppServices, place: Place) -> None:  # R41
    accounts = services.accounts
    await add_user_with_password(services)
    _, key = await accounts.create_key("default", "office", "agent", "ada")
    _, token = await accounts.sign_in("default", "bob", PASSWORD)
    link = await accounts.create_link("default", "ada", "bob")
    for secret in (PASSWORD, key[13:], token, link):
        holding = [table for table in place.tables() if secret in repr(place.sql(f"select * from {table}"))]
        assert holding == []
    record = repr([entry async for chunk in services.store.entries("default") for entry in chunk])
    digests = [row[0] for table in ("keys", "sessions", "links") for row in place.sql(f"select digest from {table}")]
    digests += [row[0] for row in place.sql("select password from users")]
    assert [digest for digest in digests if digest in record] == []
    assert len(digests) == 4


async def test_erasing_a_person_covers_what_is_known_of_them_as_one(services: AppServices, place: Place) -> None:  # R41
    accounts = services.accounts
    await accounts.add_user("default", "ada", "admin", SYSTEM_ACTOR)
    await accounts.add_user("default", "harriet", "reviewer", "ada", frozenset({"vane"}), "harriet-vane@example.com")
    await accounts.create_key("default", "harriet-vane's laptop", "viewer", "ada", "harriet")
    with pytest.raises(Unauthenticated):
        await accounts.sign_in("default", "harriet", "wrong password", "192.0.2.7")
    await accounts.drain()
    await accounts.set_away("default", "ada", START + HOUR, People(frozenset({"harriet"})), "ada")
    await accounts.remove_user("default", "harriet", "ada")
    erased = [lot async for lot in services.inbox.erase("default", Erasure("person", "harriet"), ADA)]
    assert sum(lot.entries for lot in erased) == 4
    holding = [table for table in place.tables() if "vane" in repr(place.sql(f"select * from {table}"))]
    assert holding == []
    assert place.sql("select email, subject from users where name = 'harriet'") == [("", "")]
    assert await faults(services) == []


async def test_failed_sign_ins_are_forgotten_by_age(services: AppServices, place: Place, clock: Clock) -> None:  # R41
    await add_user_with_password(services)
    with pytest.raises(Unauthenticated):
        await services.accounts.sign_in("default", "bob", "wrong password", "192.0.2.7")
    await services.accounts.drain()
    clock.forward(2 * HOUR)
    while await services.store.apply_retention(HOUR):
        pass
    assert (await events_of_kind(services, "sign_in_failed"))[0] == (SYSTEM_ACTOR, {}, None)
    assert await faults(services) == []
