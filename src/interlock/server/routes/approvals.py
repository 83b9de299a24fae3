"""Approvals: list, show, decide one or many, undo, claim, delegate, comment, ask the agent, resolve unknown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from interlock.app.workspaces import WorkspaceServices
from interlock.core.approval.approval import STATUSES, Approval, needs_reviewer
from interlock.core.approval.discussion import MAX_QUESTION
from interlock.core.decision import (
    DIGEST_LENGTH,
    MAX_COMMENT,
    MAX_MESSAGE,
    Decision,
    Kind,
    Reviewer,
    read_decision_with_digest,
)
from interlock.core.errors import Conflict, Error, Expired, Forbidden, InvalidDecision, InvalidRequest, NotFound
from interlock.core.notify.delivery import Delivery
from interlock.core.policy.policy import People
from interlock.core.ports import ApprovalPage, ApprovalQuery
from interlock.core.search import parse_argument_filter
from interlock.presenters.approval import decision_result_json, inbox_row_json
from interlock.runtime.durations import parse_time
from interlock.server.dependencies import (
    DECIDERS,
    VIEWERS,
    ContextDep,
    RequestContext,
    approval_response,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import (
    HttpRequest,
    HttpResponse,
    JsonList,
    RequestBody,
    error_response,
    example,
    json_response,
)
from interlock.server.models import (
    EXAMPLE_ID,
    EXAMPLE_SHA256,
    ApprovalJson,
    ApprovalPageJson,
    ApprovalSummaryJson,
    ResponseModel,
)
from interlock.server.router import AsgiRouter
from interlock.server.state import ServerState
from interlock.storage.engine.queries import MAX_LIMIT

MAX_BULK = 500
MAX_NAME = 500  # characters of a filter
MAX_ARGUMENT_FILTERS = 20
MIN_ID_PART, MAX_BY_ID = 4, 50

router, asgi_routes = APIRouter(prefix="/api/approvals", tags=["approvals"]), AsgiRouter("approvals")


def _check_statuses(text: str) -> str:
    unknown = [status for status in text.split(",") if status not in STATUSES]
    if text and unknown:
        said = {"status": unknown[0][:50], "allowed": ", ".join(STATUSES)}
        raise PydanticCustomError("status", "There is no status '{status}'. It is one of {allowed}", said)
    return text


Name = Annotated[str, Field(max_length=MAX_NAME)]
StatusFilter = Annotated[str, AfterValidator(_check_statuses), Field(json_schema_extra={"examples": ["pending"]})]
Cursor = Annotated[str, Field(max_length=MAX_NAME, description="`next` of the previous page.")]
TimeRange = tuple[int, int | None]


class PendingApprovalsQuery(BaseModel):
    """Filters, all of which have to match. `user` requested, decided, voted or edited; `team` may decide."""

    model_config = ConfigDict(extra="forbid")

    tool: Name = ""
    agent: Name = ""
    thread_id: Name = ""
    run_id: Name = ""
    user: Name = ""
    team: Name = ""
    priority: Literal["", "low", "medium", "high"] = ""
    mine: Annotated[
        bool, Field(description="Only approvals that need your decision; a page with a `next` may then be empty.")
    ] = False
    q: Annotated[
        Name, Field(description="Words to search for: all of them have to match, the last one as a prefix.")
    ] = ""
    cursor: Cursor = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 50


class ApprovalsQuery(PendingApprovalsQuery):
    """Also filters by status, several separated by commas, and by the time of the proposal; `since` is inclusive."""

    status: StatusFilter = ""
    since: Annotated[Name, Field(description="Only approvals proposed since this time (RFC 3339), inclusive.")] = ""
    until: Annotated[Name, Field(description="Only approvals proposed before this time (RFC 3339).")] = ""
    arg: Annotated[
        list[Name],
        Field(
            max_length=MAX_ARGUMENT_FILTERS,
            description="Only calls with this argument, as PATH=VALUE; the value is JSON, else text. Repeatable.",
        ),
    ] = []
    id: Annotated[
        str,
        Field(
            min_length=MIN_ID_PART,
            max_length=MAX_NAME,
            description="Only approvals whose id begins or ends with this text, at most 50; other filters are ignored.",
        ),
    ] = ""


class BulkDecisionsBody(RequestBody):
    """At most 500 decisions, each with its id and the fields of a decision; each is accepted or refused on its own."""

    model_config = example(
        {
            "decisions": [
                {"id": EXAMPLE_ID, "kind": "approve", "args_sha256": EXAMPLE_SHA256},
                {
                    "id": "0192f0c1-2b3d-7c4e-9f60-718293a4b5c7",
                    "kind": "reject",
                    "args_sha256": EXAMPLE_SHA256,
                    "reason": "Not this month.",
                },
            ]
        }
    )

    decisions: Annotated[JsonList[dict[str, object]], Field(min_length=1, max_length=MAX_BULK)]


class DelegateBody(RequestBody):
    """Let others decide this approval in your place. A delegate's vote counts as yours, not as another one."""

    model_config = example({"users": ["eve"]})

    users: JsonList[str] = ()
    teams: JsonList[str] = ()


class CommentBody(RequestBody):
    model_config = example({"text": "I have asked finance."})

    text: Annotated[str, Field(min_length=1, max_length=MAX_COMMENT)]


class AskAgentBody(RequestBody):
    """A question to the agent; it decides nothing."""

    model_config = example({"question": "Which invoice is this for?"})

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]


class ResolveUnknownBody(RequestBody):
    """The result of a call whose outcome was unknown, after a person has checked."""

    model_config = example({"ok": True, "note": "The bank shows the transfer.", "result": {"transfer": "T-1009"}})

    ok: bool
    note: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    result: object = None


class EmptyBody(RequestBody):
    """No fields."""

    model_config = example({})


class BulkDecisionResult(ResponseModel):
    """The result of one decision: the new status, or the error of a single decision."""

    model_config = ConfigDict(extra="allow")

    id: str
    ok: bool
    status: str = ""
    version: int = 0
    error: str = ""
    message: str = ""


class BulkDecisionResults(ResponseModel):
    results: list[BulkDecisionResult]


@router.get("", responses=documented_responses(ApprovalPageJson), **require_roles(VIEWERS))
async def list_approvals(filters: Annotated[ApprovalsQuery, Query()], context: ContextDep) -> Response:
    """Approvals, newest first; with status=pending, those that expire first."""
    if filters.id:
        return await _page_by_id(context, filters)
    return await _page(context, filters, split_statuses(filters.status), _time_range(filters), filters.arg)


@router.get("/pending", responses=documented_responses(ApprovalPageJson), **require_roles(VIEWERS))
async def list_pending(filters: Annotated[PendingApprovalsQuery, Query()], context: ContextDep) -> Response:
    """Pending approvals, by time left."""
    return await _page(context, filters, ("pending",))


@router.get("/{approval_id}", responses=documented_responses(ApprovalJson, 404), **require_roles(VIEWERS))
async def show_approval(approval_id: str, context: ContextDep) -> Response:
    """One approval in full, with its card. The ETag is its version."""
    return await context.show(approval_id)


@router.post("/bulk", responses=documented_responses(BulkDecisionResults), **require_roles(DECIDERS))
async def decide_many(body: BulkDecisionsBody, context: ContextDep) -> Response:
    """Decide many approvals. Each decision has one result, in the same order; a failure stops none of the others."""
    read = [_read_item(item) for item in body.decisions]
    named = [(name, each) for name, each in read if name or not isinstance(each, Error)]
    results = iter(await context.inbox.bulk(context.workspace, named, context.reviewer))
    listed = [
        _result_json(name, each if isinstance(each, Error) and not name else next(results)) for name, each in read
    ]
    return to_starlette(json_response({"results": listed}))


@router.post(
    "/{approval_id}/undo", responses=documented_responses(ApprovalJson, 404, 409, 410), **require_roles(DECIDERS)
)
async def undo(approval_id: str, context: ContextDep, body: EmptyBody | None = None) -> Response:
    """Undo a rejection that the agent has not received yet."""
    await context.inbox.undo(context.workspace, approval_id, context.reviewer)
    return await context.show(approval_id)


@router.post(
    "/{approval_id}/claim", responses=documented_responses(ApprovalJson, 404, 409, 410), **require_roles(DECIDERS)
)
async def claim(approval_id: str, context: ContextDep, body: EmptyBody | None = None) -> Response:
    """Claim an approval, to show others that you are working on it. Others may still decide; the last claim counts."""
    await context.inbox.claim(context.workspace, approval_id, context.reviewer)
    return await context.show(approval_id)


@router.post(
    "/{approval_id}/release", responses=documented_responses(ApprovalJson, 404, 409, 410), **require_roles(DECIDERS)
)
async def release(approval_id: str, context: ContextDep, body: EmptyBody | None = None) -> Response:
    """Release an approval that you claimed."""
    await context.inbox.release(context.workspace, approval_id, context.reviewer)
    return await context.show(approval_id)


@router.post(
    "/{approval_id}/delegate", responses=documented_responses(ApprovalJson, 404, 409, 410), **require_roles(DECIDERS)
)
async def delegate(approval_id: str, body: DelegateBody, context: ContextDep) -> Response:
    """Delegate your decision to others."""
    await context.inbox.delegate(context.workspace, approval_id, _delegates(body, context.services), context.reviewer)
    return await context.show(approval_id)


@router.post("/{approval_id}/comment", responses=documented_responses(ApprovalJson, 404), **require_roles(DECIDERS))
async def comment(approval_id: str, body: CommentBody, context: ContextDep) -> Response:
    """Add a comment to the timeline, in any state of the call."""
    await context.inbox.comment(context.workspace, approval_id, body.text, context.reviewer)
    return await context.show(approval_id)


@router.post(
    "/{approval_id}/ask", responses=documented_responses(ApprovalJson, 404, 409, 410), **require_roles(DECIDERS)
)
async def ask(approval_id: str, body: AskAgentBody, context: ContextDep) -> Response:
    """Ask the agent a question; the call stays pending, and its deadline does not change."""
    await context.inbox.ask(context.workspace, approval_id, body.question, context.reviewer)
    return await context.show(approval_id)


@router.post(
    "/{approval_id}/resolve-unknown", responses=documented_responses(ApprovalJson, 404, 409), **require_roles(DECIDERS)
)
async def resolve_unknown(approval_id: str, body: ResolveUnknownBody, context: ContextDep) -> Response:
    """Record how a call with an unknown outcome ended; nothing runs."""
    await context.inbox.resolve_unknown(
        context.workspace, approval_id, context.reviewer, ok=body.ok, note=body.note, result=body.result
    )
    return await context.show(approval_id)


def split_statuses(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _time_range(filters: ApprovalsQuery) -> TimeRange:
    since = parse_time(filters.since) if filters.since else 0
    return since, parse_time(filters.until) if filters.until else None


async def _page_by_id(context: RequestContext, filters: ApprovalsQuery) -> Response:
    """Approvals by a part of their id, the newest first, on one page."""
    now, store = context.state.clock(), context.state.store
    ids = await store.find_ids(context.workspace, filters.id, min(filters.limit, MAX_BY_ID))
    found = tuple([await store.get(context.workspace, approval_id) for approval_id in ids])
    page = context.inbox.in_force.defer_page(ApprovalPage(found, None), now)
    items = [inbox_row_json(stored, now, context.reviewer) for stored in page.items]
    return to_starlette(json_response({"items": items, "next": None, "behind": False}))


async def _page(
    context: RequestContext,
    filters: PendingApprovalsQuery,
    statuses: tuple[str, ...],
    times: TimeRange = (0, None),
    arguments: Sequence[str] = (),
) -> Response:
    query = ApprovalQuery(
        statuses,
        tool=filters.tool,
        agent=filters.agent,
        thread_id=filters.thread_id,
        run_id=filters.run_id,
        priority=filters.priority,
        cursor=filters.cursor,
        limit=filters.limit,
        text=filters.q,
        person=filters.user,
        team=filters.team,
        since=times[0],
        until=times[1],
        arguments=tuple(map(parse_argument_filter, arguments)),
    )
    page, now = await context.inbox.list(context.workspace, query), context.state.clock()
    found = [each for each in page.items if not filters.mine or needs_reviewer(each.approval, context.reviewer, now)]
    items = [inbox_row_json(stored, now, context.reviewer) for stored in found]
    return to_starlette(json_response({"items": items, "next": page.next, "behind": page.is_index_behind}))


def _read_item(item: Mapping[str, object]) -> tuple[str, Decision | Error]:
    """Parse one decision; an invalid one is refused like any other, on its own."""
    approval_id = item.get("id")
    if not isinstance(approval_id, str):
        return "", InvalidRequest("Each decision names its approval: id is a text.")
    try:
        return approval_id, read_decision_with_digest({name: value for name, value in item.items() if name != "id"})
    except Error as error:
        return approval_id, error


def _result_json(approval_id: str, end: Approval | Error) -> dict[str, object]:
    if isinstance(end, Error):
        return {"id": approval_id, "ok": False, **cast(dict[str, object], json.loads(error_response(end).body))}
    return {"id": approval_id, "ok": True, "status": end.status, "version": end.version}


def _delegates(body: DelegateBody, services: WorkspaceServices) -> People:
    """Refuse unknown names: a delegate that does not exist would never decide, and nobody would notice."""
    here = [user for user in services.people.values() if user.removed_at is None]
    known = {"user": {user.name for user in here}, "team": {team for user in here for team in user.teams}}
    for kind, names in (("user", body.users), ("team", body.teams)):
        for name in names:
            if name not in known[kind]:
                raise InvalidRequest(f"There is no {kind} {name!r}. See Settings, People, or: interlock users list")
    if not body.users and not body.teams:
        raise InvalidRequest("Name the users or teams to delegate to.")
    return People(frozenset(body.users), frozenset(body.teams))


LINK_HEADER = b"interlock-link"  # the token of the message link that the person followed
PREFER_MINIMAL = b"return=minimal"  # for programs that do not need the card


class DecisionBody(RequestBody):
    """A decision. It is made by the signed-in person, never by a field of the body."""

    model_config = example({"kind": "approve", "args_sha256": EXAMPLE_SHA256, "comment": "As agreed on the phone."})

    kind: Kind
    args_sha256: Annotated[str, Field(min_length=DIGEST_LENGTH, max_length=DIGEST_LENGTH)]
    args: dict[str, object] | None = None
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    answer: object = None
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    comment: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    acknowledged: JsonList[str] = ()


class DecisionRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    @asgi_routes.route(
        "POST",
        "/api/approvals/{approval_id}/decision",
        DECIDERS,
        ApprovalJson | ApprovalSummaryJson,
        errors=(404, 409, 410, 422),
        body=DecisionBody,
    )
    async def decide(self, request: HttpRequest) -> HttpResponse:
        """Decide an approval.

        The decision counts only for the arguments of `args_sha256`, which is required; a second vote of the same person
        changes nothing. With `Prefer: return=minimal`, the response has no card. With the token of a message link in
        `Interlock-Link`, the decision is recorded as made through that channel, and the link cannot be used again.
        """
        (approval_id,), principal = request.path_params, request.current_principal
        services = await self._state.workspaces.services(principal.workspace)
        reviewer = services.reviewer(principal, self._state.clock())
        decision = await self._read(request, approval_id, services, reviewer)
        link = await self._resolve_link(request, approval_id)
        if isinstance(link, Error):
            await services.inbox.record_refusal(services.workspace, approval_id, decision, reviewer, link)
        if isinstance(link, Delivery):
            reviewer = replace(reviewer, via=link.target.channel)
        approval = await services.inbox.decide(services.workspace, approval_id, decision, reviewer)
        if isinstance(link, Delivery):
            await self._state.store.deliveries.use_link(link.workspace, link.id)
        if request.headers.get(b"prefer") == PREFER_MINIMAL:
            return json_response(
                decision_result_json(approval, self._state.clock()), 200, ((b"preference-applied", PREFER_MINIMAL),)
            )
        await asyncio.sleep(0)  # the waiting agent goes first
        return await approval_response(self._state, services, approval_id, reviewer)

    async def _read(
        self, request: HttpRequest, approval_id: str, services: WorkspaceServices, reviewer: Reviewer
    ) -> Decision:
        """Parse the decision; an invalid one is refused like any other, with a ledger entry."""
        try:
            return read_decision_with_digest(await request.parse_json())
        except (InvalidDecision, InvalidRequest) as error:
            await services.inbox.record_refusal(services.workspace, approval_id, None, reviewer, error)
            raise

    async def _resolve_link(self, request: HttpRequest, approval_id: str) -> Delivery | Error | None:
        """The delivery of the link that was followed: for this person and this call, and not used to decide yet."""
        given = request.headers.get(LINK_HEADER)
        if given is None:
            return None
        try:
            delivery = (await self._state.notifications.verify_link_token(given.decode("latin-1"))).delivery
        except NotFound:
            return Forbidden("This link is invalid or expired. Open the approval in the inbox and decide it there.")
        except Expired as error:
            return error
        meant = delivery.workspace, delivery.approval_id, delivery.target.person
        if meant != (request.current_principal.workspace, approval_id, request.current_principal.name):
            return Forbidden("This link was made for somebody else, or for another call. Decide without it.")
        if delivery.used_at is not None:
            return Conflict("This link was used to decide already. Open the call from the inbox.")
        return delivery
