"""Verification of tampered tables on both databases: the violation names the field and the row."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from interlock.app import audit
from interlock.app.bootstrap import AppServices, build_services
from interlock.app.freezes import Freezes
from interlock.cli.commands.hook import LocalBackend
from interlock.core.call import Caller, ToolSpec
from interlock.core.decision import Acknowledgement, Edit, Reject, Respond
from interlock.core.grant import Grant
from interlock.core.identity import KeyBindings
from interlock.core.ledger.erasure import Erasure
from interlock.core.ledger.event import Payload
from interlock.core.ledger.invariants import Violation
from interlock.core.policy.policy import People
from interlock.core.ports import AgentDeletion
from interlock.core.preview import Preview
from interlock.storage.engine import transaction
from interlock.storage.migrate import ALTERED
from tests.databases import Database
from tests.support import ADA, BOB, EVE, OK, START, Clock, approve, call, open_services, propose_pending

DAY = 86_400_000
POLICY = """
defaults: {undo_window: 1h}
rules:
  - {name: two, tools: [wire_money], then: ask, quorum: 2, expires_in: 1d, remind: [1h]}
  - {name: three, tools: [sign], then: ask, quorum: 3, expires_in: 9d}
  - {name: free, tools: [note], then: allow}
"""
WIRE = ToolSpec(
    "wire_money",
    "destructive",
    describe="Wire {amount}",
    secret=("key",),
    preview=lambda args: Preview("a preview", "version 1"),
)
NOTE = ToolSpec("note", "write")
SIGN = ToolSpec("sign", "write")
CALLER = Caller(
    owner="agent:office",
    owners=frozenset({"agent:office"}),
    agents=("office",),
    credential="k1",
    requester="ann",
    requester_is_proven=True,
)
MAIL = ToolSpec("mail", "write", describe="Mail {to}")
Change = Callable[[Any], Any]


def set_in_json(**changes: object) -> Change:
    return lambda text: json.dumps({**json.loads(text), **changes}, separators=(",", ":"))


def without_votes(text: str) -> str:
    return str(set_in_json(votes=[])(text))


def replace_voter(text: str) -> str:
    votes = [["mallory", *vote[1:]] for vote in json.loads(text)["votes"]]
    return str(set_in_json(votes=votes)(text))


def add_vote_of_removed(text: str) -> str:
    """The vote of somebody who was removed counts again."""
    votes = json.loads(text)["votes"]
    return str(set_in_json(votes=[*votes, ["gone", *votes[0][1:]]])(text))


PAID = "call_id = 'wired'"
BOUND, ROTATED = "name = 'bound' and root = ''", "name = 'bound' and root <> ''"
FROZEN = "name = 'Dröp'"
# Table, rows, column, the altered value, and the field that the violation names.
TAMPERING: list[tuple[str, str, str, object, str]] = [
    ("approvals", PAID, "decision", set_in_json(by="mallory"), "decision.by"),
    ("approvals", PAID, "decision", set_in_json(kind="edit"), "decision.kind"),
    ("approvals", PAID, "decision", set_in_json(at=START - 1), "decision.at"),
    ("approvals", PAID, "decision", set_in_json(via="slack"), "decision.via"),
    ("approvals", PAID, "decision", set_in_json(reason="Because"), "decision.reason"),
    ("approvals", PAID, "decision", set_in_json(comment="Because"), "decision.comment"),
    ("approvals", PAID, "decision", None, "decision.by"),
    ("approvals", PAID, "requester", "mallory", "requester"),
    ("approvals", PAID, "requester", "", "requester"),
    ("approvals", PAID, "agent", "mallory", "agent"),
    ("approvals", PAID, "agent_path", '["mallory"]', "agent_path"),
    ("approvals", PAID, "thread_id", "another", "thread_id"),
    ("approvals", PAID, "effect", "read", "effect"),
    ("approvals", PAID, "priority", "low", "subject"),
    ("approvals", PAID, "tool", "note", "tool"),
    ("approvals", PAID, "owner", "*", "subject"),
    ("approvals", PAID, "known", set_in_json(requester="mallory"), "subject"),
    ("approvals", PAID, "progress", set_in_json(deferred=[1, 1]), "deferred"),
    ("approvals", "call_id = 'moved'", "expires_at", START + 2, "expires_at"),
    ("approvals", "call_id = 'moved'", "progress", set_in_json(deferred=[0, 0]), "deferred"),
    ("approvals", "call_id = 'moved'", "progress", set_in_json(deferred=[3_600_000, 1]), "deferred_until"),
    ("approvals", "call_id = 'left'", "progress", add_vote_of_removed, "votes"),
    ("approvals", "call_id = 'left'", "progress", set_in_json(claimed="gone"), "claimed_by"),
    ("approvals", PAID, "status", "rejected", "status"),
    ("approvals", PAID, "progress", without_votes, "votes"),
    ("approvals", PAID, "progress", replace_voter, "votes"),
    ("approvals", PAID, "progress", set_in_json(editors=["mallory"]), "editors"),
    ("approvals", PAID, "progress", set_in_json(claimed="mallory"), "claimed_by"),
    ("approvals", PAID, "progress", set_in_json(reminded=0), "reminded"),
    ("approvals", PAID, "progress", set_in_json(delegations=[]), "delegations"),
    ("approvals", PAID, "progress", set_in_json(alarms=["/to: strange"]), "alarms"),
    ("approvals", PAID, "progress", set_in_json(erased=[1, "mallory"]), "erased"),
    ("approvals", PAID, "expires_at", START + 2, "expires_at"),
    ("approvals", PAID, "created_at", START + 2, "created_at"),
    ("approvals", PAID, "start_by", START + 2, "start_by"),
    ("approvals", PAID, "grant_id", "g1", "grant_id"),
    ("approvals", PAID, "fence", 2, "fence"),
    ("approvals", PAID, "runner", "mallory", "runner"),
    ("approvals", PAID, "terms_sha256", "other terms", "terms"),
    ("approvals", "call_id = 'noted'", "decision", set_in_json(by="mallory"), "decision.by"),
    ("approvals", "call_id = 'noted'", "decision", set_in_json(reason="Ann said so."), "decision.reason"),
    ("approvals", "call_id = 'refused'", "release_at", START + 2, "release_at"),
    ("approvals", "call_id = 'refused'", "decision", set_in_json(reason="Fine"), "decision.reason"),
    ("approvals", "call_id = 'answered'", "decision", set_in_json(reason="Fine"), "decision.reason"),
    ("approvals", "call_id = 'silent'", "decision", set_in_json(reason="Fine"), "decision.reason"),
    ("payloads", PAID, "args", b'{"amount":6}', "args"),
    ("payloads", PAID, "shown", b'{"amount":6}', "args"),
    ("payloads", PAID, "sentence", "Nothing to see", "sentence"),
    ("payloads", PAID, "preview", "Nothing to see", "preview"),
    ("payloads", PAID, "preview_version", "version 2", "preview_version"),
    ("payloads", PAID, "preview_version", None, "preview_version"),
    ("payloads", "call_id = 'failed'", "preview_version", "version 1", "preview_version"),
    ("payloads", PAID, "agent_says", "Nothing to see", "agent_says"),
    ("payloads", PAID, "result", b'"all is well"', "result"),
    ("payloads", PAID, "error", "It did not work", "error"),
    ("payloads", "call_id = 'failed'", "error", "All is well", "error"),
    ("payloads", "call_id = 'answered'", "result", b'"no"', "result"),
    ("payloads", "call_id = 'resolved'", "result", b'"no"', "result"),
    ("payloads", "call_id = 'edited'", "sentence", "Mail ann", "sentence"),
    ("users", "name = 'bob'", "role", "admin", "role"),
    ("users", "name = 'bob'", "teams", '["legal"]', "teams"),
    ("users", "name = 'bob'", "email", "mallory@example.com", "email"),
    ("users", "name = 'bob'", "removed_at", START, "removed_at"),
    ("users", "name = 'gone'", "removed_at", None, "removed_at"),
    ("users", "name = 'eve'", "away_until", None, "away_until"),
    ("users", "name = 'eve'", "away_to", '{"users":["mallory"],"teams":[]}', "away_to"),
    ("policies", "version = 2", "body", "rules: []", "body"),
    ("policies", "version = 2", "sha256", "0" * 64, "sha256"),
    ("policies", "version = 2", "author", "mallory", "author"),
    ("policies", "version = 2", "source", "file", "source"),
    ("keys", "name = 'program'", "role", "admin", "role"),
    ("keys", "name = 'program'", "digest", "0" * 64, "sha256"),
    ("keys", "name = 'program'", "person", "ada", "person"),
    ("keys", "name = 'lost'", "revoked_at", None, "revoked_at"),
    ("keys", "name = 'program'", "agents", '["office"]', "agents"),
    ("keys", "name = 'program'", "requester", "any", "requester"),
    ("keys", "name = 'program'", "expires_at", START, "expires_at"),
    ("keys", "name = 'program'", "rotated_from", "ilk_other", "rotated_from"),
    ("keys", "name = 'program'", "root", "ilk_other", "root"),
    ("keys", "name = 'program'", "per_minute", 0, "quotas"),
    ("keys", "name = 'program'", "pending", 9, "quotas"),
    ("keys", BOUND, "per_minute", None, "quotas"),
    ("keys", BOUND, "agents", "", "agents"),
    ("keys", BOUND, "tools", '["*"]', "tools"),
    ("keys", BOUND, "requester", "none", "requester"),
    ("keys", BOUND, "expires_at", None, "expires_at"),
    ("keys", ROTATED, "agents", '["mallory"]', "agents"),
    ("keys", ROTATED, "rotated_from", "", "rotated_from"),
    ("keys", ROTATED, "root", "", "root"),
    ("keys", ROTATED, "pending", 0, "quotas"),
    ("keys", ROTATED, "expires_at", None, "expires_at"),
    ("grants", "id = 'g1'", "expires_at", START + 2 * DAY, "expires_at"),
    ("grants", "id = 'g1'", "uses", 0, "uses"),
    ("grants", "id = 'g1'", "max_uses", 1_000, "max_uses"),
    ("grants", "id = 'g1'", "condition", "", "when"),
    ("grants", "id = 'g1'", "agent", "mallory", "agent"),
    ("grants", "id = 'g1'", "role", "admin", "role"),
    ("grants", "id = 'g1'", "teams", '["legal"]', "scope"),
    ("grants", "id = 'g1'", "spent", "0", "budget_left"),
    ("grants", "id = 'g2'", "revoked_at", None, "revoked_at"),
    ("freezes", FROZEN, "scope", "agent", "scope"),
    ("freezes", FROZEN, "name", "other", "name"),
    ("freezes", FROZEN, "folded", "other", "folded"),
    ("freezes", FROZEN, "reason", "For fun", "reason"),
    ("freezes", FROZEN, "created_by", "mallory", "by"),
    ("freezes", FROZEN, "at", START - 1, "at"),
    ("freezes", FROZEN, "released_at", START, "released_at"),
    ("freezes", FROZEN, "settled_at", START, "settled_at"),
    ("freezes", "name = 'mail'", "released_at", None, "released_at"),
    ("freezes", "name = 'mail'", "released_by", "mallory", "released_by"),
    ("pins", "tool = 'wire_money'", "definition", b'{"effect":"read"}', "spec"),
    ("pins", "tool = 'wire_money'", "agent", "mallory", "agent"),
    ("pins", "tool = 'wire_money'", "pinned_by", "mallory", "author"),
    ("agents", "name = 'office'", "body", '{"tool_approvals":{"mail":false}}', "body"),
    ("agents", "name = 'office'", "version", 7, "version"),
]
DEFINITIONS = "select sha256 from terms where sha256 <> ?"


@pytest.fixture
async def services(database: Database, clock: Clock) -> AsyncIterator[AppServices]:
    """Something of everything that the verifier compares."""
    async with open_services(database, clock, POLICY) as services:
        await add_people(services)
        await add_calls(services, clock)
        yield services


async def add_people(services: AppServices) -> None:
    accounts, store = services.accounts, services.store
    await accounts.add_user("default", "ada", "admin", "ada")
    await accounts.add_user("default", "bob", "reviewer", "ada", frozenset({"finance"}), "bob@example.com")
    await accounts.add_user("default", "eve", "reviewer", "ada", frozenset({"finance"}))
    await accounts.add_user("default", "gone", "reviewer", "ada")
    await accounts.set_away("default", "eve", services.clock() + DAY, People(frozenset({"bob", "gone"})), "eve")
    await add_removed_voter(services)
    await accounts.remove_user("default", "gone", "ada")
    await accounts.create_key("default", "program", "agent", "ada")
    lost, _ = await accounts.create_key("default", "lost", "agent", "ada")
    await accounts.revoke_key("default", lost.id, "ada")
    bindings = KeyBindings(("office",), ("mail", "note*"), "any", 0, 7)
    bound, _ = await accounts.create_key("default", "bound", "agent", "ada", bindings=bindings, lifetime=9 * DAY)
    await accounts.rotate_key("default", bound.id, "ada")
    await services.put_policy("default", POLICY + "  - {name: more, tools: [x], then: deny}\n", "ada", {}, "needed")
    await store.put_agent("default", "office", '{"tool_approvals": {"mail": true}}', "ada")
    await store.put_agent("default", "night", '{"tools": ["cms"]}', "ada")
    await store.delete_agent("default", "night", AgentDeletion(), "ada", "Not needed.")


async def add_removed_voter(services: AppServices) -> None:
    """Somebody votes, passes on and takes up what they then leave behind."""
    approval_id = await propose_pending(services, "l", SIGN)
    gone = replace(EVE, name="gone")
    await services.inbox.claim("default", approval_id, gone)
    await services.inbox.delegate("default", approval_id, People(frozenset({"ulf"})), gone)
    await approve(services, approval_id, gone)
    await services.inbox.delegate("default", approval_id, People(frozenset({"ulf", "gone"})), EVE)
    await approve(services, approval_id)


async def add_freezes(services: AppServices, clock: Clock) -> None:
    freezes = Freezes(services.store.freezes, clock)
    await propose_pending(services, "m", MAIL, args={"to": "bob"})
    freeze = await freezes.freeze("default", "tool", "mail", "Stop it.", ADA)
    clock.advance(3_600_000)
    await freezes.release("default", freeze.id, "All is well.", ADA)
    await freezes.freeze("default", "tool", "Dröp", "Nobody drops.", ADA)


async def add_calls(services: AppServices, clock: Clock) -> None:
    named: dict[str, Any] = {"requester": "ann", "agent": "office", "thread_id": "t1", "agent_says": "It is due."}
    path = {"agent_path": ("office", "clerk"), "caller": CALLER}
    wired = await propose_pending(services, "_", WIRE, **named, args={"amount": 5, "key": "s"}, **path)
    await services.inbox.delegate("default", wired, People(frozenset({"ulf"})), EVE)
    clock.advance(3_600_000)
    await services.worker.sweep()
    await services.inbox.ask("default", wired, "Why?", BOB)
    await approve(services, wired)
    await approve(services, wired, ADA)
    await run_call(services, wired)
    await services.gate.check(call("_", args={"text": "x"}, tool="note", run_id="notes"), NOTE)
    failed, edited, unknown = [
        await propose_pending(services, name, MAIL, args={"to": "bob"}) for name in ("f", "e", "u")
    ]
    await approve(services, failed)
    started = await services.gate.start("default", failed, "runner")
    await services.gate.finish("default", failed, started.fence, ok=False, payload=Payload(error="No such box"))
    seen = Acknowledgement((await services.store.get("default", edited)).approval.args_sha256)
    await services.inbox.decide("default", edited, Edit({"to": "carol"}, seen), BOB)
    await approve(services, unknown)
    started = await services.gate.start("default", unknown, "runner", 1_000)
    clock.advance(2_000)
    await services.worker.sweep()
    await services.inbox.resolve_unknown("default", unknown, BOB, note="It was sent", ok=True, result="yes")
    answered, rejected = [await propose_pending(services, name, MAIL, args={"to": "bob"}) for name in ("a", "r")]
    seen = Acknowledgement((await services.store.get("default", answered)).approval.args_sha256, reason="I know")
    await services.inbox.decide("default", answered, Respond("Call him", seen=seen), BOB)
    await services.inbox.decide("default", rejected, Reject("Not now", seen), BOB)
    await add_grants(services)
    await propose_pending(services, "s", MAIL, args={"to": "bob"})
    clock.advance(2 * DAY)
    await services.worker.sweep()
    await propose_pending(services, "w", MAIL, args={"to": "bob"})
    await add_freezes(services, clock)
    await services.store.pin("default", [WIRE, MAIL], "office", "ada")
    await services.store.unpin("default", MAIL.name, "ada")


async def add_grants(services: AppServices) -> None:
    scope = Grant(
        id="g1",
        workspace="default",
        tool="mail",
        spec_sha256=MAIL.sha256,
        created_by="",
        teams=frozenset(),
        role="",
        created_at=0,
        expires_at=services.clock() + 4 * DAY,
    )
    limits = {"agent": "off*", "when": "args.n < 9", "max_uses": 5, "budget": "100", "budget_of": "/n"}
    await services.inbox.grant(replace(scope, **limits), BOB)  # type: ignore[arg-type]
    await services.gate.check(call("g", args={"to": "bob", "n": 3}, tool="mail", agent="office"), MAIL)
    await services.inbox.grant(replace(scope, id="g2"), BOB)
    await services.inbox.revoke("default", "g2", BOB)


async def run_call(services: AppServices, approval_id: str) -> None:
    started = await services.gate.start("default", approval_id, "runner")
    await services.gate.finish("default", approval_id, started.fence, ok=True, payload=OK)


async def find_violations(services: AppServices) -> tuple[Violation, ...]:
    return (await audit.verify(services.store, "default")).violations


NAMES = {"wired": "call_", "noted": "call_", "failed": "callf", "edited": "calle", "resolved": "callu"}
NAMES |= {"moved": "callm", "left": "calll", "answered": "calla", "refused": "callr", "silent": "calls"}


def row_condition(database: Database, table: str, where: str) -> str:
    """Calls by what became of them; what has an id by that, since the rest is changed."""
    if table in ("keys", "freezes"):
        return f"id = '{database.sql(f'select id from {table} where {where}')[0][0]}'"
    for name, call_id in NAMES.items():
        if where == f"call_id = '{name}'":
            run_id = "notes" if name == "noted" else "run"
            found = database.sql("select id from approvals where run_id = ? and call_id = ?", run_id, call_id)
            return f"id = '{found[0][0]}'"
    return where


# R62
async def test_every_field_that_somebody_changes_is_told_with_its_row(
    services: AppServices, database: Database
) -> None:
    assert await find_violations(services) == ()
    unseen = []
    for table, where, column, new, field in TAMPERING:
        which = row_condition(database, table, where)
        [(old,)] = database.sql(f"select {column} from {table} where {which}")
        old = bytes(old) if isinstance(old, memoryview) else old
        changed = new(old) if callable(new) else new
        if new == "other terms":
            changed = database.sql(DEFINITIONS, old)[0][0]
        assert changed != old, (table, column)
        database.sql_without_triggers(f"update {table} set {column} = ? where {which}", changed)
        result = await find_violations(services)
        if (table if table != "payloads" else "approvals", field) not in {(each.table, each.field) for each in result}:
            unseen.append((table, column, changed, result))
        database.sql_without_triggers(f"update {table} set {column} = ? where {which}", old)
    assert unseen == []
    assert await find_violations(services) == (), "all of it was put back"


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("users", {"workspace": "default", "name": "mallory", "role": "admin", "teams": "[]"}),
        (
            "keys",
            {"id": "ilk_forged", "digest": "0" * 64, "workspace": "default", "name": "x", "role": "admin"}
            | {"person": "ada", "created_by": "ada", "created_at": START},
        ),
        (
            "policies",
            {"workspace": "default", "version": 3, "sha256": "0" * 64, "body": "x", "author": "ada", "at": START},
        ),
        (
            "agents",
            {"workspace": "default", "name": "mallory", "version": 1, "body": "{}", "author": "ada", "at": START},
        ),
        (
            "grants",
            {"workspace": "default", "id": "forged", "tool": "mail", "spec_sha256": "x", "created_by": "bob"}
            | {"teams": "[]", "role": "admin", "created_at": START, "expires_at": START, "agent": "*"}
            | {"condition": "", "uses": 0, "reason": ""},
        ),
        (
            "freezes",
            {"workspace": "default", "id": "forged", "scope": "tool", "name": "x", "folded": "x", "reason": "x"}
            | {"created_by": "ada", "at": START, "released_by": ""},
        ),
        (
            "pins",
            {
                "workspace": "default",
                "tool": "forged",
                "definition": b"{}",
                "agent": "",
                "pinned_by": "ada",
                "at": START,
            },
        ),
    ],
)
async def test_a_row_that_no_entry_speaks_of_is_told(
    services: AppServices, database: Database, table: str, row: dict[str, object]
) -> None:
    marks = ", ".join("?" * len(row))
    database.sql_without_triggers(f"insert into {table} ({', '.join(row)}) values ({marks})", *row.values())
    [fault] = await find_violations(services)
    assert (fault.table, fault.message.endswith("No entry of the ledger records its creation.")) == (table, True)


@pytest.mark.parametrize("table", ["approvals", "users", "keys", "policies", "grants", "agents", "freezes", "pins"])
async def test_rows_that_are_gone_are_told(services: AppServices, database: Database, table: str) -> None:
    [(count,)] = database.sql(f"select count(*) from {table}")
    database.sql_without_triggers(f"delete from {table}")
    result = await find_violations(services)
    assert {(fault.table, "Its row is missing" in fault.message) for fault in result} == {(table, True)}
    assert len(result) == count


async def test_a_name_that_a_key_used_is_told_if_it_is_not_noted(services: AppServices, database: Database) -> None:
    """A freeze of the agent covers every key that is noted to have used its name."""
    for name in ("clerk", "'*'"):
        again = replace(CALLER, credential=f"key of {name}")
        await propose_pending(services, name, MAIL, args={"to": "bob"}, agent="Clerk", caller=again)
    database.sql_without_triggers("delete from key_agents where agent = 'clerk'")
    database.sql_without_triggers(
        "insert into key_agents (workspace, agent, key_id) values ('default', '*', ?)", "key of '*'"
    )
    result = [(each.table, each.row, each.message.partition(": ")[2]) for each in await find_violations(services)]
    assert sorted((table, key) for table, key, _ in result) == [("key_agents", "k1"), ("key_agents", "key of clerk")]
    assert all(said.startswith("It used the agent name") for _, _, said in result)
    database.sql_without_triggers("insert into key_agents (workspace, agent, key_id) values ('default', 'clerk', 'k1')")
    database.sql_without_triggers(
        "insert into key_agents (workspace, agent, key_id) values ('default', 'clerk', 'key of clerk')"
    )
    database.sql_without_triggers(
        "insert into key_agents (workspace, agent, key_id) values ('default', 'reader', 'k1')"
    )
    assert await find_violations(services) == (), "reads leave no entry, and their names are noted too"


async def test_altered_terms_and_definitions_are_told_and_stop_nothing(
    services: AppServices, database: Database
) -> None:
    [(wired,)] = database.sql("select id from approvals where call_id = 'call_' and run_id = 'run'")
    [(terms, spec)] = database.sql("select terms_sha256, spec_sha256 from approvals where id = ?", wired)
    database.sql_without_triggers("update terms set body = ? where sha256 = ?", b"{}", terms)
    database.sql_without_triggers("update specs set body = ? where sha256 <> ?", b"{}", spec)
    said = {fault.row: fault.message.partition(": ")[2] for fault in await find_violations(services)}
    assert said.pop(wired).startswith("Its terms ")
    assert set(said.values()) == {"The definition of its tool is missing or was altered."}


# R62
async def test_writers_at_work_raise_no_alarm(database: Database, clock: Clock) -> None:
    """In a thread of its own, with a connection of its own, it verifies for as long as two others write and erase."""
    async with open_services(database, clock) as services:
        scope = Grant(
            id="g1",
            workspace="default",
            tool="note",
            spec_sha256=NOTE.sha256,
            created_by="",
            teams=frozenset(),
            role="",
            created_at=0,
            expires_at=services.clock() + DAY,
        )
        await services.inbox.grant(scope, BOB)
        other, done = build_services(database.url, clock), threading.Event()
        await other.store.open()
        verifying = asyncio.create_task(asyncio.to_thread(asyncio.run, verified_until(database.url, done)))
        try:
            await asyncio.gather(write_rows(services, "a"), write_rows(other, "b"))
        finally:
            done.set()
            reports = await verifying
            await other.store.close()
    assert [report.violations for report in reports if report.violations] == []
    assert len({report.entries for report in reports}) > 2, "it has to meet them at work"


async def verified_until(url: str, done: threading.Event) -> list[audit.AuditReport]:
    store, reports = build_services(url).store, []  # type: Any, list[audit.AuditReport]
    await store.open()
    try:
        while not done.is_set() or not reports:
            reports.append(await audit.verify(store, "default"))
        return reports
    finally:
        await store.close()


async def write_rows(services: AppServices, name: str, rounds: int = 12) -> None:
    accounts = services.accounts
    for number in range(rounds):
        waits = await propose_pending(services, f"{name}{number}", MAIL, args={"to": "bob"})
        await services.gate.check(call(f"n{name}{number}", tool="note", args={"text": "x"}), NOTE)
        await approve(services, waits)
        await run_call(services, waits)
        await accounts.add_user(
            "default", f"{name}{number}", "reviewer", "ada", frozenset({"finance"}), "x@example.com"
        )
        await accounts.change_user("default", f"{name}{number}", "ada", role="admin")
        key, _ = await accounts.create_key("default", "program", "agent", "ada", f"{name}{number}")
        await accounts.revoke_key("default", key.id, "ada")
        await accounts.add_user("default", f"gone{name}{number}", "reviewer", "ada", frozenset({"finance"}))
        await accounts.remove_user("default", f"gone{name}{number}", "ada")
        for erasure in (Erasure("approval", waits, "", "ann"), Erasure("person", f"gone{name}{number}", "", "ann")):
            async for _ in services.store.erase("default", erasure):
                await asyncio.sleep(0)


# A database from before


@pytest.fixture
async def services_before_statements(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AppServices]:
    """As a version left it whose entries did not state their rows."""
    async with open_services(database, clock, POLICY) as services:
        with monkeypatch.context() as old:
            old.setattr(transaction, "add_row_digests", lambda change, *_: change.events)
            await add_people(services)
            await add_calls(services, clock)
        database.sql("delete from marks where name = 'stated'")
        yield services


# R62
async def test_a_database_from_before_is_stated_once_and_compared_from_then_on(
    services_before_statements: AppServices, database: Database
) -> None:
    assert await find_violations(services_before_statements) == ()
    entries = (await services_before_statements.store.head("default")).seq
    assert (
        await services_before_statements.store.backfill_statements(),
        await services_before_statements.store.backfill_statements(),
    ) == (["default"], [])
    assert (await services_before_statements.store.head("default")).seq == entries + 1
    assert await find_violations(services_before_statements) == ()
    waits = database.sql("select id from approvals where call_id = 'callw'")[0][0]
    database.sql_without_triggers("update payloads set sentence = 'Nothing to see' where id = ?", waits)
    database.sql_without_triggers("update approvals set priority = 'low' where id = ?", waits)
    database.sql_without_triggers("update users set role = 'admin' where name = 'bob'")
    database.sql_without_triggers("update keys set digest = 'forged' where name = 'program'")
    database.sql_without_triggers("update keys set agents = '' where name = 'bound'")
    database.sql_without_triggers("update policies set source = 'file' where version = 2")
    database.sql_without_triggers("update freezes set released_at = at where name = 'Dröp'")
    database.sql_without_triggers("update grants set teams = '[]' where id = 'g1'")
    result = {(fault.table, fault.field, fault.seq) for fault in await find_violations(services_before_statements)}
    fields = [
        ("approvals", "shown"),
        ("approvals", "subject"),
        ("users", "role"),
        ("keys", "sha256"),
        ("keys", "agents"),
        ("policies", "source"),
        ("freezes", "released_at"),
        ("grants", "scope"),
    ]
    assert result == {(*field, entries + 1) for field in fields}


async def test_a_hook_that_comes_first_states_a_database_from_before(
    services_before_statements: AppServices, database: Database
) -> None:
    entries = (await services_before_statements.store.head("default")).seq
    for _ in range(2):
        hook = LocalBackend(database.url, "default", "coder", 60_000)
        await hook.open()
        await hook.close()
    assert database.sql("select kind from events where seq > ?", entries) == [("stated",)]


async def test_what_comes_after_the_statement_counts_more(
    services_before_statements: AppServices, clock: Clock
) -> None:
    await services_before_statements.store.backfill_statements()
    waits, later = (
        await propose_pending(services_before_statements, "x", MAIL, args={"to": "bob"}),
        await propose_pending(services_before_statements, "y", MAIL, args={"to": "b"}),
    )
    await approve(services_before_statements, waits)
    seen = Acknowledgement((await services_before_statements.store.get("default", later)).approval.args_sha256)
    await services_before_statements.inbox.decide("default", later, Edit({"to": "carol"}, seen), BOB)
    await services_before_statements.accounts.change_user(
        "default", "bob", "ada", role="admin", teams=frozenset({"legal"})
    )
    await services_before_statements.accounts.remove_user("default", "eve", "ada")
    async for _ in services_before_statements.store.erase("default", Erasure("person", "eve", "", "ada")):
        await asyncio.sleep(0)
    assert await find_violations(services_before_statements) == ()


async def test_a_row_that_cannot_be_read_keeps_no_ledger_from_being_stated(
    services_before_statements: AppServices, database: Database
) -> None:
    database.sql_without_triggers("update users set teams = 'nonsense' where name = 'bob'")
    database.sql_without_triggers(
        "update approvals set decision = 'nonsense', terms_sha256 = 'x' where call_id = 'callw'"
    )
    assert await services_before_statements.store.backfill_statements() == ["default"]
    assert {fault.table for fault in await find_violations(services_before_statements)} == {"users", "approvals"}


async def test_a_current_ledger_is_not_stated_again_if_its_marker_is_removed(
    services: AppServices, database: Database
) -> None:
    head = await services.store.head("default")
    assert await services.store.backfill_statements() == []
    database.sql_without_triggers("delete from marks where name = 'stated'")
    database.sql_without_triggers("update users set role = 'admin' where name = 'bob'")
    assert (await services.store.backfill_statements(), await services.store.head("default")) == ([], head)
    assert [fault.field for fault in await find_violations(services)] == ["role"]


async def test_a_glance_compares_the_newest_rows_and_all_people_keys_policies_and_freezes(
    services: AppServices, database: Database
) -> None:
    assert await audit.quick_check(services.store, "default") == []
    database.sql_without_triggers("update payloads set sentence = 'Nothing to see' where agent_says is not null")
    database.sql_without_triggers("update users set role = 'admin' where name = 'bob'")
    database.sql_without_triggers("update keys set role = 'admin' where name = 'program'")
    database.sql_without_triggers("update policies set body = 'rules: []' where version = 1")
    database.sql_without_triggers("update freezes set settled_at = at where name = 'Dröp'")
    result = [(fault.table, fault.field) for fault in await audit.quick_check(services.store, "default")]
    tables = [("users", "role"), ("keys", "role"), ("policies", "body"), ("freezes", "settled_at")]
    assert result == [*tables, ("approvals", "sentence")]
    assert ("approvals", "sentence") not in [
        (fault.table, fault.field) for fault in await audit.quick_check(services.store, "default", 2)
    ]


@pytest.mark.parametrize(("status", "n"), [("pending", 5), ("succeeded", 1), ("approved", -1)])
async def test_a_tally_that_the_ledger_does_not_give_is_told(
    services: AppServices, database: Database, status: str, n: int
) -> None:
    assert (await audit.verify(services.store, "default")).violations == ()
    ((counted,),) = database.sql("select count(*) from approvals where workspace = 'default' and status = ?", status)
    n += counted
    database.sql("delete from tallies where status = ?", status)
    database.sql("insert into tallies (workspace, status, n) values ('default', ?, ?)", status, n)
    message = f"count of {status}: It is {n}; the ledger gives {counted}."
    found = (await audit.verify(services.store, "default")).violations
    assert found == (Violation(0, message, "tallies", status, "n"),)


async def test_tallies_that_are_gone_are_told(services: AppServices, database: Database) -> None:
    statuses = database.sql("select distinct status from approvals order by status")
    database.sql("delete from tallies")
    found = (await audit.verify(services.store, "default")).violations
    assert [(each.table, each.row) for each in found] == [("tallies", status) for (status,) in statuses]


async def test_a_dropped_trigger_is_told(services: AppServices, database: Database) -> None:
    await propose_pending(services)
    database.sql("drop trigger approvals_begin" + (" on approvals" if database.kind == "postgres" else ""))
    found = (await audit.verify(services.store, "default")).violations
    assert [(each.table, each.row) for each in found] == [("triggers", "approvals_begin")]
    assert "missing" in found[0].message
    assert await audit.quick_check(services.store, "default") == list(found)


ALTERED_TRIGGERS = {
    "sqlite": [
        "drop trigger approvals_move; create trigger approvals_move before update of status on approvals when 0 "
        "begin select 1; end;",
    ],
    "postgres": [
        "alter table approvals disable trigger approvals_move",
        "create or replace function interlock_refuse() returns trigger language plpgsql as 'begin return new; end'",
        "create or replace trigger approvals_move before update on approvals for each row when (false) "
        "execute function interlock_refuse()",
    ],
}


@pytest.mark.parametrize("number", range(3))
async def test_an_altered_trigger_is_told(services: AppServices, database: Database, number: int) -> None:
    await propose_pending(services)
    statements = ALTERED_TRIGGERS[database.kind]
    for statement in statements[number % len(statements)].split("; create"):
        database.sql(statement if statement.startswith(("drop", "alter", "create")) else f"create{statement}")
    found = (await audit.verify(services.store, "default")).violations
    assert "approvals_move" in [each.row for each in found]
    assert {(each.table, each.message.partition(": ")[2]) for each in found} == {("triggers", ALTERED)}


async def test_transitions_that_are_not_the_state_machines_are_told(services: AppServices, database: Database) -> None:
    if database.kind == "postgres":
        pytest.skip("PostgreSQL has them in the condition of a trigger.")
    await propose_pending(services)
    database.sql("insert into transitions (old, new) values ('rejected', 'approved')")
    database.sql("delete from transitions where old = 'approved' and new = 'cancelled'")
    found = (await audit.verify(services.store, "default")).violations
    assert [(each.table, each.row) for each in found] == [
        ("transitions", "approved cancelled"),
        ("transitions", "rejected approved"),
    ]


async def test_the_guards_of_a_newer_version_are_not_compared(services: AppServices, database: Database) -> None:
    database.sql("insert into migrations (number, name, sha256, applied_at, since) values (999, 'new', 'x', 0, 1)")
    database.sql("drop trigger approvals_begin" + (" on approvals" if database.kind == "postgres" else ""))
    assert (await audit.verify(services.store, "default")).violations == ()
