"""Grants on both databases: coverage, limits under concurrent calls, and the cost of expired ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from interlock.app.bootstrap import AppServices
from interlock.core.approval.approval import Approval
from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.decision import Reviewer
from interlock.core.errors import Conflict, Forbidden, InvalidRequest, NotFound
from interlock.core.grant import Grant
from interlock.core.ledger.chain import Entry
from interlock.core.ledger.event import Change, Moment, Stored
from interlock.core.outcome import Outcome, Proceed, Waiting
from interlock.core.policy.condition_budget import call_budget
from interlock.core.policy.policy import Condition
from interlock.core.ports import ProposalTransaction, ReadGrants
from interlock.policy.conditions import MAX_COST
from interlock.storage.store import SqlStore
from tests.databases import Database
from tests.support import ADA, BOB, EVE, OK, START, Clock, event_kinds, ledger_violations, open_services

PAY = ToolSpec("pay", "write", describe="Pay {amount}")
HOUR = 3_600_000
DRAFT = Grant(
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
DEAD_GRANTS = """
insert into grants (workspace, id, tool, spec_sha256, created_by, teams, role, created_at, expires_at, agent, condition,
    max_uses, uses, revoked_at, reason, budget_of, budget, spent)
with recursive n(i) as (select 1 union all select i + 1 from n where i < 1100)
select 'default', 'dead' || i, 'pay', '{spec}', 'bob', '[]', 'reviewer', {now}, {end}, '*', '', {limits} from n
"""


def pay(number: int | str, amount: object, **more: Any) -> ToolCall:
    return propose("pay", {"amount": amount}, "run", f"call{number}", **more)


async def check(services: AppServices, number: int | str, amount: object, **more: Any) -> Outcome:
    return await services.gate.check(pay(number, amount, **more), PAY)


async def is_allowed(services: AppServices, number: int | str, amount: object, **more: Any) -> bool:
    return isinstance(await check(services, number, amount, **more), Proceed)


async def make_grant(services: AppServices, maker: Reviewer = BOB, **scope: Any) -> Grant:
    return await services.inbox.grant(replace(DRAFT, **scope), maker)


async def entries(services: AppServices, kind: str) -> list[Entry]:
    return [entry async for page in services.store.entries("default") for entry in page if entry.kind == kind]


async def stored_grant(services: AppServices, grant_id: str = "g1") -> Grant:
    return await services.store.grant("default", grant_id)


# Budgets


async def test_a_budget_is_spent_exactly_and_no_further(services: AppServices) -> None:  # R51
    await make_grant(services, budget="1", budget_of="amount")
    assert [await is_allowed(services, n, amount) for n, amount in enumerate((0.1, 0.2, 0.71, 0.7, 0, 0.01))] == [
        *(True, True, False, True, False, False),
    ]
    grant = await stored_grant(services)
    assert (grant.uses, grant.spent, grant.budget_left) == (3, "1", "0")
    assert await services.inbox.active_grants("default") == []
    assert await ledger_violations(services) == []


async def test_what_cannot_be_counted_is_asked_about(services: AppServices) -> None:  # R51
    await make_grant(services, budget="100", budget_of="/amount")
    for number, amount in enumerate((-1, True, "5", None, [5], {"net": 5}, 100.01, 10**39, 1e300)):
        assert isinstance(await check(services, number, amount), Waiting), amount
    missing = propose("pay", {"sum": 5}, "run", "missing")
    assert isinstance(await services.gate.check(missing, PAY), Waiting)
    assert (await stored_grant(services)).spent == "0"
    assert await is_allowed(services, "fine", 100)


async def test_a_call_that_comes_back_is_counted_once(services: AppServices) -> None:  # R24, R51
    await make_grant(services, budget="10", budget_of="amount", max_uses=5)
    first = await check(services, 1, 4)
    assert [await check(services, 1, 4) for _ in range(3)] == [first] * 3
    grant = await stored_grant(services)
    assert (grant.uses, grant.spent) == (1, "4")


async def test_of_calls_that_race_for_the_rest_only_what_fits_passes(services: AppServices) -> None:  # R51
    await make_grant(services, budget="10", budget_of="amount")
    race = await asyncio.gather(*(is_allowed(services, n, 3) for n in range(12)))
    assert sum(race) == 3
    assert (await stored_grant(services)).spent == "9"
    assert await ledger_violations(services) == []


async def test_two_programs_share_one_budget(database: Database, clock: Clock) -> None:  # R51
    async with open_services(database, clock) as one, open_services(database, clock) as other:
        await make_grant(one, budget="100", budget_of="amount", max_uses=20)
        race = await asyncio.gather(*(is_allowed((one, other)[n % 2], n, 6) for n in range(60)))
        grant = await stored_grant(other)
        assert (sum(race), grant.uses, grant.spent) == (16, 16, "96")
        assert grant == await stored_grant(one)
        amounts = [json.loads(entry.content or b"")["amount"] for entry in await entries(one, "allowed")]
        assert amounts == ["6"] * 16
        assert await ledger_violations(other) == []


async def test_two_programs_share_the_last_use(database: Database, clock: Clock) -> None:  # R51
    async with open_services(database, clock) as one, open_services(database, clock) as other:
        for number in range(10):
            await make_grant(one, id=f"g{number}", max_uses=1)
            race = await asyncio.gather(*(is_allowed(each, f"{number}-{each is one}", 1) for each in (one, other)))
            assert sorted(race) == [False, True]


async def test_a_secret_amount_is_never_added_up(services: AppServices) -> None:  # R51, design rule 11
    spec = replace(PAY, secret=("amount",))
    await make_grant(services, spec_sha256=spec.sha256, budget="10", budget_of="amount")
    assert isinstance(await services.gate.check(pay(1, 5), spec), Waiting)
    with pytest.raises(InvalidRequest, match="is secret"):
        await make_grant(services, id="g2", spec_sha256=spec.sha256, budget="10", budget_of="amount")
    assert await event_kinds(services) == ["granted", "proposed"]


# Conditions


class ObservedStore:
    """The store as the gate reaches it: how often a call was begun, and what was evaluated meanwhile."""

    def __init__(self, services: AppServices) -> None:
        self.begun = 0
        self.before: list[Callable[[], Awaitable[object]]] = []  # what happens just before the next are begun
        self.evaluated: list[bool] = []  # whether that was inside of a transaction
        self._inside = False
        self._store, self._compiled = services.store, services.gate._compile_condition
        services.gate._store = cast(SqlStore, self)
        services.gate._compile_condition = self._compile

    async def propose(self, begin: ProposalTransaction) -> Stored:
        self.begun += 1
        if self.before:
            await self.before.pop(0)()
        return await self._store.propose(replace(begin, step=lambda *given: self._step(begin, *given)))

    def _step(self, begin: ProposalTransaction, moment: Moment, grants: ReadGrants) -> Change[Approval]:
        self._inside = True
        try:
            return begin.step(moment, grants)
        finally:
            self._inside = False

    def _compile(self, source: str) -> Condition:
        self.evaluated.append(self._inside)
        return self._compiled(source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_the_condition_of_a_grant_is_evaluated_before_the_transaction(services: AppServices) -> None:
    await make_grant(services, when="args.amount < 10")
    watched = ObservedStore(services)
    assert [await is_allowed(services, number, number) for number in (1, 2, 12)] == [True, True, False]
    assert watched.begun == 4  # the first had to find out that there is one
    assert watched.evaluated
    assert not any(watched.evaluated)
    await make_grant(services, id="g2", when="args.amount > 11")
    assert await is_allowed(services, 13, 12)
    assert (await stored_grant(services, "g2")).uses == 1
    assert not any(watched.evaluated)
    assert await ledger_violations(services) == []


async def test_a_grant_that_ends_while_its_condition_is_evaluated_covers_nothing(
    services: AppServices, clock: Clock
) -> None:
    first = await make_grant(services, when="args.amount < 10", max_uses=2)
    watched = ObservedStore(services)
    assert await is_allowed(services, 1, 1)
    watched.before = [lambda: services.inbox.revoke("default", first.id, BOB)]
    assert not await is_allowed(services, 2, 2)

    async def later() -> None:
        clock.advance(HOUR)

    await make_grant(services, id="g2", when="args.amount < 10")
    watched.before = [later]
    assert not await is_allowed(services, 3, 3)


async def test_a_grant_that_is_made_meanwhile_is_held_to_its_own_condition(services: AppServices) -> None:
    await make_grant(services, when="args.amount < 10")
    watched = ObservedStore(services)
    watched.before = [
        lambda: make_grant(services, id="g2", when="args.amount > 11"),
        lambda: make_grant(services, id="g3", when="args.amount > 12"),
    ]
    assert not await is_allowed(services, 1, 11)
    assert watched.begun == 3
    assert await is_allowed(services, 2, 12)


async def test_conditions_of_grants_share_the_time_of_the_call(services: AppServices) -> None:
    for number in range(20):
        await make_grant(services, id=f"g{number}", when=f"args.amount.filter(x, x == 'abcd').size() < {number}")
    asked = pay(1, ["abcd"] * 600)
    assert isinstance(await services.gate.check(asked, PAY), Waiting)
    assert 0 < call_budget(asked).spent <= MAX_COST


async def test_conditions_are_known_of_so_many_tools_only(
    services: AppServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.app.gate.MAX_CACHED_TOOLS", 1)
    for tool in ("pay", "move", "pay"):
        spec = ToolSpec(tool, "write")
        number = len(services.gate._grant_conditions) + len(await event_kinds(services))
        await make_grant(services, id=f"g{number}", tool=tool, spec_sha256=spec.sha256, when="args.amount < 10")
        made = propose(tool, {"amount": 1}, "run", f"call{number}")
        assert isinstance(await services.gate.check(made, spec), Proceed)
        assert len(services.gate._grant_conditions) == 1


# The record


async def test_the_record_says_which_grant_and_whose(services: AppServices) -> None:  # R41, R51
    await make_grant(services, budget="20", budget_of="amount", max_uses=2, reason="rent week", agent="off*")
    outcome = await check(services, 1, 7.5, agent="office")
    assert isinstance(outcome, Proceed)
    view = await services.inbox.show("default", outcome.approval_id)
    assert dict(view.card.facts)["grant"] == "g1, made by bob"
    (entry,) = view.timeline
    data, content = json.loads(entry.data), json.loads(entry.content or b"")
    assert (entry.kind, entry.actor, data["grant"], data["granted_by"]) == ("allowed", "agent:office", "g1", "bob")
    assert (data["use"], data["uses_left"]) == (1, 1)
    assert (content["amount"], content["budget_left"]) == ("7.5", "12.5")
    assert content["reason"] == "Covered by the grant g1, which bob made."
    (made,) = await entries(services, "granted")
    limits = {name: json.loads(made.data)[name] for name in ("max_uses", "budget", "budget_of", "expires_at")}
    assert limits == {"max_uses": 2, "budget": "20", "budget_of": "amount", "expires_at": START + HOUR}
    assert (made.actor, json.loads(made.content or b"")["reason"]) == ("bob", "rent week")


async def test_a_revocation_has_its_reason_and_counts_at_once_everywhere(
    database: Database, clock: Clock
) -> None:  # R51
    async with open_services(database, clock) as one, open_services(database, clock) as other:
        await make_grant(one)
        assert await is_allowed(one, 1, 1)
        assert await is_allowed(other, 2, 1)
        await other.inbox.revoke("default", "g1", ADA, "the project is over")
        assert not await is_allowed(one, 3, 1)
        assert not await is_allowed(other, 4, 1)
        view = await one.inbox.show_grant("default", "g1")
        assert (view.state, view.grant.uses) == ("revoked", 2)
        assert view.revocation_entry is not None
        assert view.revocation_entry.actor == "ada"
        assert json.loads(view.revocation_entry.content or b"")["reason"] == "the project is over"


async def test_nobody_but_its_maker_or_an_admin_revokes_and_no_program_makes_one(
    services: AppServices,
) -> None:  # R48, R51
    for maker in (Reviewer("agent:office", "admin"), Reviewer("office", "agent"), Reviewer("vic", "viewer")):
        with pytest.raises(Forbidden):
            await make_grant(services, maker)
    await make_grant(services)
    with pytest.raises(Forbidden, match="bob made this grant"):
        await services.inbox.revoke("default", "g1", EVE)
    assert await event_kinds(services) == ["granted"]
    with pytest.raises(NotFound, match="no grant with this id"):
        await services.inbox.revoke("default", "g2", ADA)


async def test_an_id_is_given_once_so_that_nothing_revoked_comes_back(services: AppServices) -> None:  # R51
    await make_grant(services, max_uses=1)
    await services.inbox.revoke("default", "g1", BOB)
    with pytest.raises(Conflict, match="already"):
        await make_grant(services)
    twice = await asyncio.gather(*(make_grant(services, id="g2") for _ in range(2)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in twice) == ["Conflict", "Grant"]
    assert (await stored_grant(services)).revoked_at == START
    assert await event_kinds(services) == ["granted", "grant_revoked", "granted"]


async def test_a_grant_shows_the_calls_that_it_let_through(services: AppServices, clock: Clock) -> None:  # R41, R51
    await make_grant(services, budget="100", budget_of="amount")
    await make_grant(services, id="g0", tool="other")
    ids = []
    for number, amount in enumerate((5, 200, 7)):
        clock.advance(1)
        outcome = await check(services, number, amount)
        ids += [outcome.approval_id] if isinstance(outcome, Proceed) else []
    execution = await services.gate.start("default", ids[1], "runner")
    await services.gate.finish("default", ids[1], execution.fence, ok=True, payload=OK)
    view = await services.inbox.show_grant("default", "g1")
    assert [(stored.approval.id, stored.approval.status) for stored in view.recent_calls] == [
        (ids[1], "succeeded"),
        (ids[0], "approved"),
    ]
    assert [stored.payload.sentence for stored in view.recent_calls] == ["Pay 7", "Pay 5"]
    assert (view.state, view.revocation_entry) == ("active", None)
    assert len((await services.inbox.show_grant("default", "g1", uses=1)).recent_calls) == 1
    assert (await services.inbox.show_grant("default", "g0")).recent_calls == ()


# What is over


async def test_a_grant_ends_by_the_clock(services: AppServices, clock: Clock) -> None:  # R51
    await make_grant(services, expires_at=START + 30_000)
    clock.advance(29_999)
    assert await is_allowed(services, 1, 1)
    assert len(await services.inbox.active_grants("default")) == 1
    clock.advance(1)
    assert not await is_allowed(services, 2, 1)
    assert await services.inbox.active_grants("default") == []
    assert (await services.inbox.show_grant("default", "g1")).state == "expired"
    clock.advance(10 * 60_000)
    assert not await is_allowed(services, 3, 1)
    assert [grant.id for grant in await services.inbox.grants("default")] == ["g1"]


@pytest.mark.parametrize(
    ("end", "limits"),
    [
        pytest.param(START - 600_000, "null, 0, null, '', '', '', '0'", id="expired"),
        pytest.param(START + HOUR, f"null, 0, {START}, '', '', '', '0'", id="revoked"),
        pytest.param(START + HOUR, "3, 3, null, '', '', '', '0'", id="used"),
        pytest.param(START + HOUR, "null, 3, null, '', 'amount', '9.5', '9.5'", id="spent"),
    ],
)
async def test_no_number_of_dead_grants_hides_a_living_one(
    services: AppServices, database: Database, clock: Clock, end: int, limits: str
) -> None:  # R51
    await make_grant(services, max_uses=2)
    assert await is_allowed(services, 1, 1)
    database.sql(DEAD_GRANTS.format(spec=PAY.sha256, now=START + 1, end=end, limits=limits))
    clock.advance(1)
    assert await is_allowed(services, 2, 1)
    assert not await is_allowed(services, 3, 1)
    await make_grant(services, id="g2")
    assert [grant.id for grant in await services.inbox.active_grants("default")] == ["g2"]
    assert "g1" not in [grant.id for grant in await services.inbox.grants("default")], "that list has an end"


async def test_tools_of_all_names_are_looked_up(services: AppServices) -> None:  # R51
    """More names than are remembered between batches, and several in one batch."""
    many = [ToolSpec(f"tool{number}", "write") for number in range(1_010)]
    for number in (3, 1_009):
        await make_grant(services, id=f"g{number}", tool=many[number].name, spec_sha256=many[number].sha256)
    for _ in range(2):
        outcomes = await asyncio.gather(
            *(services.gate.check(propose(s.name, {}, "run", f"{s.name}-{_}"), s) for s in many)
        )
        assert [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Proceed)] == [3, 1_009]


# What a new one is tied to


async def test_a_grant_is_tied_to_the_newest_definition(services: AppServices, clock: Clock) -> None:  # R47, R51
    with pytest.raises(NotFound, match="No call of 'pay' has been seen"):
        await services.inbox.definition("default", "pay")
    changed = replace(PAY, describe="Send {amount}")
    for number, (spec, agent) in enumerate(((PAY, "office"), (changed, "shop"), (changed, "shop"))):
        await services.gate.check(pay(number, 1, agent=agent), spec)
        clock.advance(1_000)
    newest = await services.inbox.definition("default", "pay")
    assert (newest.spec.sha256, newest.agent, newest.at, newest.others) == (changed.sha256, "shop", START + 2_000, 1)
    theirs = await services.inbox.definition("default", "pay", "off*")
    assert (theirs.spec.sha256, theirs.agent, theirs.others) == (PAY.sha256, "office", 0)
    strangers = await services.inbox.definition("default", "pay", "nobody")
    assert strangers.spec.sha256 == changed.sha256
    with pytest.raises(NotFound, match="'other'"):
        await services.inbox.definition("other", "pay")


async def test_ids_of_grants_may_be_shortened(services: AppServices) -> None:  # R51
    for grant_id in ("0190-aaaa", "0190-bbbb"):
        await make_grant(services, id=grant_id)
    assert await services.store.find_grant_ids("default", "aaaa", 5) == ["0190-aaaa"]
    assert set(await services.store.find_grant_ids("default", "0190", 5)) == {"0190-aaaa", "0190-bbbb"}
    assert await services.store.find_grant_ids("default", "%", 5) == []
