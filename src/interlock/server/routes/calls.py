"""The agent's routes: propose, look or wait, start, renew, finish, cancel. Without a framework: they are hot."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import Annotated

from pydantic import Field

from interlock.app.gate import Execution
from interlock.app.workspaces import WorkspaceServices
from interlock.core.call import redacted_sha256
from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome, Proceed
from interlock.runtime.durations import rfc3339
from interlock.runtime.json_schema import MAX_SCHEMA, check_schema_size
from interlock.runtime.offload import offload
from interlock.server.http import HttpRequest, HttpResponse, RequestBody, encode_json, idempotency_key, json_response
from interlock.server.proposals import (
    ProposalBody,
    action_terms,
    declared_spec,
    make_tool_call,
    outcome_response,
    resolve_definition,
    with_definition,
)
from interlock.server.state import ServerState

MAX_WAIT = 60.0  # seconds of one long poll
MAX_LEASE = 3_600  # seconds
MAX_ERROR = 2_000


class StartCallBody(RequestBody):
    lease_seconds: Annotated[float, Field(gt=0, le=MAX_LEASE)] = 60
    spec_sha256: str = ""


class RenewCallBody(RequestBody):
    fence: int
    lease_seconds: Annotated[float, Field(gt=0, le=MAX_LEASE)] = 60


class FinishCallBody(RequestBody):
    fence: int
    ok: bool
    result: object = None
    error: Annotated[str, Field(max_length=MAX_ERROR)] = ""


class AbandonCallBody(RequestBody):
    fence: int


class CancelCallBody(RequestBody):
    reason: Annotated[str, Field(max_length=500)] = ""


class CallRoutes:
    def __init__(self, site: ServerState) -> None:
        self._site = site

    async def propose(self, asked: HttpRequest) -> HttpResponse:
        body, doors = await asked.json(ProposalBody), await self._doors(asked)
        if body.schema_ is not None and len(asked.body) > MAX_SCHEMA:
            check_schema_size(body.schema_)
        gate = doors.gate_for(asked.person)
        known = resolve_definition(body, self._site, doors)
        call = await offload(
            len(asked.body), lambda: with_definition(make_tool_call(body, asked.person, self._site, doors), body, known)
        )
        spec, doubted = known.spec, bool(call.doubt)
        if doubted:
            self._site.store.note_tool(call.workspace, declared_spec(body), call.agent, call.key)
        fill = action_terms(known.action, doors)
        outcome = await self._site.quotas.spend(
            asked.person, gate, call, spec, lambda: gate.check(call, spec, take_misfits=doubted, fill=fill)
        )
        if isinstance(outcome, Proceed) and not outcome.approval_id:
            asked.changed = False
            if spec.declared:
                self._site.store.note_tool(call.workspace, spec, call.agent, call.key)
            key = await self._site.store.secret_key(call.workspace) if spec.secret else b""
            outcome = Proceed(outcome.args, "", redacted_sha256(call.args, spec, key))
        return outcome_response(outcome)

    async def look(self, asked: HttpRequest) -> HttpResponse:
        """With `wait` the answer is held back while there is nothing new, or until the server stops."""
        doors, (approval_id,) = await self._doors(asked), asked.values
        query = asked.query
        seconds, heard = _parse_wait(query.get("wait", "0")), _parse_heard(query.get("heard", ""))
        if not seconds:
            return outcome_response(await doors.gate_for(asked.person).look(doors.workspace, approval_id))
        return outcome_response(await self._waited(asked, doors, approval_id, seconds, heard))

    async def start(self, asked: HttpRequest) -> HttpResponse:
        """A start that is sent again under the same Idempotency-Key is the same start."""
        body, doors, (approval_id,) = await asked.json(StartCallBody), await self._doors(asked), asked.values
        attempt = idempotency_key(asked) or secrets.token_hex(16)
        runner = f"attempt:{asked.person.credential}:{attempt}"
        lease = int(body.lease_seconds * 1000)
        started = await doors.gate_for(asked.person).start(
            doors.workspace, approval_id, runner, lease, body.spec_sha256
        )
        return HttpResponse(200, _execution_json(started))

    async def renew(self, asked: HttpRequest) -> HttpResponse:
        body, doors, (approval_id,) = await asked.json(RenewCallBody), await self._doors(asked), asked.values
        await doors.gate_for(asked.person).renew(
            doors.workspace, approval_id, body.fence, int(body.lease_seconds * 1000)
        )
        return json_response({"approval_id": approval_id, "fence": body.fence, "status": "running"})

    async def finish(self, asked: HttpRequest) -> HttpResponse:
        body, doors, (approval_id,) = await asked.json(FinishCallBody), await self._doors(asked), asked.values
        payload = Payload(result=canonical(body.result)) if body.ok else Payload(error=body.error or "It failed.")
        approval = await doors.gate_for(asked.person).finish(
            doors.workspace, approval_id, body.fence, ok=body.ok, payload=payload
        )
        return json_response({"approval_id": approval_id, "status": approval.status})

    async def abandon(self, asked: HttpRequest) -> HttpResponse:
        """The program was interrupted inside the tool: nobody knows how far it came."""
        body, doors, (approval_id,) = await asked.json(AbandonCallBody), await self._doors(asked), asked.values
        approval = await doors.gate_for(asked.person).abandon(doors.workspace, approval_id, body.fence)
        return json_response({"approval_id": approval_id, "status": approval.status})

    async def cancel(self, asked: HttpRequest) -> HttpResponse:
        doors, (approval_id,) = await self._doors(asked), asked.values
        body = await asked.json(CancelCallBody) if asked.body else CancelCallBody()
        approval = await doors.gate_for(asked.person).cancel(
            doors.workspace, approval_id, asked.person.actor, body.reason
        )
        return json_response({"approval_id": approval_id, "status": approval.status})

    async def _doors(self, asked: HttpRequest) -> WorkspaceServices:
        return await self._site.workspaces.doors(asked.person.workspace)

    async def _waited(
        self, asked: HttpRequest, doors: WorkspaceServices, approval_id: str, seconds: float, heard: int | None
    ) -> Outcome:
        waiting = asyncio.ensure_future(
            doors.gate_for(asked.person).wait(doors.workspace, approval_id, seconds, heard=heard)
        )
        stopping = asyncio.ensure_future(self._site.stopping.wait())
        self._site.meters.waiting += 1
        try:
            await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                return await doors.gate_for(asked.person).look(doors.workspace, approval_id)
            return waiting.result()
        finally:
            self._site.meters.waiting -= 1
            for task in (waiting, stopping):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def _execution_json(started: Execution) -> bytes:
    """The arguments are the stored bytes, not written anew."""
    until = rfc3339(started.lease_until)
    body = encode_json({"fence": started.fence, "idempotency_key": started.idempotency_key, "lease_until": until})
    return b'%b,"args":%b}' % (body[:-1], started.args)


def _parse_wait(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= MAX_WAIT:
        raise InvalidRequest(f"wait is a number of seconds from 0 to {MAX_WAIT:.0f}.")
    return seconds


def _parse_heard(text: str) -> int | None:
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidRequest("heard is the number of the last question that the agent knows of; 0 if of none.")
    return int(text) if text else None
