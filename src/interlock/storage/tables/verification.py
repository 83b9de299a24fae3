"""The Checking port of the audit: rows as of one ledger entry, and the entries about them.

Each page of rows comes with the number of the newest entry, read by the same statement and so from the same snapshot: a
verifier that reads the ledger up to exactly that number can compare the two while others write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from interlock.core.canonical import digest
from interlock.core.card import escape_invisible
from interlock.core.errors import StoreUnavailable
from interlock.core.ledger.chain import PARSE_ERRORS, Entry
from interlock.core.ledger.event import Stored
from interlock.core.ledger.expected_tables import STATED_KIND, TABLES, FreezeRow, KeyRow, stated_event
from interlock.core.ledger.invariants import Violation
from interlock.core.ledger.row_digests import shown_texts_sha256, subject_sha256
from interlock.core.policy.policy import Ask
from interlock.core.ports import AgentVersion, AuditPage, AuditRow
from interlock.storage.engine import rows
from interlock.storage.engine.cache import Interned, intern_terms
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem

MAX_CACHED_DEFINITIONS = 10_000  # verified tool definitions, kept in memory
_ROW_READERS: dict[str, Callable[[Row], tuple[str, Any]]] = {
    "users": lambda row: (str(row[0]), rows.read_user(row)),
    "keys": lambda row: (str(row[0]), KeyRow(rows.read_key(row[:-1]), row[-1])),
    "policies": lambda row: (str(row[0]), rows.read_policy(row)),
    "grants": lambda row: (str(row[1]), rows.read_grant(row)),
    "agents": lambda row: (str(row[0]), AgentVersion(*row)),
    "freezes": lambda row: (str(row[0]), FreezeRow(rows.read_freezes([row[:-1]])[0], row[-1])),
    "pins": lambda row: (escape_invisible(str(row[0])), rows.read_pin(row)),
}


class SqlAuditReader:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._verified_specs: set[str] = set()  # digests of definitions

    async def approvals(self, workspace: str, after: str, until: str, limit: int) -> AuditPage:
        """Return approvals by id: those after one and up to another."""
        found = await self._database.fetch("checked_approvals", workspace, workspace, after, until, limit)
        terms: dict[str, Ask | str] = {}
        for sha256 in {str(row[rows.TERMS_COLUMN + 1]) for row in found}:
            terms[sha256] = await self._terms(sha256)
        for sha256 in {str(row[SPEC_COLUMN + 1]) for row in found} - self._verified_specs:
            await self._verify_spec(sha256)
        items = [(str(row[ID_COLUMN + 1]), self._read(row[1:], terms)) for row in found]
        return AuditPage(found[0][0] if found else 0, items)

    async def entries(
        self, workspace: str, after: tuple[str, int], until: str, newest: int, limit: int
    ) -> Sequence[Entry]:
        """Return entries about approvals, by approval and number; `after` is where the last page ended."""
        return rows.read_entries(await self._database.fetch("checked_entries", workspace, *after, until, newest, limit))

    async def rows(self, table: str, workspace: str, after: str, limit: int) -> AuditPage:
        """Return people, keys, policies, grants, agents, freezes or pins, by name or id."""
        begin: object = int(after or 0) if table == "policies" else after
        found = await self._database.fetch(f"checked_{table}", workspace, workspace, begin, limit)
        if not found:
            return AuditPage(0, [])
        return AuditPage(
            found[0][0], [read_row(table, row[1:]) for row in found], str(row_cursor(table, found[-1][1:]))
        )

    async def statements(self, workspace: str, after: int, until: int, limit: int) -> Sequence[Entry]:
        """Return entries that state those tables' rows, and erasures; without the uses of grants."""
        return rows.read_entries(await self._database.fetch("statements", workspace, after, until, limit))

    async def has_used(self, workspace: str, key: str, agent: str) -> bool:
        """Return whether it is recorded that a key has used an agent's name, as names are compared."""
        return bool(await self._database.fetch("key_agent", workspace, agent, key))

    async def tallies(self, workspace: str) -> tuple[int, dict[str, int]]:
        """Return how many approvals have each status, as stored with the newest entry, which comes first."""
        found = await self._database.fetch("checked_tallies", workspace)
        return (int(found[0][0]) if found else 0), {str(row[1]): int(row[2]) for row in found if row[1] is not None}

    async def schema_violations(self) -> Sequence[Violation]:
        """Return what is not as the migrations made it."""
        return await self._database.find_schema_violations()

    def _read(self, row: Row, terms: dict[str, Ask | str]) -> AuditRow:
        known = terms[str(row[rows.TERMS_COLUMN])]
        if isinstance(known, str):
            return known
        if row[SPEC_COLUMN] not in self._verified_specs:
            return "The definition of its tool is missing or was altered."
        try:
            return Stored(
                rows.read_approval(row, lambda _: known), rows.read_payload(row[rows.APPROVAL_COLUMN_COUNT :])
            )
        except PARSE_ERRORS as error:
            return f"Its row cannot be read: {error}."

    async def _terms(self, sha256: str) -> Ask | str:
        """Return the unaltered terms, or an error message."""
        interned = Interned()
        try:
            return intern_terms(sha256, await self._database.fetch("terms", sha256), interned)
        except StoreUnavailable:
            return "Its terms are missing or were altered."
        except PARSE_ERRORS as error:
            return f"Its terms cannot be read: {error}."

    async def _verify_spec(self, sha256: str) -> None:
        found = await self._database.fetch("spec", sha256)
        if len(self._verified_specs) >= MAX_CACHED_DEFINITIONS:
            self._verified_specs.clear()
        if found and isinstance(found[0][0], bytes) and digest(found[0][0]) == sha256:
            self._verified_specs.add(sha256)


ID_COLUMN, SPEC_COLUMN = 1, 12  # columns of an approval


def row_cursor(table: str, row: Row) -> object:
    """Return the database's value after which the next page begins."""
    return row[1] if table == "grants" else row[0]


def read_row(table: str, row: Row) -> tuple[str, Any]:
    try:
        return _ROW_READERS[table](row)
    except PARSE_ERRORS as error:
        return str(row_cursor(table, row)), f"It cannot be read: {error}."


PAGE_SIZE = 1_000


async def backfill_statements(database: Database) -> list[str]:
    """State the existing rows in ledgers of an earlier version, before any other write; return those workspaces."""
    found = [str(row[0]) for row in await database.fetch("workspaces_without_baseline")]
    return [workspace for workspace in found if await database.write(backfill_statement(workspace))]


def backfill_statement(workspace: str) -> BatchItem:
    def run(tx: Transaction) -> bool:
        tx.require_own_batch(f"stating of {workspace}")
        if tx.fetch("consumer_offset", workspace, STATED_KIND):
            return False  # another process was faster
        tx.write("write_consumer_offset", workspace, STATED_KIND, tx.head(workspace).seq)
        if _is_stated(tx, workspace):
            return False
        found = {table: list(_read_rows(tx, table, workspace)) for table in TABLES}
        tx.append_events(workspace, [stated_event(found, dict(_open_approvals(tx, workspace)))])
        return True

    return BatchItem(run, workspace, is_short=False)


def _is_stated(tx: Transaction, workspace: str) -> bool:
    born = tx.fetch("first_approval_event", workspace)
    return bool(tx.fetch("baseline_entry", workspace)) or bool(born and '"subject":"' in born[0][0])


def _read_rows(tx: Transaction, table: str, workspace: str) -> Iterator[tuple[str, Any]]:
    after: object = 0 if table == "policies" else ""
    while found := tx.fetch(f"checked_{table}", workspace, workspace, after, PAGE_SIZE):
        read = [read_row(table, row[1:]) for row in found]
        yield from [(row_id, row) for row_id, row in read if not isinstance(row, str)]
        after = row_cursor(table, found[-1][1:])


def _open_approvals(tx: Transaction, workspace: str) -> Iterator[tuple[str, tuple[str, str, str]]]:
    after = ""
    while found := tx.fetch("baseline_approvals", workspace, after, PAGE_SIZE):
        for row in found:
            with suppress(*PARSE_ERRORS, StoreUnavailable):  # left out; a verifier reports why
                approval = rows.read_approval(row, tx.terms)
                stored = Stored(approval, rows.read_payload(row[rows.APPROVAL_COLUMN_COUNT :]))
                yield approval.id, (subject_sha256(approval), approval.terms.sha256, shown_texts_sha256(stored))
        after = str(found[-1][1])
