"""The person's side of the chat: say something, stop, try again, and look."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from interlock.chat.agents import ASSISTANT, Agents, Desk
from interlock.chat.calls import REASONS
from interlock.chat.children import Children
from interlock.core import thread as threads
from interlock.core.errors import Conflict, Expired, NotFound
from interlock.core.event import Moment
from interlock.core.identity import ADMIN, Principal
from interlock.core.ports import Clock, Query
from interlock.core.thread import Line, Move, Thread
from interlock.gate import uuid7
from interlock.stores.answering import Kept, Place
from interlock.stores.threads import NO_THREAD, SqlThreads

MOST_OPEN = 500  # cards of one thread that are withdrawn at once
FIRST = (2**62, "")


@dataclass(frozen=True, slots=True)
class Page:
    items: Sequence[Thread]
    next: tuple[int, str] | None


class Said(NamedTuple):
    """A message, and where it belongs: an empty thread begins one."""

    text: str
    thread_id: str = ""
    agent: str = ""


class Threads:
    def __init__(self, store: SqlThreads, agents: Agents, clock: Clock) -> None:
        self._store = store
        self._agents = agents
        self._clock = clock
        self._children = Children(store, lambda _: False)

    async def say(self, desk: Desk, who: Principal, text: str, thread_id: str = "", agent: str = "") -> Thread:
        """Opens a thread, or goes on with one; what waits for a decision there is withdrawn."""
        if not thread_id:
            return await self._open(desk, who, text, agent or ASSISTANT)
        await self._own(who, thread_id)
        children = [child.id for child in await self._store.children(who.workspace, thread_id) if _at_work(child)]
        cards = await self._cards(desk, who, thread_id)
        thread = await self._store.step(
            who.workspace, thread_id, lambda thread, moment: threads.say(thread, who.name, text, moment)
        )
        for child in children:
            await self._children.stop(who.workspace, child, who.name)
        await self._withdraw(desk, who, cards, "said")
        return thread

    async def say_once(self, desk: Desk, who: Principal, said: Said, place: Place, digest: str) -> Kept:
        """The same, of which a second one under the same key finds that it was said, and where."""
        agent = said.agent or ASSISTANT
        thread_id = said.thread_id or threads.PREFIX + uuid7(self._clock())
        if said.thread_id:
            await self._own(who, thread_id)
        else:
            self._agents.of(desk, agent)
        begin = threads.Place(who.workspace, agent, who.name, (agent,))

        def step(thread: Thread | None, moment: Moment) -> Move:
            if thread is None:
                return threads.open_thread(thread_id, begin, said.text, moment)
            return threads.say(thread, who.name, said.text, moment)

        kept = await self._store.once(place, digest, thread_id, step)
        if said.thread_id and kept.mark:
            await self._withdraw(desk, who, thread_id, "said")
        return kept

    async def stop(self, desk: Desk, who: Principal, thread_id: str) -> Thread:
        """Ends the turn and withdraws every open card of it, those of sub-agents included."""
        await self._seen(who, thread_id)
        cards = await self._cards(desk, who, thread_id)
        await self._children.stop(who.workspace, thread_id, who.name)
        await self._withdraw(desk, who, cards, "stopped")
        return await self._store.get(who.workspace, thread_id)

    async def retry(self, who: Principal, thread_id: str) -> Thread:
        """After an error: the model is asked again."""
        await self._own(who, thread_id)
        return await self._store.step(
            who.workspace, thread_id, lambda thread, moment: threads.retry(thread, who.name, moment)
        )

    async def list(self, who: Principal, before: tuple[int, str] = FIRST, limit: int = 50, *, of: str = "") -> Page:
        """A person's own, the newest first; an admin may look at those of others, and of everybody with `of="*"`."""
        if of == "*" and who.role == ADMIN:
            found = await self._store.of_everybody(who.workspace, before, limit + 1)
        else:
            person = of if of and who.role == ADMIN else who.name
            found = await self._store.of_person(who.workspace, person, before, limit + 1)
        last = found[limit - 1] if len(found) > limit else None
        return Page(found[:limit], None if last is None else (last.updated_at, last.id))

    async def show(self, who: Principal, thread_id: str) -> tuple[Thread, Sequence[Line]]:
        thread = await self._seen(who, thread_id)
        return thread, await self._store.lines(who.workspace, thread_id)

    async def see(self, who: Principal, thread_id: str) -> Thread:
        return await self._seen(who, thread_id)

    async def _open(self, desk: Desk, who: Principal, text: str, agent: str) -> Thread:
        self._agents.of(desk, agent)
        thread_id = threads.PREFIX + uuid7(self._clock())
        place = threads.Place(who.workspace, agent, who.name, (agent,))
        return await self._store.add(
            who.workspace, thread_id, lambda moment: threads.open_thread(thread_id, place, text, moment)
        )

    async def _cards(self, desk: Desk, who: Principal, thread_id: str) -> Sequence[str]:
        """Those that wait now, sub-agents' included. Looked for first: cards of the turn that comes are not meant."""
        query = Query(statuses=("pending",), thread_id=thread_id, limit=MOST_OPEN)
        found = (stored.approval for stored in (await desk.inbox.list(who.workspace, query)).items)
        return [approval.id for approval in found if approval.subject.run_id.startswith(threads.PREFIX)]

    async def _withdraw(self, desk: Desk, who: Principal, cards: Sequence[str], why: str) -> None:
        """Done here and now, so that nobody decides what nobody waits for; the loop does it with what came later."""
        for card in cards:
            with suppress(Conflict, Expired, NotFound):
                await desk.gate.cancel(who.workspace, card, who.name, REASONS[why])

    async def _own(self, who: Principal, thread_id: str) -> Thread:
        """Only its person speaks in a thread: a yes there is a decision."""
        thread = await self._store.get(who.workspace, thread_id)
        if thread.person != who.name or thread.parent:
            raise NotFound(NO_THREAD, thread_id=thread_id)
        return thread

    async def _seen(self, who: Principal, thread_id: str) -> Thread:
        """Admins may look at every thread, and stop it."""
        thread = await self._store.get(who.workspace, thread_id)
        if thread.person != who.name and who.role != ADMIN:
            raise NotFound(NO_THREAD, thread_id=thread_id)
        return thread


def _at_work(thread: Thread) -> bool:
    return thread.status != "idle"
