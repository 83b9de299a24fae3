"""The AccountStore port: API keys, people, sessions and sign-in links, in the same database and transactions."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from interlock.core.approval.approval import Approval
from interlock.core.grant import Grant
from interlock.core.identity import ApiKey, OneTimeLink, UserSession
from interlock.core.ledger.event import Change, Event
from interlock.core.ports import AccountTransaction, Trace, User
from interlock.storage.engine import rows
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import Transaction
from interlock.storage.engine.writer import BatchItem
from interlock.storage.tables import approvals
from interlock.storage.tables.tool_items import APPLIED_RETENTION

T = TypeVar("T")
KEY_COLUMN_COUNT = 17  # columns of a key in a row
SESSION_COLUMN_COUNT = 5
DELIVERY_RETENTION = (
    30 * 24 * 3_600_000
)  # milliseconds; a delivery about a call goes with the call's content, unless it is a dead letter


class SqlAccounts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def key(self, key_id: str) -> tuple[ApiKey, str, User | None] | None:
        """Return an API key with its digest and its owner."""
        found = await self._database.fetch("key", key_id)
        if not found:
            return None
        key, digest, person = found[0][:KEY_COLUMN_COUNT], found[0][KEY_COLUMN_COUNT], found[0][KEY_COLUMN_COUNT + 1 :]
        return rows.read_key(key), digest, None if person[0] is None else rows.read_user(person)

    async def keys(self, workspace: str) -> Sequence[ApiKey]:
        """Return the newest 1,000 keys."""
        return [rows.read_key(row) for row in await self._database.fetch("keys", workspace)]

    async def session(self, digest: str) -> tuple[UserSession, User] | None:
        found = await self._database.fetch("session", digest)
        return (
            (UserSession(*found[0][:SESSION_COLUMN_COUNT]), rows.read_user(found[0][SESSION_COLUMN_COUNT:]))
            if found
            else None
        )

    async def link(self, digest: str) -> OneTimeLink | None:
        return _read_link(await self._database.fetch("link_by_digest", digest))

    async def users(self, workspace: str) -> Sequence[User]:
        return [rows.read_user(row) for row in await self._database.fetch("users", workspace)]

    async def password(self, workspace: str, name: str) -> str:
        """Return the argon2 hash; empty if there is no password, or no such person."""
        found = await self._database.fetch("password", workspace, name)
        return str(found[0][0]) if found else ""

    async def workspaces(self) -> Sequence[tuple[str, int]]:
        """Return the names of workspaces, and when each was created."""
        return [(row[0], row[1]) for row in await self._database.fetch("workspaces")]

    async def add_workspace(self, workspace: str) -> None:
        """Add a workspace, unless it exists."""
        item = approvals.add_workspace(workspace, secrets.token_bytes(32), self._database.clock())
        await self._database.write(item)

    async def change(self, workspace: str, step: Callable[[AccountTransaction], T], trace: Trace | None = None) -> T:
        """Run a step in one transaction; a step that raises changes nothing."""

        def run(tx: Transaction) -> T:
            tx.require_own_batch(f"people of {workspace}")
            account_tx = SqlAccountTransaction(tx, workspace, trace or {})
            result = step(account_tx)
            account_tx.write()
            return result

        return cast(T, await self._database.write(BatchItem(run, workspace, is_short=False)))

    async def touch_key(self, workspace: str, key_id: str, at: int) -> None:
        await self._database.write(BatchItem(lambda tx: tx.write("touch_key", at, key_id), workspace))

    async def delete_expired(self, now: int, answered_before: int, limit: int) -> int:
        """Delete at most `limit` of each: ended sessions and links, old responses, applied changes and deliveries."""
        ended = {
            "end_session": await self._database.fetch("expired_sessions", now, limit),
            "spend_link": await self._database.fetch("expired_links", now, limit),
            "delete_idempotency_key": await self._database.fetch("expired_idempotency_keys", answered_before, limit),
            "delete_applied_change": await self._database.fetch(
                "expired_applied_changes", now - APPLIED_RETENTION, limit
            ),
            "drop_delivery": await self._database.fetch("ended_deliveries", now - DELIVERY_RETENTION, limit),
        }

        def run(tx: Transaction) -> int:
            for name, found in ended.items():
                for row in found:
                    tx.write(name, *row)
            return sum(map(len, ended.values()))

        return cast(int, await self._database.write(BatchItem(run, "", is_short=False))) if any(ended.values()) else 0


class SqlAccountTransaction:
    """Reads stored rows, and buffers writes until the step has finished."""

    def __init__(self, tx: Transaction, workspace: str, trace: Trace) -> None:
        self.now = tx.moment(workspace).now
        self._trace = trace
        self._tx = tx
        self._workspace = workspace
        self._writes: list[tuple[object, ...]] = []
        self._users: list[User] = []
        self._events: list[Event] = []
        self._grants: list[Change[Grant]] = []
        self._approvals: list[tuple[Approval, Change[Approval]]] = []

    def write(self) -> None:
        self._tx.append_events(self._workspace, self._events)  # first: content that cannot be stored is refused here
        for user in self._users:
            self._tx.save_user(self._workspace, user)
        for name, *values in self._writes:
            self._tx.write(str(name), *values)
        for grant in self._grants:
            self._tx.save_grant(self._workspace, grant._replace(events=self._with_trace(grant.events)))
        for old, change in self._approvals:
            self._tx.update(old, change._replace(events=self._with_trace(change.events)))

    def user(self, name: str) -> User | None:
        found = self._tx.fetch("user", self._workspace, name)
        return rows.read_user(found[0]) if found else None

    def users(self) -> Sequence[User]:
        return [rows.read_user(row) for row in self._tx.fetch("users", self._workspace)]

    def password(self, name: str) -> str:
        found = self._tx.fetch("password", self._workspace, name)
        return str(found[0][0]) if found else ""

    def find_name_by_subject(self, subject: str) -> str:
        found = self._tx.fetch("name_of_subject", subject, self._workspace) if subject else []
        return str(found[0][0]) if found else ""

    def has_subject(self, name: str) -> bool:
        found = self._tx.fetch("subject", self._workspace, name)
        return bool(found and found[0][0])

    def key(self, key_id: str) -> ApiKey | None:
        """Return a key of this workspace, or None."""
        found = self._tx.fetch("key", key_id)
        return rows.read_key(found[0][:KEY_COLUMN_COUNT]) if found and found[0][1] == self._workspace else None

    def person_keys(self, person: str) -> Sequence[ApiKey]:
        return [rows.read_key(row) for row in self._tx.fetch("keys_of", self._workspace, person)]

    def keys_made_by(self, person: str) -> Sequence[ApiKey]:
        return [rows.read_key(row) for row in self._tx.fetch("keys_made_by", self._workspace, person)]

    def session(self, digest: str) -> UserSession | None:
        found = self._tx.fetch("session", digest)
        return UserSession(*found[0][:SESSION_COLUMN_COUNT]) if found and found[0][0] == self._workspace else None

    def person_sessions(self, person: str) -> Sequence[str]:
        return [row[0] for row in self._tx.fetch("sessions_of", self._workspace, person)]

    def link(self, digest: str) -> OneTimeLink | None:
        link = _read_link(self._tx.fetch("link_by_digest", digest))
        return link if link is not None and link.workspace == self._workspace else None

    def person_links(self, person: str) -> Sequence[str]:
        return [row[0] for row in self._tx.fetch("links_of", self._workspace, person)]

    def links_made_by(self, person: str) -> Sequence[str]:
        return [row[0] for row in self._tx.fetch("links_made_by", self._workspace, person)]

    def person_grants(self, person: str) -> Sequence[Grant]:
        return self._tx.person_grants(self._workspace, person, self.now)

    def pending_with_activity(self) -> Sequence[Approval]:
        return self._tx.pending_with_activity(self._workspace)

    def save_grant(self, change: Change[Grant]) -> None:
        self._grants.append(change)

    def save_approval(self, old: Approval, change: Change[Approval]) -> None:
        self._approvals.append((old, change))

    def person_identities(self, person: str) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._tx.fetch("identities_of", self._workspace, person)]

    def delete_identity(self, channel: str, external_id: str) -> None:
        self._writes.append(("drop_identity", self._workspace, channel, external_id))

    def save_user(self, user: User) -> None:
        self._users.append(user)

    def set_password(self, name: str, hashed: str) -> None:
        self._writes.append(("write_password", hashed, self._workspace, name))

    def set_subject(self, name: str, subject: str) -> None:
        self._writes.append(("write_subject", subject, self._workspace, name))

    def add_key(self, key: ApiKey, digest: str) -> None:
        self._writes.append(("insert_key", *rows.key_values(self._workspace, key), digest))

    def revoke_key(self, key_id: str) -> None:
        self._writes.append(("revoke_key", self.now, key_id))

    def expire_key(self, key_id: str, at: int) -> None:
        self._writes.append(("expire_key", at, key_id))

    def add_session(self, digest: str, session: UserSession) -> None:
        who = (self._workspace, session.person, session.via, session.created_at, session.expires_at)
        self._writes.append(("insert_session", digest, *who))

    def end_session(self, digest: str) -> None:
        self._writes.append(("end_session", digest))

    def add_link(self, digest: str, link: OneTimeLink) -> None:
        given = (link.person, link.role, rows.teams_json(link.teams), link.created_by, link.expires_at)
        self._writes.append(("insert_link", digest, self._workspace, *given))

    def use_link(self, digest: str) -> None:
        self._writes.append(("spend_link", digest))

    def append_event(self, event: Event) -> None:
        self._events.extend(self._with_trace([event]))

    def _with_trace(self, events: Iterable[Event]) -> tuple[Event, ...]:
        """Add the trace, how their author signed in, to the content of each event."""
        trace = self._trace
        return tuple(each._replace(content={**(each.content or {}), **trace}) if trace else each for each in events)


def _read_link(found: list[Row]) -> OneTimeLink | None:
    if not found:
        return None
    workspace, person, role, teams, created_by, expires_at = found[0]
    return OneTimeLink(
        workspace=workspace,
        person=person,
        role=role,
        teams=frozenset(json.loads(teams)),
        created_by=created_by,
        expires_at=expires_at,
    )
