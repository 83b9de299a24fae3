"""Threads and their lines: the same database and the same transactions as everything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple, cast

from interlock.core.canonical import canonical, read
from interlock.core.chat.thread import Confirmation, Line, Move, Thread, append, erase, events_of
from interlock.core.errors import Conflict, NotFound
from interlock.core.ledger.erasure import Erased, Erasure
from interlock.core.ledger.event import Moment
from interlock.storage.engine.database import Database
from interlock.storage.engine.rows import Row
from interlock.storage.engine.transaction import DUE, Transaction
from interlock.storage.engine.writer import Work
from interlock.storage.tables.idempotency import Kept
from interlock.storage.tables.idempotency import Place as Answered

NO_THREAD = "There is no thread with this id."  # nor is there anybody else's
LINES = 1_000  # in one read
NO_END = 2**31 - 1  # a line that no thread comes to
PAGE = 200  # threads of somebody in one read
DONE = 200  # the status of what was kept
NEW = b"new"  # marks what was not there before
Step = Callable[[Thread, Moment], Move]
FirstStep = Callable[[Thread | None, Moment], Move]  # None: the thread is not there yet
Also = Callable[[Thread | None, Moment], Move | None]  # of another thread; None: it is left as it is


class Draft(NamedTuple):
    """What a model has said so far, behind this line."""

    line: int
    words: str


class SqlThreads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, workspace: str, thread_id: str) -> Thread:
        return _one(await self._database.fetch("thread", workspace, thread_id), thread_id)

    async def find(self, workspace: str, thread_id: str) -> Thread | None:
        found = await self._database.fetch("thread", workspace, thread_id)
        return _thread(found[0]) if found else None

    async def of_person(self, workspace: str, person: str, before: tuple[int, str], limit: int) -> Sequence[Thread]:
        """The newest first; `before` is time and id of the last one that was seen."""
        found = await self._database.fetch("threads_of", workspace, person, before[0], before[0], before[1], limit)
        return [_thread(row) for row in found]

    async def of_everybody(self, workspace: str, before: tuple[int, str], limit: int) -> Sequence[Thread]:
        found = await self._database.fetch("threads_of_all", workspace, before[0], before[0], before[1], limit)
        return [_thread(row) for row in found]

    async def children(self, workspace: str, thread_id: str) -> Sequence[Thread]:
        return [_thread(row) for row in await self._database.fetch("threads_below", workspace, thread_id)]

    async def lines(self, workspace: str, thread_id: str, after: int = 0, before: int = NO_END) -> Sequence[Line]:
        """All of them behind `after`, and before `before`."""
        lines: list[Line] = []
        while found := await self._database.fetch("lines", workspace, thread_id, after, before, LINES):
            lines += [_line(row) for row in found]
            after = lines[-1].n
            if len(found) < LINES:
                break
        return lines

    async def due(self, now: int, limit: int) -> Sequence[tuple[str, str]]:
        return [(row[0], row[1]) for row in await self._database.fetch("due_threads", now, limit)]

    async def next_due(self) -> int | None:
        return cast(int | None, (await self._database.fetch("next_due_thread"))[0][0])

    async def running(self) -> Sequence[tuple[str, str, str]]:
        """With who runs them."""
        return [(row[0], row[1], row[2]) for row in await self._database.fetch("running_threads")]

    async def add(self, workspace: str, thread_id: str, new: Callable[[Moment], Move]) -> Thread:
        """One that is there already stays as it is."""

        def run(tx: Transaction) -> Thread:
            tx.alone(f"thread {thread_id}")
            found = tx.fetch("thread", workspace, thread_id)
            return _thread(found[0]) if found else _write(tx, new(tx.moment(workspace)))

        return cast(Thread, await self._database.write(Work(run, workspace)))

    async def step(self, workspace: str, thread_id: str, step: Step, also: Mapping[str, Also] | None = None) -> Thread:
        """`also` is what happens to other threads, by their ids: with this step, or not at all."""

        def run(tx: Transaction) -> Thread:
            tx.alone(f"thread {thread_id}")
            thread = _one(tx.fetch("thread", workspace, thread_id), thread_id)
            move = step(thread, tx.moment(workspace))
            moves = [each(_other(tx, workspace, other), tx.moment(workspace)) for other, each in (also or {}).items()]
            return _write_all(tx, [*(each for each in moves if each is not None), move])[-1]

        return cast(Thread, await self._database.write(Work(run, workspace)))

    async def once(self, place: Answered, digest: str, thread_id: str, step: FirstStep) -> Kept:
        """A step that may be sent again: with what it writes it is kept that it was done, and where in the thread."""

        def run(tx: Transaction) -> Kept:
            tx.alone(f"answer {place}")
            tx.alone(f"thread {thread_id}")
            known = tx.fetch("answer", *place)
            if known:
                return Kept(known[0][0], known[0][1], bytes(known[0][2]))
            found = tx.fetch("thread", place.workspace, thread_id)
            thread = _write(tx, step(_thread(found[0]) if found else None, tx.moment(place.workspace)))
            done = canonical({"thread_id": thread.id, "line": thread.lines})
            tx.write("claim_answer", *place, digest, DONE, done, self._database.clock())
            return Kept(digest, DONE, done, NEW)

        return cast(Kept, await self._database.write(Work(run, place.workspace, (("answer", *place),))))

    async def to_erase(self, workspace: str, erasure: Erasure) -> Sequence[str]:
        """A thread, or all of somebody's, each with those that its agents opened."""
        match erasure.scope:
            case "thread":
                return await self._below(workspace, erasure.what)
            case "person":
                return await self._all_of(workspace, erasure.what)
            case _:
                return ()

    async def erase(self, workspace: str, thread_id: str, by: str, *, dry_run: bool) -> Erased:
        return cast(Erased, await self._database.write(_erase(workspace, thread_id, by, dry_run=dry_run)))

    async def _all_of(self, workspace: str, person: str) -> Sequence[str]:
        found: list[str] = []
        before = (2**62, "")
        while page := await self.of_person(workspace, person, before, PAGE):
            for thread in page:
                found += await self._below(workspace, thread.id)
            before = (page[-1].updated_at, page[-1].id)
        return found

    async def _below(self, workspace: str, thread_id: str) -> Sequence[str]:
        found = [thread_id] if await self.find(workspace, thread_id) else []
        for child in await self.children(workspace, thread_id):
            found += await self._below(workspace, child.id)
        return found

    async def draft(self, workspace: str, thread_id: str) -> Draft | None:
        found = await self._database.fetch("draft", workspace, thread_id)
        return Draft(*found[0]) if found else None

    async def write_draft(self, workspace: str, thread_id: str, draft: Draft) -> None:
        await self._database.write(Work(lambda tx: tx.write("write_draft", workspace, thread_id, *draft), workspace))


def _erase(workspace: str, thread_id: str, by: str, *, dry_run: bool) -> Work:
    """Takes the lines, the title, the draft and what was asked in words. One that is at work is left."""

    def run(tx: Transaction) -> Erased:
        tx.alone(f"thread {thread_id}")
        thread = _one(tx.fetch("thread", workspace, thread_id), thread_id)
        if not tx.fetch("told_lines", workspace, thread_id)[0][0]:
            return Erased()
        try:
            move = erase(thread, by, tx.moment(workspace))
        except Conflict:
            return Erased(open=((thread_id, thread.status),))
        if not dry_run:
            tx.write("erase_lines", workspace, thread_id)
            tx.write("drop_draft", workspace, thread_id)
            _write(tx, move)
        return Erased(threads=1)

    return Work(run, workspace, brief=False)


def check_held(tx: Transaction, workspace: str, thread_id: str, fence: int) -> None:
    """Raises LeaseLost. One that is stopped in this very batch counts: whoever stops it looks afterwards."""
    append(_one(tx.fetch("thread", workspace, thread_id), thread_id), fence, (), tx.moment(workspace))


def _other(tx: Transaction, workspace: str, thread_id: str) -> Thread | None:
    tx.alone(f"thread {thread_id}")
    found = tx.fetch("thread", workspace, thread_id)
    return _thread(found[0]) if found else None


def _write(tx: Transaction, move: Move) -> Thread:
    return _write_all(tx, [move])[0]


def _write_all(tx: Transaction, moves: Sequence[Move]) -> list[Thread]:
    """What cannot be kept is refused before anything is written: the batch goes on, for it holds what others want."""
    bodies = [[canonical(line.body) for line in move.lines] for move in moves]
    return [_put(tx, move, kept) for move, kept in zip(moves, bodies, strict=True)]


def _put(tx: Transaction, move: Move, bodies: Sequence[bytes]) -> Thread:
    thread = move.thread
    tx.tell(thread.workspace, events_of(move))
    now = tx.moment(thread.workspace).now
    for number, (line, body) in enumerate(zip(move.lines, bodies, strict=True), thread.lines + 1):
        tx.write("insert_line", thread.workspace, thread.id, number, now, line.kind, line.actor, body)
    thread = replace(thread, lines=thread.lines + len(move.lines))
    if any(line.kind in ENDS_DRAFT for line in move.lines):
        tx.write("drop_draft", thread.workspace, thread.id)
    tx.write("write_thread", *_values(thread))
    for other in move.wakes:
        tx.wake(thread.workspace, other)
    tx.thread_changed(thread.workspace, thread.id)
    if thread.status == "ready":
        tx.thread_changed("", DUE)
    return thread


ENDS_DRAFT = frozenset({"replied", "failed", "stopped", "ended", "resumed"})


def _one(found: list[Row], thread_id: str) -> Thread:
    if not found:
        raise NotFound(NO_THREAD, thread_id=thread_id)
    return _thread(found[0])


def _thread(row: Row) -> Thread:
    workspace, thread_id, agent, person, title, parent, call, path, status, lines, due, woken, runner, fence = row[:14]
    confirmation = Confirmation(**json.loads(row[14])) if row[14] else None
    where = (parent, call, tuple(json.loads(path)))
    held = (status, lines, due, woken, runner, fence)
    return Thread(thread_id, workspace, agent, person, title, *where, *held, confirmation, row[15], row[16])


def _values(t: Thread) -> tuple[object, ...]:
    confirmation = json.dumps(asdict(t.confirmation)) if t.confirmation else ""
    who = (t.workspace, t.id, t.agent, t.person, t.title, t.parent, t.parent_call, json.dumps(t.path))
    held = (t.status, t.lines, t.due_at, t.woken, t.runner, t.fence)
    return (*who, *held, confirmation, t.created_at, t.updated_at)


def _line(row: Row) -> Line:
    n, at, kind, actor, body = row
    return Line(n, at, kind, actor, cast(dict[str, object], read(bytes(body))))
