"""HTTP for external systems: submit a typed request, a person answers it, and the caller polls for the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, assert_never
from uuid import UUID

from fastapi import APIRouter
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError
from starlette.requests import Request
from starlette.responses import Response

from interlock.app.workspaces import WorkspaceServices
from interlock.chat.tool_registry import action_spec
from interlock.config.models import ActionSettings, is_builtin_action
from interlock.core.approval.approval import APPROVED_STATUSES, Approval
from interlock.core.call import MAX_NAME, ToolCall, ToolSpec
from interlock.core.confusables import differs_only_in_case
from interlock.core.decision import DIGEST_LENGTH, Acknowledgement, Approve, Decision, Edit, Reject
from interlock.core.errors import CallMismatch, DeniedNow, Forbidden, Frozen, InvalidDecision, InvalidRequest, Problem
from interlock.core.ledger.event import Stored
from interlock.core.outcome import Outcome, Refused, status_at
from interlock.core.policy.claims import FillTerms
from interlock.core.policy.policy import Ask
from interlock.presenters.approval import shown_args
from interlock.runtime.durations import optional_rfc3339, parse_time, rfc3339
from interlock.server.dependencies import (
    AGENTS,
    ALL_ROLES,
    ContextDep,
    PrincipalDep,
    RequestContext,
    StateDep,
    body_text,
    documented_responses,
    require_deciders,
    require_roles,
    to_starlette,
)
from interlock.server.http import RequestBody, example, json_response
from interlock.server.models import ResponseModel, Status, Timestamp
from interlock.server.proposals import ProposalBody, action_team, known_spec, make_tool_call, with_team
from interlock.server.state import ServerState

SETTING: Literal["paused"] = "paused"  # a system that polls has no user waiting in a chat
CALL_ID = "request"
# The state of an approved request that may not be executed now; the caller keeps polling.
FROZEN_FIELDS: Mapping[str, object] = {
    "status": "pending",
    "decision": None,
    "payload": None,
    "reviewerId": None,
    "resolvedAt": None,
    "final": False,
    "stopped": "frozen",
}
DENIED_NOW_FIELDS: Mapping[str, object] = {
    "status": "denied",
    "decision": "rejected",
    "payload": None,
    "reviewerId": "policy",
    "final": False,
    "stopped": "denied_now",
}

router = APIRouter(tags=["outside systems"])


def _canonical_uuid(text: str) -> str:
    """The canonical spelling, so that one id cannot stand for two requests."""
    try:
        return str(UUID(text))
    except ValueError:
        raise PydanticCustomError("uuid", "A request id is a UUID") from None


RequestId = Annotated[str, AfterValidator(_canonical_uuid), Field(json_schema_extra={"format": "uuid"})]


class ExternalRequestMetadata(RequestBody):
    initiatedBy: str = ""
    priority: Literal["low", "medium", "high"] = "medium"
    expiresAt: str | None = None


class ExternalRequestBody(RequestBody):
    """The action's schema checks the payload. An invalid payload is accepted and flagged, and nobody can approve it."""

    model_config = example(
        {
            "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
            "actionType": "fund_transfer",
            "payload": {"amount": 100, "recipient": "ann@example.com"},
            "metadata": {"initiatedBy": "billing", "priority": "high", "expiresAt": "2027-03-01T18:00:00Z"},
        }
    )

    requestId: RequestId
    actionType: str
    payload: dict[str, object]
    metadata: ExternalRequestMetadata = ExternalRequestMetadata()


class SubmitAnswerBody(RequestBody):
    """An answer by the signed-in person. With `argsSha256` it counts only for the payload that the person saw.

    `reviewerId` is no proof of who answers: if it is given, it has to be the signed-in person's name or e-mail address.
    """

    model_config = example(
        {
            "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
            "decision": "modified",
            "modifiedPayload": {"amount": 50, "recipient": "ann@example.com"},
            "comment": "Half of it now.",
        }
    )

    requestId: RequestId
    decision: Literal["approved", "rejected", "modified"]
    comment: str = ""
    modifiedPayload: dict[str, object] | None = None
    argsSha256: str | None = Field(None, max_length=DIGEST_LENGTH)
    reviewerId: Annotated[
        str | None, Field(max_length=MAX_NAME, description="Your own name or e-mail address; any other is refused.")
    ] = None


class PayloadFlag(ResponseModel):
    pointer: str
    message: str


class ExternalRequestJson(ResponseModel):
    """The result of a request. `payload` is what may be executed, and null while nothing may.

    A rejection can be undone until it is `final`; `flags` say why the payload cannot be approved as it is. `stopped`
    says why an approved request may not be executed now: while it is `frozen` it is pending, and while the current
    policy denies it, denied.
    """

    requestId: str
    status: Status | Literal["denied"]
    decision: Literal["approved", "rejected", "modified"] | None
    payload: Any
    comment: str
    reviewerId: str | None
    resolvedAt: Timestamp | None
    expiresAt: Timestamp | None
    final: bool
    flags: list[PayloadFlag]
    stopped: Literal["frozen", "denied_now"] | None


@router.post("/requests", responses=documented_responses(ExternalRequestJson, 409, 429), **require_roles(AGENTS))
async def create_request(body: ExternalRequestBody, state: StateDep, principal: PrincipalDep) -> Response:
    """Submit a request. A retry is the same request; a different one with the same id is refused."""
    services = await state.workspaces.services(principal.workspace)
    now = state.clock()
    expires_in = _parse_expiry(body.metadata.expiresAt, now)
    spec, gate = _action_spec(state, services, body.actionType), services.gate_for(principal)
    call = make_tool_call(_request_proposal(body), principal, state, services, SETTING)
    call = replace(call, expires_in=expires_in, decisions=spec.decisions)

    async def ask() -> Outcome:
        fill = _terms_filler(state, services, body.actionType)
        taken = not spec.secret  # in an invalid payload a secret could be anywhere, and people would read it
        return await gate.check(call, spec, approval_id=body.requestId, accept_invalid=taken, fill=fill)

    outcome = await state.quotas.run_within_quota(principal, gate, call, None, ask)
    if isinstance(outcome, Refused) and not outcome.approval_id:
        return to_starlette(json_response(_denied_json(body.requestId, outcome, now)))
    stored = await state.store.get(services.workspace, body.requestId)
    if stored.approval.subject.requester != call.requester:
        message = "This request id is known with another initiatedBy. Use a new one."
        raise CallMismatch(message)
    return to_starlette(json_response(await _request_status_json(state, services, stored, principal.credential)))


async def _submitted_request(_: Request, body: object) -> str:
    try:
        return str(UUID(body_text(body, "requestId")))
    except ValueError:
        return ""


@router.post(
    "/submit",
    responses=documented_responses(ExternalRequestJson, 404, 409, 410, 422),
    **require_deciders(_submitted_request),
)
async def submit(body: SubmitAnswerBody, context: ContextDep) -> Response:
    """Answer a request. An invalid answer changes nothing: the request stays open, and the error says why."""
    stored = await context.state.store.get(context.workspace, body.requestId)
    decision, where = _decision(body, stored.approval), (context.workspace, body.requestId)
    async with context.inbox.recording_refusals(*where, context.reviewer, decision):
        _check_reviewer_id(body, context)
        _check_submission(body, context.state)
    await context.inbox.decide(*where, decision, context.reviewer)
    stored = await context.state.store.get(context.workspace, body.requestId)
    return to_starlette(json_response(await _request_status_json(context.state, context.services, stored)))


@router.get(
    "/resume/{request_id}", responses=documented_responses(ExternalRequestJson, 404), **require_roles(ALL_ROLES)
)
async def resume(request_id: str, state: StateDep, principal: PrincipalDep) -> Response:
    """The result of a request. Starts nothing: to execute it, call start, which succeeds for one caller.

    An approved request that is frozen, or that the current policy denies, is not reported as approved.
    """
    services = await state.workspaces.services(principal.workspace)
    await services.gate_for(principal).get_outcome(services.workspace, request_id)  # applies timers that are due
    stored = await state.store.get(services.workspace, request_id)
    return to_starlette(
        json_response(
            await _request_status_json(state, services, stored, principal.credential if principal.is_agent else "")
        )
    )


async def _request_status_json(
    state: ServerState, services: WorkspaceServices, stored: Stored, key: str = ""
) -> dict[str, object]:
    """Report an approval only if a start with this key would succeed now: some readers never call start."""
    gate, now = services.gate, state.clock()
    approval = gate.in_force.defer_approval(stored.approval, now)
    body = external_request_json(stored._replace(approval=approval), now)
    if body["status"] != "approved":
        return body
    stopped = await gate.in_force.fetch_start_error(approval, key)
    match stopped:
        case None:
            return body
        case Frozen():
            return {**body, **FROZEN_FIELDS, "comment": f"Approved, and not to be done yet. {stopped.message}"}
        case DeniedNow():
            return {**body, **DENIED_NOW_FIELDS, "comment": stopped.message, "resolvedAt": rfc3339(now)}
        case _:
            assert_never(stopped)


def external_request_json(stored: Stored, now: int) -> dict[str, object]:
    approval, status = stored.approval, status_at(stored.approval, now)
    decision_record = approval.decision
    return {
        "requestId": approval.id,
        "status": status,
        "decision": _decision_word(approval, status),
        "payload": shown_args(stored.payload) if status in APPROVED_STATUSES else None,
        "comment": (decision_record.comment or decision_record.reason) if decision_record else "",
        "reviewerId": decision_record.by if decision_record else None,
        "resolvedAt": rfc3339(decision_record.at) if decision_record else None,
        "expiresAt": optional_rfc3339(approval.deadlines.expires_at),
        "final": status != "pending" and (status != "rejected" or now >= (approval.deadlines.release_at or 0)),
        "flags": [{"pointer": each.pointer, "message": each.message} for each in approval.findings.schema_errors],
        "stopped": None,
    }


def _decision_word(approval: Approval, status: str) -> str | None:
    if status == "pending":
        return None
    if status in APPROVED_STATUSES:
        return "modified" if approval.editors else "approved"
    return "rejected"


def _denied_json(request_id: str, outcome: Refused, now: int) -> dict[str, object]:
    """A request that the policy denies is not stored; there is only a ledger entry."""
    return {
        "requestId": request_id,
        "status": "denied",
        "decision": "rejected",
        "payload": None,
        "comment": outcome.reason,
        "reviewerId": "policy",
        "resolvedAt": rfc3339(now),
        "expiresAt": None,
        "final": True,
        "flags": [],
        "stopped": None,
    }


def _request_proposal(body: ExternalRequestBody) -> ProposalBody:
    metadata = body.metadata
    return ProposalBody(
        tool=body.actionType,
        args=body.payload,
        run_id=body.requestId,
        call_id=CALL_ID,
        initiated_by=metadata.initiatedBy,
        priority=metadata.priority,
        setting=SETTING,
    )


def _parse_expiry(text: str | None, now: int) -> int | None:
    if text is None:
        return None
    left = parse_time(text) - now
    if left <= 0:
        raise InvalidRequest("expiresAt has passed already. Give a time to come.")
    return left


def _action_spec(state: ServerState, services: WorkspaceServices, name: str) -> ToolSpec:
    """The server's definition of the tool, as in every interface; an unknown tool is only declared, and asks."""
    action, known, allows = state.action(name), known_spec(name, state, services), state.settings.verification
    decisions = ("approve", "edit", "reject") if allows.allow_modifications else ("approve", "reject")
    if known is None and action is None:
        return ToolSpec(name, decisions=decisions, declared=True)
    spec = known or (ToolSpec(name, "write") if action is None else replace(action_spec(name, action), schema=None))
    if action is not None and (spec.schema is None or not is_builtin_action(action)):
        spec = replace(spec, schema=_action_schema(action, allows.schema_strictness) if allows.enabled else None)
    return replace(spec, decisions=spec.decisions or decisions)


def _action_schema(action: ActionSettings, strictness: str) -> Mapping[str, object]:
    """Strict: properties that the schema does not name are invalid."""
    schema = action.schema
    if strictness == "strict" and "properties" in schema and "additionalProperties" not in schema:
        return {**schema, "additionalProperties": False}
    return schema


def _terms_filler(state: ServerState, services: WorkspaceServices, name: str) -> FillTerms:
    """If a rule names no approvers, the action's team decides; if it sets no time, `auto_reject_after` does."""
    team = action_team(name, state, services)

    def fill(ask: Ask, call: ToolCall) -> Ask:
        rule = next((rule for rule in services.gate.policy.rules if ask.rule and rule.name == ask.rule), None)
        given = rule.expires_in if rule else {}
        longest = max(given.values(), default=None) if ask.on_expiry == "approve" else None
        window = longest or given.get(SETTING) or state.settings.escalation.auto_reject_after
        stages = ask.stages if team is None else with_team(ask.stages, team)
        return replace(ask, stages=stages, expires_in=min(window, call.expires_in or window))

    return fill


def _check_reviewer_id(body: SubmitAnswerBody, context: RequestContext) -> None:
    """Refuse an answer in another person's name: who answers is who is signed in."""
    name = context.reviewer.name
    user = context.services.people.get(name)
    own = [each for each in (name, user.email if user else "") if each]
    if body.reviewerId is not None and not any(differs_only_in_case(body.reviewerId, each) for each in own):
        message = (
            f"reviewerId names somebody else: this answer comes from {name}, who is signed in. Leave reviewerId out, "
            "or sign in as that person. The request is still open."
        )
        problems = [{"pointer": "/reviewerId", "message": "not the person who is signed in"}]
        raise Forbidden(message, approval_id=body.requestId, problems=problems)


def _check_submission(body: SubmitAnswerBody, state: ServerState) -> None:
    verification, is_modified = state.settings.verification, body.decision == "modified"
    problem = None
    if len(body.comment) > verification.max_comment_length:
        length = f"{len(body.comment):,} characters"
        problem = Problem("/comment", f"has {length}; at most {verification.max_comment_length} are accepted")
    elif is_modified and body.modifiedPayload is None:
        problem = Problem("/modifiedPayload", "is missing; the decision modified needs the whole changed payload")
    elif not is_modified and body.modifiedPayload is not None:
        problem = Problem("/modifiedPayload", f"goes with the decision modified, and this one is {body.decision}")
    elif body.decision == "modified" and not verification.allow_modifications:
        problem = Problem("/decision", "modifications are switched off: approve it or reject it")
    if problem is not None:
        message = f"The answer cannot be taken: {problem}. The request is still open."
        raise InvalidDecision(message, [problem], approval_id=body.requestId)


def _decision(body: SubmitAnswerBody, approval: Approval) -> Decision:
    """Without a digest an answer counts only while nobody edited the payload; a modified one replaces all of it."""
    acknowledgement = Acknowledgement(body.argsSha256, (), "", body.comment)
    whole = body.modifiedPayload is not None or approval.findings.schema_errors
    if body.argsSha256 is None and whole and not approval.editors:
        acknowledgement = replace(acknowledgement, args_sha256=approval.args_sha256)
    match body.decision:
        case "approved":
            return Approve(acknowledgement)
        case "rejected":
            return Reject(body.comment, replace(acknowledgement, comment=""))
        case "modified":
            return Edit(body.modifiedPayload or {}, acknowledgement)
