"""One entry for each ledger that an earlier version began: everything as it is, so that it can be compared from now on.

A ledger that this version began has a mark from its first entry on. The mark is only a hint, since whoever can write
the database can take it away: a ledger whose entries state their rows already is never stated again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from interlock.core.errors import StoreUnavailable
from interlock.core.event import Stored
from interlock.core.expected_tables import STATED, TABLES, stating
from interlock.core.ledger import UNREADABLE
from interlock.core.stamps import shown_sha256, subject_sha256
from interlock.stores import checking, rows
from interlock.stores.database import Database
from interlock.stores.transaction import Transaction
from interlock.stores.writer import Work

PAGE = 1_000


async def state_all(database: Database) -> list[str]:
    """Has ledgers of an earlier version say what there is, before anything else is written; gives workspaces."""
    found = [str(row[0]) for row in await database.fetch("unstated")]
    return [workspace for workspace in found if await database.write(state(workspace))]


def state(workspace: str) -> Work:
    def run(tx: Transaction) -> bool:
        tx.alone(f"stating of {workspace}")
        if tx.fetch("mark", workspace, STATED):
            return False  # another process was here
        tx.write("write_mark", workspace, STATED, tx.head(workspace).seq)
        if _is_stated(tx, workspace):
            return False
        found = {table: list(_rows(tx, table, workspace)) for table in TABLES}
        tx.tell(workspace, [stating(found, dict(_open(tx, workspace)))])
        return True

    return Work(run, workspace, brief=False)


def _is_stated(tx: Transaction, workspace: str) -> bool:
    born = tx.fetch("first_birth", workspace)
    return bool(tx.fetch("stated_entry", workspace)) or bool(born and '"subject":"' in born[0][0])


def _rows(tx: Transaction, table: str, workspace: str) -> Iterator[tuple[str, Any]]:
    after: object = 0 if table == "policies" else ""
    while found := tx.fetch(f"checked_{table}", workspace, workspace, after, PAGE):
        read = [checking.row_of(table, row[1:]) for row in found]
        yield from [(row_id, row) for row_id, row in read if not isinstance(row, str)]
        after = checking.place_of(table, found[-1][1:])


def _open(tx: Transaction, workspace: str) -> Iterator[tuple[str, tuple[str, str, str]]]:
    after = ""
    while found := tx.fetch("stated_approvals", workspace, after, PAGE):
        for row in found:
            with suppress(*UNREADABLE, StoreUnavailable):  # it is left out, and a verifier says why
                approval = rows.approval_of(row, tx.terms)
                stored = Stored(approval, rows.payload_of(row[rows.APPROVAL :]))
                yield approval.id, (subject_sha256(approval), approval.terms.sha256, shown_sha256(stored))
        after = str(found[-1][1])
