"""People on both databases: members, people of an identity provider, retention and erasure."""

from __future__ import annotations

import asyncio

import pytest

from interlock.accounts.accounts import (
    HOUR,
    IDEMPOTENCY_RETENTION,
    SESSION_LIFETIME,
)
from interlock.app.bootstrap import AppServices
from interlock.app.worker import CLEANUP_INTERVAL
from interlock.core.errors import Conflict, InvalidRequest, NotFound, Unauthenticated
from interlock.core.ledger.erasure import Erasure
from interlock.core.ledger.event import SYSTEM_ACTOR
from interlock.core.policy.policy import People
from interlock.core.ports import User
from tests.contract.accounts import PASSWORD, add_user_with_password, events_of_kind, is_accepted
from tests.databases import Database
from tests.support import ADA, START, Clock, all_event_kinds, ledger_violations

# Members


async def test_people_are_added_changed_and_removed_with_an_author(services: AppServices) -> None:  # R41, R48
    accounts = services.accounts
    bob = await accounts.add_user("default", "bob", "reviewer", "ada", frozenset({"finance"}), "bob@example.com")
    assert bob == User("bob", "reviewer", teams=frozenset({"finance"}), email="bob@example.com")
    with pytest.raises(Conflict, match="already exists"):
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
    assert await ledger_violations(services) == []


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
    assert await all_event_kinds(services) == []


async def test_a_workspace_is_made_once_and_listed(services: AppServices) -> None:
    await services.accounts.add_workspace("acme")
    await services.accounts.add_workspace("acme")
    assert ("acme", START) in await services.accounts.workspaces()
    for name in ("", "Acme", "a b", "a" * 64, "ä"):
        with pytest.raises(InvalidRequest, match="cannot be a workspace"):
            await services.accounts.add_workspace(name)


# People of an identity provider


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


# Retention


async def test_what_has_ended_is_swept(services: AppServices, database: Database, clock: Clock) -> None:
    accounts = services.accounts
    await add_user_with_password(services)
    await accounts.sign_in("default", "bob", PASSWORD)
    await accounts.create_link("default", "ada", "bob")
    database.sql("insert into answers values ('default', 'bob', 'k', 'd', 200, ?, ?)", b"{}", START)
    assert await accounts.sweep() == 0
    clock.advance(HOUR)
    assert await accounts.sweep() == 1
    clock.advance(IDEMPOTENCY_RETENTION)
    assert await accounts.sweep() == 1
    clock.advance(SESSION_LIFETIME)
    assert await accounts.sweep() == 1
    assert [database.sql(f"select count(*) from {table}")[0][0] for table in ("sessions", "links", "answers")] == [
        0,
        0,
        0,
    ]


async def test_the_worker_sweeps_once_a_minute(services: AppServices, database: Database, clock: Clock) -> None:
    await services.worker.sweep()
    await services.accounts.create_link("default", "ada", role="viewer", lifetime=1_000)
    for forward, left in ((CLEANUP_INTERVAL - 1, 1), (1, 0)):
        clock.advance(forward)
        await services.worker.sweep()
        assert database.sql("select count(*) from links") == [(left,)]


async def test_no_secret_is_kept_anywhere(services: AppServices, database: Database) -> None:  # R41
    accounts = services.accounts
    await add_user_with_password(services)
    _, key = await accounts.create_key("default", "office", "agent", "ada")
    _, token = await accounts.sign_in("default", "bob", PASSWORD)
    link = await accounts.create_link("default", "ada", "bob")
    for secret in (PASSWORD, key[13:], token, link):
        holding = [table for table in database.tables() if secret in repr(database.sql(f"select * from {table}"))]
        assert holding == []
    record = repr([entry async for chunk in services.store.entries("default") for entry in chunk])
    digests = [row[0] for table in ("keys", "sessions", "links") for row in database.sql(f"select digest from {table}")]
    digests += [row[0] for row in database.sql("select password from users")]
    assert [digest for digest in digests if digest in record] == []
    assert len(digests) == 4


async def test_erasing_a_person_covers_what_is_known_of_them_as_one(
    services: AppServices, database: Database
) -> None:  # R41
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
    holding = [table for table in database.tables() if "vane" in repr(database.sql(f"select * from {table}"))]
    assert holding == []
    assert database.sql("select email, subject from users where name = 'harriet'") == [("", "")]
    assert await ledger_violations(services) == []


async def test_failed_sign_ins_are_forgotten_by_age(
    services: AppServices, database: Database, clock: Clock
) -> None:  # R41
    await add_user_with_password(services)
    with pytest.raises(Unauthenticated):
        await services.accounts.sign_in("default", "bob", "wrong password", "192.0.2.7")
    await services.accounts.drain()
    clock.advance(2 * HOUR)
    while await services.store.apply_retention(HOUR):
        pass
    assert (await events_of_kind(services, "sign_in_failed"))[0] == (SYSTEM_ACTOR, {}, None)
    assert await ledger_violations(services) == []
