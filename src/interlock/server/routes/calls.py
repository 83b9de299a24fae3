"""Routes for agents: propose a call, list, show or long-poll, start, renew, finish, cancel, abandon; questions."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from interlock.app.gate import Execution
from interlock.app.workspaces import WorkspaceServices
from interlock.core.call import MAX_CHOICES, MAX_ERROR, MAX_TEXT_LENGTH, QUESTION_SPEC, QUESTION_TOOL, redacted_sha256
from interlock.core.canonical import canonical
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Payload
from interlock.core.outcome import Outcome, Proceed
from interlock.core.ports import ApprovalQuery
from interlock.core.run import MAX_LEASE
from interlock.presenters.approval import own_call_details_json, own_call_json
from interlock.runtime.durations import rfc3339
from interlock.runtime.json_schema import MAX_SCHEMA, check_schema, check_schema_size
from interlock.runtime.offload import offload
from interlock.server.dependencies import (
    AGENTS,
    PrincipalDep,
    StateDep,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import (
    HttpRequest,
    HttpResponse,
    JsonList,
    RequestBody,
    encode_json,
    example,
    idempotency_key,
    json_response,
)
from interlock.server.models import OutcomeJson, ResponseModel, Status, Timestamp
from interlock.server.proposals import (
    ProposalBody,
    action_terms,
    declared_spec,
    make_tool_call,
    outcome_response,
    resolve_definition,
    with_definition,
)
from interlock.server.router import AsgiRouter
from interlock.server.routes.approvals import Cursor, Name, StatusFilter, split_statuses
from interlock.server.state import ServerState
from interlock.storage.engine.queries import MAX_LIMIT

MAX_WAIT = 60.0  # seconds of one long poll
LeaseSeconds = Annotated[float, Field(gt=0, le=MAX_LEASE // 1000)]

asgi_routes = AsgiRouter("agents")
router = APIRouter(tags=["agents"])


class CallQuery(BaseModel):
    wait: Annotated[
        float, Field(ge=0, le=MAX_WAIT, description="The seconds to wait for a change before the call is returned.")
    ] = 0
    heard: Annotated[
        int | None,
        Field(
            ge=0,
            lt=10**9,
            description="The number of the last question that the agent knows; a newer one ends the wait.",
        ),
    ] = None


class CallsQuery(BaseModel):
    """Filters, all of which have to match; `user` is the requester."""

    model_config = ConfigDict(extra="forbid")

    status: StatusFilter = ""
    tool: Name = ""
    agent: Name = ""
    thread_id: Name = ""
    run_id: Name = ""
    user: Name = ""
    cursor: Cursor = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 50


class StartCallBody(RequestBody):
    model_config = example({"lease_seconds": 60})

    lease_seconds: LeaseSeconds = 60
    spec_sha256: str = ""


class RenewCallBody(RequestBody):
    model_config = example({"fence": 1, "lease_seconds": 60})

    fence: int
    lease_seconds: LeaseSeconds = 60


class FinishCallBody(RequestBody):
    model_config = example({"fence": 1, "ok": True, "result": {"transfer": "T-1009"}})

    fence: int
    ok: bool
    result: object = None
    error: Annotated[str, Field(max_length=MAX_ERROR)] = ""


class AbandonCallBody(RequestBody):
    model_config = example({"fence": 1})

    fence: int


class CancelCallBody(RequestBody):
    model_config = example({"reason": "The user changed their mind."})

    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""


class ExecutionJson(ResponseModel):
    """The right to run the call once, with exactly these arguments; renew and finish have to present the `fence`."""

    fence: int
    args: dict[str, Any]
    idempotency_key: str
    lease_until: Timestamp


class CallLease(ResponseModel):
    approval_id: str
    fence: int
    status: Literal["running"]


class CallStatusJson(ResponseModel):
    approval_id: str
    status: Status


class CallDecisionJson(ResponseModel):
    """How the call was decided; not by whom."""

    kind: str
    at: Timestamp
    reason: str


class CallItemJson(ResponseModel):
    """One of the caller's own calls. `decision` is null while there is none, or a rejection can still be undone."""

    id: str
    tool: str
    status: Status
    args_sha256: str
    sentence: str
    effect: str
    priority: str
    agent: str
    agent_path: list[str]
    thread_id: str
    run_id: str
    call_id: str
    requester: str
    created_at: Timestamp
    expires_at: Timestamp
    decision: CallDecisionJson | None


class CallPageJson(ResponseModel):
    """A page, possibly short even with a `next`. `behind`: the search index lacks the most recent changes."""

    items: list[CallItemJson]
    next: str | None
    behind: bool


class CallDetailsJson(CallItemJson):
    """Secret arguments are replaced by fingerprints; `args` is null once they were erased."""

    args: dict[str, Any] | None
    result: Any
    error_message: str | None


class CallRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    @asgi_routes.route("POST", "/api/calls", AGENTS, OutcomeJson, errors=(409, 429))
    async def propose(self, request: HttpRequest, body: ProposalBody) -> HttpResponse:
        """Propose a call. A known call gets its stored outcome, even if the policy has changed since."""
        services = await self._services(request)
        if body.schema_ is not None and len(request.body) > MAX_SCHEMA:
            check_schema_size(body.schema_)
        gate = services.gate_for(request.current_principal)
        definition = resolve_definition(body, self._state, services)
        call = await offload(
            len(request.body),
            lambda: with_definition(
                make_tool_call(body, request.current_principal, self._state, services), body, definition
            ),
        )
        spec, doubted = definition.spec, bool(call.pre_check.ask_reason)
        if doubted:
            self._state.store.note_tool(call.workspace, declared_spec(body), call.agent, call.key)
        fill = action_terms(definition.action, services)
        outcome = await self._state.quotas.run_within_quota(
            request.current_principal,
            gate,
            call,
            spec,
            lambda: gate.check(call, spec, accept_invalid=doubted, fill=fill),
        )
        if isinstance(outcome, Proceed) and not outcome.approval_id:
            request.is_cacheable = False
            if spec.declared:
                self._state.store.note_tool(call.workspace, spec, call.agent, call.key)
            key = await self._state.store.secret_key(call.workspace) if spec.secret else b""
            outcome = Proceed(outcome.args, "", redacted_sha256(call.args, spec, key))
        return outcome_response(outcome)

    @asgi_routes.route("GET", "/api/calls/{approval_id}", AGENTS, OutcomeJson, errors=(404,))
    async def show(self, request: HttpRequest, query: CallQuery) -> HttpResponse:
        """Show the outcome of a call. With `wait`, the response is delayed until the outcome changes."""
        services, (approval_id,) = await self._services(request), request.path_params
        if not query.wait:
            return outcome_response(
                await services.gate_for(request.current_principal).get_outcome(services.workspace, approval_id)
            )
        return outcome_response(await self._long_poll(request, services, approval_id, query))

    @asgi_routes.route("POST", "/api/calls/{approval_id}/start", AGENTS, ExecutionJson, errors=(404, 409, 410))
    async def start(self, request: HttpRequest, body: StartCallBody) -> HttpResponse:
        """Start an approved call: one caller gets the right to run it.

        A retry with the same `Idempotency-Key` is the same start. Use a random key for each start, never one that is
        derived from the call.
        """
        services, (approval_id,) = await self._services(request), request.path_params
        attempt = idempotency_key(request) or secrets.token_hex(16)
        runner = f"attempt:{request.current_principal.credential}:{attempt}"
        lease = int(body.lease_seconds * 1000)
        started = await services.gate_for(request.current_principal).start(
            services.workspace, approval_id, runner, lease, body.spec_sha256
        )
        return HttpResponse(200, _execution_json(started))

    @asgi_routes.route("POST", "/api/calls/{approval_id}/renew", AGENTS, CallLease, errors=(404, 409))
    async def renew(self, request: HttpRequest, body: RenewCallBody) -> HttpResponse:
        """Renew the lease of a running call. After its expiry the call is `unknown`, unless the tool is idempotent."""
        services, (approval_id,) = await self._services(request), request.path_params
        await services.gate_for(request.current_principal).renew(
            services.workspace, approval_id, body.fence, int(body.lease_seconds * 1000)
        )
        return json_response({"approval_id": approval_id, "fence": body.fence, "status": "running"})

    @asgi_routes.route("POST", "/api/calls/{approval_id}/finish", AGENTS, CallStatusJson, errors=(404, 409))
    async def finish(self, request: HttpRequest, body: FinishCallBody) -> HttpResponse:
        """Report the result or the error of a call. A report with an old fence is refused, and kept as evidence."""
        services, (approval_id,) = await self._services(request), request.path_params
        payload = Payload(result=canonical(body.result)) if body.ok else Payload(error=body.error or "It failed.")
        approval = await services.gate_for(request.current_principal).finish(
            services.workspace, approval_id, body.fence, ok=body.ok, payload=payload
        )
        return json_response({"approval_id": approval_id, "status": approval.status})

    @asgi_routes.route(
        "POST",
        "/api/calls/{approval_id}/cancel",
        AGENTS,
        CallStatusJson,
        errors=(404, 409, 410),
        body=CancelCallBody,
    )
    async def cancel(self, request: HttpRequest) -> HttpResponse:
        """Cancel a call that has not started. The body is optional."""
        services, (approval_id,) = await self._services(request), request.path_params
        body = await request.parse_body(CancelCallBody) if request.body else CancelCallBody()
        approval = await services.gate_for(request.current_principal).cancel(
            services.workspace, approval_id, request.current_principal.actor, body.reason
        )
        return json_response({"approval_id": approval_id, "status": approval.status})

    @asgi_routes.route("POST", "/api/calls/{approval_id}/abandon", AGENTS, CallStatusJson, errors=(404, 409))
    async def abandon(self, request: HttpRequest, body: AbandonCallBody) -> HttpResponse:
        """Report that the program was interrupted while the tool ran, so that the outcome is not known."""
        services, (approval_id,) = await self._services(request), request.path_params
        approval = await services.gate_for(request.current_principal).abandon(
            services.workspace, approval_id, body.fence
        )
        return json_response({"approval_id": approval_id, "status": approval.status})

    async def _services(self, request: HttpRequest) -> WorkspaceServices:
        return await self._state.workspaces.services(request.current_principal.workspace)

    async def _long_poll(
        self, request: HttpRequest, services: WorkspaceServices, approval_id: str, query: CallQuery
    ) -> Outcome:
        """Wait until there is something new, or the server stops."""
        waiting = asyncio.ensure_future(
            services.gate_for(request.current_principal).wait(
                services.workspace, approval_id, query.wait, last_seen_question=query.heard
            )
        )
        stopping = asyncio.ensure_future(self._state.stopping.wait())
        self._state.counters.waiting += 1
        try:
            await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                return await services.gate_for(request.current_principal).get_outcome(services.workspace, approval_id)
            return waiting.result()
        finally:
            self._state.counters.waiting -= 1
            for task in (waiting, stopping):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def _execution_json(started: Execution) -> bytes:
    """The arguments are the stored bytes, not serialized again."""
    until = rfc3339(started.lease_until)
    body = encode_json({"fence": started.fence, "idempotency_key": started.idempotency_key, "lease_until": until})
    return b'%b,"args":%b}' % (body[:-1], started.args)


@router.get("/api/calls", responses=documented_responses(CallPageJson), **require_roles(AGENTS))
async def list_calls(query: Annotated[CallsQuery, Query()], state: StateDep, principal: PrincipalDep) -> Response:
    """The caller's own calls, newest first: those of its key, and of the agents that the key is bound to.

    An allowed read leaves no row, so it is not listed.
    """
    services = await state.workspaces.services(principal.workspace)
    page = await services.gate_for(principal).list_calls(services.workspace, _approval_query(query))
    items = [own_call_json(stored, state.clock()) for stored in page.items]
    return to_starlette(json_response({"items": items, "next": page.next, "behind": page.is_index_behind}))


@router.get(
    "/api/calls/{approval_id}/details", responses=documented_responses(CallDetailsJson, 404), **require_roles(AGENTS)
)
async def show_call_details(approval_id: str, state: StateDep, principal: PrincipalDep) -> Response:
    """One of the caller's own calls, with its arguments and its result."""
    services = await state.workspaces.services(principal.workspace)
    stored = await services.gate_for(principal).show_call(services.workspace, approval_id)
    return to_starlette(json_response(own_call_details_json(stored, state.clock())))


def _approval_query(query: CallsQuery) -> ApprovalQuery:
    return ApprovalQuery(
        split_statuses(query.status),
        tool=query.tool,
        agent=query.agent,
        thread_id=query.thread_id,
        run_id=query.run_id,
        requester=query.user,
        cursor=query.cursor,
        limit=query.limit,
    )


class AskPeopleBody(RequestBody):
    """A question to people: answered by a text, by one of `choices`, or by data that fits `schema`."""

    model_config = example(
        {
            "question": "Which account should it come from?",
            "choices": ["checking", "savings"],
            "run_id": "run-2027-03-01",
            "call_id": "question-1",
        }
    )

    question: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_LENGTH)]
    run_id: str
    call_id: str
    choices: Annotated[JsonList[str], Field(max_length=MAX_CHOICES)] = ()
    schema_: Annotated[dict[str, object] | None, Field(alias="schema")] = None
    thread_id: str = ""
    agent: str = ""
    agent_path: JsonList[str] = ()
    initiated_by: str = ""
    priority: Literal["", "low", "medium", "high"] = ""
    expires_in: str = ""
    setting: Literal["chat", "queue", "paused"] = "queue"
    agent_says: str = ""


class OpenQuestion(ResponseModel):
    number: int
    by: str
    text: str


class OpenQuestions(ResponseModel):
    items: list[OpenQuestion]
    next: None


class ReplyBody(RequestBody):
    """The agent's answer to one question; it decides nothing."""

    model_config = example({"number": 1, "text": "For invoice 2027-113."})

    number: Annotated[int, Field(ge=1)]
    text: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE)]


class ReplyReceipt(ResponseModel):
    approval_id: str
    status: Status
    number: int


@router.post("/api/questions", responses=documented_responses(OutcomeJson, 409, 429), **require_roles(AGENTS))
async def ask_people(body: AskPeopleBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Ask people a question. The outcome is as for a call; the answer comes as `answered` with its message."""
    services = await state.workspaces.services(principal.workspace)
    call, gate = make_tool_call(_question_proposal(body), principal, state, services), services.gate_for(principal)
    return to_starlette(
        outcome_response(
            await state.quotas.run_within_quota(principal, gate, call, None, lambda: gate.ask(call, QUESTION_SPEC))
        )
    )


@router.get(
    "/api/calls/{approval_id}/questions", responses=documented_responses(OpenQuestions, 404), **require_roles(AGENTS)
)
async def open_questions(approval_id: str, state: StateDep, principal: PrincipalDep) -> Response:
    """Questions of people about a call that the agent has not answered yet."""
    services = await state.workspaces.services(principal.workspace)
    found = await services.gate_for(principal).questions(services.workspace, approval_id)
    return to_starlette(json_response({"items": [question._asdict() for question in found], "next": None}))


@router.post(
    "/api/calls/{approval_id}/answer",
    responses=documented_responses(ReplyReceipt, 404, 409, 410),
    **require_roles(AGENTS),
)
async def answer_question(approval_id: str, body: ReplyBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Answer a question about a call; people see the answer beside the card, as the agent's own words."""
    services = await state.workspaces.services(principal.workspace)
    approval = await services.gate_for(principal).answer(
        services.workspace, approval_id, body.number, body.text, principal.name
    )
    return to_starlette(json_response({"approval_id": approval_id, "status": approval.status, "number": body.number}))


def _question_proposal(body: AskPeopleBody) -> ProposalBody:
    if body.schema_ is not None and body.choices:
        raise InvalidRequest("A question has choices or a schema, not both.")
    if body.schema_ is not None:
        check_schema(body.schema_)  # otherwise nobody could ever answer
    args: dict[str, object] = {"question": body.question}
    args |= {"choices": list(body.choices)} if body.choices else {}
    args |= {"schema": body.schema_} if body.schema_ is not None else {}
    same = body.model_dump(exclude={"question", "choices", "schema_"})
    return ProposalBody(tool=QUESTION_TOOL, args=args, **same)
