"""Runs of remote agents: acquire under a lease, renew, close or release."""

from __future__ import annotations

import hmac
import secrets
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from interlock.app.runs import RunHolder, RunService
from interlock.core.call import MAX_NAME
from interlock.core.chat.thread import is_thread_id
from interlock.core.errors import Forbidden, InvalidRequest
from interlock.core.run import API_VERSION
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import AGENTS
from interlock.server.http import HttpRequest, HttpResponse, JsonList, RequestBody, example, json_response
from interlock.server.models import ResponseModel, Timestamp
from interlock.server.proposals import check_agent
from interlock.server.router import AsgiRouter
from interlock.server.routes.calls import LeaseSeconds
from interlock.server.state import ServerState

Runner = Annotated[str, Field(pattern=r"^[A-Za-z0-9:._-]{0,120}$")]
EndedRunners = Annotated[JsonList[Runner], Field(max_length=100)]

asgi_routes = AsgiRouter("agents")


class RunsQuery(BaseModel):
    agent: Annotated[str, Field(description="The agent whose runs are listed; by default, the name of the key.")] = ""


class AcquireRunBody(RequestBody):
    """`runner` is a unique name of the program. `gone` are runners of the same key that have ended."""

    model_config = example({"agent": "billing", "runner": "worker-1", "lease_seconds": 60})

    agent: str = ""
    runner: Runner = ""
    run_id: Annotated[str, Field(max_length=MAX_NAME)] = ""
    lease_seconds: LeaseSeconds = 60
    gone: EndedRunners = ()


class RenewRunBody(RequestBody):
    model_config = example({"runner": "worker-1", "lease_seconds": 60})

    runner: Runner
    lease_seconds: LeaseSeconds = 60


class RunnerBody(RequestBody):
    model_config = example({"runner": "worker-1"})

    runner: Runner


class OpenRun(ResponseModel):
    run_id: str
    runner: str
    lease_until: Timestamp


class OpenRuns(ResponseModel):
    items: list[OpenRun]
    next: None


class AcquiredRunJson(ResponseModel):
    """`key` is for hashing secrets in the ids of calls, in this run only."""

    run_id: str
    runner: str
    resumed: bool
    key: str
    api: int


class RunStatusJson(ResponseModel):
    run_id: str
    status: Literal["open", "closed"]


class RunRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    @asgi_routes.route("GET", "/api/runs", AGENTS, OpenRuns)
    async def list_runs(self, request: HttpRequest, query: RunsQuery) -> HttpResponse:
        """List the open runs that were acquired with this key, newest first."""
        agent, runner_prefix = _check_agent_name(request, query.agent), _runner_name(request, "")
        items = [
            {
                "run_id": run.id,
                "runner": run.runner.removeprefix(runner_prefix),
                "lease_until": rfc3339(run.lease_until),
            }
            for run in await self._runs().open_runs(request.current_principal.workspace, agent)
            if run.runner.startswith(runner_prefix)
        ]
        return json_response({"items": items, "next": None})

    @asgi_routes.route("POST", "/api/runs", AGENTS, AcquiredRunJson, errors=(404, 409, 429))
    async def acquire(self, request: HttpRequest, body: AcquireRunBody) -> HttpResponse:
        """Acquire the newest unfinished run of the agent that no program holds, or open a new one.

        With a `run_id`, no run is opened: the program manages its runs itself, and gets only the key.
        """
        runner = body.runner or secrets.token_hex(8)
        run_id, resumed = body.run_id, False
        if is_thread_id(run_id):
            raise Forbidden("This run belongs to the chat. Choose another name for yours.")
        if not run_id:
            self._state.quotas.count_write(request.current_principal)
            gone = {_runner_name(request, each) for each in body.gone}
            holder = _holder(request, _check_agent_name(request, body.agent), runner, body.lease_seconds)
            runs = RunService(self._state.store, self._state.clock, gone.__contains__, self._reserve_open_run(request))
            run_id, resumed = await runs.acquire(holder)
        secret = await self._state.store.secret_key(request.current_principal.workspace)
        key = hmac.new(secret, b"run\x1f" + run_id.encode(), "sha256").hexdigest()
        return json_response({"run_id": run_id, "runner": runner, "resumed": resumed, "key": key, "api": API_VERSION})

    @asgi_routes.route("POST", "/api/runs/{run_id}/renew", AGENTS, RunStatusJson, errors=(404, 409))
    async def renew(self, request: HttpRequest, body: RenewRunBody) -> HttpResponse:
        """Renew the lease of a run, so that no other program acquires it."""
        (run_id,) = request.path_params
        await self._runs().renew(_holder(request, "", body.runner, body.lease_seconds), run_id)
        return json_response({"run_id": run_id, "status": "open"})

    @asgi_routes.route("POST", "/api/runs/{run_id}/close", AGENTS, RunStatusJson, errors=(404, 409))
    async def close(self, request: HttpRequest, body: RunnerBody) -> HttpResponse:
        """Close a finished run; it cannot be acquired again."""
        (run_id,) = request.path_params
        await self._runs().close(_holder(request, "", body.runner, 0), run_id)
        return json_response({"run_id": run_id, "status": "closed"})

    @asgi_routes.route("POST", "/api/runs/{run_id}/release", AGENTS, RunStatusJson, errors=(404, 409))
    async def release(self, request: HttpRequest, body: RunnerBody) -> HttpResponse:
        """Release a run that is not finished, so that the next start of the program acquires it at once."""
        (run_id,) = request.path_params
        await self._runs().release(_holder(request, "", body.runner, 0), run_id)
        return json_response({"run_id": run_id, "status": "open"})

    def _runs(self) -> RunService:
        """Processes of other machines cannot be checked: they are gone if their lease expired or they say so."""
        return RunService(self._state.store, self._state.clock, lambda _: False)

    def _reserve_open_run(self, request: HttpRequest) -> AbstractAsyncContextManager[None]:
        store, workspace, runner_prefix = (
            self._state.store,
            request.current_principal.workspace,
            _runner_name(request, ""),
        )
        return self._state.quotas.reserve_open_run(
            request.current_principal, lambda most: store.count_open_runs(workspace, runner_prefix, most)
        )


def _check_agent_name(request: HttpRequest, given: str) -> str:
    if len(given) > MAX_NAME or not given.isprintable():
        raise InvalidRequest(f"agent is a name of at most {MAX_NAME} characters that can be seen.")
    return check_agent(request.current_principal, given)


def _holder(request: HttpRequest, agent: str, runner: str, lease_seconds: float) -> RunHolder:
    lease = int(lease_seconds * 1000)
    return RunHolder(
        request.current_principal.workspace,
        agent,
        _runner_name(request, runner),
        lease,
        runner_prefix=_runner_name(request, ""),
    )


def _runner_name(request: HttpRequest, runner: str) -> str:
    """The name with the owner of its calls, so that no program can act for one of another agent or key.

    Colons in the name of an agent are encoded: else the programs of `a:b` would be among those of `a`.
    """
    kind, _, owner = request.current_principal.owner.partition(":")
    owner = owner.replace("%", "%25").replace(":", "%3A")
    return f"remote:{owner if kind == 'key' else f'{kind}:{owner}'}:{runner}"
