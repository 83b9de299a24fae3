"""Runs from afar: a program takes one up, gives signs of life, and closes or leaves it."""

from __future__ import annotations

import hmac
import secrets
from contextlib import AbstractAsyncContextManager
from typing import Annotated

from pydantic import Field

from interlock.app.runs import RunHolder, RunService
from interlock.core.call import MAX_NAME
from interlock.core.chat.thread import is_thread_id
from interlock.core.errors import Forbidden, InvalidRequest
from interlock.runtime.durations import rfc3339
from interlock.server.http import HttpRequest, HttpResponse, JsonList, RequestBody, json_response
from interlock.server.proposals import check_agent
from interlock.server.routes.calls import MAX_LEASE
from interlock.server.state import ServerState

API_VERSION = 1  # what a program has to speak; counted up when an old one could no longer be right
Runner = Annotated[str, Field(pattern=r"^[A-Za-z0-9:._-]{0,120}$")]
Lease = Annotated[float, Field(gt=0, le=MAX_LEASE)]


class AcquireRunBody(RequestBody):
    """`runner` names the program, for ever; `gone` are those of its own key that certainly ended."""

    agent: str = ""
    runner: Runner = ""
    run_id: Annotated[str, Field(max_length=MAX_NAME)] = ""
    lease_seconds: Lease = 60
    gone: Annotated[JsonList[Runner], Field(max_length=100)] = ()


class RenewRunBody(RequestBody):
    runner: Runner
    lease_seconds: Lease = 60


class RunnerBody(RequestBody):
    runner: Runner


class RunRoutes:
    def __init__(self, site: ServerState) -> None:
        self._site = site

    async def listed(self, asked: HttpRequest) -> HttpResponse:
        """The open runs of an agent that programs with this key hold or held, the newest first."""
        agent, ours = _check_agent_name(asked, asked.query.get("agent", "")), _runner_name(asked, "")
        items = [
            {"run_id": run.id, "runner": run.runner.removeprefix(ours), "lease_until": rfc3339(run.lease_until)}
            for run in await self._runs().open_runs(asked.person.workspace, agent)
            if run.runner.startswith(ours)
        ]
        return json_response({"items": items, "next": None})

    async def take_up(self, asked: HttpRequest) -> HttpResponse:
        """With a `run_id` nothing is opened: the program keeps its runs itself, and only needs the key to number calls.

        The key hides secrets in the ids of calls. It is of no use for any other run, nor for what people are shown.
        """
        body = await asked.json(AcquireRunBody)
        runner = body.runner or secrets.token_hex(8)
        run_id, resumed = body.run_id, False
        if is_thread_id(run_id):
            raise Forbidden("This run belongs to the chat. Choose another name for yours.")
        if not run_id:
            self._site.quotas.take(asked.person)
            gone = {_runner_name(asked, each) for each in body.gone}
            holder = _holder(asked, _check_agent_name(asked, body.agent), runner, body.lease_seconds)
            runs = RunService(self._site.store, self._site.clock, gone.__contains__, self._opening(asked))
            run_id, resumed = await runs.take_up(holder)
        secret = await self._site.store.secret_key(asked.person.workspace)
        key = hmac.new(secret, b"run\x1f" + run_id.encode(), "sha256").hexdigest()
        return json_response({"run_id": run_id, "runner": runner, "resumed": resumed, "key": key, "api": API_VERSION})

    async def renew(self, asked: HttpRequest) -> HttpResponse:
        (run_id,), body = asked.values, await asked.json(RenewRunBody)
        await self._runs().renew(_holder(asked, "", body.runner, body.lease_seconds), run_id)
        return json_response({"run_id": run_id, "status": "open"})

    async def close(self, asked: HttpRequest) -> HttpResponse:
        (run_id,), body = asked.values, await asked.json(RunnerBody)
        await self._runs().close(_holder(asked, "", body.runner, 0), run_id)
        return json_response({"run_id": run_id, "status": "closed"})

    async def leave(self, asked: HttpRequest) -> HttpResponse:
        """The next start of the program takes it up at once."""
        (run_id,), body = asked.values, await asked.json(RunnerBody)
        await self._runs().leave(_holder(asked, "", body.runner, 0), run_id)
        return json_response({"run_id": run_id, "status": "open"})

    def _runs(self) -> RunService:
        """The processes of other machines cannot be looked at: they are gone when their lease lapsed or they say so."""
        return RunService(self._site.store, self._site.clock, lambda _: False)

    def _opening(self, asked: HttpRequest) -> AbstractAsyncContextManager[None]:
        store, workspace, ours = self._site.store, asked.person.workspace, _runner_name(asked, "")
        return self._site.quotas.opening(asked.person, lambda most: store.open_runs_of(workspace, ours, most))


def _check_agent_name(asked: HttpRequest, given: str) -> str:
    if len(given) > MAX_NAME or not given.isprintable():
        raise InvalidRequest(f"agent is a name of at most {MAX_NAME} characters that can be seen.")
    return check_agent(asked.person, given)


def _holder(asked: HttpRequest, agent: str, runner: str, lease_seconds: float) -> RunHolder:
    lease = int(lease_seconds * 1000)
    return RunHolder(asked.person.workspace, agent, _runner_name(asked, runner), lease, ours=_runner_name(asked, ""))


def _runner_name(asked: HttpRequest, runner: str) -> str:
    """With the owner of its calls in it, so that no program can speak for one of another agent or key.

    Colons in the name of an agent are spelled otherwise: else the programs of `a:b` were among those of `a`.
    """
    kind, _, owner = asked.person.owner.partition(":")
    owner = owner.replace("%", "%25").replace(":", "%3A")
    return f"remote:{owner if kind == 'key' else f'{kind}:{owner}'}:{runner}"
