"""Runs that stand still, from afar: paused, listed, claimed when they can go on, kept, given back, and over.

Their state may hold whatever the agent was told, secrets included: it is given to programs with a key of the same name
and for the same person as the one that it was paused with, and to nobody else.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from interlock.core.call import MAX_NAME
from interlock.core.canonical import plain_json
from interlock.core.errors import InvalidRequest
from interlock.core.pause import MAX_BODY, MAX_RUN_ID, Pause, check_pause
from interlock.runtime.durations import rfc3339
from interlock.runtime.offload import beside
from interlock.server.http import Answer, Asked, Body, Many, encoded, json_answer
from interlock.server.proposals import check_agent
from interlock.server.routes.calls import MAX_WAIT
from interlock.server.routes.runs import Lease, Runner
from interlock.server.state import Site
from interlock.storage.tables.pauses import FIRST, Holder, Place, Whose

MAX_CLAIMED = 10  # states in one answer
RunId = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class NewPause(Body):
    """`called` is what the framework calls the run, if that is more than a `run_id` can be; `state` is base64."""

    run_id: RunId
    called: Annotated[str, Field(max_length=MAX_RUN_ID)] = ""
    agent: Annotated[str, Field(max_length=MAX_NAME)] = ""
    state: str = ""


class ClaimPauses(Body):
    """`attempt` is made at random for each claim: sent again it is the same one. `gone` are runners that ended."""

    agent: Annotated[str, Field(max_length=MAX_NAME)] = ""
    runner: Runner = ""
    lease_seconds: Lease = 60
    limit: Annotated[int, Field(ge=1, le=MAX_CLAIMED)] = MAX_CLAIMED
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT)] = 0
    gone: Annotated[Many[Runner], Field(max_length=100)] = ()
    attempt: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{0,40}$")] = ""


class KeepPause(Body):
    run_id: RunId
    fence: int
    lease_seconds: Lease = 60


class LeavePause(Body):
    run_id: RunId
    fence: int
    failed: bool = False


class EndPause(Body):
    run_id: RunId
    fence: int


class PauseRoutes:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._pauses = site.store.pauses

    async def pause(self, asked: Asked) -> Answer:
        body = await asked.json(NewPause, MAX_BODY)
        state = await beside(len(asked.body), lambda: _decoded(body.state))
        called = body.called or body.run_id
        if not body.run_id.isprintable():
            raise InvalidRequest("/run_id: It has characters that cannot be seen.")
        check_pause(body.run_id, state)
        check_pause(called, state)
        whose, quotas = _whose(asked, body.agent), self._site.quotas
        quotas.take(asked.person)
        async with quotas.pausing(asked.person, len(state), lambda: self._pauses.stored(whose, body.run_id)):
            pause = await self._pauses.pause(whose, body.run_id, called, state)
        return json_answer(_shown(pause))

    async def listed(self, asked: Asked) -> Answer:
        """For people all of them, for an agent those that were paused with its key; never with their state."""
        query, person = asked.query, asked.person
        whose = _whose(asked, "") if person.is_agent else Whose(person.workspace, "")
        page = await self._pauses.paused(
            whose._replace(agent=_name(query.get("agent", ""))), _place(query.get("cursor", "")), _limit(query)
        )
        following = None if page.next is None else f"{page.next[0]}.{page.next[1]}"
        items = [{**_shown(pause), "waiting": pause.waiting, "resuming": pause.runner != ""} for pause in page.items]
        return json_answer({"items": items, "next": following})

    async def claim(self, asked: Asked) -> Answer:
        """With `wait` the answer is held back while no run can go on, or until the server stops."""
        body = await asked.json(ClaimPauses)
        whose = _whose(asked, body.agent)
        ours = f"remote:{asked.person.credential}:"
        holder = Holder(f"{ours}{body.attempt}:{body.runner}", int(body.lease_seconds * 1000))
        taken = await self._pauses.held_by(whose, holder.runner) if body.attempt else ()
        if not taken:
            taken = await self._waited(asked, holder, body, ours)
        held = [runner for runner in await self._pauses.held(whose) if runner.startswith(ours)]
        names = sorted({runner.removeprefix(ours).partition(":")[2] for runner in held} - {"", body.runner})[:100]
        return await beside(sum(len(pause.state) for pause in taken), lambda: _claimed(taken, names))

    async def renew(self, asked: Asked) -> Answer:
        body = await asked.json(KeepPause)
        await self._pauses.renew(_whose(asked, ""), body.run_id, body.fence, int(body.lease_seconds * 1000))
        return json_answer({"run_id": body.run_id, "fence": body.fence})

    async def release(self, asked: Asked) -> Answer:
        body = await asked.json(LeavePause)
        pause = await self._pauses.let_go(_whose(asked, ""), body.run_id, body.fence, failed=body.failed)
        return json_answer({"run_id": body.run_id, "seconds": pause / 1000})

    async def resumed(self, asked: Asked) -> Answer:
        body = await asked.json(EndPause)
        over = await self._pauses.resumed(_whose(asked, ""), body.run_id, body.fence)
        return json_answer({"run_id": body.run_id, "over": over})

    async def _waited(self, asked: Asked, holder: Holder, body: ClaimPauses, ours: str) -> Sequence[Pause]:
        """A client that closed its connection takes nothing: it would hold the run until its lease ends."""
        whose, gone = _whose(asked, body.agent), frozenset(body.gone)

        def is_gone(runner: str) -> bool:
            return runner.startswith(ours) and runner.removeprefix(ours).partition(":")[2] in gone

        waiting = asyncio.ensure_future(self._pauses.ready(whose, holder, body.wait, body.limit, is_gone))
        ends = (self._site.stopping.wait(), *([asked.disconnected()] if body.wait else []))
        others = [asyncio.ensure_future(each) for each in ends]
        self._site.meters.waiting += 1
        try:
            await asyncio.wait((waiting, *others), return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else ()
        finally:
            self._site.meters.waiting -= 1
            for task in (waiting, *others):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def _whose(asked: Asked, agent: str) -> Whose:
    """By the agents that the key is bound to, else by its name, so that a key can be replaced by another; and by whom
    it acts for, if for one person.
    """
    person = asked.person
    named, owner = check_agent(person, _name(agent)), person.owner if person.agents else person.name
    return Whose(person.workspace, named, plain_json([owner, person.on_behalf]))


def _name(agent: str) -> str:
    if len(agent) > MAX_NAME or not agent.isprintable():
        raise InvalidRequest(f"agent is a name of at most {MAX_NAME} characters that can be seen.")
    return agent


def _decoded(state: str) -> bytes:
    try:
        return b64decode(state, validate=True)
    except (NotBase64, ValueError):
        raise InvalidRequest("/state: This is not base64.") from None


def _shown(pause: Pause) -> dict[str, object]:
    return {
        "run_id": pause.short_id,
        "called": pause.run_id,
        "agent": pause.agent,
        "paused_at": rfc3339(pause.paused_at),
        "fence": pause.fence,
        "attempts": pause.attempts,
    }


def _claimed(taken: Sequence[Pause], held: Sequence[str]) -> Answer:
    items = [{**_shown(pause), "state": b64encode(pause.state).decode()} for pause in taken]
    return Answer(200, encoded({"items": items, "held": held}))


def _place(cursor: str) -> Place:
    if not cursor:
        return FIRST
    at, _, run_id = cursor.partition(".")
    if not (at.isascii() and at.isdigit() and len(at) < 16 and 0 < len(run_id) <= MAX_NAME and run_id.isprintable()):
        raise InvalidRequest("The cursor is what the last page gave as next.")
    return int(at), run_id


def _limit(query: dict[str, str]) -> int:
    text = query.get("limit", "100")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 1_000):
        raise InvalidRequest("limit is a number from 1 to 1,000.")
    return int(text)
