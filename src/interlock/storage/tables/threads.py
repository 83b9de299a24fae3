"""Chat threads and their entries, in the same database and transactions as the approvals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple, cast

from interlock.core.canonical import canonical, read_canonical
from interlock.core.chat.thread import Confirmation, Thread, ThreadEntry, ThreadTransition, append, erase, ledger_events
from interlock.core.errors import Conflict, NotFound
from interlock.core.ledger.erasure import Erasure, ErasureResult
from interlock.core.ledger.event import Moment
from interlock.core.ports import PolicyRevision
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import DUE_THREADS_TOPIC, Transaction
from interlock.storage.engine.writer import BatchItem
from interlock.storage.tables.idempotency import IdempotencyKey as Answered
from interlock.storage.tables.idempotency import IdempotencyRecord

THREAD_NOT_FOUND = "There is no thread with this id."  # also for a thread of another person
ENTRIES_PER_READ = 1_000  # in one read
MAX_ENTRY_NUMBER = 2**31 - 1  # above the number of any entry
PAGE_SIZE = 200  # a person's threads in one read
DONE_STATUS = 200  # status of a stored response
NEW_MARK = b"new"  # token of a step that was not a retry
ThreadStep = Callable[[Thread, Moment], ThreadTransition]
FirstThreadStep = Callable[[Thread | None, Moment], ThreadTransition]  # None: the thread does not exist yet
OtherThreadStep = Callable[
    [Thread | None, Moment], ThreadTransition | None
]  # for another thread; None: leave it unchanged


class Draft(NamedTuple):
    """The partial output of a model, after this entry."""

    entry_number: int
    text: str


class SqlThreads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, workspace: str, thread_id: str) -> Thread:
        return _require_thread(await self._database.fetch("thread", workspace, thread_id), thread_id)

    async def find(self, workspace: str, thread_id: str) -> Thread | None:
        found = await self._database.fetch("thread", workspace, thread_id)
        return _read_thread(found[0]) if found else None

    async def list_by_person(
        self, workspace: str, person: str, before: tuple[int, str], limit: int
    ) -> Sequence[Thread]:
        """Return a person's threads, the newest first; `before` is time and id of the last one on the page before."""
        found = await self._database.fetch("threads_of", workspace, person, before[0], before[0], before[1], limit)
        return [_read_thread(row) for row in found]

    async def list_all(self, workspace: str, before: tuple[int, str], limit: int) -> Sequence[Thread]:
        found = await self._database.fetch("threads_of_all", workspace, before[0], before[0], before[1], limit)
        return [_read_thread(row) for row in found]

    async def children(self, workspace: str, thread_id: str) -> Sequence[Thread]:
        return [_read_thread(row) for row in await self._database.fetch("threads_below", workspace, thread_id)]

    async def policy_revision(self, workspace: str) -> PolicyRevision:
        """Return the revision of the stored policy and agents, by which a turn sees that its settings are outdated."""
        [(policy, agents)] = await self._database.fetch("policy_revision", workspace, workspace)
        return PolicyRevision(int(policy), int(agents))

    async def count_by_agent(self, workspace: str, agent: str) -> Mapping[str, int]:
        """Return how many threads an agent has, by status; those of its calls by other agents included."""
        return {
            str(status): int(count)
            for status, count in await self._database.fetch("threads_of_agent", workspace, agent)
        }

    async def entries(
        self, workspace: str, thread_id: str, after: int = 0, before: int = MAX_ENTRY_NUMBER
    ) -> Sequence[ThreadEntry]:
        """Return all entries after `after` and before `before`."""
        lines: list[ThreadEntry] = []
        while found := await self._database.fetch(
            "thread_entries", workspace, thread_id, after, before, ENTRIES_PER_READ
        ):
            lines += [_read_entry(row) for row in found]
            after = lines[-1].number
            if len(found) < ENTRIES_PER_READ:
                break
        return lines

    async def due(self, now: int, limit: int) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in await self._database.fetch("due_threads", now, limit)]

    async def next_due(self) -> int | None:
        return cast(int | None, (await self._database.fetch("next_due_thread"))[0][0])

    async def running(self) -> Sequence[tuple[str, str, str]]:
        """Return running threads with their runners."""
        return [(row[0], row[1], row[2]) for row in await self._database.fetch("running_threads")]

    async def add(self, workspace: str, thread_id: str, new: Callable[[Moment], ThreadTransition]) -> Thread:
        """Create a thread, unless it exists."""

        def run(tx: Transaction) -> Thread:
            tx.require_own_batch(f"thread {thread_id}")
            found = tx.fetch("thread", workspace, thread_id)
            return _read_thread(found[0]) if found else _write_transition(tx, new(tx.moment(workspace)))

        return cast(Thread, await self._database.write(BatchItem(run, workspace)))

    async def step(
        self, workspace: str, thread_id: str, step: ThreadStep, other_steps: Mapping[str, OtherThreadStep] | None = None
    ) -> Thread:
        """Run a step; `other_steps` change other threads, by their ids, in the same transaction."""

        def run(tx: Transaction) -> Thread:
            tx.require_own_batch(f"thread {thread_id}")
            thread = _require_thread(tx.fetch("thread", workspace, thread_id), thread_id)
            transition = step(thread, tx.moment(workspace))
            moves = [
                each(_read_other_thread(tx, workspace, other), tx.moment(workspace))
                for other, each in (other_steps or {}).items()
            ]
            return _write_transitions(tx, [*(each for each in moves if each is not None), transition])[-1]

        return cast(Thread, await self._database.write(BatchItem(run, workspace)))

    async def step_once(
        self, idempotency_key: Answered, digest: str, thread_id: str, step: FirstThreadStep
    ) -> IdempotencyRecord:
        """Run a step once for its idempotency key: the transaction also records it and its position in the thread."""

        def run(tx: Transaction) -> IdempotencyRecord:
            tx.require_own_batch(f"answer {idempotency_key}")
            tx.require_own_batch(f"thread {thread_id}")
            known = tx.fetch("idempotency_key", *idempotency_key)
            if known:
                return IdempotencyRecord(known[0][0], known[0][1], bytes(known[0][2]))
            found = tx.fetch("thread", idempotency_key.workspace, thread_id)
            thread = _write_transition(
                tx, step(_read_thread(found[0]) if found else None, tx.moment(idempotency_key.workspace))
            )
            done = canonical({"thread_id": thread.id, "line": thread.entry_count})
            tx.write("reserve_idempotency_key", *idempotency_key, digest, DONE_STATUS, done, self._database.clock())
            return IdempotencyRecord(digest, DONE_STATUS, done, NEW_MARK)

        return cast(
            IdempotencyRecord,
            await self._database.write(
                BatchItem(run, idempotency_key.workspace, (("idempotency_key", *idempotency_key),))
            ),
        )

    async def find_erasable_ids(self, workspace: str, erasure: Erasure) -> Sequence[str]:
        """Return the ids of a thread, or of all a person's threads, each with its subagents' threads."""
        match erasure.scope:
            case "thread":
                return await self._subtree_ids(workspace, erasure.target)
            case "person":
                return await self._person_thread_ids(workspace, erasure.target)
            case _:
                return ()

    async def erase(self, workspace: str, thread_id: str, by: str, *, dry_run: bool) -> ErasureResult:
        return cast(ErasureResult, await self._database.write(_erase_thread(workspace, thread_id, by, dry_run=dry_run)))

    async def _person_thread_ids(self, workspace: str, person: str) -> Sequence[str]:
        found: list[str] = []
        before = (2**62, "")
        while page := await self.list_by_person(workspace, person, before, PAGE_SIZE):
            for thread in page:
                found += await self._subtree_ids(workspace, thread.id)
            before = (page[-1].updated_at, page[-1].id)
        return found

    async def _subtree_ids(self, workspace: str, thread_id: str) -> Sequence[str]:
        found = [thread_id] if await self.find(workspace, thread_id) else []
        for child in await self.children(workspace, thread_id):
            found += await self._subtree_ids(workspace, child.id)
        return found

    async def draft(self, workspace: str, thread_id: str) -> Draft | None:
        found = await self._database.fetch("draft", workspace, thread_id)
        return Draft(*found[0]) if found else None

    async def write_draft(self, workspace: str, thread_id: str, draft: Draft) -> None:
        await self._database.write(
            BatchItem(lambda tx: tx.write("write_draft", workspace, thread_id, *draft), workspace)
        )


def _erase_thread(workspace: str, thread_id: str, by: str, *, dry_run: bool) -> BatchItem:
    """Erase a thread's entries, title, draft and confirmation texts. A thread that is at work is skipped."""

    def run(tx: Transaction) -> ErasureResult:
        tx.require_own_batch(f"thread {thread_id}")
        thread = _require_thread(tx.fetch("thread", workspace, thread_id), thread_id)
        if not tx.fetch("count_thread_entries", workspace, thread_id)[0][0]:
            return ErasureResult()
        try:
            transition = erase(thread, by, tx.moment(workspace))
        except Conflict:
            return ErasureResult(skipped=((thread_id, thread.status),))
        if not dry_run:
            tx.write("erase_thread_entries", workspace, thread_id)
            tx.write("drop_draft", workspace, thread_id)
            _write_transition(tx, transition)
        return ErasureResult(threads=1)

    return BatchItem(run, workspace, is_short=False)


def check_lease(tx: Transaction, workspace: str, thread_id: str, fence: int) -> None:
    """Raise LeaseLost. A thread stopped in this very batch passes: the stop looks for its calls afterwards."""
    append(_require_thread(tx.fetch("thread", workspace, thread_id), thread_id), fence, (), tx.moment(workspace))


def _read_other_thread(tx: Transaction, workspace: str, thread_id: str) -> Thread | None:
    tx.require_own_batch(f"thread {thread_id}")
    found = tx.fetch("thread", workspace, thread_id)
    return _read_thread(found[0]) if found else None


def _write_transition(tx: Transaction, transition: ThreadTransition) -> Thread:
    return _write_transitions(tx, [transition])[0]


def _write_transitions(tx: Transaction, transitions: Sequence[ThreadTransition]) -> list[Thread]:
    """Write transitions. Content that cannot be stored is refused before any write: the batch holds others' writes."""
    bodies = [[canonical(entry.body) for entry in transition.entries] for transition in transitions]
    return [_insert_transition(tx, transition, kept) for transition, kept in zip(transitions, bodies, strict=True)]


def _insert_transition(tx: Transaction, transition: ThreadTransition, bodies: Sequence[bytes]) -> Thread:
    thread = transition.thread
    tx.append_events(thread.workspace, ledger_events(transition))
    now = tx.moment(thread.workspace).now
    for number, (entry, body) in enumerate(zip(transition.entries, bodies, strict=True), thread.entry_count + 1):
        tx.write("insert_thread_entry", thread.workspace, thread.id, number, now, entry.kind, entry.actor, body)
    thread = replace(thread, entry_count=thread.entry_count + len(transition.entries))
    if any(entry.kind in DRAFT_ENDING_KINDS for entry in transition.entries):
        tx.write("drop_draft", thread.workspace, thread.id)
    tx.write("write_thread", *_thread_values(thread))
    for other in transition.wake_threads:
        tx.wake_thread(thread.workspace, other)
    tx.mark_thread_changed(thread.workspace, thread.id)
    if thread.status == "ready":
        tx.mark_thread_changed("", DUE_THREADS_TOPIC)
    return thread


DRAFT_ENDING_KINDS = frozenset({"replied", "failed", "stopped", "ended", "resumed"})


def _require_thread(found: list[Row], thread_id: str) -> Thread:
    if not found:
        raise NotFound(THREAD_NOT_FOUND, thread_id=thread_id)
    return _read_thread(found[0])


def _read_thread(row: Row) -> Thread:
    workspace, thread_id, agent, person, title, parent, call, path, status, lines, due, woken, runner, fence = row[:14]
    confirmation = Confirmation(**json.loads(row[14])) if row[14] else None
    return Thread(
        thread_id,
        workspace,
        agent,
        person=person,
        title=title,
        parent=parent,
        parent_call=call,
        path=tuple(json.loads(path)),
        status=status,
        entry_count=lines,
        due_at=due,
        wake_count=woken,
        runner=runner,
        fence=fence,
        confirmation=confirmation,
        created_at=row[15],
        updated_at=row[16],
    )


def _thread_values(t: Thread) -> tuple[object, ...]:
    confirmation = json.dumps(asdict(t.confirmation)) if t.confirmation else ""
    who = (t.workspace, t.id, t.agent, t.person, t.title, t.parent, t.parent_call, json.dumps(t.path))
    held = (t.status, t.entry_count, t.due_at, t.wake_count, t.runner, t.fence)
    return (*who, *held, confirmation, t.created_at, t.updated_at)


def _read_entry(row: Row) -> ThreadEntry:
    n, at, kind, actor, body = row
    return ThreadEntry(n, at, kind, actor, cast(dict[str, object], read_canonical(bytes(body))))
