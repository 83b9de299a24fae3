"""Passwords, sessions and one-time links on both databases."""

from __future__ import annotations

import asyncio

import pytest

from interlock.accounts.accounts import (
    CACHE_TTL,
    HOUR,
    MAX_FAILURES_PER_ADDRESS,
    MAX_FAILURES_PER_NAME,
    SESSION_LIFETIME,
)
from interlock.accounts.members import MAX_SESSIONS
from interlock.app.bootstrap import AppServices
from interlock.core.errors import Conflict, InvalidRequest, NotFound, TooManyRequests, Unauthenticated
from interlock.core.ledger.event import SYSTEM_ACTOR
from tests.contract.accounts import PASSWORD, add_user_with_password, events_of_kind, is_accepted
from tests.databases import Database
from tests.support import START, Clock, all_event_kinds, ledger_violations, open_services

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
    clock.advance(SESSION_LIFETIME - 1)
    assert await is_accepted(accounts, other)
    clock.advance(1)
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
        clock.advance(1)
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
    clock.advance(20_500)
    with pytest.raises(TooManyRequests, match="in 40 seconds"):
        await accounts.sign_in("default", "bob", PASSWORD)
    clock.advance(39_500)
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
    clock.advance(1_000)
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
    assert await all_event_kinds(services, "acme") == [], "nobody can make a ledger by a wrong name"
    assert await ledger_violations(services) == []


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
        with pytest.raises(Unauthenticated, match="was already used"):
            await accounts.use_link(spent, "eve", PASSWORD)
    assert (await accounts.sign_in("default", "ada", PASSWORD))[0].role == "admin"
    assert await events_of_kind(services, "link_used") == [("ada", {"user": "ada"}, None)]
    assert await ledger_violations(services) == []


async def test_a_link_is_used_once_however_many_try(services: AppServices) -> None:  # R24
    token = await services.accounts.create_link("default", "ada", role="reviewer", teams=frozenset({"finance"}))
    results = await asyncio.gather(
        *(services.accounts.use_link(token, f"name{number}", PASSWORD) for number in range(8)), return_exceptions=True
    )
    (won,) = [result for result in results if not isinstance(result, BaseException)]
    assert {type(result) for result in results if isinstance(result, BaseException)} == {Unauthenticated}
    assert won[0].teams == frozenset({"finance"})
    assert [user.name for user in await services.accounts.users("default")] == [won[0].name]


async def test_of_two_processes_one_gets_the_link(database: Database, clock: Clock) -> None:  # R24
    async with open_services(database, clock) as here, open_services(database, clock) as there:
        for number in range(5):
            token = await here.accounts.create_link("default", "ada", role="viewer")
            results = await asyncio.gather(
                here.accounts.use_link(token, f"here{number}", PASSWORD),
                there.accounts.use_link(token, f"there{number}", PASSWORD),
                return_exceptions=True,
            )
            assert [type(each) for each in results if isinstance(each, BaseException)] == [Unauthenticated]
        assert len(await here.accounts.users("default")) == 5
        assert await ledger_violations(here) == []


async def test_somebody_who_is_removed_elsewhere_does_not_stay(database: Database, clock: Clock) -> None:  # R48
    async with open_services(database, clock) as here, open_services(database, clock) as there:
        for number in range(5):
            name = f"bob{number}"
            await add_user_with_password(here, name)
            entering = asyncio.create_task(here.accounts.sign_in("default", name, PASSWORD))
            await there.accounts.remove_user("default", name, "ada")
            await asyncio.gather(entering, return_exceptions=True)
            clock.advance(CACHE_TTL)
            signed_in = entering.exception() is None and await is_accepted(here.accounts, entering.result()[1])
            assert not signed_in
            await there.accounts.add_user("default", name, "viewer", "ada")
            assert database.sql("select count(*) from sessions where person = ?", name) == [(0,)]


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
    clock.advance(1_000)
    for attempt in (services.accounts.inspect_link(token), services.accounts.use_link(token, "eve", PASSWORD)):
        with pytest.raises(Unauthenticated):
            await attempt
    with pytest.raises(NotFound):
        await services.accounts.create_link("default", "ada", "nobody")
    with pytest.raises(InvalidRequest, match="a person or a role"):
        await services.accounts.create_link("default", "ada")
    invited = await services.accounts.create_link("default", "ada", "carol", "viewer")
    assert (await services.accounts.use_link(invited, "eve", PASSWORD))[0].name == "carol"
