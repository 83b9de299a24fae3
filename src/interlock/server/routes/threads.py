"""Threads: list, show, stop, try again, and the short way to say yes or no to a card in the chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from interlock.chat.stream import Position, pieces_of
from interlock.chat.threads import FIRST, Listing
from interlock.core.chat.thread import Line, Thread
from interlock.core.decision import MAX_COMMENT, Approve, Reject, Seen
from interlock.core.errors import InvalidRequest
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import DECIDERS, Caller, Here, gives, may, response
from interlock.server.http import Body, json_answer
from interlock.server.models import Told
from interlock.server.routes.approvals import Nothing
from interlock.server.streams.thread_stream import Wishes
from interlock.storage.tables.threads import NO_END

router = APIRouter(tags=["chat"])

MOST = 200
SHOWN = frozenset(
    {"said", "replied", "asked", "decided", "resulted", "delegated", "ended", "stopped", "failed", "erased"}
)
HIDDEN = frozenset({"opaque", "seen", "took", "tools"})  # of a line's body: for the loop and the provider alone


class Which(BaseModel):
    """`user` is for admins: somebody's threads, or everybody's with `*`."""

    model_config = ConfigDict(extra="forbid")

    cursor: Annotated[str, Field(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50
    user: Annotated[str, Field(max_length=200)] = ""
    q: Annotated[
        str, Field(max_length=200, description="Words in the title. A page may then be empty and have a next.")
    ] = ""


class WhichLines(BaseModel):
    """All of them, if nothing is said."""

    model_config = ConfigDict(extra="forbid")

    after: Annotated[int, Field(ge=0, le=NO_END, description="Only lines behind this one.")] = 0
    before: Annotated[int, Field(ge=0, le=NO_END, description="Only lines before this one; 0 for no end.")] = 0
    last: Annotated[int, Field(ge=0, le=10_000, description="Only the last so many of those; 0 for all.")] = 0


class ThreadInfo(Told):
    id: str
    agent: str
    user: str
    title: str
    status: str
    created_at: str
    updated_at: str


class ThreadList(Told):
    items: list[ThreadInfo]
    next: str | None


class ThreadLine(Told):
    n: int
    at: str
    kind: str
    actor: str
    body: dict[str, Any]


class WholeThread(ThreadInfo):
    """`position` is where a stream goes on behind these lines; null where there are none."""

    lines: list[ThreadLine]
    position: str | None
    confirmation: dict[str, Any] | None


class YesOrNo(Body):
    """The short decision of a chat page. Without `argsSha256` it counts only for unedited, harmless arguments."""

    approvalId: Annotated[str, Field(min_length=1, max_length=200)]
    approved: bool
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    argsSha256: str | None = None


class Settled(Told):
    approval_id: str
    status: str
    approved: bool


@router.get("/api/threads", responses=gives(ThreadList), **may(DECIDERS))
async def list_threads(which: Annotated[Which, Query()], site: Here, caller: Caller) -> Response:
    """The caller's own threads, the newest first."""
    wanted = Listing(_cursor(which.cursor), which.limit, which.user, which.q)
    page = await site.assistant.threads.list(caller, wanted)
    following = None if page.next is None else f"{page.next[0]}_{page.next[1]}"
    return response(json_answer({"items": [_info(thread) for thread in page.items], "next": following}))


@router.get("/api/threads/{thread_id}", responses=gives(WholeThread, 404), **may(DECIDERS))
async def show_thread(thread_id: str, which: Annotated[WhichLines, Query()], site: Here, caller: Caller) -> Response:
    """A thread with all of its lines, or some."""
    thread, lines = await site.assistant.threads.show(caller, thread_id, which.after, which.before, which.last)
    confirmation = thread.confirmation
    open_one = None if confirmation is None else {"tool": confirmation.tool, "answer": confirmation.answer}
    specs = {name: tool.spec for name, tool in site.assistant.toolbox.all(thread.workspace).items()}
    shown = Wishes(specs, await site.store.secret_key(thread.workspace))
    told = [_line(line, shown) for line in lines if line.kind in SHOWN]
    more = {"lines": told, "position": _position(lines), "confirmation": open_one}
    return response(json_answer({**_info(thread), **more}))


@router.post("/api/threads/{thread_id}/stop", responses=gives(ThreadInfo, 404), **may(DECIDERS))
async def stop_thread(thread_id: str, site: Here, caller: Caller, body: Nothing | None = None) -> Response:
    """Ends the turn and withdraws the open cards. A call that has started is not undone; its result is kept."""
    doors = await site.workspaces.doors(caller.workspace)
    return response(json_answer(_info(await site.assistant.threads.stop(doors, caller, thread_id))))


@router.post("/api/threads/{thread_id}/retry", responses=gives(ThreadInfo, 404, 409), **may(DECIDERS))
async def retry_thread(thread_id: str, site: Here, caller: Caller, body: Nothing | None = None) -> Response:
    """After an error: goes on from where the thread stands. Nothing that was recorded is done again."""
    return response(json_answer(_info(await site.assistant.threads.retry(caller, thread_id))))


@router.post("/api/chat/approve", responses=gives(Settled, 404, 409, 410, 422), **may(DECIDERS))
async def approve_in_chat(body: YesOrNo, site: Here, caller: Caller) -> Response:
    """Approves or rejects one call."""
    return await _settle(body, site, caller)


@router.post("/api/agent/approve", responses=gives(Settled, 404, 409, 410, 422), **may(DECIDERS))
async def approve_for_agent(body: YesOrNo, site: Here, caller: Caller) -> Response:
    """The same, at another address."""
    return await _settle(body, site, caller)


async def _settle(body: YesOrNo, site: Here, caller: Caller) -> Response:
    doors = await site.workspaces.doors(caller.workspace)
    seen = Seen(body.argsSha256, reason=body.reason)
    decision = Approve(seen) if body.approved else Reject(seen=seen)
    reviewer = doors.reviewer(caller, site.clock())
    approval = await doors.inbox.decide(doors.workspace, body.approvalId, decision, reviewer)
    answer = {"approval_id": approval.id, "status": approval.status, "approved": approval.status == "approved"}
    return response(json_answer(answer))


def _info(thread: Thread) -> dict[str, object]:
    return {
        "id": thread.id,
        "agent": thread.agent,
        "user": thread.person,
        "title": thread.title,
        "status": thread.status,
        "created_at": rfc3339(thread.created_at),
        "updated_at": rfc3339(thread.updated_at),
    }


def _line(line: Line, wishes: Wishes) -> dict[str, object]:
    body = {name: value for name, value in line.body.items() if name not in HIDDEN}
    if line.kind == "replied":
        body["calls"] = [wishes.shown(wish) for wish in cast(list[tuple[str, str, str]], body.pop("wishes"))]
    return {"n": line.n, "at": rfc3339(line.at), "kind": line.kind, "actor": line.actor, "body": body}


def _position(lines: Sequence[Line]) -> str | None:
    return str(Position(lines[-1].n, len(pieces_of(lines[-1])))) if lines else None


def _cursor(text: str) -> tuple[int, str]:
    at, _, thread_id = text.partition("_")
    if not text:
        return FIRST
    if not (at.isascii() and at.isdigit() and len(at) <= 15 and thread_id):
        raise InvalidRequest("The cursor is what the last page gave as next.")
    return int(at), thread_id
