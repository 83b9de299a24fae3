"""The routes of the protocol, and what they do with what is posted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, RootModel
from starlette.responses import Response

from interlock.app.inbox import View
from interlock.core.approval.approval import Approval, options, standing
from interlock.core.call import QUESTION
from interlock.core.canonical import canonical
from interlock.core.card import visible
from interlock.core.decision import Approve, Decision, Edit, Reject, Respond, Seen, read_decision
from interlock.core.declared import AGENT_SECRET
from interlock.core.errors import Conflict, DigestMismatch, Error, Expired, Forbidden, InvalidDecision, Problem
from interlock.core.ledger.event import Payload, Stored
from interlock.core.outcome import status_at
from interlock.core.ports import Query
from interlock.presenters.approval import sentence_of, shown_args
from interlock.runtime.durations import rfc3339
from interlock.runtime.offload import LARGE as BESIDE
from interlock.runtime.offload import beside
from interlock.server.context import AtDesk, Desk
from interlock.server.dependencies import DECIDERS, LOOKERS, fails, gives, may, response
from interlock.server.http import Answer, Body, Many, encoded, error_answer, json_answer
from interlock.server.protocols.agent_inbox.text import answer_of, coerced, described, in_code, survives

EVERYTHING = "interlock"  # the graph whose threads are all approvals; any other name is an agent's
MOST, FURTHEST, AT_ONCE = 100, 1_000, 500  # threads of a page, to pass over, and to pass over in one query
LARGE = 64 * 1024  # bytes of arguments; the web app would have to draw them for each thread of a list
MANY = 200  # arguments at any depth
UNFIT = "The arguments are too large to be shown in Agent Inbox, or have numbers that JavaScript cannot hold."
IGNORED = "Ignored in Agent Inbox."
RESOLVED = "Marked as resolved in Agent Inbox, without an answer."
SHOWN_AS: Mapping[str, str] = {
    "pending": "interrupted",
    **dict.fromkeys(("approved", "running"), "busy"),
    **dict.fromkeys(("failed", "unknown"), "error"),
    **dict.fromkeys(("succeeded", "rejected", "responded", "expired", "cancelled"), "idle"),
}
TRIED: Mapping[str, Decision] = {
    "accept": Approve(),
    "ignore": Reject(),
    "response": Respond(),
    "edit": Edit(b"{}"),
}

router = APIRouter(prefix="/agent-inbox", tags=["Agent Inbox"])


class ThreadsWanted(Body):
    """`metadata` holds a `graph_id`: `interlock`, or the name of an agent. The order is Interlock's own."""

    limit: Annotated[int, Field(ge=1, le=MOST)] = 10
    offset: Annotated[int, Field(ge=0, le=FURTHEST)] = 0
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    metadata: dict[str, object] | None = None
    sort_by: str | None = None
    sort_order: str | None = None


class ActionRequest(Body):
    action: str
    args: dict[str, object]


class HumanResponse(Body):
    type: Literal["accept", "ignore", "response", "edit"]
    args: str | ActionRequest | None = None


class ResumeCommand(Body):
    """A list with one answer: an approval is one question."""

    resume: Annotated[Many[HumanResponse], Field(min_length=1, max_length=1)]


class Resumption(Body):
    """Whatever else a client sends for a run of its own is not for an approval, and is not looked at."""

    model_config = ConfigDict(extra="ignore")

    command: ResumeCommand


class StateUpdate(Body):
    """Only "Mark as Resolved": no values, as the end."""

    values: None = None
    as_node: Literal["__end__"]


class InboxThread(BaseModel):
    """An approval. `interrupts` has what it asks while it waits for people; `values` are Markdown."""

    thread_id: str
    created_at: str
    updated_at: str
    state_updated_at: str
    metadata: dict[str, Any]
    status: Literal["idle", "busy", "interrupted", "error"]
    values: dict[str, Any]
    interrupts: dict[str, list[dict[str, Any]]]


class InboxThreads(RootModel[list[InboxThread]]):
    """A page."""


class InboxState(BaseModel):
    values: dict[str, Any]
    next: list[str]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    created_at: str
    parent_checkpoint: None
    tasks: list[dict[str, Any]]


class InboxRun(BaseModel):
    """The answer was taken."""

    run_id: str
    thread_id: str
    assistant_id: str
    created_at: str
    updated_at: str
    status: Literal["success"]
    metadata: dict[str, Any]
    multitask_strategy: None


class InboxUpdated(BaseModel):
    checkpoint: dict[str, Any]


class Deployment(BaseModel):
    flags: dict[str, bool]
    host: dict[str, str | None]


@router.get("/info")
async def info() -> Deployment:
    """Agent Inbox looks here, without a key, whether there is a server."""
    host = {"kind": "self-hosted", "project_id": None, "tenant_id": None, "revision_id": None}
    return Deployment(flags={"assistants": False, "crons": False, "langsmith": False}, host=host)


@router.post("/threads/search", responses=gives(InboxThreads), **may(LOOKERS))
async def search_threads(body: ThreadsWanted, desk: AtDesk) -> Response:
    """What waits for people (`interrupted`), by time left; else the newest first."""
    agent = _agent(body.metadata or {})
    found = [] if agent is None else [await _listed(each, desk) async for each in _page(body, agent, desk)]
    wanted = [each for each in found if body.status in (None, each["status"])]  # by the clock, some have just expired
    return response(await beside(BESIDE if len(wanted) > 10 else 0, lambda: json_answer(wanted)))


@router.get("/threads/{thread_id}", responses=gives(InboxThread, 404), **may(LOOKERS))
async def show_thread(thread_id: str, desk: AtDesk) -> Response:
    """One approval, with what this person could answer now."""
    return response(json_answer(_thread(await desk.inbox.show(desk.workspace, thread_id), desk)))


@router.get("/threads/{thread_id}/state", responses=gives(InboxState, 404), **may(LOOKERS))
async def show_state(thread_id: str, desk: AtDesk) -> Response:
    """The same in the shape of a checkpoint."""
    view = await desk.inbox.show(desk.workspace, thread_id)
    thread = _thread(view, desk)
    asked = [each for interrupts in thread["interrupts"].values() for each in interrupts]
    bare = {"error": None, "checkpoint": None, "state": None, "result": None}
    task = {"id": thread_id, "name": view.stored.approval.subject.tool, "interrupts": asked, **bare}
    state = {name: thread[name] for name in ("values", "metadata", "created_at")} | _checkpoint(thread_id)
    more = {"next": [EVERYTHING] if asked else [], "parent_checkpoint": None, "tasks": [task] if asked else []}
    return response(json_answer(state | more))


@router.post("/threads/{thread_id}/state", responses=gives(InboxUpdated, 404, 409, 422), **may(DECIDERS))
async def resolve_thread(thread_id: str, body: StateUpdate, desk: AtDesk) -> Response:
    """Marked as resolved without an answer: the call is rejected."""
    try:
        await desk.inbox.decide(desk.workspace, thread_id, Reject(RESOLVED), desk.reviewer)
    except Expired as error:
        return response(_final(error))
    return response(json_answer(_checkpoint(thread_id)))


@router.post("/threads/{thread_id}/runs", responses=gives(InboxRun, 404, 409, 422), **may(DECIDERS))
async def resume_thread(thread_id: str, body: Resumption, desk: AtDesk) -> Response:
    """Takes the answer to an approval, as the decision of whoever is signed in."""
    try:
        return response(json_answer(await _taken(thread_id, body, desk), headers=_where(thread_id)))
    except Expired as error:
        return response(_final(error))


@router.post(
    "/threads/{thread_id}/runs/stream",
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "object"}}}}, **fails(404)},
    **may(DECIDERS),
)
async def resume_and_stream(thread_id: str, body: Resumption, desk: AtDesk) -> Response:
    """The same as a stream. A refusal is its `error` event: of another answer the web app shows no reason."""
    try:
        run = await _taken(thread_id, body, desk)
    except (Conflict, Expired, Forbidden, InvalidDecision) as error:
        told = [(b"error", error_answer(error).body)]
    else:
        values = _thread(await desk.inbox.show(desk.workspace, thread_id), desk)["values"]
        told = [(b"metadata", encoded({"run_id": run["run_id"], "attempt": 1})), (b"values", encoded(values))]
    frames = b"".join(b"event: %b\r\ndata: %b\r\n\r\n" % each for each in [*told, (b"end", b"null")])
    return response(Answer(200, frames, (*_where(thread_id), (b"cache-control", b"no-store")), b"text/event-stream"))


async def _taken(thread_id: str, body: Resumption, desk: Desk) -> dict[str, object]:
    view, said = await desk.inbox.show(desk.workspace, thread_id), body.command.resume[0]
    if view.status != "pending":
        raise standing(replace(view.stored.approval, status=view.status))
    try:
        decision = await beside(BESIDE if said.type == "edit" else 0, lambda: _decision(said, view))
    except (Conflict, InvalidDecision) as error:
        await desk.inbox.refuse(desk.workspace, thread_id, TRIED[said.type], desk.reviewer, error)
        raise
    approval = await desk.inbox.decide(desk.workspace, thread_id, decision, desk.reviewer)
    times = dict.fromkeys(("created_at", "updated_at"), rfc3339(desk.site.clock()))
    ids = {"run_id": thread_id, "thread_id": thread_id, "assistant_id": EVERYTHING}
    return {**ids, **times, "status": "success", "metadata": {"status": approval.status}, "multitask_strategy": None}


def _decision(said: HumanResponse, view: View) -> Decision:
    if said.type in ("accept", "edit") and not _is_whole(view):
        raise InvalidDecision(f"{UNFIT} Decide in Interlock.")
    match said.type, said.args:
        case "accept", None | ActionRequest() as repeated:
            return Approve(_seen(repeated, view))
        case "ignore", None:
            return Reject(IGNORED)
        case "response", str(text) if text:
            return _response(text, view)
        case "edit", ActionRequest() as request:
            return _edit(request, view)
        case _:
            fitting = {"accept": "null", "ignore": "null", "response": "a text", "edit": "{action, args}"}[said.type]
            message = f"An answer of the type {said.type} has {fitting} as its args. Nothing was decided."
            raise InvalidDecision(message, [Problem("/command/resume/0/args", f"has to be {fitting}")])


def _seen(repeated: ActionRequest | None, view: View) -> Seen:
    """Where edits are allowed the web app repeats what it showed: then it is known what this person saw."""
    if repeated is None:
        return Seen()
    _check_action(repeated, view)
    if canonical(repeated.args) != _bytes(view.stored.payload):
        raise DigestMismatch("These are not the arguments that wait. Look again, or edit them instead of accepting.")
    return Seen(view.stored.approval.args_sha256)


def _edit(request: ActionRequest, view: View) -> Decision:
    """Brings all arguments anew, so that it replaces what was proposed; not what somebody else made of it."""
    _check_action(request, view)
    shown = cast(Mapping[str, object], shown_args(view.stored.payload) or {})
    if len(request.args) > MANY:
        raise InvalidDecision(f"An edit in Agent Inbox has at most {MANY} arguments. Edit the call in Interlock.")
    args = coerced(request.args, shown, view.spec.schema or {})
    approval = view.stored.approval
    return Edit(args, Seen(None if approval.editors else approval.args_sha256))


def _check_action(request: ActionRequest, view: View) -> None:
    if request.action != view.stored.approval.subject.tool:
        problem = Problem("/command/resume/0/args/action", "another tool")
        raise InvalidDecision("An answer cannot turn the call into one of another tool. Reject it instead.", [problem])


def _response(text: str, view: View) -> Decision:
    asked = cast(Mapping[str, object], shown_args(view.stored.payload) or {})
    schema = asked.get("schema") if view.stored.approval.subject.tool == QUESTION else None
    answer = answer_of(text, cast(Mapping[str, object], schema)) if isinstance(schema, Mapping) else None
    return read_decision({"kind": "respond", **({"message": text} if answer is None else {"answer": answer})})


def _agent(metadata: Mapping[str, object]) -> str | None:
    """Of whom the threads are, "" for all; None where no thread has such metadata."""
    match dict(metadata):
        case {"graph_id": str(name), **rest} if name and not rest:
            return "" if name == EVERYTHING else name
        case some:
            return None if some else ""


async def _page(wanted: ThreadsWanted, agent: str, desk: Desk) -> AsyncIterator[Stored]:
    statuses = tuple(status for status, shown in SHOWN_AS.items() if shown == wanted.status)
    query, left = Query(statuses, agent=agent), wanted.offset
    while left:
        page = await desk.inbox.list(desk.workspace, replace(query, limit=min(left, AT_ONCE)))
        left, query = left - len(page.items), replace(query, cursor=page.next or "")
        if page.next is None:
            return
    for stored in (await desk.inbox.list(desk.workspace, replace(query, limit=wanted.limit))).items:
        yield stored


async def _listed(stored: Stored, desk: Desk) -> dict[str, Any]:
    """The web app draws a thread from the list alone: what waits is there with its arguments."""
    if status_at(stored.approval, desk.site.clock()) != "pending":
        return _bare(stored, desk)
    return _thread(await desk.inbox.show(desk.workspace, stored.approval.id), desk)


def _thread(view: View, desk: Desk) -> dict[str, Any]:
    thread, approval = _bare(view.stored, desk), view.stored.approval
    if view.status != "pending":
        return thread
    interrupt = {"id": approval.id, "value": [_asked(view, desk)], "when": "during", "resumable": True}
    return {**thread, "interrupts": {approval.id: [interrupt]}}


def _asked(view: View, desk: Desk) -> dict[str, object]:
    approval, whole = view.stored.approval, _is_whole(view)
    found = options(approval, desk.reviewer, desk.site.clock())
    hindrance = found["approve"] or (_elsewhere(approval) if whole else UNFIT)
    allowed = {
        "allow_accept": not hindrance,
        "allow_edit": not found["edit"] and whole and not approval.editors and AGENT_SECRET not in approval.alarms,
        "allow_respond": not found["respond"],
        "allow_ignore": not found["reject"],
    }
    request = {"action": approval.subject.tool, "args": shown_args(view.stored.payload) or {} if whole else {}}
    card = view.card if whole else replace(view.card, fields=(), findings=view.card.findings[:MANY])
    why = hindrance if approval.subject.tool != QUESTION else ""
    return {"action_request": request, "config": allowed, "description": described(card, why, _link(approval, desk))}


def _elsewhere(approval: Approval) -> str:
    """Why an answer without a digest would not be taken, or ""."""
    if approval.editors:
        return "Somebody edited the arguments."
    return "Some arguments may deceive, and nobody can acknowledge that here." if approval.alarms else ""


def _bare(stored: Stored, desk: Desk) -> dict[str, Any]:
    """The web app draws all texts of `values` as Markdown with HTML in it: what others wrote stands in code."""
    approval, decided = stored.approval, stored.approval.decision
    status = status_at(approval, desk.site.clock())
    created, updated = rfc3339(approval.created_at), rfc3339(decided.at if decided else approval.created_at)
    decision = decided and {
        "kind": decided.kind,
        "by": in_code(visible(decided.by)),
        "reason": in_code(visible(decided.reason)),
    }
    told = {"tool": visible(approval.subject.tool), "agent": visible(approval.subject.agent)}
    values = {name: in_code(text) for name, text in {"sentence": sentence_of(stored), **told}.items()}
    return {
        "thread_id": approval.id,
        "created_at": created,
        "updated_at": updated,
        "state_updated_at": updated,
        "metadata": {"graph_id": EVERYTHING, "agent": approval.subject.agent},
        "status": SHOWN_AS[status],
        "values": {**values, "status": status, "decision": decision, "link": _link(approval, desk)},
        "interrupts": {},
    }


def _is_whole(view: View) -> bool:
    """Whether the web app would show the arguments as they are, and send them back so."""
    small = len(_bytes(view.stored.payload)) <= LARGE and len(view.card.fields) <= MANY
    return small and survives(shown_args(view.stored.payload))


def _bytes(payload: Payload) -> bytes:
    """The arguments as people see them."""
    return (payload.shown if payload.shown is not None else payload.args) or b"{}"


def _link(approval: Approval, desk: Desk) -> str:
    return f"{desk.site.public_url}/a/{approval.id}"


def _final(error: Error) -> Answer:
    """The client takes 410 for something that passes, and would ask again for half a minute."""
    return error_answer(error)._replace(status=409)


def _where(thread_id: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"content-location", f"/threads/{thread_id}/runs/{thread_id}".encode()),)


def _checkpoint(thread_id: str) -> dict[str, Any]:
    return {"checkpoint": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": thread_id}}
