"""API keys on both databases: roles, bindings, quotas, expiry, rotation and the cache of lookups."""

from __future__ import annotations

import asyncio
from shlex import quote
from typing import cast

import pytest

from interlock.accounts.accounts import (
    CACHE_TTL,
    HOUR,
    KEY_USE_INTERVAL,
    Accounts,
)
from interlock.accounts.keys import NEVER_EXPIRES, PERSONAL_KEY_LIFETIME
from interlock.app.bootstrap import AppServices
from interlock.core.errors import Conflict, InvalidRequest, NotFound, Unauthenticated
from interlock.core.identity import KeyBindings, Principal
from interlock.core.ports import AccountStore
from tests.contract.accounts import PASSWORD, add_user_with_password, events_of_kind, is_accepted
from tests.databases import Database
from tests.support import START, Clock, all_event_kinds, ledger_violations, open_services


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
    assert [kind for kind in await all_event_kinds(services) if kind.startswith("key")] == [
        "key_created",
        "key_revoked",
    ]
    assert await ledger_violations(services) == []


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
    clock.advance(CACHE_TTL)
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
    assert await ledger_violations(services) == []


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
    with pytest.raises(InvalidRequest, match="Name one requester"):
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
    clock.advance(CACHE_TTL // 2)
    with pytest.raises(Unauthenticated, match=r"has expired\. Ask an admin for another: interlock keys"):
        await accounts.authenticate_key(brief)
    clock.advance(PERSONAL_KEY_LIFETIME - CACHE_TTL // 2 - 1)
    assert [await is_accepted(accounts, each) for each in (laptop, office)] == [True, True]
    clock.advance(1)
    assert [await is_accepted(accounts, each) for each in (laptop, office)] == [False, True]
    _, lasting = await accounts.create_key("default", "phone", "reviewer", "ada", "bob", lifetime=NEVER_EXPIRES)
    clock.advance(2 * PERSONAL_KEY_LIFETIME)
    assert await is_accepted(accounts, lasting)
    for lasts in (0, -2):
        with pytest.raises(InvalidRequest, match="use never"):
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
    clock.advance(HOUR)
    options = "--agent office --agent 'night shift' --tool 'mail_*' --requester bob --per-minute 10 --pending 0"
    assert (await refusal(accounts, mailer)).endswith(f": interlock keys create --name mailer --role agent {options}")
    assert (await refusal(accounts, phone)).endswith("keys create --name phone --role viewer --user bob")
    assert (await refusal(accounts, many)).endswith(f"interlock keys list --all --json ({many[:12]})")
    for stranger in (mailer[:-1] + "_", mailer[:13] + phone[13:], revoked):
        assert await refusal(accounts, stranger) == ("This key is unknown or was revoked. Ask an admin for another.")


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
    clock.advance(HOUR)
    assert [await is_accepted(accounts, each) for each in (old, new, newest)] == [False, False, True]
    assert third.expires_at is None
    with pytest.raises(Conflict, match="no longer valid"):
        await accounts.rotate_key("default", first.id, "eve")
    with pytest.raises(NotFound):
        await accounts.rotate_key("acme", third.id, "eve")
    events = await events_of_kind(services, "key_rotated")
    assert [(actor, data["key"], data["replaces"]) for actor, data, _ in events] == [
        ("eve", second.id, first.id),
        ("eve", third.id, second.id),
    ]
    assert await ledger_violations(services) == []


async def test_a_rotated_key_lasts_as_long_as_the_old_one_did(services: AppServices, clock: Clock) -> None:
    key, _ = await services.accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    clock.advance(PERSONAL_KEY_LIFETIME - HOUR)
    new, secret = await services.accounts.rotate_key("default", key.id, "bob", overlap=30 * HOUR)
    assert new.expires_at == clock() + PERSONAL_KEY_LIFETIME
    kept = {each.id: each.expires_at for each in await services.accounts.keys("default")}
    assert kept[key.id] == key.expires_at, "an overlap lengthens nothing"
    clock.advance(PERSONAL_KEY_LIFETIME - 1)
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


async def test_a_key_that_is_known_is_not_looked_up_again_for_a_second(database: Database, clock: Clock) -> None:
    async with open_services(database, clock) as here, open_services(database, clock) as elsewhere:
        key, secret = await here.accounts.create_key("default", "office", "agent", "ada")
        assert await is_accepted(here.accounts, secret)
        await here.accounts.drain()
        await elsewhere.accounts.revoke_key("default", key.id, "ada")
        assert await is_accepted(here.accounts, secret), "no look at the database"
        clock.advance(CACHE_TTL)
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
    clock.advance(KEY_USE_INTERVAL - 1)
    assert await used() == START
    clock.advance(CACHE_TTL)
    assert await used() == START + KEY_USE_INTERVAL - 1 + CACHE_TTL
    assert await all_event_kinds(services) == ["key_created"], key.id


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
