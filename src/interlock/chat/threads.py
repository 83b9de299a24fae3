"""Threads: what people do with them (send a message, stop, retry, list, read), and the loop that advances them.

The loop leases due threads and advances each. A suspended thread is only a database row.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from interlock.app.gate import uuid7
from interlock.chat.agents import ASSISTANT, MISSING_AGENT, AgentDirectory, ChatServices, Subagents
from interlock.chat.calls import WITHDRAWAL_REASONS
from interlock.chat.stream import Drafts
from interlock.chat.thread_lease import LeasedThread
from interlock.chat.turn import Turn, TurnContext
from interlock.core.chat import thread as threads
from interlock.core.chat.thread import NewThreadEntry, Thread, ThreadEntry, ThreadTransition, UnfinishedReply
from interlock.core.errors import Conflict, Error, Expired, LeaseLost, NotFound, StoreUnavailable
from interlock.core.identity import ADMIN, Principal
from interlock.core.ledger.event import SYSTEM_ACTOR, Moment
from interlock.core.ports import ApprovalQuery, Clock, IsRunnerDead, Watch
from interlock.storage.engine.transaction import DUE_THREADS_TOPIC
from interlock.storage.tables.idempotency import IdempotencyKey, IdempotencyRecord
from interlock.storage.tables.threads import DRAFT_ENDING_KINDS, MAX_ENTRY_NUMBER, THREAD_NOT_FOUND, SqlThreads

MAX_OPEN_CARDS = 500  # cards of one thread that are withdrawn at once
FIRST_CURSOR = (2**62, "")
MAX_SCANNED = 1_000  # threads whose titles are searched for one page
MAX_CONCURRENT = 100  # threads that one process advances concurrently
INTERNAL_ERROR_TEXT = "Something went wrong inside Interlock; it is in the server's log. Send a message to try again."

OpenServices = Callable[[str], Awaitable[ChatServices]]
OpenThreadWatch = Callable[[str, str], AbstractAsyncContextManager[Watch]]
ReportFailure = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class ThreadPage:
    items: Sequence[Thread]
    next: tuple[int, str] | None


class ThreadQuery(NamedTuple):
    """Filter for threads: page, limit, owner (for admins), and words in the title."""

    before: tuple[int, str] = FIRST_CURSOR
    limit: int = 50
    owner: str = ""
    title_words: str = ""


NEWEST = ThreadQuery()


class UserMessage(NamedTuple):
    """A message and its thread: without a `thread_id`, or with a `name` new to its person, it opens one.

    A name is a client's own id of the thread; see `named_thread_id`. `via` is the third-party interface that it came
    by, which shows cards instead of confirmations in the conversation.
    """

    text: str
    thread_id: str = ""
    agent: str = ""
    name: str = ""
    via: str = ""


class PreparedMessage(NamedTuple):
    """A message about to be written, and what is pending in its thread: sub-agents at work, and cards."""

    thread_id: str
    step: Callable[[Thread | None, Moment], ThreadTransition]
    children: Sequence[str] = ()
    cards: Sequence[str] = ()


class Threads:
    def __init__(self, store: SqlThreads, agents: AgentDirectory, clock: Clock, drafts: Drafts) -> None:
        self._store = store
        self._agents = agents
        self._clock = clock
        self._drafts = drafts
        self._subagents = Subagents(store, lambda _: False)

    async def say(
        self, services: ChatServices, principal: Principal, text: str, thread_id: str = "", agent: str = ""
    ) -> Thread:
        """Open a thread, or continue one; pending cards there are withdrawn."""
        message = await self._prepare_message(services, principal, UserMessage(text, thread_id, agent))
        if thread_id:
            thread = await self._store.step(principal.workspace, thread_id, message.step)
        else:
            begin = message.thread_id
            thread = await self._store.add(principal.workspace, begin, lambda moment: message.step(None, moment))
        await self._withdraw_replaced(services, principal, message)
        return thread

    async def say_idempotent(
        self,
        services: ChatServices,
        principal: Principal,
        user_message: UserMessage,
        idempotency_key: IdempotencyKey,
        digest: str,
    ) -> IdempotencyRecord:
        """Send a message once for its idempotency key; a retry returns the record of the first."""
        message = await self._prepare_message(services, principal, user_message)
        record = await self._store.step_once(idempotency_key, digest, message.thread_id, message.step)
        if record.reservation_token:
            await self._withdraw_replaced(services, principal, message)
        return record

    async def stop(self, services: ChatServices, principal: Principal, thread_id: str) -> Thread:
        """End the turn and withdraw all its open cards, those of sub-agents included. What was said is kept."""
        await self._require_readable(principal, thread_id)
        cards = await self._open_cards(services, principal, thread_id)
        said = await self._unfinished_reply(principal.workspace, thread_id)
        await self._subagents.stop(principal.workspace, thread_id, principal.name, said)
        await self._withdraw(services, principal, cards, "stopped")
        return await self._store.get(principal.workspace, thread_id)

    async def _unfinished_reply(self, workspace: str, thread_id: str) -> UnfinishedReply | None:
        """Return what the model has said so far, from this process or, a little late, from the one where it speaks."""
        entry_count = (await self._store.get(workspace, thread_id)).entry_count
        draft = self._drafts.get(workspace, thread_id) or await self._store.draft(workspace, thread_id)
        if draft is None:
            return None
        later = await self._store.entries(workspace, thread_id, draft.entry_number)
        if any(entry.kind in DRAFT_ENDING_KINDS for entry in later):
            return None  # of an earlier reply, written late
        return UnfinishedReply(draft.text, draft.entry_number, entry_count)

    async def retry(self, principal: Principal, thread_id: str) -> Thread:
        """Ask the model again after an error."""
        await self._require_owned(principal, thread_id)
        return await self._store.step(
            principal.workspace, thread_id, lambda thread, moment: threads.retry(thread, principal.name, moment)
        )

    async def list(self, principal: Principal, query: ThreadQuery = NEWEST) -> ThreadPage:
        """List a person's own threads, newest first; an admin may list those of others, or all with `owner="*"`.

        Titles of a limited number of threads are searched for a page: it may be empty and yet not the last.
        """
        most = MAX_SCANNED if query.title_words else query.limit
        found = await self._page(principal, query, most + 1)
        more, found = len(found) > most, found[:most]
        fitting = [thread for thread in found if _title_contains(thread, query.title_words)]
        items = fitting[: query.limit]
        last = items[-1] if len(fitting) > len(items) else found[-1] if more else None
        return ThreadPage(items, None if last is None else (last.updated_at, last.id))

    async def _page(self, principal: Principal, query: ThreadQuery, limit: int) -> Sequence[Thread]:
        if query.owner == "*" and principal.role == ADMIN:
            return await self._store.list_all(principal.workspace, query.before, limit)
        person = query.owner if query.owner and principal.role == ADMIN else principal.name
        return await self._store.list_by_person(principal.workspace, person, query.before, limit)

    async def show(
        self, principal: Principal, thread_id: str, after: int = 0, before: int = 0, last: int = 0
    ) -> tuple[Thread, Sequence[ThreadEntry]]:
        """Return a thread with the entries between `after` and `before`, or the `last` of those; zeros mean all."""
        thread = await self._require_readable(principal, thread_id)
        end = min(before - 1, thread.entry_count) if before else thread.entry_count
        start = max(after, end - last) if last else after
        return thread, await self._store.entries(principal.workspace, thread_id, start, before or MAX_ENTRY_NUMBER)

    async def get(self, principal: Principal, thread_id: str) -> Thread:
        return await self._require_readable(principal, thread_id)

    def named_thread_id(self, principal: Principal, name: str) -> str:
        """Return the id of a thread by its client's name; names are separate for each person."""
        seed = "\n".join((principal.workspace, principal.name, name))
        return threads.THREAD_ID_PREFIX + str(uuid.UUID(bytes=sha256(seed.encode()).digest()[:16], version=5))

    async def _prepare_message(
        self, services: ChatServices, principal: Principal, user_message: UserMessage
    ) -> PreparedMessage:
        """Find open cards before the message is written, since those of the new turn must not be withdrawn."""
        known = user_message.thread_id or await self._find_named(principal, user_message.name)
        if known:
            user_message = user_message._replace(thread_id=known)
            thread = await self._require_owned(principal, user_message.thread_id)
            if missing := self._agents.find_missing(services, (thread.agent,)):
                raise Conflict(MISSING_AGENT.format(name=missing), thread_id=known, agent=missing)
            below = await self._store.children(principal.workspace, user_message.thread_id)
            cards = await self._open_cards(services, principal, user_message.thread_id)
            children = [child.id for child in below if child.status != "idle"]
            return PreparedMessage(
                user_message.thread_id,
                lambda thread, moment: _append_message(thread, principal, user_message, moment),
                children,
                cards,
            )
        agent = user_message.agent or ASSISTANT
        self._agents.get(services, agent)
        origin = threads.ThreadOrigin(principal.workspace, agent, principal.name, (agent,))
        thread_id = (
            self.named_thread_id(principal, user_message.name)
            if user_message.name
            else threads.THREAD_ID_PREFIX + uuid7(self._clock())
        )

        def step(thread: Thread | None, moment: Moment) -> ThreadTransition:
            """Add to the thread if another request has opened it meanwhile."""
            if thread is not None:
                return threads.add_message(thread, principal.name, user_message.text, moment, user_message.via)
            return threads.open_thread(thread_id, origin, user_message.text, moment, user_message.via)

        return PreparedMessage(thread_id, step)

    async def _find_named(self, principal: Principal, name: str) -> str:
        """Return the id of the thread with this name, or an empty text."""
        if name:
            with suppress(NotFound):
                return (await self._require_owned(principal, self.named_thread_id(principal, name))).id
        return ""

    async def _withdraw_replaced(self, services: ChatServices, principal: Principal, message: PreparedMessage) -> None:
        """Withdraw what was pending when the message was sent."""
        for child in message.children:
            await self._subagents.stop(principal.workspace, child, principal.name)
        await self._withdraw(services, principal, message.cards, "said")

    async def _open_cards(self, services: ChatServices, principal: Principal, thread_id: str) -> Sequence[str]:
        """Return the pending cards, including those of sub-agents."""
        query = ApprovalQuery(statuses=("pending",), thread_id=thread_id, limit=MAX_OPEN_CARDS)
        found = (stored.approval for stored in (await services.inbox.list(principal.workspace, query)).items)
        return [approval.id for approval in found if approval.subject.run_id.startswith(threads.THREAD_ID_PREFIX)]

    async def _withdraw(self, services: ChatServices, principal: Principal, cards: Sequence[str], why: str) -> None:
        """Withdraw cards at once, so that nobody decides them in vain; the loop withdraws later ones."""
        for card in cards:
            with suppress(Conflict, Expired, NotFound):
                await services.gate.cancel(principal.workspace, card, principal.name, WITHDRAWAL_REASONS[why])

    async def _require_owned(self, principal: Principal, thread_id: str) -> Thread:
        """Return a thread of this person: only they write in it, since a yes there is a decision."""
        thread = await self._store.get(principal.workspace, thread_id)
        if thread.person != principal.name or thread.parent:
            raise NotFound(THREAD_NOT_FOUND, thread_id=thread_id)
        return thread

    async def _require_readable(self, principal: Principal, thread_id: str) -> Thread:
        """Return a thread of this person; admins may read and stop every thread."""
        thread = await self._store.get(principal.workspace, thread_id)
        if thread.person != principal.name and principal.role != ADMIN:
            raise NotFound(THREAD_NOT_FOUND, thread_id=thread_id)
        return thread


def _append_message(
    thread: Thread | None, principal: Principal, user_message: UserMessage, moment: Moment
) -> ThreadTransition:
    if thread is None:
        raise NotFound(THREAD_NOT_FOUND, thread_id=user_message.thread_id)
    return threads.add_message(thread, principal.name, user_message.text, moment, user_message.via)


def _title_contains(thread: Thread, words: str) -> bool:
    return words.casefold() in thread.title.casefold()


# The loop


class ThreadLoop:
    def __init__(
        self,
        context: TurnContext,
        open_services: OpenServices,
        watch: OpenThreadWatch,
        is_dead: IsRunnerDead,
        failed: ReportFailure,
    ) -> None:
        self._context = context
        self._open_services = open_services
        self._watch = watch
        self._is_dead = is_dead
        self._failed = failed
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._capacity_freed = asyncio.Event()  # set when a thread finishes while the maximum is running

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then threads at work are given time to reach a point where they can be suspended."""
        async with self._watch("", DUE_THREADS_TOPIC) as watch:
            stopping = asyncio.create_task(stop.wait())
            try:
                while not stop.is_set():
                    pause = self._context.poll_seconds
                    with suppress(Error):  # a database error is retried; due threads stay due
                        await self.sweep()
                        pause = await self._pause()
                    hint, capacity_freed = (
                        asyncio.create_task(watch.wait(pause)),
                        asyncio.create_task(self._capacity_freed.wait()),
                    )
                    await asyncio.wait({hint, capacity_freed, stopping}, return_when=asyncio.FIRST_COMPLETED)
                    hint.cancel()
                    capacity_freed.cancel()
                    self._capacity_freed.clear()
            finally:
                stopping.cancel()
                await self._shut_down()

    async def sweep(self) -> int:
        """Start due threads up to the maximum; return how many."""
        store, taken = self._context.threads, 0
        orphaned = [(w, t) for w, t, runner in await store.running() if self._is_gone(runner)]
        capacity = MAX_CONCURRENT - len(self._running)
        due = await store.due(self._context.clock(), max(0, capacity)) if capacity > 0 else []
        for key in dict.fromkeys([*orphaned, *due]):
            if key not in self._running and len(self._running) < MAX_CONCURRENT:
                taken += 1
                self._running[key] = task = asyncio.create_task(self._run_thread(*key))
                task.add_done_callback(partial(self._on_done, key))  # also for one that was cancelled before it began
        return taken

    def _on_done(self, key: tuple[str, str], _: asyncio.Task[None]) -> None:
        if len(self._running) >= MAX_CONCURRENT:
            self._capacity_freed.set()
        self._running.pop(key, None)

    def _is_gone(self, runner: str) -> bool:
        """Return whether a runner is dead; this one counts, for threads it dropped after a database error."""
        return runner == self._context.runner or self._is_dead(runner)

    async def wait_idle(self) -> None:
        """Wait until no thread is running here; for tests, and for an orderly shutdown."""
        while self._running:
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _run_thread(self, workspace: str, thread_id: str) -> None:
        try:
            await self._advance(workspace, thread_id)
        except (LeaseLost, NotFound):
            pass  # it was taken over or stopped
        except Exception as error:  # noqa: BLE001  a failure in one thread must not affect the others
            self._failed("thread_failed", error)

    async def _advance(self, workspace: str, thread_id: str) -> None:
        store, runner, lease = self._context.threads, self._context.runner, self._context.lease

        def claim(thread: threads.Thread, moment: Moment) -> threads.ThreadTransition:
            dead = thread.status == "running" and self._is_gone(thread.runner)
            return threads.acquire(thread, runner, lease, moment, runner_is_dead=dead)

        try:
            leased_thread = LeasedThread(store, await store.step(workspace, thread_id, claim), lease)
        except Conflict:
            return  # another process was faster
        async with self._watch(workspace, thread_id) as watch:
            turn = Turn(
                leased_thread=leased_thread,
                services=await self._open_services(workspace),
                context=self._context,
                watch=watch,
            )
            keeping = asyncio.create_task(leased_thread.keep_renewed())
            try:
                await turn.advance()
            except (LeaseLost, StoreUnavailable):
                raise  # another process has it now, or will take it over
            except Exception:
                await leased_thread.end(
                    NewThreadEntry("ended", SYSTEM_ACTOR, {"status": "error", "reason": INTERNAL_ERROR_TEXT})
                )
                raise
            finally:
                leased_thread.lost.set()
                keeping.cancel()
                if turn.tool_tasks:
                    await asyncio.gather(*turn.tool_tasks.values(), return_exceptions=True)

    async def _pause(self) -> float:
        if len(self._running) >= MAX_CONCURRENT:
            return self._context.poll_seconds
        due = await self._context.threads.next_due()
        if due is None:
            return self._context.poll_seconds
        return min(self._context.poll_seconds, max(0.01, (due - self._context.clock()) / 1000))

    async def _shut_down(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(8.0):
                await self.wait_idle()
        for task in self._running.values():
            task.cancel()
        await self.wait_idle()
