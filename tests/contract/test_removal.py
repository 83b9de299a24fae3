"""Removal and demotion on both databases: in one transaction, also in a race."""
# R61

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolSpec, propose
from interlock.core.decision import Acknowledgement, Approve, Reject, Reviewer
from interlock.core.errors import Error, Forbidden
from interlock.core.grant import Grant
from interlock.core.outcome import Proceed, Waiting
from interlock.core.policy.policy import People
from interlock.core.removal import RemovalEffects
from interlock.storage.engine.transaction import Transaction
from tests.databases import Database
from tests.support import START, Clock, event_kinds, ledger_violations, open_services

HOUR = 3_600_000
PAY = ToolSpec("pay", "write")
GRANT = Grant(
    id="g1",
    workspace="default",
    tool="pay",
    spec_sha256=PAY.sha256,
    created_by="",
    teams=frozenset(),
    role="",
    created_at=0,
    expires_at=START + HOUR,
)
RULES = """
version: 1
rules:
  - {name: two, tools: [wire], then: ask, approvers: {teams: [finance]}, quorum: 2}
  - {name: one, tools: [pay], then: ask}
"""
FINANCE = frozenset({"finance"})
PEOPLE = {"ada": "admin", "bob": "reviewer", "eve": "reviewer", "fay": "reviewer"}


@pytest.fixture
async def bank_services(database: Database, clock: Clock) -> AsyncIterator[AppServices]:
    async with open_services(database, clock, RULES) as services:
        await people(services)
        yield services


async def people(services: AppServices) -> None:
    for name, role in PEOPLE.items():
        await services.accounts.add_user("default", name, role, "ada", FINANCE)


async def propose_transfer(services: AppServices, number: int | str = 1) -> str:
    """A call for which two of finance have to vote."""
    outcome = await services.gate.check(propose("wire", {"n": number}, "run", f"w{number}"), ToolSpec("wire", "write"))
    assert isinstance(outcome, Waiting)
    return outcome.approval_id


async def propose_payment(services: AppServices, number: int | str = 1) -> bool:
    """Whether it passes without a person."""
    return isinstance(await services.gate.check(propose("pay", {}, "run", f"p{number}"), PAY), Proceed)


async def vote(services: AppServices, approval_id: str, who: Reviewer) -> str:
    stored = await services.store.get("default", approval_id)
    decision = Approve(Acknowledgement(stored.approval.args_sha256))
    return (await services.inbox.decide("default", approval_id, decision, who)).status


async def person(services: AppServices, name: str) -> Reviewer:
    """As the server makes them: with what they came by."""
    return replace(await services.inbox.reviewer("default", name, "web"), credential="session 0123")


async def approval(services: AppServices, approval_id: str) -> Approval:
    return (await services.store.get("default", approval_id)).approval


async def test_the_vote_of_somebody_who_was_removed_counts_no_more(bank_services: AppServices) -> None:
    waiting = await propose_transfer(bank_services)
    assert await vote(bank_services, waiting, await person(bank_services, "bob")) == "pending"
    gone = await bank_services.accounts.remove_user("default", "bob", "ada")
    assert gone.effects.votes == (waiting,)
    assert (await approval(bank_services, waiting)).votes == ()
    assert await vote(bank_services, waiting, await person(bank_services, "eve")) == "pending", "one of two"
    assert await vote(bank_services, waiting, await person(bank_services, "fay")) == "approved"
    assert await ledger_violations(bank_services) == []


async def test_a_rejection_that_is_undone_brings_no_vote_of_a_leaver_back(bank_services: AppServices) -> None:
    waiting = await propose_transfer(bank_services)
    await vote(bank_services, waiting, await person(bank_services, "bob"))
    eve = await person(bank_services, "eve")
    await bank_services.inbox.decide(
        "default", waiting, Reject("no", Acknowledgement((await approval(bank_services, waiting)).args_sha256)), eve
    )
    await bank_services.accounts.remove_user("default", "bob", "ada")
    undone = await bank_services.inbox.undo("default", waiting, eve)
    assert (undone.status, undone.votes) == ("pending", ())
    assert await ledger_violations(bank_services) == []


@pytest.mark.parametrize("how", ["demoted", "out of the team"])
async def test_a_rejection_that_is_undone_brings_no_vote_of_somebody_demoted_back(
    bank_services: AppServices, how: str
) -> None:
    waiting = await propose_transfer(bank_services)
    await vote(bank_services, waiting, await person(bank_services, "bob"))
    eve = await person(bank_services, "eve")
    await bank_services.inbox.decide(
        "default", waiting, Reject("no", Acknowledgement((await approval(bank_services, waiting)).args_sha256)), eve
    )
    match how:
        case "demoted":
            await bank_services.accounts.change_user("default", "bob", "ada", role="viewer")
        case _:
            await bank_services.accounts.change_user("default", "bob", "ada", teams=frozenset({"ops"}))
    undone = await bank_services.inbox.undo("default", waiting, eve)
    assert (undone.status, undone.votes) == ("pending", ())
    assert await vote(bank_services, waiting, eve) == "pending", "one of two"
    assert await ledger_violations(bank_services) == []


async def test_a_rejection_that_is_undone_keeps_the_votes_of_those_who_may_still_vote(
    bank_services: AppServices,
) -> None:
    waiting = await propose_transfer(bank_services)
    await vote(bank_services, waiting, await person(bank_services, "bob"))
    eve = await person(bank_services, "eve")
    await bank_services.inbox.decide(
        "default", waiting, Reject("no", Acknowledgement((await approval(bank_services, waiting)).args_sha256)), eve
    )
    await bank_services.accounts.change_user("default", "bob", "ada", role="admin")
    undone = await bank_services.inbox.undo("default", waiting, eve)
    assert [each.by for each in undone.votes] == ["bob"]
    assert await vote(bank_services, waiting, eve) == "approved"


async def test_a_rejection_that_is_undone_brings_no_delegation_of_somebody_demoted_back(
    bank_services: AppServices,
) -> None:
    await bank_services.accounts.add_user("default", "zoe", "reviewer", "ada")
    waiting = await propose_transfer(bank_services)
    await bank_services.inbox.delegate(
        "default", waiting, People(frozenset({"zoe"})), await person(bank_services, "bob")
    )
    await bank_services.inbox.delegate(
        "default", waiting, People(frozenset({"zoe"})), await person(bank_services, "fay")
    )
    eve = await person(bank_services, "eve")
    await bank_services.inbox.decide(
        "default", waiting, Reject("no", Acknowledgement((await approval(bank_services, waiting)).args_sha256)), eve
    )
    await bank_services.accounts.change_user("default", "bob", "ada", teams=frozenset())
    undone = await bank_services.inbox.undo("default", waiting, eve)
    assert [each.by for each in undone.delegations] == ["fay"]
    await bank_services.inbox.decide(
        "default", waiting, Reject("no", Acknowledgement((await approval(bank_services, waiting)).args_sha256)), eve
    )
    await bank_services.accounts.change_user("default", "zoe", "ada", role="viewer")
    assert (await bank_services.inbox.undo("default", waiting, eve)).delegations == ()
    assert await ledger_violations(bank_services) == []


async def test_what_was_approved_before_stays_approved(bank_services: AppServices) -> None:
    waiting = await propose_transfer(bank_services)
    for name in ("bob", "eve"):
        await vote(bank_services, waiting, await person(bank_services, name))
    await bank_services.accounts.remove_user("default", "bob", "ada")
    assert (await approval(bank_services, waiting)).status == "approved"
    assert (await bank_services.gate.start("default", waiting, "runner")).fence == 1


@pytest.mark.parametrize("how", ["removed", "demoted", "out of the team"])
async def test_a_grant_ends_with_what_its_maker_may(bank_services: AppServices, how: str) -> None:
    await bank_services.inbox.grant(GRANT, await person(bank_services, "bob"))
    assert await propose_payment(bank_services, 1)
    match how:
        case "removed":
            change = await bank_services.accounts.remove_user("default", "bob", "ada")
        case "demoted":
            change = await bank_services.accounts.change_user("default", "bob", "ada", role="viewer")
        case _:
            change = await bank_services.accounts.change_user("default", "bob", "ada", teams=frozenset())
    assert change.effects.grants == (("g1", "pay"),)
    assert not await propose_payment(bank_services, 2)
    assert (await bank_services.store.grant("default", "g1")).revoked_at == START
    assert "grant_revoked" in await event_kinds(bank_services)
    assert await ledger_violations(bank_services) == []


async def test_a_change_that_takes_nothing_away_ends_nothing(bank_services: AppServices) -> None:
    waiting = await propose_transfer(bank_services)
    await bank_services.inbox.grant(GRANT, await person(bank_services, "bob"))
    await vote(bank_services, waiting, await person(bank_services, "bob"))
    change = await bank_services.accounts.change_user("default", "bob", "ada", role="admin", teams=FINANCE | {"ops"})
    assert change.effects == RemovalEffects()
    assert await propose_payment(bank_services)
    assert [each.by for each in (await approval(bank_services, waiting)).votes] == ["bob"]


async def test_somebody_who_leaves_the_team_takes_their_vote_along(bank_services: AppServices) -> None:
    waiting = await propose_transfer(bank_services)
    await vote(bank_services, waiting, await person(bank_services, "bob"))
    change = await bank_services.accounts.change_user("default", "bob", "ada", teams=frozenset({"ops"}))
    assert change.effects.votes == (waiting,)
    assert (await approval(bank_services, waiting)).votes == ()


async def test_delegations_by_and_to_somebody_end_with_them(bank_services: AppServices) -> None:
    await bank_services.accounts.add_user("default", "zoe", "reviewer", "ada")
    by_bob, to_bob, to_both = (
        await propose_transfer(bank_services, 1),
        await propose_transfer(bank_services, 2),
        await propose_transfer(bank_services, 3),
    )
    await bank_services.inbox.delegate(
        "default", by_bob, People(frozenset({"zoe"})), await person(bank_services, "bob")
    )
    await bank_services.inbox.delegate(
        "default", to_bob, People(frozenset({"bob"})), await person(bank_services, "eve")
    )
    await bank_services.inbox.delegate(
        "default", to_both, People(frozenset({"bob", "zoe"})), await person(bank_services, "eve")
    )
    await vote(bank_services, by_bob, await person(bank_services, "zoe"))
    gone = await bank_services.accounts.remove_user("default", "bob", "ada")
    assert set(gone.effects.delegations) == {by_bob, to_bob, to_both}
    assert gone.effects.votes == (by_bob,), "in the seat of somebody who is gone"
    assert [(await approval(bank_services, each)).delegations for each in (by_bob, to_bob)] == [(), ()]
    (left,) = (await approval(bank_services, to_both)).delegations
    assert left.to == People(frozenset({"zoe"}))
    with pytest.raises(Forbidden):
        await vote(bank_services, by_bob, await person(bank_services, "zoe"))


async def test_a_removed_person_is_nobodys_delegate_any_more(bank_services: AppServices) -> None:
    accounts = bank_services.accounts
    await accounts.set_away("default", "eve", START + HOUR, People(frozenset({"bob"})), "eve")
    await accounts.set_away("default", "fay", START + HOUR, People(frozenset({"bob", "ada"})), "fay")
    gone = await accounts.remove_user("default", "bob", "ada")
    assert gone.effects.away == ("eve", "fay")
    left = {user.name: user.away_to for user in await accounts.users("default")}
    assert (left["eve"], left["fay"]) == (None, People(frozenset({"ada"})))


async def test_links_that_they_made_for_others_end_and_keys_are_named(bank_services: AppServices) -> None:
    accounts = bank_services.accounts
    await accounts.add_user("default", "root", "admin", "ada")
    invitation = await accounts.create_link("default", "root", role="admin")
    key, _ = await accounts.create_key("default", "office", "agent", "root")
    gone = await accounts.remove_user("default", "root", "ada")
    assert (gone.effects.links, gone.effects.made_keys) == (1, ((key.id, "office"),))
    with pytest.raises(Error, match="was already used or has expired"):
        await accounts.inspect_link(invitation)


async def test_what_would_end_is_told_before_and_nothing_changes(bank_services: AppServices) -> None:
    waiting = await propose_transfer(bank_services)
    await bank_services.inbox.grant(GRANT, await person(bank_services, "bob"))
    await vote(bank_services, waiting, await person(bank_services, "bob"))
    key, _ = await bank_services.accounts.create_key("default", "laptop", "reviewer", "ada", "bob")
    before = await event_kinds(bank_services)
    result = await bank_services.accounts.preview_change("default", "bob")
    assert (result.grants, result.votes, result.keys) == ((("g1", "pay"),), (waiting,), ((key.id, "laptop"),))
    demoted = await bank_services.accounts.preview_change("default", "bob", "viewer")
    assert (demoted.grants, demoted.votes, demoted.keys) == ((("g1", "pay"),), (waiting,), ())
    assert await event_kinds(bank_services) == before
    assert await propose_payment(bank_services)
    assert (await bank_services.accounts.remove_user("default", "bob", "ada")).effects == result


async def test_a_vote_that_races_a_removal_does_not_count(bank_services: AppServices) -> None:
    """In one batch, whichever comes first: who voted was let in before they were removed."""
    bob = await person(bank_services, "bob")
    for number in range(8):
        waiting = await propose_transfer(bank_services, number)
        vote_first = number % 2 == 0
        removal = bank_services.accounts.remove_user("default", "bob", "ada")
        voting = vote(bank_services, waiting, bob)
        both = (voting, removal) if vote_first else (removal, voting)
        await asyncio.gather(*both, return_exceptions=True)
        assert (await approval(bank_services, waiting)).votes == ()
        await bank_services.accounts.add_user("default", "bob", "reviewer", "ada", FINANCE)
    assert await ledger_violations(bank_services) == []


async def test_a_vote_in_another_process_does_not_outlive_a_removal(database: Database, clock: Clock) -> None:
    async with open_services(database, clock, RULES) as here, open_services(database, clock, RULES) as there:
        await people(here)
        for number in range(6):
            waiting = await propose_transfer(here, number)
            bob = await person(there, "bob")
            removal, voting = here.accounts.remove_user("default", "bob", "ada"), vote(there, waiting, bob)
            await asyncio.gather(removal, voting, return_exceptions=True)
            assert (await approval(here, waiting)).votes == ()
            with pytest.raises(Forbidden):
                await vote(there, waiting, bob)
            await here.accounts.add_user("default", "bob", "reviewer", "ada", FINANCE)
        assert await ledger_violations(here) == []


async def test_a_grant_that_races_a_removal_is_not_left(bank_services: AppServices) -> None:
    bob = await person(bank_services, "bob")
    for number in range(6):
        making = bank_services.inbox.grant(replace(GRANT, id=f"g{number}"), bob)
        removal = bank_services.accounts.remove_user("default", "bob", "ada")
        await asyncio.gather(*((making, removal) if number % 2 else (removal, making)), return_exceptions=True)
        assert not await propose_payment(bank_services, number)
        await bank_services.accounts.add_user("default", "bob", "reviewer", "ada", FINANCE)


async def test_an_unknown_outcome_is_resolved_by_those_who_may_decide_the_call(
    bank_services: AppServices, clock: Clock
) -> None:
    await bank_services.accounts.add_user("default", "zoe", "reviewer", "ada", frozenset({"support"}))
    waiting = await propose_transfer(bank_services)
    for name in ("bob", "eve"):
        await vote(bank_services, waiting, await person(bank_services, name))
    await bank_services.gate.start("default", waiting, "runner")
    clock.advance(HOUR)
    await bank_services.worker.sweep()
    assert (await approval(bank_services, waiting)).status == "unknown"
    with pytest.raises(Forbidden, match="team finance"):
        await bank_services.inbox.resolve_unknown("default", waiting, await person(bank_services, "zoe"), ok=True)
    resolved = await bank_services.inbox.resolve_unknown(
        "default", waiting, await person(bank_services, "fay"), ok=True
    )
    assert resolved.status == "succeeded"


async def test_calls_that_wait_are_read_once_for_a_change_and_not_at_all_for_a_new_address(
    bank_services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are read under the lock of the ledger, where everybody else waits."""
    approval_id, reads, read = await propose_transfer(bank_services), [], Transaction.pending_with_activity

    def counted(tx: Transaction, workspace: str) -> list[Approval]:
        reads.append(workspace)
        return read(tx, workspace)

    await vote(bank_services, approval_id, await person(bank_services, "bob"))
    monkeypatch.setattr(Transaction, "pending_with_activity", counted)
    await bank_services.accounts.change_user("default", "bob", "ada", email="bob@example.com")
    assert reads == []
    changed = await bank_services.accounts.change_user("default", "bob", "ada", teams=frozenset())
    assert (reads, changed.effects.votes) == (["default"], (approval_id,))
    await bank_services.accounts.remove_user("default", "bob", "ada")
    assert reads == ["default", "default"]
    assert await ledger_violations(bank_services) == []
