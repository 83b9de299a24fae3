"""Expected rows of people, keys, policies, grants, agents, freezes and pins by the ledger, and their differences.

The last entry that states a field counts. Entries name a column as the row's class does, or by an alias of the table;
then a new column needs no line here. A new table is one `AuditedTable` and one line for each kind of entry that changes
it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock.core.canonical import digest, plain_json
from interlock.core.card import escape_invisible
from interlock.core.confusables import fold_confusables
from interlock.core.identity import AGENT
from interlock.core.ledger.event import SYSTEM_ACTOR, Event
from interlock.core.ledger.expected_rows import RowDifference
from interlock.core.ledger.row_digests import to_json_value

if TYPE_CHECKING:
    from interlock.core.ledger.chain import Entry

Facts = Mapping[str, Any]
DELETED = "gone"  # whether the row was deleted; no column has this name
UNKNOWN_VALUE = (None, 0)  # an entry set it without stating the value
STATED_KIND = "stated"
CONFIGURATION_ACTOR = "configuration"  # as the author of policies


class KeyRow(NamedTuple):
    """An API key as stored: its public part, and the digest that it is recognised by."""

    key: Any
    digest: str


class FreezeRow(NamedTuple):
    """A freeze as stored, with its folded name, which the database compares."""

    freeze: Any
    folded: str


class AuditedTable(NamedTuple):
    """A table that the ledger audits; `label` names a row, `fields` are getters for what is no attribute of it.

    `stated` are the fields that the baseline entry of an older database states; `erasable` those in its content.
    """

    label: str
    stated: tuple[str, ...]
    erasable: tuple[str, ...] = ()
    fields: Mapping[str, Callable[[Any], object]] = {}
    aliases: Mapping[str, str] = {}

    def value(self, row: Any, name: str) -> object:
        """The value of a field; raises AttributeError for what is no field of the row."""
        spelled = self.fields.get(name)
        if spelled is not None:
            return spelled(row)
        return to_json_value(getattr(row[0] if isinstance(row, KeyRow | FreezeRow) else row, name))


def scope_sha256(grant: Any) -> str:
    """The digest of a grant's scope and maker, without the maker's words, so that it outlasts their erasure."""
    return digest(plain_json([grant.id, grant.agent, grant.when, sorted(grant.teams), grant.role]).encode())


def key_sha256(key_digest: str) -> str:
    return digest(key_digest.encode())


def body_sha256(row: Any) -> str:
    return digest(row.body.encode())


TABLES: Mapping[str, AuditedTable] = {
    "users": AuditedTable(
        "user",
        ("role", "removed_at", "away_until"),
        ("teams", "email", "away_to"),
        {"away_to": lambda user: user.away_to and _people(user.away_to)},
    ),
    "keys": AuditedTable(
        "key",
        (
            *("role", "person", "created_by", "created_at", "revoked_at", "sha256", "agents", "tools", "requester"),
            *("expires_at", "rotated_from", "root", "quotas"),
        ),
        ("name",),
        {"sha256": lambda row: key_sha256(row.digest)},
        {"user": "person", "replaces": "rotated_from"},
    ),
    "policies": AuditedTable(
        "policy", ("sha256", "body", "author", "at", "source"), ("reason",), {"body": body_sha256}
    ),
    "grants": AuditedTable(
        "grant",
        (
            *("tool", "spec_sha256", "created_by", "role", "created_at", "expires_at", "max_uses", "uses"),
            *("revoked_at", "budget_of", "budget", "spent", "scope"),
        ),
        ("reason",),
        {"scope": scope_sha256},
        {"spec": "spec_sha256"},
    ),
    "agents": AuditedTable("agent", ("version", "body", "author", "at"), (), {"body": body_sha256}),
    "freezes": AuditedTable(
        "freeze",
        ("scope", "name", "folded", "by", "at", "released_at", "released_by"),
        ("reason",),
        {"folded": lambda row: row.folded},
    ),
    "pins": AuditedTable(
        "pin",
        ("spec", "agent", "author", "at"),
        (),
        {"spec": lambda pin: digest(pin.definition), "agent": lambda pin: escape_invisible(pin.agent)},
    ),
}
PRIVATE_FIELDS = frozenset({"sha256", "body", "reason", "scope", "when", "email", "name"})


class RowStatement(NamedTuple):
    """The statement of one entry about one row; `unknown` are fields that it set without stating the value."""

    table: str
    id: str
    values: Facts
    unknown: tuple[str, ...] = ()
    next_statement: RowStatement | None = None  # of another row


class ExpectedTables:
    """Expected tables, fed in order with entries about no approval and uses of grants; parts can be joined."""

    def __init__(self) -> None:
        self.first_full_entry = 0  # the first entry that states all fields: no baseline counts after it
        self.baseline_entry = 0  # the entry that stated all rows
        self.open_approvals: dict[str, tuple[str, str, str]] = {}  # approvals that were open then
        self._rows: dict[str, dict[str, dict[str, tuple[object, int]]]] = {name: {} for name in TABLES}

    def apply(self, entry: Entry) -> None:
        read = _READERS.get(entry.kind)
        if read is None:
            return
        data = json.loads(entry.data)
        content = {} if not entry.digest else None if entry.content is None else json.loads(entry.content)
        if entry.kind == STATED_KIND:
            self._apply_baseline(entry, data, content)
            return
        statement = read(entry, data, content)
        while statement is not None:
            self._apply_statement(statement, entry.seq)
            statement = statement.next_statement

    def join(self, later: ExpectedTables) -> bool:
        """Join a later part; False if it accepted a baseline that does not count."""
        if later.baseline_entry and self.first_full_entry:
            return False
        if later.baseline_entry:
            self._rows, self.open_approvals, self.baseline_entry = (
                later._rows,
                later.open_approvals,
                later.baseline_entry,
            )
        else:
            for table, known in later._rows.items():
                for row_id, fields in known.items():
                    self._rows[table].setdefault(row_id, {}).update(fields)
        self.first_full_entry = self.first_full_entry or later.first_full_entry
        return True

    def ids(self, table: str) -> Iterable[str]:
        """The ids of the rows that have to exist."""
        return [row_id for row_id, said in self._rows[table].items() if not said.get(DELETED, UNKNOWN_VALUE)[0]]

    def differences(self, table: str, row_id: str, row: Any) -> Iterator[RowDifference]:
        """The differences of an existing row; a row that no entry mentions differs in its id."""
        said = self._rows[table].get(row_id)
        if said is None or said.get(DELETED, UNKNOWN_VALUE)[0]:
            yield RowDifference("id", 0 if said is None else said[DELETED][1])
            return
        for name, (value, seq) in said.items():
            try:
                found = TABLES[table].value(row, name)
            except AttributeError:
                continue  # other facts of an entry, and columns of a later version
            if seq and found != value and (found or value):
                yield RowDifference(name, seq) if name in PRIVATE_FIELDS else RowDifference(name, seq, found, value)

    def last(self, table: str, row_id: str) -> int:
        """The newest entry about a row."""
        return max((seq for _, seq in self._rows[table].get(row_id, {}).values()), default=0)

    def _apply_statement(self, statement: RowStatement, seq: int) -> None:
        aliases = TABLES[statement.table].aliases
        fields = self._rows[statement.table].setdefault(statement.id, {})
        fields |= {aliases.get(name, name): (value, seq) for name, value in statement.values.items()}
        fields |= dict.fromkeys(statement.unknown, UNKNOWN_VALUE)

    def _apply_baseline(self, entry: Entry, data: Facts, content: Facts | None) -> None:
        if self.first_full_entry or self.baseline_entry:
            return  # everything is known already: a second baseline would hide a change
        self.baseline_entry = entry.seq
        self.open_approvals = {each: (said[0], said[1], said[2]) for each, said in data["approvals"].items()}
        self._rows = {name: {} for name in TABLES}
        for table in TABLES.keys() & data.keys():  # without tables of a later version
            for row_id, values in data[table].items():
                private = {} if content is None else content[table].get(row_id, {})
                self._apply_statement(RowStatement(table, row_id, {**values, **private}), entry.seq)


def stated_event(rows: Mapping[str, Iterable[tuple[str, Any]]], approvals: Mapping[str, Iterable[str]]) -> Event:
    """The baseline entry of an older database: all rows as they are, to be compared from now on."""
    data: dict[str, object] = {"approvals": {each: list(said) for each, said in approvals.items()}}
    content: dict[str, object] = {}
    for name, table in TABLES.items():
        found = list(rows.get(name, ()))
        data[name] = {row_id: {field: table.value(row, field) for field in table.stated} for row_id, row in found}
        content[name] = {row_id: {field: table.value(row, field) for field in table.erasable} for row_id, row in found}
    return Event(STATED_KIND, SYSTEM_ACTOR, data, "", content)


def user_changed_event(user: Any, author: str) -> Event:
    """State everything stored about a person, so that the last such entry equals their row."""
    gone = {} if user.removed_at is None else {"removed": True, "removed_at": user.removed_at}
    data = {"user": user.name, "role": user.role, "away_until": user.away_until, **gone}
    private = {"email": user.email, "away_to": user.away_to and _people(user.away_to)}
    content = {"teams": sorted(user.teams), **{name: value for name, value in private.items() if value}}
    return Event("user_changed", author, data, "", content)


# Statements by kind of entry


def _user_changed(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    values = {"role": data.get("role"), "removed_at": data.get("removed_at")}
    unknown: tuple[str, ...] = ("away_until", "away_to") if "away_until" not in data else ()
    if data.get("removed") and "removed_at" not in data:
        unknown += ("removed_at",)
    if content is None:
        return RowStatement("users", data["user"], values | _away(data), (*unknown, "teams", "email", "away_to"))
    teams = {"teams": content.get("teams", []), "email": content.get("email", "")}
    away = {**_away(data), "away_to": content.get("away_to")}
    return RowStatement("users", data["user"], {**values, **teams, **away}, unknown)


def _away(data: Facts) -> dict[str, object]:
    return {"away_until": data.get("away_until")}


def _user_removed(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    gone = {"removed_at": entry.at, "email": "", "away_until": None, "away_to": None}
    return RowStatement("users", data["user"], gone)


def _away_changed(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    if content is None:
        return RowStatement("users", data["user"], {"away_until": data.get("until")}, ("away_to",))
    return RowStatement("users", data["user"], {"away_until": data.get("until"), "away_to": content.get("to")})


def _key_created(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    """A binding or an expiry that it does not state, the key does not have."""
    requester = data.get("user", "") if data.get("role") == AGENT else ""
    bound: Facts = {
        "agents": [],
        "tools": [],
        "requester": requester,
        "expires_at": None,
        "rotated_from": "",
        "root": "",
        "quotas": {},
    }
    values = {**bound, **data, "created_by": entry.actor, "created_at": entry.at, "revoked_at": None}
    if content is None:
        return RowStatement("keys", data["key"], values, ("name",))
    return RowStatement("keys", data["key"], {**values, "name": content.get("name", "")})


def _key_rotated(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    ends = RowStatement("keys", data["replaces"], {"expires_at": data["replaced_until"]})
    return _key_created(entry, data, content)._replace(next_statement=ends)


def _key_changed(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    """A later kind of entry: the fields it names are the ones it set."""
    return RowStatement("keys", data["key"], data)


def _key_revoked(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    return RowStatement("keys", data["key"], {"revoked_at": entry.at})


def _policy_changed(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    """The source of configured policies that are older than entries with a source was set by a migration."""
    values = {"sha256": data["policy"], "body": data["policy"], "author": entry.actor, "at": entry.at}
    unknown = ("source",) if entry.actor == CONFIGURATION_ACTOR and "source" not in data else ()
    values["source"] = data.get("source", "person")
    if content is None:
        return RowStatement("policies", str(data["version"]), values, ("reason", *unknown))
    return RowStatement("policies", str(data["version"]), {**values, "reason": content.get("reason", "")}, unknown)


def _granted(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    fresh = {"created_by": entry.actor, "created_at": entry.at, "uses": 0, "revoked_at": None, "spent": "0"}
    words = {} if content is None else {name: content.get(name) for name in ("agent", "when", "reason")}
    unknown = ("budget_left", *(("agent", "when", "reason") if content is None else ()))
    return RowStatement("grants", data["grant"], {**data, **fresh, **words}, unknown)


def _grant_revoked(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    return RowStatement("grants", data["grant"], {"revoked_at": entry.at})


def _grant_used(entry: Entry, data: Facts, content: Facts | None) -> RowStatement | None:
    if data.get("by") != "grant":
        return None
    if content is None:
        return RowStatement("grants", data["grant"], {"uses": data.get("use")}, ("spent", "budget_left"))
    used = {"uses": data.get("use"), "budget_left": content.get("budget_left")}
    return RowStatement("grants", data["grant"], used, ("spent",))


def _agent_changed(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    """Also of a deletion, which leaves the row with a body of its own."""
    values = {"version": data["version"], "author": entry.actor, "at": entry.at}
    if "body" in data:
        return RowStatement("agents", data["agent"], {**values, "body": data["body"]})
    return RowStatement("agents", data["agent"], values, ("body",))


def _frozen(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    """A freeze that is not released is not settled: else it would pause no deadlines."""
    scope = {"scope": data["scope"], "name": data["name"], "folded": fold_confusables(data["name"])}
    made = {"by": entry.actor, "at": entry.at, "released_at": None, "released_by": "", "settled_at": None}
    if content is None:
        return RowStatement("freezes", data["freeze"], {**scope, **made}, ("reason",))
    return RowStatement("freezes", data["freeze"], {**scope, **made, "reason": content.get("reason", "")})


def _unfrozen(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    released = {"released_at": entry.at, "released_by": entry.actor}
    return RowStatement("freezes", data["freeze"], released, ("settled_at",))


def _pinned(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    values = {"spec": data["spec"], "agent": data["agent"], "author": entry.actor, "at": entry.at, DELETED: False}
    return RowStatement("pins", data["tool"], values)


def _unpinned(entry: Entry, data: Facts, content: Facts | None) -> RowStatement:
    return RowStatement("pins", data["tool"], {DELETED: True})


def _no_statement(entry: Entry, data: Facts, content: Facts | None) -> None:
    """The baseline for all tables is read separately."""


_READERS: Mapping[str, Callable[[Entry, Facts, Facts | None], RowStatement | None]] = {
    "user_changed": _user_changed,
    "user_removed": _user_removed,
    "away_changed": _away_changed,
    "key_created": _key_created,
    "key_rotated": _key_rotated,
    "key_changed": _key_changed,
    "key_revoked": _key_revoked,
    "policy_changed": _policy_changed,
    "granted": _granted,
    "grant_revoked": _grant_revoked,
    "allowed": _grant_used,
    "agent_changed": _agent_changed,
    "agent_deleted": _agent_changed,
    "frozen": _frozen,
    "unfrozen": _unfrozen,
    "tool_pinned": _pinned,
    "tool_unpinned": _unpinned,
    STATED_KIND: _no_statement,
}
TABLE_KINDS = frozenset(_READERS)


def _people(people: Any) -> dict[str, object]:
    return {"users": sorted(people.users), "teams": sorted(people.teams)}
