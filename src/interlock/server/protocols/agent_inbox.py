"""LangChain's Agent Inbox, unmodified: an approval is an interrupted thread, and the answer resumes it.

Of a request, only an id and an answer count. An answer carries no digest: it is accepted only if nobody edited the call
and it has no alarms, or if it repeats the arguments exactly.

It is long because a protocol is one module: its routes and its models.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter
from pydantic import BaseModel, Field, RootModel
from starlette.requests import Request
from starlette.responses import Response

from interlock.app.inbox import ApprovalDetails
from interlock.core.approval.approval import Approval, already_decided_error, decision_blockers
from interlock.core.call import QUESTION_TOOL
from interlock.core.canonical import canonical, parse_json
from interlock.core.card import LONG_TEXT, Card, CardField, escape_invisible, head_and_tail
from interlock.core.decision import Acknowledgement, Approve, Decision, Edit, Reject, Respond, read_decision
from interlock.core.declared import AGENT_SECRET
from interlock.core.errors import (
    Conflict,
    DigestMismatch,
    Error,
    Expired,
    Forbidden,
    InvalidDecision,
    InvalidRequest,
    Problem,
)
from interlock.core.ledger.event import Payload, Stored
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery
from interlock.presenters.approval import approval_sentence, shown_args
from interlock.runtime.durations import rfc3339
from interlock.runtime.json_schema import validate
from interlock.runtime.offload import OFFLOAD_THRESHOLD as BESIDE
from interlock.runtime.offload import offload
from interlock.server.auth import AGENT_INBOX_PREFIX
from interlock.server.dependencies import (
    VIEWERS,
    ContextDep,
    RequestContext,
    documented_errors,
    documented_responses,
    require_deciders,
    require_roles,
    to_starlette,
)
from interlock.server.http import (
    HttpResponse,
    JsonList,
    RequestBody,
    encode_json,
    error_response,
    example,
    json_response,
)

__all__ = ["router"]


ALL_AGENTS_GRAPH = "interlock"  # the graph of all approvals; any other name is an agent's
MAX_PAGE, MAX_OFFSET, SKIP_BATCH = 100, 1_000, 500  # threads of a page, to skip, and to skip in one query
MAX_ARGS_BYTES = 64 * 1024  # bytes of arguments; the web app would have to render them for each thread of a list
MAX_ARGS = 200  # arguments at any depth
NOT_SHOWABLE = "The arguments are too large to be shown in Agent Inbox, or have numbers that JavaScript cannot hold."
IGNORED_REASON = "Ignored in Agent Inbox."
RESOLVED_REASON = "Marked as resolved in Agent Inbox, without an answer."
THREAD_STATUSES: Mapping[str, str] = {
    "pending": "interrupted",
    **dict.fromkeys(("approved", "running"), "busy"),
    **dict.fromkeys(("failed", "unknown"), "error"),
    **dict.fromkeys(("succeeded", "rejected", "responded", "expired", "cancelled"), "idle"),
}
ATTEMPTED_DECISIONS: Mapping[str, Decision] = {
    "accept": Approve(),
    "ignore": Reject(),
    "response": Respond(),
    "edit": Edit(b"{}"),
}

router = APIRouter(prefix=AGENT_INBOX_PREFIX.removesuffix("/"), tags=["Agent Inbox"])


class InboxSearchBody(RequestBody):
    """`metadata` holds a `graph_id`: `interlock`, or the name of an agent. The order is always Interlock's own."""

    model_config = example({"limit": 10, "offset": 0, "status": "interrupted", "metadata": {"graph_id": "interlock"}})

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 10
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    metadata: dict[str, object] | None = None
    sort_by: str | None = None
    sort_order: str | None = None


class ActionRequest(RequestBody):
    action: str
    args: dict[str, object]


class HumanResponse(RequestBody):
    type: Literal["accept", "ignore", "response", "edit"]
    args: str | ActionRequest | None = None


class ResumeCommand(RequestBody):
    """A list with one answer, since an approval is one question."""

    resume: Annotated[JsonList[HumanResponse], Field(min_length=1, max_length=1)]


class InboxResumeBody(RequestBody):
    """Other fields, which clients send for runs of their own, are ignored."""

    model_config = example({"command": {"resume": [{"type": "accept", "args": None}]}}, extra="ignore")

    command: ResumeCommand


class InboxStateUpdateBody(RequestBody):
    """Only "Mark as Resolved": no values, and `__end__` as the node."""

    model_config = example({"values": None, "as_node": "__end__"})

    values: None = None
    as_node: Literal["__end__"]


class InboxThread(BaseModel):
    """An approval. `interrupts` holds the request while it is pending; `values` are Markdown."""

    thread_id: str
    created_at: str
    updated_at: str
    state_updated_at: str
    metadata: dict[str, Any]
    status: Literal["idle", "busy", "interrupted", "error"]
    values: dict[str, Any]
    interrupts: dict[str, list[dict[str, Any]]]


class InboxThreads(RootModel[list[InboxThread]]):
    """A page of threads."""


class InboxState(BaseModel):
    values: dict[str, Any]
    next: list[str]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    created_at: str
    parent_checkpoint: None
    tasks: list[dict[str, Any]]


class InboxRun(BaseModel):
    """The answer was accepted."""

    run_id: str
    thread_id: str
    assistant_id: str
    created_at: str
    updated_at: str
    status: Literal["success"]
    metadata: dict[str, Any]
    multitask_strategy: None


class InboxCheckpoint(BaseModel):
    checkpoint: dict[str, Any]


class InboxServerInfo(BaseModel):
    flags: dict[str, bool]
    host: dict[str, str | None]


@router.get("/info")
async def info() -> InboxServerInfo:
    """Server information. Agent Inbox asks for it without a key, to see whether there is a server."""
    host = {"kind": "self-hosted", "project_id": None, "tenant_id": None, "revision_id": None}
    return InboxServerInfo(flags={"assistants": False, "crons": False, "langsmith": False}, host=host)


@router.post("/threads/search", responses=documented_responses(InboxThreads), **require_roles(VIEWERS))
async def search_threads(body: InboxSearchBody, context: ContextDep) -> Response:
    """Search threads: pending approvals (`interrupted`) by time left, others newest first."""
    agent = _agent_filter(body.metadata or {})
    found = (
        [] if agent is None else [await _list_item(each, context) async for each in _search_page(body, agent, context)]
    )
    wanted = [each for each in found if body.status in (None, each["status"])]  # some have just expired
    return to_starlette(await offload(BESIDE if len(wanted) > 10 else 0, lambda: json_response(wanted)))


@router.get("/threads/{thread_id}", responses=documented_responses(InboxThread, 404), **require_roles(VIEWERS))
async def show_thread(thread_id: str, context: ContextDep) -> Response:
    """One approval, with the answers that this person could give now."""
    return to_starlette(json_response(_thread(await context.inbox.show(context.workspace, thread_id), context)))


@router.get("/threads/{thread_id}/state", responses=documented_responses(InboxState, 404), **require_roles(VIEWERS))
async def show_state(thread_id: str, context: ContextDep) -> Response:
    """One approval in the shape of a checkpoint."""
    view = await context.inbox.show(context.workspace, thread_id)
    thread = _thread(view, context)
    asked = [each for interrupts in thread["interrupts"].values() for each in interrupts]
    bare = {"error": None, "checkpoint": None, "state": None, "result": None}
    task = {"id": thread_id, "name": view.stored.approval.subject.tool, "interrupts": asked, **bare}
    state = {name: thread[name] for name in ("values", "metadata", "created_at")} | _checkpoint(thread_id)
    more = {"next": [ALL_AGENTS_GRAPH] if asked else [], "parent_checkpoint": None, "tasks": [task] if asked else []}
    return to_starlette(json_response(state | more))


async def _answered_thread(request: Request, _: object) -> str:
    return str(request.path_params["thread_id"])


@router.post(
    "/threads/{thread_id}/state",
    responses=documented_responses(InboxCheckpoint, 404, 409, 422),
    **require_deciders(_answered_thread),
)
async def resolve_thread(thread_id: str, body: InboxStateUpdateBody, context: ContextDep) -> Response:
    """Mark a thread as resolved without an answer: the call is rejected."""
    try:
        await context.inbox.decide(context.workspace, thread_id, Reject(RESOLVED_REASON), context.reviewer)
    except Expired as error:
        return to_starlette(_final_error(error))
    return to_starlette(json_response(_checkpoint(thread_id)))


@router.post(
    "/threads/{thread_id}/runs",
    responses=documented_responses(InboxRun, 404, 409, 422),
    **require_deciders(_answered_thread),
)
async def resume_thread(thread_id: str, body: InboxResumeBody, context: ContextDep) -> Response:
    """Answer an approval, as a decision of the signed-in person."""
    try:
        return to_starlette(
            json_response(await _resume(thread_id, body, context), headers=_location_headers(thread_id))
        )
    except Expired as error:
        return to_starlette(_final_error(error))


@router.post(
    "/threads/{thread_id}/runs/stream",
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "object"}}}}, **documented_errors(404)},
    **require_deciders(_answered_thread),
)
async def resume_and_stream(thread_id: str, body: InboxResumeBody, context: ContextDep) -> Response:
    """Answer an approval, with a stream as the response.

    A refusal is its `error` event: the web app shows no reason for any other response.
    """
    try:
        run = await _resume(thread_id, body, context)
    except (Conflict, Expired, Forbidden, InvalidDecision) as error:
        events = [(b"error", error_response(error).body)]
    else:
        values = _thread(await context.inbox.show(context.workspace, thread_id), context)["values"]
        events = [(b"metadata", encode_json({"run_id": run["run_id"], "attempt": 1})), (b"values", encode_json(values))]
    frames = b"".join(b"event: %b\r\ndata: %b\r\n\r\n" % each for each in [*events, (b"end", b"null")])
    return to_starlette(
        HttpResponse(
            200, frames, (*_location_headers(thread_id), (b"cache-control", b"no-store")), b"text/event-stream"
        )
    )


async def _resume(thread_id: str, body: InboxResumeBody, context: RequestContext) -> dict[str, object]:
    view, human_response = await context.inbox.show(context.workspace, thread_id), body.command.resume[0]
    attempted = ATTEMPTED_DECISIONS[human_response.type]
    async with context.inbox.recording_refusals(context.workspace, thread_id, context.reviewer, attempted):
        if view.status != "pending":
            raise already_decided_error(replace(view.stored.approval, status=view.status))
        decision = await offload(
            BESIDE if human_response.type == "edit" else 0, lambda: _decision(human_response, view)
        )
    approval = await context.inbox.decide(context.workspace, thread_id, decision, context.reviewer)
    times = dict.fromkeys(("created_at", "updated_at"), rfc3339(context.state.clock()))
    ids = {"run_id": thread_id, "thread_id": thread_id, "assistant_id": ALL_AGENTS_GRAPH}
    return {**ids, **times, "status": "success", "metadata": {"status": approval.status}, "multitask_strategy": None}


def _decision(human_response: HumanResponse, view: ApprovalDetails) -> Decision:
    if human_response.type in ("accept", "edit") and not _is_showable(view):
        raise InvalidDecision(f"{NOT_SHOWABLE} Decide in Interlock.")
    match human_response.type, human_response.args:
        case "accept", None | ActionRequest() as repeated:
            return Approve(_acknowledgement(repeated, view))
        case "ignore", None:
            return Reject(IGNORED_REASON)
        case "response", str(text) if text:
            return _response(text, view)
        case "edit", ActionRequest() as request:
            return _edit(request, view)
        case _:
            fitting = {"accept": "null", "ignore": "null", "response": "a text", "edit": "{action, args}"}[
                human_response.type
            ]
            message = f"An answer of the type {human_response.type} has {fitting} as its args. Nothing was decided."
            raise InvalidDecision(message, [Problem("/command/resume/0/args", f"has to be {fitting}")])


def _acknowledgement(repeated: ActionRequest | None, view: ApprovalDetails) -> Acknowledgement:
    """If edits are allowed, the web app repeats the arguments that it showed, which proves what this person saw."""
    if repeated is None:
        return Acknowledgement()
    _check_action(repeated, view)
    if canonical(repeated.args) != _shown_args_bytes(view.stored.payload):
        raise DigestMismatch("These are not the pending arguments. Reload, or edit them instead of accepting.")
    return Acknowledgement(view.stored.approval.args_sha256)


def _edit(request: ActionRequest, view: ApprovalDetails) -> Decision:
    """An edit has all arguments, so it replaces what was proposed; but not what another person edited."""
    _check_action(request, view)
    shown = cast(Mapping[str, object], shown_args(view.stored.payload) or {})
    if len(request.args) > MAX_ARGS:
        raise InvalidDecision(f"An edit in Agent Inbox has at most {MAX_ARGS} arguments. Edit the call in Interlock.")
    args = coerce_args(request.args, shown, view.spec.schema or {})
    approval = view.stored.approval
    return Edit(args, Acknowledgement(None if approval.editors else approval.args_sha256))


def _check_action(request: ActionRequest, view: ApprovalDetails) -> None:
    if request.action != view.stored.approval.subject.tool:
        problem = Problem("/command/resume/0/args/action", "another tool")
        raise InvalidDecision("An answer cannot turn the call into one of another tool. Reject it instead.", [problem])


def _response(text: str, view: ApprovalDetails) -> Decision:
    asked = cast(Mapping[str, object], shown_args(view.stored.payload) or {})
    schema = asked.get("schema") if view.stored.approval.subject.tool == QUESTION_TOOL else None
    answer = parse_answer(text, cast(Mapping[str, object], schema)) if isinstance(schema, Mapping) else None
    return read_decision({"kind": "respond", **({"message": text} if answer is None else {"answer": answer})})


def _agent_filter(metadata: Mapping[str, object]) -> str | None:
    """The agent whose threads are meant, "" for all; None if no thread has such metadata."""
    match dict(metadata):
        case {"graph_id": str(name), **rest} if name and not rest:
            return "" if name == ALL_AGENTS_GRAPH else name
        case some:
            return None if some else ""


async def _search_page(body: InboxSearchBody, agent: str, context: RequestContext) -> AsyncIterator[Stored]:
    statuses = tuple(status for status, shown in THREAD_STATUSES.items() if shown == body.status)
    query, left = ApprovalQuery(statuses, agent=agent), body.offset
    while left:
        page = await context.inbox.list(context.workspace, replace(query, limit=min(left, SKIP_BATCH)))
        left, query = left - len(page.items), replace(query, cursor=page.next or "")
        if page.next is None:
            return
    for stored in (await context.inbox.list(context.workspace, replace(query, limit=body.limit))).items:
        yield stored


async def _list_item(stored: Stored, context: RequestContext) -> dict[str, Any]:
    """The web app renders a thread from the list alone, so pending ones include their arguments."""
    if status_at(stored.approval, context.state.clock()) != "pending":
        return _thread_summary(stored, context)
    return _thread(await context.inbox.show(context.workspace, stored.approval.id), context)


def _thread(view: ApprovalDetails, context: RequestContext) -> dict[str, Any]:
    thread, approval = _thread_summary(view.stored, context), view.stored.approval
    if view.status != "pending":
        return thread
    interrupt = {"id": approval.id, "value": [_human_interrupt(view, context)], "when": "during", "resumable": True}
    return {**thread, "interrupts": {approval.id: [interrupt]}}


def _human_interrupt(view: ApprovalDetails, context: RequestContext) -> dict[str, object]:
    approval, whole = view.stored.approval, _is_showable(view)
    found = decision_blockers(approval, context.reviewer, context.state.clock())
    blocked_reason = found["approve"] or (_digest_required_reason(approval) if whole else NOT_SHOWABLE)
    allowed = {
        "allow_accept": not blocked_reason,
        "allow_edit": not found["edit"]
        and whole
        and not approval.editors
        and AGENT_SECRET not in approval.findings.alarms,
        "allow_respond": not found["respond"],
        "allow_ignore": not found["reject"],
    }
    request = {"action": approval.subject.tool, "args": shown_args(view.stored.payload) or {} if whole else {}}
    card = view.card if whole else replace(view.card, fields=(), findings=view.card.findings[:MAX_ARGS])
    why = blocked_reason if approval.subject.tool != QUESTION_TOOL else ""
    return {
        "action_request": request,
        "config": allowed,
        "description": describe_card(card, why, _link(approval, context)),
    }


def _digest_required_reason(approval: Approval) -> str:
    """Why an answer without a digest would be refused, or ""."""
    if approval.editors:
        return "Somebody edited the arguments."
    return "Some arguments may deceive, and nobody can acknowledge that here." if approval.findings.alarms else ""


def _thread_summary(stored: Stored, context: RequestContext) -> dict[str, Any]:
    """The web app renders all texts of `values` as Markdown with HTML: text of others is in code spans."""
    approval, decision_record = stored.approval, stored.approval.decision
    status = status_at(approval, context.state.clock())
    created, updated = (
        rfc3339(approval.created_at),
        rfc3339(decision_record.at if decision_record else approval.created_at),
    )
    decision = decision_record and {
        "kind": decision_record.kind,
        "by": code_span(escape_invisible(decision_record.by)),
        "reason": code_span(escape_invisible(decision_record.reason)),
    }
    told = {"tool": escape_invisible(approval.subject.tool), "agent": escape_invisible(approval.subject.agent)}
    values = {name: code_span(text) for name, text in {"sentence": approval_sentence(stored), **told}.items()}
    return {
        "thread_id": approval.id,
        "created_at": created,
        "updated_at": updated,
        "state_updated_at": updated,
        "metadata": {"graph_id": ALL_AGENTS_GRAPH, "agent": approval.subject.agent},
        "status": THREAD_STATUSES[status],
        "values": {**values, "status": status, "decision": decision, "link": _link(approval, context)},
        "interrupts": {},
    }


def _is_showable(view: ApprovalDetails) -> bool:
    """Whether the web app would show the arguments, and send them back, unchanged."""
    small = len(_shown_args_bytes(view.stored.payload)) <= MAX_ARGS_BYTES and len(view.card.fields) <= MAX_ARGS
    return small and is_js_safe(shown_args(view.stored.payload))


def _shown_args_bytes(payload: Payload) -> bytes:
    """The arguments as people see them."""
    return (payload.shown if payload.shown is not None else payload.args) or b"{}"


def _link(approval: Approval, context: RequestContext) -> str:
    return f"{context.state.public_url}/a/{approval.id}"


def _final_error(error: Error) -> HttpResponse:
    """409 in place of 410, which the client takes for temporary and would retry for half a minute."""
    return error_response(error)._replace(status=409)


def _location_headers(thread_id: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"content-location", f"/threads/{thread_id}/runs/{thread_id}".encode()),)


def _checkpoint(thread_id: str) -> dict[str, Any]:
    return {"checkpoint": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": thread_id}}


# Keywords that describe a single argument; `required` and the like are about all of them together.
SHARED_KEYWORDS = ("$schema", "$id", "patternProperties", "additionalProperties")
KEYWORDS_WITH_REFS = (*SHARED_KEYWORDS, "$defs", "definitions", "properties")
MAX_SAFE_INTEGER = 2**53 - 1
REF_PATTERN = re.compile(r'"\$\w*[rR]ef"')
AMBIGUOUS = "could be a text or something else, and a box cannot say which: edit it in Interlock"


def coerce_args(
    typed: Mapping[str, object], shown: Mapping[str, object], schema: Mapping[str, object]
) -> dict[str, object]:
    """Convert texts to what the schema says, or refuse them: nothing is guessed."""
    read = {name: _coerce_value(name, value, shown, schema) for name, value in typed.items()}
    problems = [problem for each in read.values() if isinstance(each, CoercionErrors) for problem in each.problems]
    if problems:
        listed = "; ".join(map(str, problems))
        raise InvalidDecision(f"The edit does not fit the tool: {listed}. Nothing was decided.", problems)
    return read


def parse_answer(text: str, schema: Mapping[str, object]) -> object:
    """The value of a typed answer to a question with a schema; None if it is the text itself."""
    fitting = (
        [] if not validate(schema, text) else [each for each in _json_readings(text) if not validate(schema, each)]
    )
    return fitting[0] if fitting else None


def is_js_safe(value: object) -> bool:
    """Whether JavaScript reads the same value: a larger integer would silently become another."""
    match value:
        case int():
            return abs(value) <= MAX_SAFE_INTEGER
        case Mapping():
            return all(map(is_js_safe, value.values()))
        case list():
            return all(map(is_js_safe, value))
        case _:
            return True


def to_input_text(value: object) -> str:
    """The text that the web app puts into the input field of an argument."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def describe_card(card: Card, blocked_reason: str, link: str) -> str:
    """The card as Markdown. Text that an agent could have written is in code: no HTML, and it cannot pose as ours."""
    return "\n".join(_lines(card, blocked_reason, link))


def code_span(text: str) -> str:
    """A code span that its text cannot end; the text is `escape_invisible` already, so that it is one line."""
    if not text.strip():
        return f"(empty, {len(text)} characters)" if text else "(empty)"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}"


class CoercionErrors:
    """Why a text is not a valid value."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems


def _coerce_value(name: str, value: object, shown: Mapping[str, object], schema: Mapping[str, object]) -> object:
    """Convert one text; an input field that was not changed keeps its value."""
    if not isinstance(value, str):
        return value
    if name in shown and value == to_input_text(shown[name]):
        return shown[name]
    interpretations, own = [value, *_json_readings(value)], _argument_schema(name, schema)
    fitting = [each for each in interpretations if not validate(own, {name: each})]
    match fitting:
        case []:
            return CoercionErrors(
                [_problem_at_argument(name, each) for each in validate(own, {name: interpretations[-1]})]
            )
        case [only]:
            return only
        case _:
            return (
                value if isinstance(shown.get(name, ""), str) else CoercionErrors([Problem(_pointer(name), AMBIGUOUS)])
            )


def _problem_at_argument(name: str, problem: Problem) -> Problem:
    """Move a problem with all arguments together to the only one that was checked."""
    inside = problem.pointer == _pointer(name) or problem.pointer.startswith(f"{_pointer(name)}/")
    return problem if inside else Problem(_pointer(name), problem.message)


def _argument_schema(name: str, schema: Mapping[str, object]) -> dict[str, object]:
    """The part of the schema that this argument needs: a large schema takes long to compile for each argument."""
    properties = schema.get("properties")
    own = properties.get(name) if isinstance(properties, Mapping) else None
    kept = {part: schema[part] for part in SHARED_KEYWORDS if part in schema}
    if REF_PATTERN.search(json.dumps([own, kept])):  # a reference can lead anywhere
        return {part: schema[part] for part in KEYWORDS_WITH_REFS if part in schema}
    return kept if own is None else {**kept, "properties": {name: own}}


def _json_readings(text: str) -> list[object]:
    """The values that a text could mean besides itself: at most one, parsed strictly."""
    try:
        value = parse_json(text)
    except InvalidRequest:
        return []
    return [] if isinstance(value, str) else [value]


def _lines(card: Card, blocked_reason: str, link: str) -> Iterator[str]:
    yield from (code_span(card.sentence), "")
    if blocked_reason:
        yield from ("**It cannot be accepted here:**", f"- {code_span(escape_invisible(blocked_reason))}", "")
    if card.findings:
        yield from (
            "**Check carefully:**",
            *(f"- {code_span(f'{escape_invisible(each.pointer)}: {each.message}')}" for each in card.findings),
            "",
        )
    if card.fields:
        yield from ("**The arguments, exactly:**", *map(_field, card.fields), "")
    for title, text in (
        ("Preview", card.preview),
        ("The agent's description, unverified", card.agent_description),
        ("The agent's preview, unverified", card.agent_preview),
        ("The agent says, unverified", card.agent_says),
    ):
        yield from (f"**{title}:**", f"- {_shorten(text)}", "") if text else ()
    yield from ("**About it:**", *(f"- {label}: {code_span(text)}" for label, text in card.facts), "")
    yield f"[View it in Interlock]({link})"


def _field(field: CardField) -> str:
    digest = f" ({field.length} characters, SHA-256 {field.sha256})" if field.sha256 else ""
    return f"- {code_span(escape_invisible(field.pointer))}: {_shorten(field.text)}{digest}"


def _shorten(text: str) -> str:
    head, tail = head_and_tail(text, LONG_TEXT)
    return f"{code_span(head)} … {code_span(tail)}" if tail else code_span(head)


def _pointer(name: str) -> str:
    return f"/{name.replace('~', '~0').replace('/', '~1')}"
