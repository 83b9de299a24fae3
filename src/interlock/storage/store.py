"""The Store port, over a database that reads and runs batch items inside a transaction.

It is long because the port is one class, with a few lines for each method.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from functools import cached_property, partial
from typing import Any, cast

from interlock.core.approval.approval import Approval
from interlock.core.call import ToolSpec, parse_spec
from interlock.core.decision import Reviewer
from interlock.core.errors import NotFound
from interlock.core.freeze import Freeze
from interlock.core.grant import Grant
from interlock.core.ledger.chain import Entry, Head
from interlock.core.ledger.erasure import Erasure, ErasureResult
from interlock.core.ledger.event import Change, Event, Moment, Stored
from interlock.core.pins import MAX_DECLARED, MAX_LISTED, OTHER_TOOLS, Pin
from interlock.core.policy.analysis import RecordedCall
from interlock.core.policy.policy import Ask
from interlock.core.ports import (
    AgentDeletion,
    AgentToolUsage,
    AgentVersion,
    ApprovalPage,
    ApprovalQuery,
    ApprovalStep,
    EntryFilter,
    FirstSeenTool,
    GrantFactory,
    GrantStep,
    PolicyVersion,
    ProposalTransaction,
    ReviewerStep,
    RunStep,
    Stats,
    StoredStep,
    Trace,
    User,
)
from interlock.core.ports import Watch as WatchPort
from interlock.core.run import Run
from interlock.core.search import needs_text_search
from interlock.runtime.durations import MINUTE
from interlock.storage.engine import rows
from interlock.storage.engine.cache import intern_terms
from interlock.storage.engine.database import Database
from interlock.storage.engine.metrics import CheckResult, MetricsReader
from interlock.storage.engine.queries import check_statuses, clamp_limit, list_query, load_queries, make_cursor
from interlock.storage.engine.rows import Row
from interlock.storage.engine.writer import BatchItem
from interlock.storage.tables import approvals, history, verification
from interlock.storage.tables import erasure as erasing
from interlock.storage.tables.accounts import SqlAccounts
from interlock.storage.tables.deliveries import SqlDeliveries
from interlock.storage.tables.freezes import SqlFreezes
from interlock.storage.tables.history import Statistics
from interlock.storage.tables.idempotency import IdempotencyStore
from interlock.storage.tables.pauses import SqlPauses
from interlock.storage.tables.search import ApprovalSearch
from interlock.storage.tables.threads import SqlThreads
from interlock.storage.tables.tool_items import SqlDocuments, SqlToolItemStore
from interlock.storage.tables.verification import SqlAuditReader

ENTRIES_PER_READ = 500  # ledger rows in one read: larger pages do not stay in the processor's cache
CALLS_PER_READ = 1_000  # recorded calls in one read
MAX_CACHED_SPECS, MAX_CACHED_SPEC_BYTES = (
    1_000,
    16_384,
)  # tool definitions cached in memory, and the maximum size of each


class SqlStore:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._secret_keys: dict[str, bytes] = {}
        self._specs: dict[str, ToolSpec] = {}
        self._has_erased = False
        self.backfill_statements = partial(verification.backfill_statements, database)
        self.announce = database.watch_registry.announce
        self.count_read = database.count_read
        self.open, self.close = database.open, database.close
        self.note_tool = database.note_tool
        self.clock = database.clock
        self.writer_stats = database.writer_stats
        self.name = database.name

    # Tables with a port of their own, made when they are first used: a command of one decision uses none of them

    @cached_property
    def _ids_like(self) -> str:
        return load_queries()["ids_like"]

    @cached_property
    def accounts(self) -> SqlAccounts:
        return SqlAccounts(self._database)

    @cached_property
    def audit_reader(self) -> SqlAuditReader:
        return SqlAuditReader(self._database)

    @cached_property
    def deliveries(self) -> SqlDeliveries:
        return SqlDeliveries(self._database)

    @cached_property
    def freezes(self) -> SqlFreezes:
        return SqlFreezes(self._database)

    @cached_property
    def idempotency(self) -> IdempotencyStore:
        return IdempotencyStore(self._database)

    @cached_property
    def metrics(self) -> MetricsReader:
        return MetricsReader(self._database.fetch)

    @cached_property
    def pauses(self) -> SqlPauses:
        return SqlPauses(self._database)

    @cached_property
    def statistics(self) -> Statistics:
        return Statistics(self._database)

    @cached_property
    def threads(self) -> SqlThreads:
        return SqlThreads(self._database)

    @cached_property
    def _search(self) -> ApprovalSearch:
        return ApprovalSearch(self._database, self._database.full_text_index, self._stored)

    # Freezes

    async def open_freezes(self, workspace: str) -> tuple[Freeze, ...]:
        return await self.freezes.list_open(workspace)

    async def record_key_agents(self, workspace: str, key: str, agents: Sequence[str]) -> None:
        await self.freezes.record_key_agents(workspace, key, agents)

    async def unsettled_freezes(self) -> Sequence[tuple[str, str]]:
        return await self.freezes.unsettled()

    async def settle_freeze(self, workspace: str, freeze_id: str) -> int:
        return await self.freezes.settle(workspace, freeze_id)

    # Approvals

    async def find(self, workspace: str, run_id: str, call_id: str) -> Stored | None:
        """Find a call's approval. Most calls are new, and the index alone answers that."""
        found = await self._database.fetch("approval_by_call", workspace, run_id, call_id)
        return await self.get(workspace, found[0][0]) if found else None

    async def get(self, workspace: str, approval_id: str) -> Stored:
        found = await self._stored(await self._database.fetch("stored", workspace, approval_id))
        if not found:
            raise NotFound("There is no approval with this id.", approval_id=approval_id)
        return found[0]

    async def get_approval(self, workspace: str, approval_id: str) -> Approval:
        """Return an approval without its payload, which can be large."""
        found = await self._database.fetch("approval", workspace, approval_id)
        if not found:
            raise NotFound("There is no approval with this id.", approval_id=approval_id)
        terms = await self._terms(found)
        return rows.read_approval(found[0], terms.__getitem__)

    async def list(self, workspace: str, query: ApprovalQuery) -> ApprovalPage:
        check_statuses(query)
        if needs_text_search(query):
            return await self._search.page(workspace, query)
        statement, values = list_query(workspace, query)
        found = await self._database.fetch_text(statement, values)
        limit = clamp_limit(query)
        items = tuple(await self._stored(found[:limit]))
        if len(found) <= limit:
            return ApprovalPage(items, None)
        last = items[-1].approval
        return ApprovalPage(
            items,
            make_cursor(last.deadlines.expires_at if query.statuses == ("pending",) else last.created_at, last.id),
        )

    async def update_search_index(self, min_age: int = 0) -> bool:
        """Index a part of the changes older than `min_age` for search; return True if there is more."""
        return await self._search.index(self.clock() - min_age if min_age else None)

    async def stats(self, workspace: str) -> Stats:
        tallies = {str(status): int(n) for status, n in await self._database.fetch("status_counts", workspace)}
        reads = (await self._database.fetch("allowed_reads", workspace))[0][0]
        waiting = (await self._database.fetch("waiting_runs", workspace))[0][0]
        return Stats(tallies, int(reads), int(waiting))

    async def count_pending(self, workspace: str, owner: str, limit: int) -> int:
        """Count the pending calls of an agent or a key, up to `limit`."""
        return int((await self._database.fetch("pending_of_owner", workspace, owner, limit))[0][0])

    async def count_open_runs(self, workspace: str, runners: str, limit: int) -> int:
        """Count the open runs whose runner names begin with `runners`, up to `limit`."""
        return int((await self._database.fetch("open_runs_of", workspace, len(runners), runners, limit))[0][0])

    async def find_ids(self, workspace: str, part: str, limit: int) -> Sequence[str]:
        """Return the ids that begin or end with `part`, the newest first: of the newest 100,000, or the whole id."""
        text = part.lower()  # as all ids are; SQLite compares patterns in any case, PostgreSQL does not
        if not text.replace("-", "").isalnum():  # other characters are in no id, and LIKE could take them for a pattern
            return []
        with suppress(NotFound):
            return [(await self.get(workspace, part)).approval.id]
        values = (workspace, f"{text}%", f"%{text}", limit)
        return [row[0] for row in await self._database.fetch_in_thread(self._ids_like, values)]

    async def timeline(self, workspace: str, approval_id: str) -> Sequence[Entry]:
        return rows.read_entries(await self._database.fetch("timeline", workspace, approval_id))

    async def due(self, now: int, limit: int) -> Sequence[tuple[str, str]]:
        """Return approvals with a due timer; several workers get different ones where the database supports that."""
        return [(row[0], row[1]) for row in await self._database.due(now, limit)]

    async def next_due(self) -> int | None:
        return cast(int | None, (await self._database.fetch("next_due"))[0][0])

    async def running(self) -> Sequence[tuple[str, str, str]]:
        return [(row[0], row[1], row[2]) for row in await self._database.fetch("running")]

    # These return the coroutine of the database: one of their own would be one more to resume for each result

    def propose(self, transaction: ProposalTransaction) -> Coroutine[Any, Any, Stored]:
        return self._database.write(approvals.begin(transaction, self._database.clock()))

    async def deny(self, workspace: str, events: Sequence[Event], spec: ToolSpec) -> None:
        await self._database.write(approvals.deny(workspace, events, spec))

    def transition(self, workspace: str, approval_id: str, step: ApprovalStep) -> Coroutine[Any, Any, Approval]:
        return self._database.write(approvals.transition(workspace, approval_id, step))

    def transition_by(
        self, workspace: str, approval_id: str, by: Reviewer, step: ReviewerStep
    ) -> Coroutine[Any, Any, Approval]:
        return self._database.write(approvals.transition_by(workspace, approval_id, by, step))

    def transition_stored(self, workspace: str, approval_id: str, step: StoredStep) -> Coroutine[Any, Any, Stored]:
        return self._database.write(approvals.transition_stored(workspace, approval_id, step))

    async def _stored(self, found: Sequence[Row]) -> Sequence[Stored]:
        """Read rows of approvals with their payloads."""
        known = await self._terms(found)
        return [
            Stored(rows.read_approval(row, known.__getitem__), rows.read_payload(row[rows.APPROVAL_COLUMN_COUNT :]))
            for row in found
        ]

    async def _terms(self, found: Sequence[Row]) -> Mapping[str, Ask]:
        """Return the terms of approvals; those that are not cached are read."""
        interned, known = self._database.interned, dict[str, Ask]()
        for sha256 in {row[rows.TERMS_COLUMN] for row in found}:  # copied: another thread may clear the cache
            terms = interned.terms.get(sha256)
            known[sha256] = terms or intern_terms(sha256, await self._database.fetch("terms", sha256), interned)
        return known

    async def spec(self, sha256: str) -> ToolSpec | None:
        """Return a tool definition. It never changes, so a small one is read once."""
        known = self._specs.get(sha256)
        found = [] if known else await self._database.fetch("spec", sha256)
        if known or not found:
            return known
        spec = parse_spec(found[0][0])
        if len(found[0][0]) <= MAX_CACHED_SPEC_BYTES:
            if len(self._specs) >= MAX_CACHED_SPECS:
                self._specs.clear()
            self._specs[sha256] = spec
        return spec

    async def secret_key(self, workspace: str) -> bytes:
        """Return the workspace's secret key, made on first use; the same for every process."""
        if workspace not in self._secret_keys:
            if not await self._database.fetch("workspace_key", workspace):
                await self.accounts.add_workspace(workspace)
            self._secret_keys[workspace] = bytes((await self._database.fetch("workspace_key", workspace))[0][0])
        return self._secret_keys[workspace]

    async def runs(self, workspace: str, agent: str) -> Sequence[Run]:
        return [rows.read_run(row) for row in await self._database.fetch("open_runs", workspace, agent)]

    async def add_run(self, workspace: str, new: Callable[[Moment], Change[Run]]) -> Run:
        return cast(Run, await self._database.write(approvals.add_run(workspace, new)))

    async def update_run(self, workspace: str, run_id: str, step: RunStep) -> Run:
        return cast(Run, await self._database.write(approvals.step_run(workspace, run_id, step)))

    async def grants(self, workspace: str) -> Sequence[Grant]:
        """Return the newest 1,000 grants, in any state."""
        return [rows.read_grant(row) for row in await self._database.fetch("grants", workspace)]

    async def usable_grants(self, workspace: str, now: int) -> Sequence[Grant]:
        """Return the newest 1,000 grants that can be used."""
        return [rows.read_grant(row) for row in await self._database.fetch("usable_grants", workspace, now)]

    async def grant(self, workspace: str, grant_id: str) -> Grant:
        found = await self._database.fetch("grant", workspace, grant_id)
        if not found:
            raise NotFound("There is no grant with this id.", grant_id=grant_id)
        return rows.read_grant(found[0])

    async def find_grant_ids(self, workspace: str, part: str, limit: int) -> Sequence[str]:
        if not part.replace("-", "").isalnum():
            return []
        return [
            row[0] for row in await self._database.fetch("grant_ids_like", workspace, f"{part}%", f"%{part}", limit)
        ]

    async def grant_uses(self, grant: Grant, limit: int) -> Sequence[Stored]:
        """Return the newest calls that a grant allowed, among the newest 10,000 in its lifetime."""
        end = grant.expires_at if grant.revoked_at is None else grant.revoked_at
        times = (grant.created_at, end)
        found = await self._database.fetch("grant_uses", grant.workspace, *times, grant.id, limit)
        return sorted(await self._stored(found), key=lambda stored: stored.approval.created_at, reverse=True)

    async def newest_specs(self, workspace: str, tool: str, limit: int) -> Sequence[tuple[str, str, int]]:
        """Return the definition, agent and time of a tool's newest calls, among the workspace's newest 100,000."""
        found = await self._database.fetch("newest_specs_of_tool", workspace, tool, limit)
        return sorted(((row[0], row[1], row[2]) for row in found), key=lambda seen: -seen[2])

    async def add_grant(self, workspace: str, maker: Reviewer, new: GrantFactory) -> Grant:
        return cast(Grant, await self._database.write(approvals.add_grant(workspace, maker, new)))

    async def update_grant(self, workspace: str, grant_id: str, step: GrantStep) -> Grant:
        return cast(Grant, await self._database.write(approvals.step_grant(workspace, grant_id, step)))

    async def policy(self, workspace: str) -> PolicyVersion | None:
        found = await self._database.fetch("policy", workspace)
        return rows.read_policy(found[0]) if found else None

    async def policies(self, workspace: str, limit: int = 100) -> Sequence[PolicyVersion]:
        """Return policy versions, the newest first."""
        return [rows.read_policy(row) for row in await self._database.fetch("policies", workspace, limit)]

    async def put_policy(
        self,
        workspace: str,
        sha256: str,
        body: str,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        trace: Trace | None = None,
    ) -> PolicyVersion:
        """Put a policy in force; the last writer wins, unless an `expected_version` is given.

        If it is in force already, nothing changes.
        """
        item = approvals.put_policy(
            workspace, approvals.NewPolicy(sha256, body, author, reason, trace=trace), expected_version
        )
        return cast(PolicyVersion, await self._database.write(item))

    async def flush(self, workspace: str) -> None:
        """Return when everything that was submitted before is written."""
        await self._database.write(BatchItem(lambda _: None, workspace, is_short=False))

    async def has_policy(self, workspace: str, sha256: str) -> bool:
        """Return whether this policy is, or ever was, in force."""
        return bool(await self._database.fetch("known_policy", workspace, sha256))

    async def put_policy_file(
        self, workspace: str, sha256: str, body: str, author: str, reason: str = "", *, reapply: bool = False
    ) -> PolicyVersion:
        """Put a file's policy in force, unless it was before; return the version in force. `reapply` puts it again."""
        new_policy = approvals.NewPolicy(sha256, body, author, reason, "file")
        return cast(
            PolicyVersion, await self._database.write(approvals.put_policy(workspace, new_policy, reapply=reapply))
        )

    async def agents(self, workspace: str) -> Sequence[AgentVersion]:
        return [AgentVersion(*row) for row in await self._database.fetch("agents", workspace)]

    async def put_agent(
        self,
        workspace: str,
        name: str,
        body: str,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        *,
        agents_revision: int | None = None,
    ) -> AgentVersion:
        """Store an agent's settings. Raises AgentsChanged if the agents have another revision than was checked."""
        expected = approvals.ExpectedAgents(expected_version, agents_revision)
        item = approvals.put_agent(workspace, name, body, author, reason, expected)
        return cast(AgentVersion, await self._database.write(item))

    async def delete_agent(
        self,
        workspace: str,
        name: str,
        effect: AgentDeletion,
        author: str,
        reason: str = "",
        expected_version: int | None = None,
        *,
        agents_revision: int | None = None,
    ) -> Sequence[str]:
        """Delete an agent's stored settings; return the ids of its calls that the same transaction cancelled."""
        expected = approvals.ExpectedAgents(expected_version, agents_revision)
        item = approvals.delete_agent(workspace, name, effect, author, reason, expected)
        return cast(Sequence[str], await self._database.write(item))

    async def count_open_thread_calls(self, workspace: str, agent: str) -> int:
        """Count the calls in an agent's chat threads that have not started: deleting the agent cancels them."""
        found = await self._database.fetch("open_thread_approvals", workspace, workspace)
        return sum(approvals.is_of_agent(row, agent) for row in found)

    async def tools(self, workspace: str) -> Sequence[FirstSeenTool]:
        """Return at most 10,000 tools, the newest of each key first, and 1,000 of which only reads were counted."""
        found = sorted(map(FirstSeenTool._make, await self._database.fetch("tools", workspace, MAX_LISTED)))
        reads = await self._database.fetch("read_tools", workspace, OTHER_TOOLS)
        return [*found, *(FirstSeenTool(row[0], "", "", row[1] * MINUTE) for row in reads)]

    async def keys_over_limit(self, workspace: str) -> Sequence[str]:
        """Return the ids of keys that have declared so many tools that no more are recorded from their reads."""
        return [str(row[0]) for row in await self._database.fetch("full_keys", workspace, MAX_DECLARED)]

    async def tool_usage(self, workspace: str, since: int) -> Sequence[AgentToolUsage]:
        """Count calls by tool and agent, among the newest 100,000, and the reads of each tool."""
        found = await self._database.fetch("calls_of_tools", workspace, since)
        reads = await self._database.fetch("reads_since", workspace, since // MINUTE)
        counted = [AgentToolUsage(row[0], "", int(row[1]), row[2] * MINUTE) for row in reads]
        return [*map(AgentToolUsage._make, found), *counted]

    async def pins(self, workspace: str) -> Sequence[Pin]:
        """Return at most 10,000 pins, by name."""
        return [rows.read_pin(row) for row in await self._database.fetch("pins", workspace)]

    async def pin(self, workspace: str, specs: Sequence[ToolSpec], agent: str, author: str) -> Sequence[Pin]:
        item = approvals.pin_tools(workspace, specs, agent, author)
        return cast(Sequence[Pin], await self._database.write(item))

    async def unpin(self, workspace: str, tool: str, author: str) -> Pin:
        return cast(Pin, await self._database.write(approvals.unpin_tool(workspace, tool, author)))

    async def users(self, workspace: str) -> Sequence[User]:
        return [rows.read_user(row) for row in await self._database.fetch("users", workspace)]

    async def put_user(self, workspace: str, user: User, author: str) -> User:
        return cast(User, await self._database.write(approvals.put_user(workspace, user, author)))

    def tool_items(self, workspace: str) -> SqlToolItemStore:
        return SqlToolItemStore(self._database, workspace)

    def documents(self, workspace: str) -> SqlDocuments:
        return SqlDocuments(self._database, workspace)

    async def head(self, workspace: str) -> Head:
        found = await self._database.fetch("head", workspace)
        return Head(*found[0]) if found else Head(workspace)

    async def entries(self, workspace: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        while found := await self._database.fetch("entries", workspace, after, ENTRIES_PER_READ):
            yield rows.read_entries(found)
            after = found[-1][1]

    async def filter_entries(self, workspace: str, span: tuple[int, int], entry_filter: EntryFilter) -> Sequence[Entry]:
        """Return matching entries after the first number and up to the second; all entries between are scanned."""
        name = "newest_entries_of" if entry_filter.newest_first else "entries_of"
        who = (entry_filter.kind, entry_filter.kind, entry_filter.actor, entry_filter.actor)
        return rows.read_entries(await self._database.fetch(name, workspace, *span, *who, entry_filter.limit))

    async def recorded_calls(self, workspace: str, since: int = 0) -> AsyncIterator[Sequence[RecordedCall]]:
        """Yield calls that were asked about, allowed or denied, in order, if their arguments are still stored."""
        specs: dict[str, ToolSpec | None] = {}
        emails = {user.name: user.email for user in await self.users(workspace) if user.email}
        after = 0
        while found := await self._database.fetch("recorded", workspace, after, since, CALLS_PER_READ):
            page = []
            for row in found:
                sha256 = history.recorded_spec_sha256(row)
                if sha256 and sha256 not in specs:
                    specs[sha256] = await self.spec(sha256)
                if sha256 and (spec := specs[sha256]) is not None:
                    page.append(history.read_recorded_call(workspace, row, spec, emails))
            yield page
            after = found[-1][0]

    async def count_recorded_calls(self, workspace: str, since: int = 0) -> tuple[int, int]:
        """Count the calls that can be judged again, and those that cannot because their arguments are not stored."""
        every, kept = (await self._database.fetch("count_recorded", workspace, since))[0]
        return int(kept), int(every) - int(kept)

    def watch(self, workspace: str, approval_id: str = "") -> AbstractAsyncContextManager[WatchPort]:
        return self._database.watch_registry.watch(workspace, approval_id)

    def listen(self, workspace: str, thread_id: str, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `callback` on every change; for thousands of waiters without a task."""
        return self._database.watch_registry.listen(workspace, thread_id, callback)

    async def erase(self, workspace: str, erasure: Erasure, *, dry_run: bool = False) -> AsyncIterator[ErasureResult]:
        """Erase in several transactions, and yield the result of each."""
        if erasure.scope != "approval":
            await self._search.catch_up(workspace)  # approvals are found by full-text search, and none may be missed
        async for batch in erasing.find_batches(self._database.fetch, self.list, workspace, erasure):
            item = erasing.erase_batch(workspace, erasure, batch, dry_run=dry_run)
            yield cast(ErasureResult, await self._database.write(item))
        if erasure.scope == "thread" and not dry_run:
            await self.pauses.erase(workspace, erasure.target)
        for thread_id in await self.threads.find_erasable_ids(workspace, erasure):
            yield await self.threads.erase(workspace, thread_id, erasure.by, dry_run=dry_run)
        if erasure.scope == "person" and not dry_run:
            await erasing.forget_user(self._database.fetch, self._database.write, workspace, erasure.target)
        if not dry_run:
            await self.idempotency.erase_bodies(workspace)
            await self._search.purge()

    async def apply_retention(self, retention: int, grace_period: int = 0) -> ErasureResult | None:
        """Erase one batch per workspace of what ended more than `retention` ago; None when nothing is left."""
        before, done = self.clock() - retention, None
        for workspace, mark in await erasing.overdue_workspaces(self._database.fetch, before, grace_period):
            item = await erasing.apply_retention(self._database.fetch, workspace, mark, before)
            erased, reached = cast(tuple[ErasureResult, int], await self._database.write(item))
            if reached > mark:
                done = erased if done is None else done + erased
        if done is None:
            await self.pauses.delete_expired(before)
        if done is None and self._has_erased:
            await self._search.purge()
        self._has_erased = done is not None
        return done

    def check_same_database(self) -> None:
        """Raise if this is no longer the database that was opened."""
        self._database.check_same_database()

    async def check_health(self) -> Sequence[CheckResult]:
        applied = len(await self.migrations())
        return [
            CheckResult("ok", "database", f"{self.name}, {applied} migrations applied"),
            *await self._database.check_health(),
        ]

    async def migrate(self) -> Sequence[str]:
        """Apply missing migrations and return their names."""
        return await self._database.migrate()

    async def migrations(self) -> Sequence[tuple[str, int]]:
        """Return the names of applied migrations, and when they were applied."""
        return [(row[0], row[1]) for row in await self._database.fetch("migrations")]
