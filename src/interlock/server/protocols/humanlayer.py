"""HumanLayer's SDK, unmodified: function calls that people approve, and questions that they answer.

Its program runs the function as soon as it reads `approved: true`, and never reports the result. So an approval is
delivered once: the first poll that finds it starts the call and finishes it as handed over, and every later poll is
refused.

It is long because a protocol is one module: its routes and its models.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from interlock.app.gate import Gate
from interlock.app.workspaces import WorkspaceServices
from interlock.core.approval.execute import START_TOKEN_PREFIX
from interlock.core.call import (
    ANY_OWNER,
    MAX_NAME,
    MAX_TEXT_LENGTH,
    QUESTION_SPEC,
    QUESTION_TOOL,
    ToolCall,
    ToolSpec,
    redact,
)
from interlock.core.canonical import canonical, digest
from interlock.core.decision import (
    MAX_COMMENT,
    MAX_MESSAGE,
    Acknowledgement,
    Approve,
    Decision,
    Reject,
    Respond,
    Reviewer,
)
from interlock.core.errors import (
    AlreadyStarted,
    CallMismatch,
    Conflict,
    Expired,
    Forbidden,
    InvalidDecision,
    InvalidRequest,
    NotFound,
    Problem,
)
from interlock.core.identity import Principal
from interlock.core.ledger.event import Payload, Stored
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.presenters.approval import shown_args
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import (
    AGENTS,
    PrincipalDep,
    StateDep,
    current_principal,
    documented_responses,
    require_deciders,
    require_roles,
    server_state,
    to_starlette,
)
from interlock.server.http import HttpResponse, RequestBody, example, json_response
from interlock.server.proposals import ProposalBody, action_terms, known_spec, make_tool_call
from interlock.server.state import ServerState
from interlock.storage.tables.idempotency import IdempotencyKey

MAX_OPTIONS = 100


class ResponseOption(RequestBody):
    """A predefined answer; an `interactive` one needs text of the person's own."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    title: str | None = None
    description: str | None = None
    prompt_fill: str | None = None
    interactive: bool = False

    @property
    def label(self) -> str:
        return self.title or self.name


CallId = Annotated[str, Field(pattern=r"^[^/?#%]+$")]  # part of a URL, in which the SDK does not encode it
ChannelSpecs = dict[str, dict[str, object] | None]
OptionList = Annotated[list[ResponseOption], Field(max_length=MAX_OPTIONS)] | None
AgentState = dict[str, object] | None


class FunctionCallSpec(RequestBody):
    fn: str
    kwargs: dict[str, object]
    channel: ChannelSpecs | None = None
    reject_options: OptionList = None
    state: AgentState = None


class FunctionCallBody(RequestBody):
    """A function call that a program wants to run. Only the server sets its state: `status` stays empty."""

    model_config = example(
        {
            "run_id": "billing-4fK2",
            "call_id": "call-9QxZ",
            "spec": {
                "fn": "pay_invoice",
                "kwargs": {"invoice": "2027-113", "amount": 100},
                "reject_options": [{"name": "later", "title": "Not this month"}],
            },
        }
    )

    run_id: str
    call_id: CallId
    spec: FunctionCallSpec
    status: None = None


class HumanContactSpec(RequestBody):
    msg: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_LENGTH)]
    subject: str | None = None
    channel: ChannelSpecs | None = None
    response_options: OptionList = None
    state: AgentState = None


class HumanContactBody(RequestBody):
    """A question to people."""

    model_config = example(
        {
            "run_id": "billing-4fK2",
            "call_id": "call-7LmN",
            "spec": {"msg": "Which account should it come from?"},
        }
    )

    run_id: str
    call_id: CallId
    spec: HumanContactSpec
    status: None = None


class FunctionCallAnswerBody(RequestBody):
    """A person's approval or rejection. The server sets the times, and ignores those in the body."""

    model_config = example({"approved": False, "reject_option_name": "later"})

    approved: bool
    comment: Annotated[str, Field(max_length=MAX_COMMENT)] | None = None
    reject_option_name: str | None = None
    requested_at: str | None = None
    responded_at: str | None = None
    slack_message_ts: str | None = None


class HumanContactAnswerBody(RequestBody):
    """A person's text, or one of the options by its name."""

    model_config = example({"response": "The savings account."})

    response: Annotated[str, Field(max_length=MAX_MESSAGE)] | None = None
    response_option_name: str | None = None
    requested_at: str | None = None
    responded_at: str | None = None


class EscalationBody(RequestBody):
    """The agent's message to the approvers. The policy determines who is notified."""

    model_config = example({"escalation_msg": "The invoice is due today."})

    escalation_msg: str
    additional_recipients: Annotated[list[dict[str, object]], Field(max_length=MAX_OPTIONS)] | None = None
    channel: ChannelSpecs | None = None


class FunctionCallStatus(BaseModel):
    requested_at: str
    responded_at: str | None
    approved: bool | None
    comment: str | None
    reject_option_name: str | None
    slack_message_ts: None


class FunctionCall(BaseModel):
    """`approved` is null until there is a decision, and true in one response only."""

    run_id: str
    call_id: str
    spec: dict[str, Any]
    status: FunctionCallStatus


class HumanContactStatus(BaseModel):
    requested_at: str
    responded_at: str | None
    response: str | None
    response_option_name: str | None


class HumanContact(BaseModel):
    """`response` is null until a person has answered."""

    run_id: str
    call_id: str
    spec: dict[str, Any]
    status: HumanContactStatus


def question_args(spec: HumanContactSpec) -> dict[str, object]:
    """Only the predefined answers can be chosen, unless one of them is interactive."""
    args: dict[str, object] = {"question": spec.msg}
    args |= {"subject": spec.subject} if spec.subject is not None else {}
    options = spec.response_options or ()
    closed = options and not any(each.interactive for each in options)
    return args | ({"choices": [each.label for each in options]} if closed else {})


def agent_says_text(spec: FunctionCallSpec | HumanContactSpec) -> str:
    """All fields but the call are the agent's words: shown to people as such, and returned. Tokens are not stored."""
    options = spec.reject_options if isinstance(spec, FunctionCallSpec) else spec.response_options
    field = "reject_options" if isinstance(spec, FunctionCallSpec) else "response_options"
    names = [name for each in options or () for name in {each.name, each.label}]
    if len(names) != len(set(names)):
        raise InvalidRequest(f"{field} need names and titles of their own.")
    ways = {way: _without_token(told) for way, told in (spec.channel or {}).items() if told}
    said = {
        "channel": ways,
        field: [each.model_dump(exclude_defaults=True) for each in options or ()],
        "state": spec.state,
    }
    kept = {name: value for name, value in said.items() if value or (name == "state" and value is not None)}
    text = json.dumps(kept, ensure_ascii=False, indent=2) if kept else ""
    if len(text) > MAX_TEXT_LENGTH:
        raise InvalidRequest(
            f"channel, options and state have {len(text):,} characters; {MAX_TEXT_LENGTH:,} can be kept."
        )
    return text


def _without_token(told: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in told.items() if value is not None and name != "bot_token"}


__all__ = ["router"]


RequestKind = Literal["function_call", "contact_request"]
ALLOWED_DECISIONS = ("approve", "reject")  # the program runs its own arguments: an edit could not reach them
HANDED_OVER = "Handed over to the agent's program, which runs it and does not say what came of it."
ALREADY_DELIVERED = (
    "An approval is delivered once, and this one already was. If the function did not run, use a new call_id."
)

router = APIRouter(prefix="/humanlayer/v1", tags=["HumanLayer"])


@dataclass(frozen=True)
class HumanLayerContext:
    """The workspace and the caller of a request."""

    state: ServerState
    services: WorkspaceServices
    principal: Principal

    @property
    def workspace(self) -> str:
        return self.services.workspace

    @property
    def gate(self) -> Gate:
        return self.services.gate_for(self.principal)

    @property
    def reviewer(self) -> Reviewer:
        return self.services.reviewer(self.principal, self.state.clock())

    async def approval_id_for(self, kind: RequestKind, call_id: str) -> str:
        """The approval's id, from the call's id alone: a poll names no run. Keyed, so that nobody can take it first."""
        key = await self.state.store.secret_key(self.workspace)
        return str(UUID(bytes=hmac.digest(key, f"humanlayer\0{kind}\0{call_id}".encode(), "sha256")[:16], version=4))

    async def load(self, kind: RequestKind, call_id: str) -> Stored:
        """Load a call. Raises NotFound if there is none, or if it is another agent's."""
        try:
            stored = await self.state.store.get(self.workspace, await self.approval_id_for(kind, call_id))
        except NotFound:
            raise _call_not_found() from None
        if self.principal.is_agent and stored.approval.subject.owner not in {*self.principal.owners, ANY_OWNER}:
            raise _call_not_found()
        return stored

    async def load_proposed(self, approval_id: str, call: ToolCall) -> Stored:
        """Load the approval of the posted call; raises CallMismatch unless it is the very same call."""
        stored = await self.state.store.get(self.workspace, approval_id)
        subject, says = stored.approval.subject, stored.payload.agent_says or ""
        theirs = subject.owner in {*self.principal.owners, ANY_OWNER}
        if not theirs or (stored.payload.args is not None and says != call.agent_says):
            raise _call_mismatch()
        return stored

    async def run_within_quota(self, call: ToolCall, ask: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Apply the quota. A mismatch hides the existing call: its approval's id would lead another agent to it."""
        try:
            return await self.state.quotas.run_within_quota(self.principal, self.gate, call, None, ask)
        except CallMismatch:
            raise _call_mismatch() from None

    def make_call(self, body: FunctionCallBody | HumanContactBody, tool: str, args: dict[str, object]) -> ToolCall:
        proposal = ProposalBody(
            tool=tool,
            args=args,
            run_id=body.run_id,
            call_id=body.call_id,
            setting="paused",
            agent_says=agent_says_text(body.spec),
        )
        call = make_tool_call(proposal, self.principal, self.state, self.services, "paused")
        return call if tool == QUESTION_TOOL else replace(call, decisions=ALLOWED_DECISIONS)

    async def hand_over(self, approval_id: str) -> None:
        """Start and finish the call, once: of two concurrent polls, one gets the approval and the other is refused."""
        runner = f"{START_TOKEN_PREFIX}{self.principal.credential}:{secrets.token_hex(16)}"
        started = await self.gate.start(self.workspace, approval_id, runner)
        told = Payload(result=canonical(HANDED_OVER))
        await self.gate.finish(self.workspace, approval_id, started.fence, ok=True, payload=told)

    def recording_refusals(self, stored: Stored, attempted: Decision) -> AbstractAsyncContextManager[None]:
        return self.services.inbox.recording_refusals(self.workspace, stored.approval.id, self.reviewer, attempted)

    async def decide(self, stored: Stored, decision: Decision) -> Stored:
        await self.services.inbox.decide(self.workspace, stored.approval.id, decision, self.reviewer)
        return await self.state.store.get(self.workspace, stored.approval.id)

    async def escalate(self, stored: Stored, body: EscalationBody) -> Stored:
        """Add a remark to the timeline: an agent chooses neither who decides nor who is notified."""
        people = ", ".join(str(each.get("address", "")) for each in body.additional_recipients or ())
        self.state.quotas.count_write(self.principal)
        text = f"Escalation: {body.escalation_msg}" + (f" For {people}." if people else "")
        await self.gate.agent_comment(self.workspace, stored.approval.id, text, self.principal.actor)
        return stored


async def _context(state: StateDep, principal: PrincipalDep) -> HumanLayerContext:
    return HumanLayerContext(state, await state.workspaces.services(principal.workspace), principal)


HumanLayerContextDep = Annotated[HumanLayerContext, Depends(_context)]


@router.post("/function_calls", responses=documented_responses(FunctionCall, 409, 429), **require_roles(AGENTS))
async def ask_about_function(body: FunctionCallBody, context: HumanLayerContextDep) -> Response:
    """Ask for approval of a function call. A retry is the same call; only a GET returns an approval."""
    gate = context.gate  # before teams and pins are read
    call = context.make_call(body, body.spec.fn, body.spec.kwargs)
    approval_id = await context.approval_id_for("function_call", body.call_id)
    spec = known_spec(body.spec.fn, context.state, context.services)
    spec = spec or ToolSpec(body.spec.fn, decisions=ALLOWED_DECISIONS, declared=True)
    fill = action_terms(context.state.action(body.spec.fn), context.services)
    outcome = await context.run_within_quota(call, lambda: gate.check(call, spec, approval_id=approval_id, fill=fill))
    if isinstance(outcome, Refused) and not outcome.approval_id:
        return to_starlette(await _denied_response(context, approval_id, call, spec, outcome.reason))
    stored = await context.load_proposed(approval_id, call)
    return to_starlette(json_response(_function_json(stored, _function_status(stored, outcome))))


@router.get(
    "/function_calls/{call_id}", responses=documented_responses(FunctionCall, 404, 409, 410), **require_roles(AGENTS)
)
async def show_function_call(call_id: str, context: HumanLayerContextDep) -> Response:
    """The state of a function call.

    The first request that finds it approved gets `approved: true` and has to run the function; no other one ever does.
    """
    try:
        first = await context.load("function_call", call_id)
    except NotFound:
        return to_starlette(await _kept_denial(context, call_id))
    outcome = await context.gate.get_outcome(context.workspace, first.approval.id)
    stored = await context.state.store.get(context.workspace, first.approval.id)
    status = _function_status(stored, outcome)
    if isinstance(outcome, Proceed):
        await context.hand_over(first.approval.id)
        status |= {"approved": True, **_decision_fields(stored)}
    return to_starlette(json_response(_function_json(stored, status)))


@router.post("/contact_requests", responses=documented_responses(HumanContact, 409, 410, 429), **require_roles(AGENTS))
async def ask_human_contact(body: HumanContactBody, context: HumanLayerContextDep) -> Response:
    """Ask people a question. A retry is the same question."""
    gate = context.gate  # before teams and pins are read
    call = context.make_call(body, QUESTION_TOOL, question_args(body.spec))
    approval_id = await context.approval_id_for("contact_request", body.call_id)
    outcome = await context.run_within_quota(call, lambda: gate.ask(call, QUESTION_SPEC, approval_id=approval_id))
    if isinstance(outcome, Refused) and not outcome.approval_id:
        raise Forbidden(outcome.reason)
    stored = await context.load_proposed(approval_id, call)
    return to_starlette(json_response(_contact_json(stored, outcome)))


@router.get(
    "/contact_requests/{call_id}", responses=documented_responses(HumanContact, 404, 409, 410), **require_roles(AGENTS)
)
async def show_contact(call_id: str, context: HumanLayerContextDep) -> Response:
    """The answer to a question. If nobody answered in time, the response is 410, never a made-up answer."""
    first = await context.load("contact_request", call_id)
    outcome = await context.gate.get_outcome(context.workspace, first.approval.id)
    stored = await context.state.store.get(context.workspace, first.approval.id)
    return to_starlette(json_response(_contact_json(stored, outcome)))


async def _answered_function(request: Request, _: object) -> str:
    return await _answered_approval(request, "function_call")


async def _answered_contact(request: Request, _: object) -> str:
    return await _answered_approval(request, "contact_request")


async def _answered_approval(request: Request, kind: RequestKind) -> str:
    context = await _context(await server_state(request), await current_principal(request))
    return await context.approval_id_for(kind, request.path_params["call_id"])


@router.post(
    "/agent/function_calls/{call_id}/respond",
    responses=documented_responses(FunctionCall, 404, 409, 410, 422),
    **require_deciders(_answered_function),
)
async def decide_function(call_id: str, body: FunctionCallAnswerBody, context: HumanLayerContextDep) -> Response:
    """Approve or reject a function call, as the signed-in person; an agent's own key never can."""
    stored = await context.load("function_call", call_id)
    async with context.recording_refusals(stored, Approve() if body.approved else Reject()):
        decision = _decision(body, stored)
    stored = await context.decide(stored, decision)
    word = {"approved": True, "rejected": False}.get(stored.approval.status)
    return to_starlette(
        json_response(_function_json(stored, _pending_status(stored) | {"approved": word, **_decision_fields(stored)}))
    )


@router.post(
    "/agent/human_contacts/{call_id}/respond",
    responses=documented_responses(HumanContact, 404, 409, 410, 422),
    **require_deciders(_answered_contact),
)
async def answer_contact(call_id: str, body: HumanContactAnswerBody, context: HumanLayerContextDep) -> Response:
    """Answer a question, as the signed-in person."""
    stored = await context.load("contact_request", call_id)
    async with context.recording_refusals(stored, Respond()):
        option = _find_option(stored, "response_options", body.response_option_name, "/response_option_name")
        said = _answer_text(option, body.response or "")
    stored = await context.decide(stored, Respond(said))
    outcome = await context.gate.get_outcome(context.workspace, stored.approval.id)
    return to_starlette(json_response(_contact_json(stored, outcome)))


@router.post(
    "/agent/function_calls/{call_id}/escalate_email",
    responses=documented_responses(FunctionCall, 404, 409, 410, 429),
    **require_roles(AGENTS),
)
async def escalate_function(call_id: str, body: EscalationBody, context: HumanLayerContextDep) -> Response:
    """Add the agent's message to the call's timeline. The policy's `escalate` determines who is notified, and when."""
    stored = await context.escalate(await context.load("function_call", call_id), body)
    return to_starlette(json_response(_function_json(stored, _pending_status(stored))))


@router.post(
    "/agent/human_contacts/{call_id}/escalate_email",
    responses=documented_responses(HumanContact, 404, 409, 410, 429),
    **require_roles(AGENTS),
)
async def escalate_contact(call_id: str, body: EscalationBody, context: HumanLayerContextDep) -> Response:
    """Add the agent's message to the question's timeline."""
    stored = await context.escalate(await context.load("contact_request", call_id), body)
    return to_starlette(json_response(_contact_json(stored, Waiting(stored.approval.id))))


def _function_status(stored: Stored, outcome: Outcome) -> dict[str, object]:
    """The status without an approval, which only a poll adds. Any other end of the wait is a rejection."""
    match outcome:
        case Finished() | Waiting(status="running"):
            raise AlreadyStarted(ALREADY_DELIVERED)
        case Waiting() | Proceed():
            return _pending_status(stored)
        case Refused(reason=reason):
            return _pending_status(stored) | {"approved": False, **_decision_fields(stored), "comment": reason}
        case Answered(message=message):
            return _pending_status(stored) | {"approved": False, **_decision_fields(stored), "comment": _text(message)}


def _pending_status(stored: Stored) -> dict[str, object]:
    return _empty_status(rfc3339(stored.approval.created_at))


def _empty_status(requested_at: str) -> dict[str, object]:
    names = ("responded_at", "approved", "comment", "reject_option_name", "slack_message_ts")
    return {"requested_at": requested_at, **dict.fromkeys(names)}


def _decision_fields(stored: Stored) -> dict[str, object]:
    """The time, the comment, and the option that was meant, by its name or its title."""
    decision_record = stored.approval.decision
    if decision_record is None:
        return {}
    said = {decision_record.reason, decision_record.comment} - {""}
    options = _options(stored, "reject_options") if decision_record.kind == "reject" else ()
    meant = next((each.name for each in options if {each.name, each.title} & said), None)
    words = decision_record.reason or decision_record.comment or None
    return {"responded_at": rfc3339(decision_record.at), "comment": words, "reject_option_name": meant}


def _function_json(stored: Stored, status: Mapping[str, object]) -> dict[str, object]:
    subject = stored.approval.subject
    kept = {"channel": None, "reject_options": None, "state": None, **_stored_spec(stored)}
    spec = {"fn": subject.tool, "kwargs": shown_args(stored.payload) or {}, **kept}
    return {"run_id": subject.run_id, "call_id": subject.call_id, "spec": spec, "status": status}


async def _denied_response(
    context: HumanLayerContext, approval_id: str, call: ToolCall, known: ToolSpec, reason: str
) -> HttpResponse:
    """Store the response for a day, since a call that the policy denies leaves no approval to poll."""
    now = rfc3339(context.state.clock())
    kwargs = redact(call.args, known, await context.state.store.secret_key(context.workspace)).value
    spec = {"fn": call.tool, "kwargs": kwargs, **json.loads(call.agent_says or "{}")}
    status = _empty_status(now) | {"responded_at": now, "approved": False, "comment": reason}
    response = json_response({"run_id": call.run_id, "call_id": call.call_id, "spec": spec, "status": status})
    request_digest = digest(canonical([call.tool, call.run_id, call.parsed_args, call.agent_says]))
    responses, idempotency_key = context.state.store.idempotency, _denial_slot(context, approval_id)
    kept = await responses.reserve(idempotency_key, request_digest)
    if kept.digest != request_digest:
        raise _call_mismatch()
    if kept.reservation_token:  # polls return the first one
        await responses.save(idempotency_key, kept.reservation_token, response.status, response.body)
    return response


async def _kept_denial(context: HumanLayerContext, call_id: str) -> HttpResponse:
    kept = await context.state.store.idempotency.find(
        _denial_slot(context, await context.approval_id_for("function_call", call_id))
    )
    if kept is None or not kept.status:
        raise _call_not_found()
    return HttpResponse(kept.status, kept.body)


def _denial_slot(context: HumanLayerContext, approval_id: str) -> IdempotencyKey:
    """A slot apart from those of Idempotency-Keys, which begin with a role: no role has this name."""
    return IdempotencyKey(context.workspace, f"humanlayer:{context.principal.owner}", approval_id)


def _contact_json(stored: Stored, outcome: Outcome) -> dict[str, object]:
    subject, args = stored.approval.subject, cast(dict[str, object], shown_args(stored.payload) or {})
    kept = {"channel": None, "response_options": None, "state": None, **_stored_spec(stored)}
    spec = {"msg": args.get("question", ""), "subject": args.get("subject"), **kept}
    status: dict[str, object] = {"requested_at": rfc3339(stored.approval.created_at), "responded_at": None}
    status |= {"response": None, "response_option_name": None}
    match outcome:
        case Answered() if stored.approval.erasure is not None:
            raise Conflict("What was answered has been erased. Ask again under a new call_id.")
        case Answered(message=message):
            said = _text(message)
            meant = [each.name for each in _options(stored, "response_options") if said in (each.name, each.title)]
            at = _decision_fields(stored).get("responded_at")
            status |= {"responded_at": at, "response": said, "response_option_name": meant[0] if meant else None}
        case Refused(status="expired"):
            raise Expired("Nobody answered this question in time. Ask again under a new call_id.")
        case Refused(reason=reason):
            raise Conflict(f"This question was not answered: {reason}")
        case _:
            pass
    return {"run_id": subject.run_id, "call_id": subject.call_id, "spec": spec, "status": status}


def _decision(body: FunctionCallAnswerBody, stored: Stored) -> Decision:
    """There is no digest: an approval counts only for a call without alarms. Nobody can have edited it."""
    option = _find_option(stored, "reject_options", body.reject_option_name, "/reject_option_name")
    comment = body.comment or ""
    if body.approved and option:
        problem = Problem("/reject_option_name", "goes with a no")
        raise InvalidDecision("An option to reject goes with approved: false. Nothing was decided.", [problem])
    if body.approved:
        return Approve(Acknowledgement(comment=comment))
    if option is None:
        return Reject(comment)
    return Reject((comment or option.prompt_fill or option.label)[:MAX_COMMENT], Acknowledgement(comment=option.name))


def _answer_text(option: ResponseOption | None, words: str) -> str:
    """The text is never dropped: with an option it is the option's own, or the option has to be interactive."""
    if option is not None and words in ("", option.name, option.title):
        return option.label
    if option is not None and not option.interactive:
        problem = Problem("/response", "not the words of this option")
        raise InvalidDecision("An answer has words, or the name of an option that wants none.", [problem])
    if not words:
        raise InvalidDecision("An answer has words, or the name of an option.", [Problem("/response", "missing")])
    return words


def _find_option(stored: Stored, field: str, name: str | None, pointer: str) -> ResponseOption | None:
    found = next((each for each in _options(stored, field) if each.name == name), None)
    if name is not None and found is None:
        raise InvalidDecision("The agent offered no option of this name.", [Problem(pointer, "unknown")])
    return found


def _options(stored: Stored, field: str) -> Sequence[ResponseOption]:
    return [ResponseOption.model_validate(each) for each in _stored_spec(stored).get(field) or ()]


def _stored_spec(stored: Stored) -> dict[str, Any]:
    """The spec without the call, as the program gave it; empty once it was erased."""
    return cast(dict[str, Any], json.loads(stored.payload.agent_says or "{}"))


def _text(message: object) -> str:
    return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)


def _call_mismatch() -> CallMismatch:
    return CallMismatch("This call_id is known with another spec, or from another key. Use a new one.")


def _call_not_found() -> NotFound:
    return NotFound("There is no such call here.")
