"""Chat: messages and the event streams of their threads (SSE), the threads themselves, decisions of a chat page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.requests import Request
from starlette.responses import Response

from interlock.app.workspaces import WorkspaceServices
from interlock.chat.stream import Position, StreamEvent, line_events, parse_position
from interlock.chat.threads import FIRST_CURSOR, ThreadQuery, UserMessage
from interlock.core.call import MAX_NAME
from interlock.core.chat.thread import MAX_TEXT, Thread, ThreadEntry
from interlock.core.decision import DIGEST_LENGTH, MAX_COMMENT, Acknowledgement, Approve, Reject
from interlock.core.errors import Conflict, InvalidRequest
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import (
    DECIDERS,
    PrincipalDep,
    StateDep,
    approval_response,
    body_text,
    documented_responses,
    require_deciders,
    require_roles,
    to_starlette,
)
from interlock.server.http import (
    Header,
    HttpRequest,
    Receive,
    RequestBody,
    Send,
    encode_json,
    example,
    idempotency_key,
    json_response,
)
from interlock.server.idempotency import REPLAYED_HEADER, IdempotencyMismatch, idempotency_slot, request_digest
from interlock.server.models import EXAMPLE_ID, ResponseModel
from interlock.server.router import AsgiRouter
from interlock.server.routes.approvals import EmptyBody
from interlock.server.state import ServerState
from interlock.server.streams.sse import last_event_id
from interlock.server.streams.thread_stream import ThreadStream, ToolRequestRedactor
from interlock.storage.tables.idempotency import IdempotencyRecord
from interlock.storage.tables.threads import DONE_STATUS, MAX_ENTRY_NUMBER

FINAL_EVENTS = frozenset({"done", "error"})
MAX_THREADS = 200
SHOWN_KINDS = frozenset(
    {"said", "replied", "asked", "decided", "resulted", "delegated", "ended", "stopped", "failed", "erased"}
)
HIDDEN_FIELDS = frozenset({"opaque", "preview_version", "seen", "took", "tools"})  # of entries: for the loop only

asgi_routes = AsgiRouter("chat")
router = APIRouter(tags=["chat"])


class ThreadEventsQuery(BaseModel):
    after: Annotated[str, Field(max_length=32, description="The id of the last event that was received.")] = ""


class ChatMessageBody(RequestBody):
    """A chat message. Without a `thread_id` it starts a thread, with `agent` or the built-in assistant."""

    model_config = example(
        {"message": "Publish the post hello-world.", "thread_id": "thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8"}
    )

    message: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    thread_id: Annotated[
        str, Field(max_length=MAX_NAME, description="The thread to continue; by default, a new one.")
    ] = ""
    agent: Annotated[
        str, Field(max_length=MAX_NAME, description="The agent of a new thread; by default, the assistant.")
    ] = ""


class ChatRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    @asgi_routes.stream(
        "POST", "/api/chat", DECIDERS, "An event stream until the turn is over.", errors=(404, 409, 429)
    )
    async def send(self, request: HttpRequest, receive: Receive, send: Send, body: ChatMessageBody) -> None:
        """Send a message to an agent, and stream the events of its turn.

        The events are `delta`, `tool_call_start`, `tool_call_result`, `approval_request`, `approval_resolved`, and at
        the end `done` or `error`. The stream stays open while approvals are pending; after a disconnect, resume it with
        `GET /api/threads/{thread_id}/events`. A retry with the same `Idempotency-Key` is the same message, streamed
        from its beginning.
        """
        key = idempotency_key(request)
        user_message, extra_headers = UserMessage(body.message, body.thread_id, body.agent), tuple[Header, ...]()
        if key:
            kept = await self._say_idempotent(request, user_message, key)
            thread, line = await self._stored_position(request, kept)
            extra_headers = () if kept.reservation_token else (REPLAYED_HEADER,)
        else:
            services = await self._state.workspaces.services(request.current_principal.workspace)
            thread = await self._state.assistant.threads.say(services, request.current_principal, *user_message[:3])
            line = thread.entry_count
        stream = self._stream(request, thread, Position(line, 0))
        stream = stream._replace(final_events=FINAL_EVENTS, extra_headers=extra_headers)
        await self._state.thread_streams.serve(request, receive, send, thread, stream)

    @asgi_routes.stream(
        "GET",
        "/api/threads/{thread_id}/events",
        DECIDERS,
        "An event stream without an end.",
        errors=(404, 429),
        query=ThreadEventsQuery,
    )
    async def follow(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Stream the events of a thread: all of them, or those after `Last-Event-ID`, then new ones."""
        (thread_id,), principal = request.path_params, request.current_principal
        thread = await self._state.assistant.threads.get(principal, thread_id)
        after = parse_position(last_event_id(request) or "0")
        if after.line > thread.entry_count:
            raise InvalidRequest("This thread has no such event. Leave Last-Event-ID out to begin anew.")
        await self._state.thread_streams.serve(request, receive, send, thread, self._stream(request, thread, after))

    def _stream(self, request: HttpRequest, thread: Thread, after: Position) -> ThreadStream:
        encode = partial(self._encode_event, request, thread.id)
        return ThreadStream(self._state.assistant.follower(thread, after), encode, after)

    async def _say_idempotent(self, request: HttpRequest, user_message: UserMessage, key: str) -> IdempotencyRecord:
        principal, digest = request.current_principal, request_digest(request)
        services = await self._state.workspaces.services(principal.workspace)
        kept = await self._state.assistant.threads.say_idempotent(
            services, principal, user_message, idempotency_slot(principal, key), digest
        )
        if kept.digest != digest:
            raise IdempotencyMismatch("This Idempotency-Key was used for another request. Use a new one.")
        if kept.status != DONE_STATUS:
            raise Conflict("This was sent already; what came of it has been erased.")
        return kept

    async def _stored_position(self, request: HttpRequest, kept: IdempotencyRecord) -> tuple[Thread, int]:
        done = json.loads(kept.body)
        return await self._state.assistant.threads.get(request.current_principal, done["thread_id"]), done["line"]

    async def _encode_event(self, request: HttpRequest, thread_id: str, stream_event: StreamEvent) -> bytes:
        body = encode_json({"type": stream_event.name, "thread_id": thread_id, **stream_event.data})
        if stream_event.approval:
            body = b'%b,"approval":%b}' % (body[:-1], await self._approval(request, stream_event.approval))
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (
            str(stream_event.position).encode(),
            stream_event.name.encode(),
            body,
        )

    async def _approval(self, request: HttpRequest, approval_id: str) -> bytes:
        """The approval as GET /api/approvals/{id} returns it now."""
        services = await self._state.workspaces.services(request.current_principal.workspace)
        reviewer = services.reviewer(request.current_principal, self._state.clock())
        return (await approval_response(self._state, services, approval_id, reviewer)).body


class ThreadsQuery(BaseModel):
    """`user` is for admins: the threads of a person, or of everybody with `*`."""

    model_config = ConfigDict(extra="forbid")

    cursor: Annotated[str, Field(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_THREADS)] = 50
    user: Annotated[str, Field(max_length=MAX_NAME)] = ""
    q: Annotated[
        str, Field(max_length=200, description="Words in the title. A page with a `next` may then be empty.")
    ] = ""


class ThreadLinesQuery(BaseModel):
    """Which lines of a thread; all of them by default."""

    model_config = ConfigDict(extra="forbid")

    after: Annotated[int, Field(ge=0, le=MAX_ENTRY_NUMBER, description="Only lines after this number.")] = 0
    before: Annotated[
        int, Field(ge=0, le=MAX_ENTRY_NUMBER, description="Only lines before this number; 0 for no limit.")
    ] = 0
    last: Annotated[
        int, Field(ge=0, le=10_000, description="The maximum number of lines, the last ones; 0 for all.")
    ] = 0


class ThreadInfo(ResponseModel):
    """`agent_missing`: its agent was deleted, so the thread can be read but not continued."""

    id: str
    agent: str
    user: str
    title: str
    status: str
    agent_missing: bool
    created_at: str
    updated_at: str


class ThreadList(ResponseModel):
    items: list[ThreadInfo]
    next: str | None


class ThreadLine(ResponseModel):
    n: int
    at: str
    kind: str
    actor: str
    body: dict[str, Any]


class ThreadDetails(ThreadInfo):
    """`position` is where a stream continues after these lines; null if there are none."""

    lines: list[ThreadLine]
    position: str | None
    confirmation: dict[str, Any] | None


OTHER_SPELLINGS = {"approval_id": "approvalId", "args_sha256": "argsSha256"}


class ChatDecisionBody(RequestBody):
    """The short decision of a chat page. Without `argsSha256` it counts only for unedited arguments without alarms.

    `approval_id` and `args_sha256` are accepted as well.
    """

    model_config = example({"approvalId": EXAMPLE_ID, "approved": True, "reason": "As agreed on the phone."})

    approvalId: Annotated[str, Field(min_length=1, max_length=200)]
    approved: bool
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    argsSha256: str | None = Field(None, max_length=DIGEST_LENGTH)

    @model_validator(mode="before")
    @classmethod
    def _rename_fields(cls, value: object) -> object:
        """Accept the other spelling of a field; a field in both spellings has to have one value."""
        if not isinstance(value, dict):
            return value
        fields = {name: inner for name, inner in value.items() if name not in OTHER_SPELLINGS}
        for name, own in OTHER_SPELLINGS.items():
            if name in value and fields.setdefault(own, value[name]) != value[name]:
                raise PydanticCustomError(
                    "two_values", "{own} and {name} differ; send one of them", {"own": own, "name": name}
                )
        return fields


class ChatDecisionResult(ResponseModel):
    approval_id: str
    status: str
    approved: bool


@router.get("/api/threads", responses=documented_responses(ThreadList), **require_roles(DECIDERS))
async def list_threads(which: Annotated[ThreadsQuery, Query()], state: StateDep, principal: PrincipalDep) -> Response:
    """The caller's own threads, the newest first."""
    query = ThreadQuery(_parse_cursor(which.cursor), which.limit, which.user, which.q)
    page = await state.assistant.threads.list(principal, query)
    following = None if page.next is None else f"{page.next[0]}_{page.next[1]}"
    services = await state.workspaces.services(principal.workspace)
    items = [_thread_info(state, services, thread) for thread in page.items]
    return to_starlette(json_response({"items": items, "next": following}))


@router.get("/api/threads/{thread_id}", responses=documented_responses(ThreadDetails, 404), **require_roles(DECIDERS))
async def show_thread(
    thread_id: str, which: Annotated[ThreadLinesQuery, Query()], state: StateDep, principal: PrincipalDep
) -> Response:
    """A thread with all or some of its lines."""
    thread, lines = await state.assistant.threads.show(principal, thread_id, which.after, which.before, which.last)
    confirmation = thread.confirmation
    open_one = None if confirmation is None else {"tool": confirmation.tool, "answer": confirmation.answer}
    specs = {name: tool.spec for name, tool in state.assistant.tool_registry.all(thread.workspace).items()}
    redactor = ToolRequestRedactor(specs, await state.store.secret_key(thread.workspace))
    told = [_line_json(entry, redactor) for entry in lines if entry.kind in SHOWN_KINDS]
    more = {"lines": told, "position": _position(lines), "confirmation": open_one}
    services = await state.workspaces.services(principal.workspace)
    return to_starlette(json_response({**_thread_info(state, services, thread), **more}))


@router.post(
    "/api/threads/{thread_id}/stop", responses=documented_responses(ThreadInfo, 404), **require_roles(DECIDERS)
)
async def stop_thread(
    thread_id: str, state: StateDep, principal: PrincipalDep, body: EmptyBody | None = None
) -> Response:
    """End the turn and cancel its pending approvals. A call that has started is not undone; its result is kept."""
    services = await state.workspaces.services(principal.workspace)
    thread = await state.assistant.threads.stop(services, principal, thread_id)
    return to_starlette(json_response(_thread_info(state, services, thread)))


@router.post(
    "/api/threads/{thread_id}/retry", responses=documented_responses(ThreadInfo, 404, 409), **require_roles(DECIDERS)
)
async def retry_thread(
    thread_id: str, state: StateDep, principal: PrincipalDep, body: EmptyBody | None = None
) -> Response:
    """Continue a thread after an error, from its last state. Nothing that was recorded is done again."""
    services = await state.workspaces.services(principal.workspace)
    thread = await state.assistant.threads.retry(principal, thread_id)
    return to_starlette(json_response(_thread_info(state, services, thread)))


async def _named_approval(_: Request, body: object) -> str:
    return body_text(body, "approvalId", "approval_id")


@router.post(
    "/api/chat/approve",
    responses=documented_responses(ChatDecisionResult, 404, 409, 410, 422),
    **require_deciders(_named_approval),
)
async def approve_in_chat(body: ChatDecisionBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Approve or reject one call."""
    return await _decide(body, state, principal)


@router.post(
    "/api/agent/approve",
    responses=documented_responses(ChatDecisionResult, 404, 409, 410, 422),
    **require_deciders(_named_approval),
)
async def approve_for_agent(body: ChatDecisionBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Approve or reject one call, as POST /api/chat/approve does."""
    return await _decide(body, state, principal)


async def _decide(body: ChatDecisionBody, state: StateDep, principal: PrincipalDep) -> Response:
    services = await state.workspaces.services(principal.workspace)
    acknowledgement = Acknowledgement(body.argsSha256, reason=body.reason)
    decision = Approve(acknowledgement) if body.approved else Reject(seen=acknowledgement)
    reviewer = services.reviewer(principal, state.clock())
    approval = await services.inbox.decide(services.workspace, body.approvalId, decision, reviewer)
    answer = {"approval_id": approval.id, "status": approval.status, "approved": approval.status == "approved"}
    return to_starlette(json_response(answer))


def _thread_info(state: ServerState, services: WorkspaceServices, thread: Thread) -> dict[str, object]:
    return {
        "id": thread.id,
        "agent": thread.agent,
        "user": thread.person,
        "title": thread.title,
        "status": thread.status,
        "agent_missing": bool(state.assistant.agents.find_missing(services, (thread.agent,))),
        "created_at": rfc3339(thread.created_at),
        "updated_at": rfc3339(thread.updated_at),
    }


def _line_json(entry: ThreadEntry, redactor: ToolRequestRedactor) -> dict[str, object]:
    body = {name: value for name, value in entry.body.items() if name not in HIDDEN_FIELDS}
    if entry.kind == "replied":
        body["calls"] = [redactor.redact(wish) for wish in cast(list[tuple[str, str, str]], body.pop("wishes"))]
    return {"n": entry.number, "at": rfc3339(entry.at), "kind": entry.kind, "actor": entry.actor, "body": body}


def _position(lines: Sequence[ThreadEntry]) -> str | None:
    return str(Position(lines[-1].number, len(line_events(lines[-1])))) if lines else None


def _parse_cursor(text: str) -> tuple[int, str]:
    at, _, thread_id = text.partition("_")
    if not text:
        return FIRST_CURSOR
    if not (at.isascii() and at.isdigit() and len(at) <= 15 and thread_id):
        raise InvalidRequest("The cursor is what the last page gave as next.")
    return int(at), thread_id
