"""Chat threads: list, show, stop, retry, and approve or reject a call in the chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from interlock.chat.stream import Position, line_events
from interlock.chat.threads import FIRST_CURSOR, ThreadQuery
from interlock.core.call import MAX_NAME
from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.decision import MAX_COMMENT, Acknowledgement, Approve, Reject
from interlock.core.errors import InvalidRequest
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import (
    DECIDERS,
    PrincipalDep,
    StateDep,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import RequestBody, example, json_response
from interlock.server.models import EXAMPLE_ID, ResponseModel
from interlock.server.routes.approvals import EmptyBody
from interlock.server.streams.thread_stream import ToolRequestRedactor
from interlock.storage.tables.threads import MAX_ENTRY_NUMBER

router = APIRouter(tags=["chat"])

MAX_THREADS = 200
SHOWN_KINDS = frozenset(
    {"said", "replied", "asked", "decided", "resulted", "delegated", "ended", "stopped", "failed", "erased"}
)
HIDDEN_FIELDS = frozenset({"opaque", "seen", "took", "tools"})  # of an entry's body: for the loop and provider only


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
    id: str
    agent: str
    user: str
    title: str
    status: str
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


class ChatDecisionBody(RequestBody):
    """The short decision of a chat page. Without `argsSha256` it counts only for unedited arguments without alarms."""

    model_config = example({"approvalId": EXAMPLE_ID, "approved": True, "reason": "As agreed on the phone."})

    approvalId: Annotated[str, Field(min_length=1, max_length=200)]
    approved: bool
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    argsSha256: str | None = None


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
    return to_starlette(json_response({"items": [_thread_info(thread) for thread in page.items], "next": following}))


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
    return to_starlette(json_response({**_thread_info(thread), **more}))


@router.post(
    "/api/threads/{thread_id}/stop", responses=documented_responses(ThreadInfo, 404), **require_roles(DECIDERS)
)
async def stop_thread(
    thread_id: str, state: StateDep, principal: PrincipalDep, body: EmptyBody | None = None
) -> Response:
    """End the turn and withdraw its pending approvals. A call that has started is not undone; its result is kept."""
    services = await state.workspaces.services(principal.workspace)
    return to_starlette(json_response(_thread_info(await state.assistant.threads.stop(services, principal, thread_id))))


@router.post(
    "/api/threads/{thread_id}/retry", responses=documented_responses(ThreadInfo, 404, 409), **require_roles(DECIDERS)
)
async def retry_thread(
    thread_id: str, state: StateDep, principal: PrincipalDep, body: EmptyBody | None = None
) -> Response:
    """Continue a thread after an error, from its last state. Nothing that was recorded is done again."""
    return to_starlette(json_response(_thread_info(await state.assistant.threads.retry(principal, thread_id))))


@router.post(
    "/api/chat/approve",
    responses=documented_responses(ChatDecisionResult, 404, 409, 410, 422),
    **require_roles(DECIDERS),
)
async def approve_in_chat(body: ChatDecisionBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Approve or reject one call."""
    return await _decide(body, state, principal)


@router.post(
    "/api/agent/approve",
    responses=documented_responses(ChatDecisionResult, 404, 409, 410, 422),
    **require_roles(DECIDERS),
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


def _thread_info(thread: Thread) -> dict[str, object]:
    return {
        "id": thread.id,
        "agent": thread.agent,
        "user": thread.person,
        "title": thread.title,
        "status": thread.status,
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
