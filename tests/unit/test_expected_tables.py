"""Expected tables: people, keys, policies, grants, agents and freezes as ledger entries state them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from interlock.core.canonical import digest
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.identity import ApiKey
from interlock.core.ledger.chain import Entry, Head, Verifier, make_entry
from interlock.core.ledger.event import Event
from interlock.core.ledger.expected_rows import RowDifference
from interlock.core.ledger.expected_tables import (
    ExpectedTables,
    FreezeRow,
    KeyRow,
    key_sha256,
    scope_sha256,
    stated_event,
    user_changed_event,
)
from interlock.core.pins import Pin
from interlock.core.policy.policy import People
from interlock.core.ports import DELETED_AGENT_BODY, RESTORED_AGENT_BODY, AgentVersion, PolicyVersion, User

AT = 1_000
BOB = User("bob", "reviewer", teams=frozenset({"finance"}), email="bob@example.com")
AWAY = User("eve", "admin", away_until=AT + 5, away_to=People(frozenset({"bob"})))
KEY = KeyRow(
    ApiKey("k1", workspace="default", name="program", role="agent", person="", created_by="ada", created_at=AT),
    "d" * 64,
)
POLICY = PolicyVersion(1, sha256=digest(b"rules: []"), body="rules: []", author="ada", at=AT, reason="needed")
GRANT = Grant(
    id="g1",
    workspace="default",
    tool="pay",
    spec_sha256="s" * 64,
    created_by="bob",
    teams=frozenset({"finance"}),
    role="reviewer",
    created_at=AT,
    expires_at=AT + 9,
    when="true",
)
AGENT = AgentVersion("office", 1, "{}", "ada", AT)
FREEZE = FreezeRow(
    Freeze(id="f1", workspace="default", scope="tool", name="Drop_*", reason="Stop it.", by="ada", at=AT), "drop_*"
)
ROWS = {"users": ("bob", BOB), "keys": ("k1", KEY), "policies": ("1", POLICY), "grants": ("g1", GRANT)}
PIN = Pin("pay", b'{"effect":"write"}', "office", "ada", AT)
ROWS |= {"agents": ("office", AGENT), "freezes": ("f1", FREEZE), "pins": ("pay", PIN)}  # type: ignore[dict-item]


def event(kind: str, data: dict[str, Any], content: dict[str, Any] | None = None, actor: str = "ada") -> Event:
    return Event(kind, actor, data, "", content)


CREATED = event(
    "key_created", {"key": "k1", "role": "agent", "user": "", "sha256": key_sha256("d" * 64)}, {"name": "program"}
)
PUT = event("policy_changed", {"version": 1, "policy": POLICY.sha256}, {"reason": "needed"})
LIMITS = {"grant": "g1", "tool": "pay", "spec": "s" * 64, "expires_at": AT + 9, "max_uses": None, "budget": ""}
GRANT_MADE = event(
    "granted",
    {**LIMITS, "budget_of": "", "role": "reviewer", "scope": scope_sha256(GRANT)},
    {"agent": "*", "when": "true", "reason": "", "via": "web"},
    "bob",
)
AGENT_KNOWN = event("agent_changed", {"agent": "office", "version": 1, "body": digest(b"{}")}, {"body": {}})
PINNED = event("tool_pinned", {"tool": "pay", "spec": digest(PIN.definition), "effect": "write", "agent": "office"})
UNPINNED = event("tool_unpinned", {"tool": "pay", "spec": digest(PIN.definition)})
FROZEN = event("frozen", {"freeze": "f1", "scope": "tool", "name": "Drop_*"}, {"reason": "Stop it."})
ALL = (user_changed_event(BOB, "ada"), CREATED, PUT, GRANT_MADE, AGENT_KNOWN, FROZEN, PINNED)


def chain(*events: Event) -> list[Entry]:
    entries: list[Entry] = []
    head = Head("default")
    for each in events:
        entries.append(make_entry(each, head, AT, b"salt"))
        head = Head("default", entries[-1].seq, entries[-1].link, AT)
    return entries


def expected_tables(*entries: Entry) -> ExpectedTables:
    tables = ExpectedTables()
    for entry in entries:
        tables.apply(entry)
    return tables


def differing_fields(tables: ExpectedTables, table: str, row_id: str, row: Any) -> set[str]:
    return {each.field for each in tables.differences(table, row_id, row)}


def without_row_statements(entries: Sequence[Entry]) -> list[Entry]:
    return [entry._replace(salt=None, content=None) if entry.digest else entry for entry in entries]


def replace_row(row: Any, **changes: Any) -> Any:
    if isinstance(row, KeyRow):
        return row._replace(key=replace_row(row.key, **changes))
    if isinstance(row, FreezeRow):
        return row._replace(freeze=replace_row(row.freeze, **changes))
    if isinstance(row, Pin):
        return replace(row, **changes)
    return type(row)(**{**{name: getattr(row, name) for name in row.__slots__}, **changes})


# R62
def test_rows_are_what_their_entries_say() -> None:
    for tables in (expected_tables(*chain(*ALL)), expected_tables(*without_row_statements(chain(*ALL)))):
        assert [differing_fields(tables, name, *row) for name, row in ROWS.items()] == [set()] * len(ROWS)
        assert [list(tables.ids(name)) for name in ROWS] == [[row[0]] for row in ROWS.values()]


@pytest.mark.parametrize(
    ("table", "changes", "names"),
    [
        ("users", {"role": "admin"}, {"role"}),
        ("users", {"teams": frozenset()}, {"teams"}),
        ("users", {"email": "x@example.com"}, {"email"}),
        ("users", {"removed_at": AT}, {"removed_at"}),
        ("users", {"away_until": AT, "away_to": People(frozenset({"x"}))}, {"away_until", "away_to"}),
        ("keys", {"role": "admin", "person": "ada"}, {"role", "person"}),
        ("keys", {"revoked_at": AT}, {"revoked_at"}),
        ("keys", {"created_by": "x", "created_at": 1, "name": "x"}, {"created_by", "created_at", "name"}),
        ("policies", {"body": "rules: [1]"}, {"body"}),
        ("policies", {"sha256": "x", "author": "x", "at": 1, "reason": ""}, {"sha256", "author", "at", "reason"}),
        ("grants", {"when": "", "agent": "x"}, {"when", "agent", "scope"}),
        ("grants", {"expires_at": 1, "uses": 3, "revoked_at": 1}, {"expires_at", "uses", "revoked_at"}),
        ("grants", {"teams": frozenset(), "spec_sha256": "x", "spent": "3"}, {"scope", "spec_sha256", "spent"}),
        ("agents", {"body": '{"a":1}', "version": 2}, {"body", "version"}),
        ("keys", {"agents": ("office",), "tools": ("pay",), "requester": "any"}, {"agents", "tools", "requester"}),
        ("keys", {"expires_at": AT, "rotated_from": "k0", "root": "k0"}, {"expires_at", "rotated_from", "root"}),
        ("policies", {"source": "file"}, {"source"}),
        ("freezes", {"scope": "agent", "name": "x", "reason": "x"}, {"scope", "name", "reason"}),
        ("freezes", {"by": "x", "at": 1}, {"by", "at"}),
        ("freezes", {"released_at": AT, "released_by": "x"}, {"released_at", "released_by"}),
        ("freezes", {"settled_at": AT}, {"settled_at"}),
        ("pins", {"definition": b'{"effect":"read"}'}, {"spec"}),
        ("pins", {"agent": "x", "author": "x", "at": 1}, {"agent", "author", "at"}),
    ],
)
def test_a_row_that_says_otherwise_differs_in_those_fields(
    table: str, changes: dict[str, Any], names: set[str]
) -> None:
    row_id, row = ROWS[table]
    assert differing_fields(expected_tables(*chain(*ALL)), table, row_id, replace_row(row, **changes)) == names


@pytest.mark.parametrize(
    ("table", "changes", "found"),
    [
        ("users", {"role": "admin", "email": "x"}, {("role", 1, "admin", "reviewer"), ("email", 1, None, None)}),
        ("keys", {"role": "admin", "name": "x"}, {("role", 2, "admin", "agent"), ("name", 2, None, None)}),
        (
            "policies",
            {"sha256": "x", "body": "x", "reason": "x", "author": "x"},
            {("sha256", 3, None, None), ("body", 3, None, None), ("reason", 3, None, None), ("author", 3, "x", "ada")},
        ),
        (
            "grants",
            {"when": "x", "reason": "x", "uses": 3},
            {("when", 4, None, None), ("reason", 4, None, None), ("scope", 4, None, None), ("uses", 4, 3, 0)},
        ),
        ("agents", {"body": "x", "version": 2}, {("body", 5, None, None), ("version", 5, 2, 1)}),
        ("freezes", {"reason": "x", "by": "x"}, {("reason", 6, None, None), ("by", 6, "x", "ada")}),
    ],
)
def test_words_and_digests_are_named_where_they_differ_but_never_shown(
    table: str, changes: dict[str, Any], found: set[tuple[str, int, object, object]]
) -> None:
    row_id, row = ROWS[table]
    assert {*expected_tables(*chain(*ALL)).differences(table, row_id, replace_row(row, **changes))} == found


def test_a_pin_that_was_taken_back_is_not_there_until_it_is_made_again() -> None:
    pinned, over, again = (
        expected_tables(*chain(PINNED)),
        expected_tables(*chain(PINNED, UNPINNED)),
        chain(PINNED, UNPINNED, PINNED),
    )
    assert list(pinned.ids("pins")) == ["pay"]
    assert list(over.ids("pins")) == []
    assert differing_fields(over, "pins", "pay", PIN) == {"id"}
    assert list(expected_tables(*again).ids("pins")) == ["pay"]
    assert differing_fields(expected_tables(*again), "pins", "pay", PIN) == set()


def test_a_key_is_recognised_by_its_digest() -> None:
    assert differing_fields(expected_tables(*chain(CREATED)), "keys", "k1", KEY._replace(digest="e" * 64)) == {"sha256"}


def test_a_freeze_covers_what_its_name_says_as_the_database_compares_it() -> None:
    assert differing_fields(expected_tables(*chain(FROZEN)), "freezes", "f1", FREEZE._replace(folded="x")) == {"folded"}


def test_a_released_freeze_is_settled_some_time_later() -> None:
    over = event("unfrozen", {"freeze": "f1", "scope": "tool", "name": "Drop_*"}, None, "eve")
    tables = expected_tables(*chain(FROZEN, over))
    released = replace_row(FREEZE, released_at=AT, released_by="eve")
    assert differing_fields(tables, "freezes", "f1", released) == set()
    assert differing_fields(tables, "freezes", "f1", replace_row(released, settled_at=AT + 5)) == set()
    assert differing_fields(tables, "freezes", "f1", FREEZE) == {"released_at", "released_by"}


def test_a_rotated_key_has_the_bindings_of_the_one_whose_end_it_brings() -> None:
    bound = {"role": "agent", "user": "ann", "agents": ["office"], "tools": ["pay"], "requester": "ann"}
    first = event("key_created", {"key": "k1", "expires_at": None, **bound}, {"name": "program"})
    turned = {"key": "k2", "expires_at": AT + 9, **bound, "replaces": "k1", "root": "k1", "replaced_until": AT + 5}
    tables = expected_tables(*chain(first, event("key_rotated", turned, {"name": "program"})))
    binding: dict[str, Any] = {"person": "ann", "agents": ("office",), "tools": ("pay",), "requester": "ann"}
    old = replace_row(KEY, **binding, expires_at=AT + 5)
    new = replace_row(KEY, **binding, id="k2", expires_at=AT + 9, rotated_from="k1", root="k1")
    assert [differing_fields(tables, "keys", *row) for row in (("k1", old), ("k2", new))] == [set(), set()]
    assert differing_fields(tables, "keys", "k1", replace_row(old, expires_at=None)) == {"expires_at"}
    forged = replace_row(new, agents=(), requester="any", root="k2", rotated_from="", per_minute=0)
    assert differing_fields(tables, "keys", "k2", forged) == {"agents", "requester", "root", "rotated_from", "quotas"}


def test_a_policy_of_the_configuration_from_before_may_have_either_source() -> None:
    data = {"version": 1, "policy": POLICY.sha256}
    given = replace_row(POLICY, author="configuration", source="file")
    old = event("policy_changed", data, {"reason": "needed"}, "configuration")
    new = event("policy_changed", {**data, "source": "file"}, {"reason": "needed"}, "configuration")
    assert differing_fields(expected_tables(*chain(old)), "policies", "1", given) == set()
    assert differing_fields(expected_tables(*chain(new)), "policies", "1", given) == set()
    assert differing_fields(expected_tables(*chain(new)), "policies", "1", replace_row(given, source="person")) == {
        "source"
    }


def test_a_row_that_no_entry_speaks_of_differs_in_its_id() -> None:
    assert list(expected_tables().differences("users", "bob", BOB)) == [RowDifference("id", 0)]
    assert list(expected_tables(*chain(PINNED, UNPINNED)).differences("pins", "pay", PIN)) == [RowDifference("id", 2)]
    assert expected_tables().last("users", "bob") == 0
    assert expected_tables(*chain(*ALL)).last("users", "bob") == 1


def test_the_last_entry_counts() -> None:
    away = event("away_changed", {"user": "bob", "until": AT + 5}, {"to": {"users": ["eve"], "teams": []}})
    gone = event("user_removed", {"user": "bob", "sessions": 0})
    lost = event("key_revoked", {"key": "k1", "user": ""})
    longer = event("key_changed", {"key": "k1", "role": "viewer"})
    over = event("grant_revoked", {"grant": "g1", "tool": "pay"}, {"reason": ""})
    entries = chain(*ALL, away)
    standing_in = replace_row(BOB, away_until=AT + 5, away_to=People(frozenset({"eve"})))
    assert differing_fields(expected_tables(*entries), "users", "bob", standing_in) == set()
    assert (
        differing_fields(
            expected_tables(*without_row_statements(entries)), "users", "bob", replace_row(standing_in, away_to=None)
        )
        == set()
    )
    tables = expected_tables(*chain(*ALL, away, gone, longer, lost, over))
    assert differing_fields(tables, "users", "bob", replace_row(BOB, removed_at=AT, email="")) == set()
    assert differing_fields(tables, "keys", "k1", replace_row(KEY, revoked_at=AT, role="viewer")) == set()
    assert differing_fields(tables, "grants", "g1", replace_row(GRANT, revoked_at=AT)) == set()


def test_uses_of_a_grant_are_counted_by_the_calls_that_it_let_through() -> None:
    budget = replace_row(GRANT, uses=2, budget="10", budget_of="/n", spent="4")
    used = Event("allowed", "agent", {"by": "grant", "grant": "g1", "use": 2}, "a1", {"budget_left": "6"})
    freely = Event("allowed", "agent", {"by": "rule"}, "a2")
    entries = chain(event("granted", {"grant": "g1"}, {"agent": "*", "when": "true"}, "bob"), used, freely)
    assert differing_fields(expected_tables(*entries), "grants", "g1", budget) == set()
    assert differing_fields(expected_tables(*entries), "grants", "g1", replace_row(budget, uses=1, spent="3")) == {
        "uses",
        "budget_left",
    }
    assert (
        differing_fields(
            expected_tables(*without_row_statements(entries)), "grants", "g1", replace_row(budget, spent="3")
        )
        == set()
    )


@pytest.mark.parametrize("body", [DELETED_AGENT_BODY, RESTORED_AGENT_BODY])
def test_a_deleted_agent_leaves_a_row_that_its_entry_states(body: str) -> None:  # R62
    data = {"agent": "office", "version": 2, "body": digest(body.encode())}
    tables = expected_tables(*chain(AGENT_KNOWN, event("agent_deleted", data, {"reason": "Not needed."})))
    row = AgentVersion("office", 2, body, "ada", AT)
    assert differing_fields(tables, "agents", "office", row) == set()
    assert differing_fields(tables, "agents", "office", AGENT) == {"version", "body"}, "it was brought back"
    assert (row.has_settings, row.is_gone) == (False, body == DELETED_AGENT_BODY)
    assert (AGENT.has_settings, AGENT.is_gone) == (True, False)


def test_entries_of_earlier_versions_say_less() -> None:
    old = event("user_changed", {"user": "eve", "role": "admin"}, {"teams": []})
    removed = event("user_changed", {"user": "eve", "role": "admin", "removed": True}, {"teams": []})
    body = event("agent_changed", {"agent": "office", "version": 1}, {"body": {}})
    assert differing_fields(expected_tables(*chain(old)), "users", "eve", AWAY) == set()
    assert differing_fields(expected_tables(*chain(removed)), "users", "eve", replace_row(AWAY, removed_at=5)) == set()
    assert (
        differing_fields(expected_tables(*chain(body)), "agents", "office", replace_row(AGENT, body='{"a":1}')) == set()
    )


def test_a_person_who_is_away_or_was_removed_is_said_to_be() -> None:
    gone = replace_row(AWAY, removed_at=7)
    assert differing_fields(expected_tables(*chain(user_changed_event(AWAY, "ada"))), "users", "eve", AWAY) == set()
    assert differing_fields(expected_tables(*chain(user_changed_event(gone, "ada"))), "users", "eve", AWAY) == {
        "removed_at"
    }


def test_a_person_is_stated_in_the_words_that_earlier_and_later_versions_read() -> None:
    data = {"user": "eve", "role": "admin", "away_until": AT + 5}
    content = {"teams": [], "away_to": {"users": ["bob"], "teams": []}}
    assert user_changed_event(AWAY, "ada") == event("user_changed", data, content)
    removed = {**data, "removed": True, "removed_at": 7}
    assert user_changed_event(replace_row(AWAY, removed_at=7), "ada") == event("user_changed", removed, content)


def test_an_entry_of_another_kind_says_nothing() -> None:
    assert list(expected_tables(*chain(event("signed_in", {"via": "link"}))).ids("users")) == []


# One entry for a database from before


def stated_event_for(role: str = "reviewer", **more: tuple[str, ...]) -> Event:
    rows = {table: [row] for table, row in ROWS.items()}
    return stated_event({**rows, "users": [("bob", replace_row(BOB, role=role))]}, more)


def proposed_event(seq_of: str = "a1") -> Event:
    return Event("proposed", "agent", {"subject": "x", "status": "pending", "binding": "b"}, seq_of)


def test_what_was_stated_is_compared_and_replaces_what_was_said_before() -> None:
    ghost = event("user_changed", {"user": "ghost", "role": "admin"}, {"teams": []})
    entries = chain(ghost, stated_event_for(a1=("s", "t", "x")))
    tables = expected_tables(*entries)
    assert [differing_fields(tables, name, *row) for name, row in ROWS.items()] == [set()] * len(ROWS)
    assert (list(tables.ids("users")), tables.open_approvals, tables.baseline_entry) == (
        ["bob"],
        {"a1": ("s", "t", "x")},
        2,
    )
    assert differing_fields(tables, "users", "bob", replace_row(BOB, role="admin", email="")) == {"role", "email"}
    assert (
        differing_fields(expected_tables(*without_row_statements(entries)), "users", "bob", replace_row(BOB, email=""))
        == set()
    ), "that was erased"
    assert json.loads(entries[1].data)["keys"]["k1"]["role"] == "agent"
    assert entries[1].kind == "stated"


def verify_entries(*entries: Entry) -> ExpectedTables:
    verifier = Verifier("default")
    verifier.feed(entries)
    return verifier.tables


def test_nothing_is_stated_twice_or_behind_entries_that_state_their_rows() -> None:
    again = chain(stated_event_for(), stated_event_for("admin"))
    assert differing_fields(verify_entries(*again), "users", "bob", BOB) == set()
    late = chain(user_changed_event(BOB, "ada"), proposed_event(), stated_event_for("admin"))
    assert differing_fields(verify_entries(*late), "users", "bob", BOB) == set()
    assert verify_entries(*late).first_full_entry == 2


def join_at(entries: Sequence[Entry], cut: int) -> ExpectedTables | None:
    first, second = verify_entries(*entries[:cut]), verify_entries(*entries[cut:])
    return first if first.join(second) else None


@pytest.mark.parametrize("cut", range(6))
def test_parts_give_what_the_whole_gives(cut: int) -> None:
    changed = user_changed_event(replace_row(BOB, role="admin"), "ada")
    entries = chain(user_changed_event(BOB, "ada"), CREATED, stated_event_for(), changed, proposed_event())
    tables = join_at(entries, cut)
    assert tables is not None
    assert differing_fields(tables, "users", "bob", replace_row(BOB, role="admin")) == set()
    assert (tables.first_full_entry, tables.baseline_entry) == (5, 3)


def test_a_statement_that_does_not_count_has_all_read_in_order() -> None:
    entries = chain(user_changed_event(BOB, "ada"), proposed_event(), stated_event_for("admin"))
    assert join_at(entries, 2) is None
