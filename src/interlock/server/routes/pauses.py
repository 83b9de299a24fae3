"""Paused runs of remote agents: pause, list, claim under a lease, renew, release, complete.

Their state may hold anything that the agent was told, secrets included: it is given only to programs with a key of the
same name and for the same person as the key that paused the run.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

from pydantic import BaseModel, Field

from interlock.core.call import MAX_NAME
from interlock.core.canonical import plain_json
from interlock.core.errors import InvalidRequest
from interlock.core.run import MAX_BODY, MAX_RUN_ID, Pause, check_pause
from interlock.runtime.durations import rfc3339
from interlock.runtime.offload import offload
from interlock.server.dependencies import AGENTS, ALL_ROLES
from interlock.server.http import HttpRequest, HttpResponse, RequestBody, encode_json, example, json_response
from interlock.server.models import ResponseModel, Timestamp
from interlock.server.proposals import check_agent
from interlock.server.router import AsgiRouter
from interlock.server.routes.calls import MAX_WAIT, LeaseSeconds
from interlock.server.routes.runs import EndedRunners, Runner
from interlock.server.state import ServerState
from interlock.storage.tables.pauses import FROM_OLDEST, LeaseHolder, PauseCursor, PauseScope

MAX_CLAIMED = 10  # states in one response
MAX_CURSOR = 300  # characters
RunId = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]

asgi_routes = AsgiRouter("agents")


class PausesQuery(BaseModel):
    agent: Annotated[str, Field(max_length=MAX_NAME, description="The agent whose runs are listed.")] = ""
    cursor: Annotated[str, Field(max_length=MAX_CURSOR, description="`next` of the previous page.")] = ""
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100


class PauseBody(RequestBody):
    """`called` is the framework's name of the run, if it is not a valid `run_id`; `state` is base64."""

    model_config = example({"run_id": "run-2027-03-01", "agent": "billing", "state": "eyJtZXNzYWdlcyI6W119"})

    run_id: RunId
    called: Annotated[str, Field(max_length=MAX_RUN_ID)] = ""
    agent: Annotated[str, Field(max_length=MAX_NAME)] = ""
    state: str = ""


class ClaimPausesBody(RequestBody):
    """`attempt` is a random text for each claim; a retry with the same one is the same claim."""

    model_config = example({"agent": "billing", "runner": "worker-1", "lease_seconds": 60, "wait": 20})

    agent: Annotated[str, Field(max_length=MAX_NAME)] = ""
    runner: Runner = ""
    lease_seconds: LeaseSeconds = 60
    limit: Annotated[int, Field(ge=1, le=MAX_CLAIMED)] = MAX_CLAIMED
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT)] = 0
    gone: EndedRunners = ()
    attempt: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{0,40}$")] = ""


class RenewPauseBody(RequestBody):
    model_config = example({"run_id": "run-2027-03-01", "fence": 1803891600001, "lease_seconds": 60})

    run_id: RunId
    fence: int
    lease_seconds: LeaseSeconds = 60


class ReleasePauseBody(RequestBody):
    model_config = example({"run_id": "run-2027-03-01", "fence": 1803891600001, "failed": True})

    run_id: RunId
    fence: int
    failed: bool = False


class CompletePauseBody(RequestBody):
    model_config = example({"run_id": "run-2027-03-01", "fence": 1803891600001})

    run_id: RunId
    fence: int


class PauseJson(ResponseModel):
    """A paused run. `called` is its name in its framework."""

    run_id: str
    called: str
    agent: str
    paused_at: Timestamp
    fence: int
    attempts: int


class PauseInfo(PauseJson):
    """`waiting` is the number of its pending approvals; `resuming` is true while a program resumes it."""

    waiting: int
    resuming: bool


class PauseList(ResponseModel):
    items: list[PauseInfo]
    next: str | None


class ClaimedPause(PauseJson):
    """A claimed run with its `state`, as it was stored, in base64."""

    state: str


class ClaimedPauses(ResponseModel):
    """`held` are the names of the other programs with this key that resume runs of this agent now."""

    items: list[ClaimedPause]
    held: list[str]


class PauseLease(ResponseModel):
    run_id: str
    fence: int


class PauseRelease(ResponseModel):
    """`seconds` is the time for which the run cannot be claimed."""

    run_id: str
    seconds: float


class PauseCompletion(ResponseModel):
    """`over` is false if the run was paused again, or claimed by another program, meanwhile."""

    run_id: str
    over: bool


class PauseRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._pauses = state.store.pauses

    @asgi_routes.route("GET", "/api/pauses", ALL_ROLES, PauseList)
    async def list_pauses(self, request: HttpRequest, query: PausesQuery) -> HttpResponse:
        """List paused runs without their state, the longest pause first.

        An agent's key gets only the runs that were paused with a key of the same name.
        """
        principal = request.current_principal
        scope = _pause_owner(request, "") if principal.is_agent else PauseScope(principal.workspace, "")
        page = await self._pauses.list_paused(
            scope._replace(agent=_check_agent_name(query.agent)), _parse_cursor(query.cursor), query.limit
        )
        following = None if page.next is None else f"{page.next[0]}.{page.next[1]}"
        items = [
            {**_pause_json(pause), "waiting": pause.waiting, "resuming": pause.runner != ""} for pause in page.items
        ]
        return json_response({"items": items, "next": following})

    @asgi_routes.route("POST", "/api/pauses", AGENTS, PauseJson, errors=(409, 429), max_body=MAX_BODY)
    async def pause(self, request: HttpRequest, body: PauseBody) -> HttpResponse:
        """Store a paused run, with the state that its program needs to resume it.

        The state has at most 4 MiB, and only programs with a key of this name can read it. An earlier pause of the run
        is replaced.
        """
        state = await offload(len(request.body), lambda: _decode_state(body.state))
        called = body.called or body.run_id
        if not body.run_id.isprintable():
            raise InvalidRequest("/run_id: It has characters that cannot be seen.")
        check_pause(body.run_id, state)
        check_pause(called, state)
        scope, quotas = _pause_owner(request, body.agent), self._state.quotas
        quotas.count_write(request.current_principal)
        async with quotas.reserve_paused_bytes(
            request.current_principal, len(state), lambda: self._pauses.stored_bytes(scope, body.run_id)
        ):
            pause = await self._pauses.pause(scope, body.run_id, called, state)
        return json_response(_pause_json(pause))

    @asgi_routes.route("POST", "/api/pauses/claim", AGENTS, ClaimedPauses)
    async def claim(self, request: HttpRequest, body: ClaimPausesBody) -> HttpResponse:
        """Claim paused runs that have no pending approvals left, to resume them.

        Each run is given to one caller, who keeps it by renewing the lease. With `wait`, the response is delayed until
        there is a run to claim.
        """
        scope = _pause_owner(request, body.agent)
        runner_prefix = f"remote:{request.current_principal.credential}:"
        holder = LeaseHolder(f"{runner_prefix}{body.attempt}:{body.runner}", int(body.lease_seconds * 1000))
        taken = await self._pauses.leased_by(scope, holder.runner) if body.attempt else ()
        if not taken:
            taken = await self._wait_ready(request, holder, body, runner_prefix)
        held = [runner for runner in await self._pauses.lease_holders(scope) if runner.startswith(runner_prefix)]
        names = sorted({runner.removeprefix(runner_prefix).partition(":")[2] for runner in held} - {"", body.runner})[
            :100
        ]
        return await offload(sum(len(pause.state) for pause in taken), lambda: _claimed_response(taken, names))

    @asgi_routes.route("POST", "/api/pauses/renew", AGENTS, PauseLease, errors=(409,))
    async def renew(self, request: HttpRequest, body: RenewPauseBody) -> HttpResponse:
        """Renew the lease of a claimed run, so that no other program claims it."""
        await self._pauses.renew(_pause_owner(request, ""), body.run_id, body.fence, int(body.lease_seconds * 1000))
        return json_response({"run_id": body.run_id, "fence": body.fence})

    @asgi_routes.route("POST", "/api/pauses/release", AGENTS, PauseRelease)
    async def release(self, request: HttpRequest, body: ReleasePauseBody) -> HttpResponse:
        """Release a claimed run. After a failure it cannot be claimed for a while, longer each time."""
        pause = await self._pauses.release_lease(_pause_owner(request, ""), body.run_id, body.fence, failed=body.failed)
        return json_response({"run_id": body.run_id, "seconds": pause / 1000})

    @asgi_routes.route("POST", "/api/pauses/complete", AGENTS, PauseCompletion)
    async def complete(self, request: HttpRequest, body: CompletePauseBody) -> HttpResponse:
        """Delete the pause of a run that was resumed. If the run was paused again meanwhile, the new pause stays."""
        over = await self._pauses.complete(_pause_owner(request, ""), body.run_id, body.fence)
        return json_response({"run_id": body.run_id, "over": over})

    async def _wait_ready(
        self, request: HttpRequest, holder: LeaseHolder, body: ClaimPausesBody, runner_prefix: str
    ) -> Sequence[Pause]:
        """Wait for runs to claim. A disconnected client claims none: it would hold the run until its lease ends."""
        scope, gone = _pause_owner(request, body.agent), frozenset(body.gone)

        def is_gone(runner: str) -> bool:
            return runner.startswith(runner_prefix) and runner.removeprefix(runner_prefix).partition(":")[2] in gone

        waiting = asyncio.ensure_future(self._pauses.wait_ready(scope, holder, body.wait, body.limit, is_gone))
        ends = (self._state.stopping.wait(), *([request.disconnected()] if body.wait else []))
        others = [asyncio.ensure_future(each) for each in ends]
        self._state.counters.waiting += 1
        try:
            await asyncio.wait((waiting, *others), return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else ()
        finally:
            self._state.counters.waiting -= 1
            for task in (waiting, *others):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def _pause_owner(request: HttpRequest, agent: str) -> PauseScope:
    """The owner of a pause: the agents that the key is bound to, else the key's name, so that a key can be replaced.

    If the key acts for one person, that person is part of it.
    """
    principal = request.current_principal
    named, owner = (
        check_agent(principal, _check_agent_name(agent)),
        principal.owner if principal.agents else principal.name,
    )
    return PauseScope(principal.workspace, named, plain_json([owner, principal.on_behalf_of]))


def _check_agent_name(agent: str) -> str:
    if len(agent) > MAX_NAME or not agent.isprintable():
        raise InvalidRequest(f"agent is a name of at most {MAX_NAME} characters that can be seen.")
    return agent


def _decode_state(state: str) -> bytes:
    try:
        return b64decode(state, validate=True)
    except (NotBase64, ValueError):
        raise InvalidRequest("/state: This is not base64.") from None


def _pause_json(pause: Pause) -> dict[str, object]:
    return {
        "run_id": pause.short_id,
        "called": pause.run_id,
        "agent": pause.agent,
        "paused_at": rfc3339(pause.paused_at),
        "fence": pause.fence,
        "attempts": pause.attempts,
    }


def _claimed_response(taken: Sequence[Pause], held: Sequence[str]) -> HttpResponse:
    items = [{**_pause_json(pause), "state": b64encode(pause.state).decode()} for pause in taken]
    return HttpResponse(200, encode_json({"items": items, "held": held}))


def _parse_cursor(cursor: str) -> PauseCursor:
    if not cursor:
        return FROM_OLDEST
    at, _, run_id = cursor.partition(".")
    if not (at.isascii() and at.isdigit() and len(at) < 16 and 0 < len(run_id) <= MAX_NAME and run_id.isprintable()):
        raise InvalidRequest("The cursor is what the last page gave as next.")
    return int(at), run_id
