"""One transaction of a batch, the same for SQLite and PostgreSQL: reads, buffered writes, the ledger and its heads.

Theory of operation. A batch holds items of different callers. The database adapter takes the locks, then reads the
clock, then makes one `Transaction` and runs the items in turn:

1. An item reads through the transaction, which answers from what earlier items of this batch wrote, else from the
   cache of the process, else from the database.
2. It calls a pure step of `core` with the row and a `Moment`, and hands the resulting `Change` to `insert`, `update`
   or a `save_` method. Nothing is sent yet. The events are sealed into the hash chain with the next numbers of their
   ledger, the writes are collected by statement name, and later items see the new state.
3. `flush` sends the collected writes as sets, in `WRITE_ORDER`: rows first, the ledger heads last. Updates compare the
   version; if one of them finds fewer rows than it should, `LostRace` rolls the whole batch back.
4. `after_commit` puts the new state into the caches and gives the ids that changed, for wake-ups.

An item that raises an `Error` has buffered nothing, so the others of its batch still count. Any other error rolls the
batch back, and the writer replays it item by item.

What would break it: a clock that is read before the locks; an event without its row, or a row without its event; a
step that reads rows which an earlier item has buffered, unless it calls `require_own_batch`.

It is long because the order of writes is part of the transaction.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from operator import attrgetter
from struct import Struct
from typing import Protocol, cast

from interlock.core.approval.approval import Approval
from interlock.core.call import ToolSpec, stored_caller
from interlock.core.chat.thread import THREAD_ID_PREFIX as THREAD
from interlock.core.errors import NotFound
from interlock.core.fast_dataclasses import changed_fields
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.ledger.chain import Entry, Head, make_entry
from interlock.core.ledger.event import Change, Event, Moment, Payload, Stored
from interlock.core.ledger.expected_tables import STATED_KIND
from interlock.core.ledger.row_digests import add_row_digests
from interlock.core.pins import MAX_DECLARED
from interlock.core.policy.policy import Ask
from interlock.core.ports import PolicyRevision, User
from interlock.core.run import Run
from interlock.core.search import search_document
from interlock.storage.engine import rows
from interlock.storage.engine.cache import BatchCache, CacheKey, Interned, intern_terms
from interlock.storage.engine.rows import Row

_new = tuple.__new__  # for every entry: the constructor of a named tuple takes three times as long
_head_fields = attrgetter(*Head._fields)
SALT_SIZE = 16
SALTS = Struct(f"{SALT_SIZE}s" * 32)
DUE_THREADS_TOPIC = "threads"  # wake-up topic of thread runners, in no workspace
LEDGER_TOPIC = "ledger"  # wake-up topic of the notification dispatcher


class BatchConnection(Protocol):
    """A database connection inside a transaction."""

    def fetch(self, name: str, *values: object) -> list[Row]: ...
    def write(self, name: str, values: Sequence[tuple[object, ...]]) -> int: ...


class LostRace(Exception):
    """A compare-and-set found another version than the one that was read."""


class Transaction:
    """Buffers the writes of a batch's steps; `flush` writes them, statement by statement, events in order."""

    def __init__(self, connection: BatchConnection, now: int, interned: Interned, cache: BatchCache) -> None:
        self._connection = connection
        self._cache = cache
        self._now = now
        self._interned = interned
        self._heads: dict[str, Head] = {}
        self._changed_workspaces: set[str] = set()
        self._approvals: dict[CacheKey, Approval] = {}
        self._payloads: dict[CacheKey, Payload] = {}
        self._calls: dict[tuple[str, str, str], str] = {}
        self._inserted: set[CacheKey] = set()
        self._runs: dict[CacheKey, Run] = {}
        self._grants: dict[CacheKey, Grant] = {}
        self._users: dict[CacheKey, User] = {}
        self._new_terms: dict[str, Ask] = {}
        self._new_specs: dict[str, ToolSpec] = {}
        self._new_tools: set[tuple[str, str, str]] = set()
        self._declared_counts: dict[CacheKey, int] = {}  # declared tools, by workspace and key
        self._freezes: dict[str, tuple[Freeze, ...]] = {}
        self._policy_revisions: dict[str, PolicyRevision] = {}
        self._rewritten: set[CacheKey] = set()
        self._moments: dict[str, Moment] = {}
        self._exclusive_keys: set[str] = set()
        self._salts: list[bytes] = []
        self._status_counts: dict[CacheKey, int] = defaultdict(int)
        self._threads: dict[str, set[str]] = defaultdict(set)
        self._writes: dict[str, list[tuple[object, ...]]] = defaultdict(list)

    # Reads of steps

    def moment(self, workspace: str) -> Moment:
        """Return the time, read after the locks. While the clock is behind the ledger, nothing is approved."""
        moment = self._moments.get(workspace)
        if moment is None:
            last = self.head(workspace).at
            moment = self._moments[workspace] = Moment(max(self._now, last), self._now < last)
        return moment

    def head(self, workspace: str) -> Head:
        head = self._heads.get(workspace) or self._cache.heads.get(workspace)
        if head is None:
            found = self._connection.fetch("head", workspace)
            head = Head(*found[0]) if found else Head(workspace)
        self._heads[workspace] = head
        return head

    def approval(self, workspace: str, approval_id: str) -> Approval:
        key = (workspace, approval_id)
        known = self._approvals.get(key) or self._cache.approvals.get(key)
        if known is not None:
            return known
        found = self._connection.fetch("approval", workspace, approval_id)
        if not found:
            raise NotFound("There is no approval with this id.", approval_id=approval_id)
        return rows.read_approval(found[0], self.terms)

    def has_approval(self, workspace: str, approval_id: str) -> bool:
        key = (workspace, approval_id)
        return key in self._approvals or key in self._cache.approvals or bool(self.fetch("approval", *key))

    def stored(self, workspace: str, approval_id: str) -> Stored:
        key = (workspace, approval_id)
        known = self._approvals.get(key) or self._cache.approvals.get(key)
        name = "stored" if known is None else "payload"
        found = self._connection.fetch(name, workspace, approval_id)
        if known is None and not found:
            raise NotFound("There is no approval with this id.", approval_id=approval_id)
        approval = known or rows.read_approval(found[0], self.terms)
        kept = found and not approval.erasure  # rows that this batch erases stay in the database until its end
        payload = rows.read_payload(found[0]) if kept else Payload()
        return Stored(approval, _merge_payloads(payload, self._payloads.get(key)))

    def find_by_call(self, workspace: str, run_id: str, call_id: str) -> Stored | None:
        known = self._calls.get((workspace, run_id, call_id))
        if known is None:
            found = self._connection.fetch("approval_by_call", workspace, run_id, call_id)
            known = found[0][0] if found else None
        return None if known is None else self.stored(workspace, known)

    def run(self, workspace: str, run_id: str) -> Run:
        known = self._runs.get((workspace, run_id))
        found = [] if known else self._connection.fetch("run", workspace, run_id)
        if known is None and not found:
            raise NotFound("There is no run with this id.", run_id=run_id)
        return known or rows.read_run(found[0])

    def grant(self, workspace: str, grant_id: str) -> Grant:
        known = self._grants.get((workspace, grant_id))
        found = [] if known else self._connection.fetch("grant", workspace, grant_id)
        if known is None and not found:
            raise NotFound("There is no grant with this id.", grant_id=grant_id)
        return known or rows.read_grant(found[0])

    def has_grant(self, workspace: str, grant_id: str) -> bool:
        return (workspace, grant_id) in self._grants or bool(self._connection.fetch("grant", workspace, grant_id))

    def grants(self, workspace: str, tool: str, since: str) -> Sequence[Grant]:
        """Return a tool's grants that were usable at this time, with the uses that this batch has counted."""
        remembered = self._cache.grants
        known = remembered.get((workspace, tool))
        if known is None:
            found = self._connection.fetch("usable_grants_of_tool", workspace, tool, since)
            known = tuple(rows.read_grant(row) for row in found)
            if len(remembered) >= BatchCache.MAX_TOOLS:  # agents can invent any number of tool names
                remembered.clear()
            remembered[workspace, tool] = known
        return [self._grants.get((workspace, grant.id), grant) for grant in known]

    def freezes(self, workspace: str) -> tuple[Freeze, ...]:
        """Return freezes that are on or have deadlines left to move; read after the lock on the ledger's head."""
        known = self._cache.freezes.get(workspace)
        if self._freezes:
            known = self._freezes.get(workspace, known)
        if known is None:
            known = rows.read_freezes(self._connection.fetch("freezes", workspace))
            if not any(each.scope in ("agent", "key") for each in known):  # the keys that these cover change
                self._cache.freezes[workspace] = known
        return known

    def policy_revision(self, workspace: str) -> PolicyRevision:
        """Return the revision of the policy, including this batch's changes; every change of it is in the ledger."""
        known = self._policy_revisions.get(workspace) or self._cache.policy_revisions.get(workspace)
        if known is None:
            policy, agents = self._connection.fetch("policy_revision", workspace, workspace)[0]
            known = self._cache.policy_revisions[workspace] = PolicyRevision(int(policy), int(agents))
        return known

    def cache_start_conditions(self, workspace: str) -> None:
        """Read what can stop a start, unless it is cached: for a proposal, whose call starts soon."""
        if workspace not in self._cache.policy_revisions or workspace not in self._cache.freezes:
            self.freezes(workspace)
            self.policy_revision(workspace)

    def set_policy_revision(self, workspace: str, revision: PolicyRevision) -> None:
        self._policy_revisions[workspace] = revision

    def person_grants(self, workspace: str, person: str, since: int) -> list[Grant]:
        """Return grants that a person created and that had not ended at this time, including this batch's changes."""
        found = [rows.read_grant(row) for row in self._connection.fetch("usable_grants_by", workspace, person, since)]
        known = {grant.id: grant for grant in found}
        known |= {key[1]: grant for key, grant in self._grants.items() if key[0] == workspace}
        return [grant for grant in known.values() if grant.created_by == person and grant.revoked_at is None]

    def user(self, workspace: str, name: str) -> User | None:
        """Return a user, including this batch's changes; cached, since every change of a user is in the ledger."""
        key, remembered = (workspace, name), self._cache.users
        if key in self._users:
            return self._users[key]
        if key not in remembered:
            found = self._connection.fetch("user", *key)
            if len(remembered) >= BatchCache.MAX_USERS:
                remembered.clear()
            remembered[key] = rows.read_user(found[0]) if found else None
        return remembered[key]

    def pending_with_activity(self, workspace: str) -> list[Approval]:
        """Return pending approvals with activity by people, including this batch's changes."""
        found = [rows.read_approval(row, self.terms) for row in self._connection.fetch("answered", workspace)]
        known = {approval.id: approval for approval in found}
        known |= {key[1]: approval for key, approval in self._approvals.items() if key[0] == workspace}
        return [approval for approval in known.values() if approval.status == "pending"]

    def fetch(self, name: str, *values: object) -> list[Row]:
        return self._connection.fetch(name, *values)

    def require_own_batch(self, key: str) -> None:
        """Keep two steps with this key out of one batch: a step cannot read rows that another has only buffered."""
        if key in self._exclusive_keys:
            raise LostRace(key)
        self._exclusive_keys.add(key)

    def unwritten_entries(self, workspace: str) -> dict[str, list[int]]:
        """Return the numbers of entries with content that this batch has yet to write, by approval."""
        found: dict[str, list[int]] = defaultdict(list)
        for entry_workspace, seq, _, _, _, approval_id, _, digest, _ in self._writes.get("insert_event", ()):
            if entry_workspace == workspace and digest:
                found[str(approval_id)].append(cast(int, seq))
        return found

    # Writes of steps

    def insert(self, change: Change[Approval], spec: ToolSpec) -> None:
        approval, payload = change.state, change.payload or Payload()
        subject, workspace = approval.subject, approval.subject.workspace
        key = (workspace, approval.id)
        entries = self._seal(workspace, add_row_digests(change))
        self._intern(approval.terms)
        if self._is_new_tool(workspace, spec, subject.agent):  # else its definition is stored
            self.store_spec(spec)
            caller = stored_caller(subject)
            key_id = "" if caller is None else caller.credential
            self._insert_tool(workspace, spec, subject.agent, approval.created_at, key_id)
        args, shown, sentence, agent_says, preview, _, _, preview_version = payload
        values = (*key, args, shown, sentence, agent_says, preview, preview_version)
        self._writes["insert_approval"].append(rows.insert_values(approval))
        self._writes["insert_payload"].append(values)
        self._approvals[key], self._payloads[key] = approval, payload
        self._inserted.add(key)
        self._calls[workspace, subject.run_id, subject.call_id] = approval.id
        self._status_counts[workspace, approval.status] += 1
        if change.grant is not None:
            self._write_grant(workspace, change.grant)
        self._append(workspace, entries)

    def update(self, old: Approval, change: Change[Approval]) -> None:
        """Write a change, with a compare-and-set on the version: if it fails, nothing is written, events included."""
        new, events, payload, _, grant = change
        workspace, run_id = old.subject.workspace, old.subject.run_id
        if new is old:
            entries = self._seal(workspace, events)  # a refusal changes no row
        else:
            changed, key = changed_fields(old, new), (workspace, new.id)
            entries = self._seal(workspace, add_row_digests(change, old, changed))
            self._write_approval(key, old, new, changed)
            self._approvals[key] = new
            if new.status != old.status:
                counts = self._status_counts
                counts[workspace, old.status] -= 1
                counts[workspace, new.status] += 1
        if payload is not None:
            self._write_payload(workspace, new.id, payload)
        if run_id.startswith(THREAD):
            self.wake_thread(workspace, run_id)
        if grant is not None:
            self._write_grant(workspace, grant)
        self._append(workspace, entries)

    def erase(self, old: Approval, new: Approval) -> None:
        """Write an erased approval; if its content is erased, its payload and search document go too."""
        key = (old.subject.workspace, new.id)
        self._writes["erase_approval"].append(rows.erase_values(new, old.version))
        self._approvals[key] = new
        if new.erasure and not old.erasure:
            self._payloads.pop(key, None)
            self.write("erase_payload", *key)
            self.write("delete_applied_change", *key)  # its tool's result; it has ended, so this key is never retried
        payload = Payload() if new.erasure else self.stored(*key).payload
        self.write("erase_search_document", search_document(Stored(new, payload)), *key)
        back = (key[0], "search", 0)
        if (
            back not in self._writes["step_back_consumer_offset"]
        ):  # an index batch read before this must not be written after it
            self.write("step_back_consumer_offset", *back)

    def save_run(self, workspace: str, change: Change[Run]) -> None:
        run = change.state
        self._writes["write_run"].append(rows.run_values(run))
        self._runs[workspace, run.id] = run
        self.append_events(workspace, change.events)

    def save_grant(self, workspace: str, change: Change[Grant]) -> None:
        self._write_grant(workspace, change.state)
        self.append_events(workspace, change.events)

    def save_freeze(self, change: Change[Freeze]) -> None:
        freeze = change.state
        others = tuple(each for each in self.freezes(freeze.workspace) if each.id != freeze.id)
        self._freezes[freeze.workspace] = others if freeze.settled_at is not None else (*others, freeze)
        self.write("write_freeze", *rows.freeze_values(freeze))
        self.append_events(freeze.workspace, change.events)

    def save_user(self, workspace: str, user: User) -> None:
        self._users[workspace, user.name] = user
        self.write("write_user", *rows.user_values(workspace, user))

    def wake_thread(self, workspace: str, thread_id: str) -> None:
        """Mark a thread as ready, at once or as soon as its current runner finishes."""
        self.write("wake_thread", workspace, thread_id)
        self.write("ready_thread", self.moment(workspace).now, workspace, thread_id)
        self.mark_thread_changed(workspace, thread_id)
        self.mark_thread_changed("", DUE_THREADS_TOPIC)

    def mark_thread_changed(self, workspace: str, thread_id: str) -> None:
        self._threads[workspace].add(thread_id)

    def write(self, name: str, *values: object) -> None:
        self._writes[name].append(values)

    def store_spec(self, spec: ToolSpec) -> None:
        if spec.sha256 not in self._interned.specs and spec.sha256 not in self._new_specs:
            self._new_specs[spec.sha256] = spec
            self._writes["insert_spec"].append((spec.sha256, spec.definition))

    def note_tool(self, workspace: str, spec: ToolSpec, agent: str, at: int, key: str) -> None:
        """Record a tool declaration without a recorded call; definitions included, up to a limit for each key."""
        if self._is_new_tool(workspace, spec, agent) and self._count_declared(workspace, key) < MAX_DECLARED:
            self._declared_counts[workspace, key] += 1
            self.store_spec(spec)
            self._insert_tool(workspace, spec, agent, at, key)

    def append_events(self, workspace: str, events: Iterable[Event]) -> None:
        self._append(workspace, self._seal(workspace, events))

    def flush(self) -> None:
        writes, send = self._writes, self._connection.write
        counts: list[tuple[object, ...]] = [(*key, n) for key, n in self._status_counts.items() if n]
        if counts:
            writes["write_status_count"] = counts
        if self._changed_workspaces:
            writes["write_head"] = [tuple(self._heads[workspace]) for workspace in self._changed_workspaces]
        for name in sorted(writes, key=WRITE_ORDER.__getitem__):
            values = writes[name]
            if send(name, values) != len(values) and name in COMPARE_AND_SET_WRITES:
                raise LostRace(name)

    def after_commit(self) -> dict[str, set[str]]:
        """Return the changed ids by workspace, and update the caches. Call it after the commit."""
        self._update_cache()
        changed: dict[str, set[str]] = defaultdict(set, {workspace: set() for workspace in self._changed_workspaces})
        for workspace, approval_id in self._approvals:
            changed[workspace].add(approval_id)
        for workspace, ids in self._threads.items():
            changed[workspace].update(ids)
        if self._changed_workspaces:
            changed[""].add(LEDGER_TOPIC)
        return changed

    def _update_cache(self) -> None:
        cache = self._cache
        cache.put_approvals(self._approvals)
        for key, payload in self._payloads.items():
            if key in cache.approvals:
                cache.put_payload(key, self._whole_payload(key, payload))
        cache.heads.update(self._heads)
        cache.policy_revisions.update(self._policy_revisions)
        cache.users.update(self._users)
        for workspace in self._freezes:
            cache.freezes.pop(workspace, None)
        for (workspace, _), grant in self._grants.items():
            cache.grants.pop((workspace, grant.tool), None)
        if self._new_terms or self._new_specs or self._new_tools:
            self._interned.add(self._new_terms, self._new_specs, self._new_tools)

    def _is_new_tool(self, workspace: str, spec: ToolSpec, agent: str) -> bool:
        tool = (workspace, spec.sha256, agent)
        return tool not in self._interned.tools and tool not in self._new_tools

    def _insert_tool(self, workspace: str, spec: ToolSpec, agent: str, at: int, key: str) -> None:
        self._new_tools.add((workspace, spec.sha256, agent))
        self._writes["insert_tool"].append((workspace, spec.name, spec.sha256, agent, at, key))

    def _count_declared(self, workspace: str, key: str) -> int:
        """Count the tools that a key has declared, with those of this batch; other processes may add more meanwhile."""
        source = (workspace, key)
        if source in self._interned.saturated_keys:
            return MAX_DECLARED
        if source not in self._declared_counts:
            self._declared_counts[source] = int(
                self._connection.fetch("declared_by", workspace, key, MAX_DECLARED)[0][0]
            )
            if self._declared_counts[source] >= MAX_DECLARED:
                self._interned.saturated_keys.add(source)
                self._interned.trim()
        return self._declared_counts[source]

    def _whole_payload(self, key: CacheKey, new: Payload) -> Payload | None:
        """Return the payload as it is stored now, or None if only a part of it is known."""
        if key in self._inserted:
            return new
        known = self._cache.payloads.get(key)
        return None if known is None else _merge_payloads(known, new)

    def changed_heads(self) -> list[Head]:
        """Return the new heads of the ledgers that this transaction has written to."""
        return [self._heads[workspace] for workspace in sorted(self._changed_workspaces)]

    def _write_approval(self, key: CacheKey, old: Approval, new: Approval, changed: Set[str]) -> None:
        if rows.only_advances(old, new, changed) and key not in self._rewritten:
            self._writes["advance_approval"].append(rows.advance_values(new, old.version))
        else:
            self._rewritten.add(key)
            self._intern(new.terms)
            self._writes["update_approval"].append(rows.update_values(new, old.version))

    def _write_grant(self, workspace: str, grant: Grant) -> None:
        self._grants[workspace, grant.id] = grant
        self._writes["write_grant"].append(rows.grant_values(grant))

    def _write_payload(self, workspace: str, approval_id: str, payload: Payload) -> None:
        key = (workspace, approval_id)
        before = self._payloads.get(key)
        self._payloads[key] = payload if before is None else _merge_payloads(before, payload)
        if payload.args is not None:
            self._writes["edit_payload"].append((payload.args, payload.shown, payload.sentence, *key))
        else:
            self._writes["end_payload"].append((payload.result, payload.error, *key))

    def _salt(self) -> bytes:
        """Return a salt, and keep some more if this is not the first: most transactions need only one."""
        if not self._changed_workspaces:
            return os.urandom(SALT_SIZE)
        self._salts = [*SALTS.unpack(os.urandom(SALTS.size))]
        return self._salts.pop()

    def _seal(self, workspace: str, events: Iterable[Event]) -> list[Entry]:
        """Make the next links of the chain, before anything is buffered: a step that fails leaves no trace."""
        head = self._heads.get(workspace) or self.head(workspace)
        now = (self._moments.get(workspace) or self.moment(workspace)).now
        entries: list[Entry] = []
        for event in events:
            if entries:  # most changes have one
                head = _entry_head(entries[-1])
            entries.append(make_entry(event, head, now, self._salts.pop() if self._salts else self._salt()))
        return entries

    def _append(self, workspace: str, entries: list[Entry]) -> None:
        if not entries:
            return
        writes = self._writes
        for entry in entries:
            writes["insert_event"].append(entry[:9])
            if entry.content is not None:
                writes["insert_content"].append((workspace, entry.seq, entry.salt, entry.content))
        self._heads[workspace] = _entry_head(entry)
        self._changed_workspaces.add(workspace)
        if entries[0].seq == 1:  # everything that this ledger is about is stated by its own entries
            self.write("write_consumer_offset", workspace, STATED_KIND, 0)

    def _intern(self, terms: Ask) -> None:
        if terms.sha256 not in self._interned.terms and terms.sha256 not in self._new_terms:
            self._new_terms[terms.sha256] = terms
            self._writes["insert_terms"].append((terms.sha256, terms.snapshot))

    def terms(self, sha256: str) -> Ask:
        known = self._new_terms.get(sha256) or self._interned.terms.get(sha256)
        return known or intern_terms(sha256, self._connection.fetch("terms", sha256), self._interned)


def _entry_head(entry: Entry) -> Head:
    return _new(Head, _head_fields(entry))


def _merge_payloads(old: Payload, new: Payload | None) -> Payload:
    if new is None:
        return old
    merged = Payload._make([a if b is None else b for a, b in zip(old, new, strict=True)])
    if new.args is not None:
        return merged._replace(shown=new.shown)  # an edit replaces both, and None means that nothing is secret
    return merged


# The order of the writes in a transaction: rows before their updates and erasures, the head last.
WRITE_NAMES = (
    "insert_workspace",
    "insert_terms",
    "insert_spec",
    "insert_tool",
    "insert_approval",
    "insert_payload",
    "advance_approval",
    "update_approval",
    "erase_approval",
    "snooze_approval",
    "edit_payload",
    "end_payload",
    "erase_payload",
    "step_back_consumer_offset",  # locks the offset before any document, like the search indexer: no deadlock
    "insert_search_document",
    "update_search_document",
    "erase_search_document",  # last: of several writes to one document in a batch, this one counts
    "write_grant",
    "write_run",
    "write_thread",
    "wake_thread",  # a wake-up in this batch counts, even if another step wrote the thread
    "ready_thread",
    "erase_thread_entries",
    "insert_thread_entry",
    "write_draft",
    "drop_draft",
    "write_freeze",
    "insert_key_agent",
    "insert_policy",
    "write_agent",
    "write_pin",
    "drop_pin",
    "write_user",
    "write_password",
    "write_subject",
    "erase_user",
    "insert_key",
    "revoke_key",
    "expire_key",
    "touch_key",
    "erase_keys",
    "insert_session",
    "end_session",
    "insert_link",
    "spend_link",
    "reserve_idempotency_key",
    "take_over_idempotency_key",
    "save_idempotency_key",
    "release_idempotency_key",
    "erase_idempotency_keys",
    "delete_idempotency_key",
    "write_tool_item",
    "delete_tool_item",
    "insert_applied_change",
    "delete_applied_change",
    "insert_passage",
    "write_document",
    "delete_document",
    "delete_passage",
    "write_delivery",
    "drop_delivery",
    "write_pause",
    "hold_pause",
    "drop_pause",
    "write_identity",
    "drop_identity",
    "write_disabled_channel",
    "delete_disabled_channel",
    "write_read_counts",
    "insert_event",
    "insert_content",
    "erase_content",
    "write_consumer_offset",
    "write_status_count",
    "write_head",
)
WRITE_ORDER = {name: place for place, name in enumerate(WRITE_NAMES)}
COMPARE_AND_SET_WRITES = frozenset({"update_approval", "advance_approval", "erase_approval"})
