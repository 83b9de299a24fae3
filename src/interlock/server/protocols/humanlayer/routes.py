"""The routes of the protocol, and what they do with what is posted."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.responses import Response

from interlock.app.gate import Gate
from interlock.app.workspaces import Doors
from interlock.core.approval.execute import ATTEMPT
from interlock.core.call import ANYBODY, QUESTION, ToolCall, ToolSpec, redact
from interlock.core.canonical import canonical, digest
from interlock.core.decision import MAX_COMMENT, Approve, Decision, Reject, Respond, Seen
from interlock.core.errors import (
    AlreadyStarted,
    CallMismatch,
    Conflict,
    Expired,
    Forbidden,
    InvalidDecision,
    NotFound,
    Problem,
)
from interlock.core.identity import Principal
from interlock.core.ledger.event import Payload, Stored
from interlock.core.outcome import Answered, Finished, Outcome, Proceed, Refused, Waiting
from interlock.presenters.approval import shown_args
from interlock.runtime.durations import rfc3339
from interlock.server.dependencies import AGENTS, DECIDERS, Caller, Here, gives, may, response
from interlock.server.http import Answer, json_answer
from interlock.server.proposals import ASK, Proposed, action_terms, call_of, known_spec
from interlock.server.protocols.humanlayer.codec import (
    CallAnswer,
    ContactAnswer,
    Escalation,
    FunctionCall,
    HumanContact,
    NewFunctionCall,
    NewHumanContact,
    Option,
    question_of,
    says_of,
)
from interlock.server.state import Site
from interlock.storage.tables.idempotency import Place

Kind = Literal["function_call", "contact_request"]
DECISIONS = ("approve", "reject")  # the program runs the arguments that it has: an edit could not reach them
HANDED_OVER = "Handed over to the agent's program, which runs it and does not say what came of it."
TOLD = "A yes is told once, and this one was told already. Ask again under a new call_id if the function did not run."

router = APIRouter(prefix="/humanlayer/v1", tags=["HumanLayer"])


@dataclass(frozen=True)
class Counter:
    """Where somebody comes to with a call id: their workspace, and who they are."""

    site: Site
    doors: Doors
    caller: Principal

    @property
    def workspace(self) -> str:
        return self.doors.workspace

    @property
    def gate(self) -> Gate:
        return self.doors.gate_for(self.caller)

    async def id_of(self, kind: Kind, call_id: str) -> str:
        """The approval's id, by the call's alone: a look names no run. Nobody can take it before."""
        key = await self.site.store.secret_key(self.workspace)
        return str(UUID(bytes=hmac.digest(key, f"humanlayer\0{kind}\0{call_id}".encode(), "sha256")[:16], version=4))

    async def stored(self, kind: Kind, call_id: str) -> Stored:
        """Raises NotFound for what is not there; to an agent only its own is."""
        try:
            stored = await self.site.store.get(self.workspace, await self.id_of(kind, call_id))
        except NotFound:
            raise _missing() from None
        if self.caller.is_agent and stored.approval.subject.owner not in {*self.caller.owners, ANYBODY}:
            raise _missing()
        return stored

    async def proposed(self, approval_id: str, call: ToolCall) -> Stored:
        """What is there now under the id of what was just posted: the very same, or it is refused."""
        stored = await self.site.store.get(self.workspace, approval_id)
        subject, says = stored.approval.subject, stored.payload.agent_says or ""
        theirs = subject.owner in {*self.caller.owners, ANYBODY}
        if not theirs or (stored.payload.args is not None and says != call.agent_says):
            raise _known()
        return stored

    async def asked(self, call: ToolCall, ask: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Of the call that is there already nothing is told: its approval's id would lead another agent to it."""
        try:
            return await self.site.quotas.spend(self.caller, self.gate, call, None, ask)
        except CallMismatch:
            raise _known() from None

    def call(self, body: NewFunctionCall | NewHumanContact, tool: str, args: dict[str, object]) -> ToolCall:
        wish = Proposed(
            tool=tool,
            args=args,
            run_id=body.run_id,
            call_id=body.call_id,
            setting="paused",
            agent_says=says_of(body.spec),
        )
        call = call_of(wish, self.caller, self.site, self.doors, "paused")
        return call if tool == QUESTION else replace(call, decisions=DECISIONS)

    async def hand_over(self, approval_id: str) -> None:
        """One winner, and for good: of two programs that look at once, one is told yes and the other is refused."""
        runner = f"{ATTEMPT}{self.caller.credential}:{secrets.token_hex(16)}"
        started = await self.gate.start(self.workspace, approval_id, runner)
        told = Payload(result=canonical(HANDED_OVER))
        await self.gate.finish(self.workspace, approval_id, started.fence, ok=True, payload=told)

    async def decide(self, stored: Stored, decision: Decision) -> Stored:
        reviewer = self.doors.reviewer(self.caller, self.site.clock())
        await self.doors.inbox.decide(self.workspace, stored.approval.id, decision, reviewer)
        return await self.site.store.get(self.workspace, stored.approval.id)

    async def escalate(self, stored: Stored, body: Escalation) -> Stored:
        """Words for the timeline: an agent chooses neither who decides nor who is told."""
        people = ", ".join(str(each.get("address", "")) for each in body.additional_recipients or ())
        self.site.quotas.take(self.caller)
        text = f"Escalation: {body.escalation_msg}" + (f" For {people}." if people else "")
        await self.gate.remark(self.workspace, stored.approval.id, text, self.caller.actor)
        return stored


async def _counter(site: Here, caller: Caller) -> Counter:
    return Counter(site, await site.workspaces.doors(caller.workspace), caller)


AtCounter = Annotated[Counter, Depends(_counter)]


@router.post("/function_calls", responses=gives(FunctionCall, 409, 429), **may(AGENTS))
async def ask_about_function(body: NewFunctionCall, counter: AtCounter) -> Response:
    """Asks about a function call. The same one again is the same call; only a look at it tells a yes."""
    call = counter.call(body, body.spec.fn, body.spec.kwargs)
    approval_id = await counter.id_of("function_call", body.call_id)
    gate, spec = counter.gate, known_spec(body.spec.fn, counter.site, counter.doors)
    spec = spec or ToolSpec(body.spec.fn, decisions=DECISIONS, declared=True)
    fill = action_terms(counter.site.action(body.spec.fn), counter.doors)
    outcome = await counter.asked(call, lambda: gate.check(call, spec, approval_id=approval_id, fill=fill))
    if isinstance(outcome, Refused) and not outcome.approval_id:
        return response(await _denied(counter, approval_id, call, spec, outcome.reason))
    stored = await counter.proposed(approval_id, call)
    return response(json_answer(_function_json(stored, _function_status(stored, outcome))))


@router.get("/function_calls/{call_id}", responses=gives(FunctionCall, 404, 409, 410), **may(AGENTS))
async def look_at_function(call_id: str, counter: AtCounter) -> Response:
    """What became of a call. The first look at an approved one is told so and has to run it; no other one ever is."""
    try:
        first = await counter.stored("function_call", call_id)
    except NotFound:
        return response(await _told_no(counter, call_id))
    outcome = await counter.gate.look(counter.workspace, first.approval.id)
    stored = await counter.site.store.get(counter.workspace, first.approval.id)
    status = _function_status(stored, outcome)
    if isinstance(outcome, Proceed):
        await counter.hand_over(first.approval.id)
        status |= {"approved": True, **_decided(stored)}
    return response(json_answer(_function_json(stored, status)))


@router.post("/contact_requests", responses=gives(HumanContact, 409, 410, 429), **may(AGENTS))
async def ask_people_by_contact(body: NewHumanContact, counter: AtCounter) -> Response:
    """Asks people something. The same one again is the same question."""
    call = counter.call(body, QUESTION, question_of(body.spec))
    approval_id = await counter.id_of("contact_request", body.call_id)
    outcome = await counter.asked(call, lambda: counter.gate.ask(call, ASK, approval_id=approval_id))
    if isinstance(outcome, Refused) and not outcome.approval_id:
        raise Forbidden(outcome.reason)
    stored = await counter.proposed(approval_id, call)
    return response(json_answer(_contact_json(stored, outcome)))


@router.get("/contact_requests/{call_id}", responses=gives(HumanContact, 404, 409, 410), **may(AGENTS))
async def look_at_contact(call_id: str, counter: AtCounter) -> Response:
    """What somebody answered. A question that nobody answered in time is gone: no words are put into their mouth."""
    first = await counter.stored("contact_request", call_id)
    outcome = await counter.gate.look(counter.workspace, first.approval.id)
    stored = await counter.site.store.get(counter.workspace, first.approval.id)
    return response(json_answer(_contact_json(stored, outcome)))


@router.post(
    "/agent/function_calls/{call_id}/respond", responses=gives(FunctionCall, 404, 409, 410, 422), **may(DECIDERS)
)
async def decide_function(call_id: str, body: CallAnswer, counter: AtCounter) -> Response:
    """A person's yes or no. Who decides is whoever is signed in; the agent's own key never does."""
    stored = await counter.stored("function_call", call_id)
    stored = await counter.decide(stored, _decision(body, stored))
    word = {"approved": True, "rejected": False}.get(stored.approval.status)
    return response(json_answer(_function_json(stored, _no_answer(stored) | {"approved": word, **_decided(stored)})))


@router.post(
    "/agent/human_contacts/{call_id}/respond", responses=gives(HumanContact, 404, 409, 410, 422), **may(DECIDERS)
)
async def answer_contact(call_id: str, body: ContactAnswer, counter: AtCounter) -> Response:
    """A person's answer to a question."""
    stored = await counter.stored("contact_request", call_id)
    option = _named(stored, "response_options", body.response_option_name, "/response_option_name")
    said = _said(option, body.response or "")
    stored = await counter.decide(stored, Respond(said))
    outcome = await counter.gate.look(counter.workspace, stored.approval.id)
    return response(json_answer(_contact_json(stored, outcome)))


@router.post(
    "/agent/function_calls/{call_id}/escalate_email", responses=gives(FunctionCall, 404, 409, 410, 429), **may(AGENTS)
)
async def escalate_function(call_id: str, body: Escalation, counter: AtCounter) -> Response:
    """Adds the agent's words to the call's timeline. The policy's `escalate` says who is told, and when."""
    stored = await counter.escalate(await counter.stored("function_call", call_id), body)
    return response(json_answer(_function_json(stored, _no_answer(stored))))


@router.post(
    "/agent/human_contacts/{call_id}/escalate_email", responses=gives(HumanContact, 404, 409, 410, 429), **may(AGENTS)
)
async def escalate_contact(call_id: str, body: Escalation, counter: AtCounter) -> Response:
    """The same for a question."""
    stored = await counter.escalate(await counter.stored("contact_request", call_id), body)
    return response(json_answer(_contact_json(stored, Waiting(stored.approval.id))))


def _function_status(stored: Stored, outcome: Outcome) -> dict[str, object]:
    """Never a yes: that is the look's alone to add. Whatever else there is ends the program's wait with a no."""
    match outcome:
        case Finished() | Waiting(status="running"):
            raise AlreadyStarted(TOLD)
        case Waiting() | Proceed():
            return _no_answer(stored)
        case Refused(reason=reason):
            return _no_answer(stored) | {"approved": False, **_decided(stored), "comment": reason}
        case Answered(message=message):
            return _no_answer(stored) | {"approved": False, **_decided(stored), "comment": _text(message)}


def _no_answer(stored: Stored) -> dict[str, object]:
    return _status(rfc3339(stored.approval.created_at))


def _status(requested_at: str) -> dict[str, object]:
    names = ("responded_at", "approved", "comment", "reject_option_name", "slack_message_ts")
    return {"requested_at": requested_at, **dict.fromkeys(names)}


def _decided(stored: Stored) -> dict[str, object]:
    """When, what was said, and which option was meant: by its name, or in its words."""
    decided = stored.approval.decision
    if decided is None:
        return {}
    said = {decided.reason, decided.comment} - {""}
    options = _options(stored, "reject_options") if decided.kind == "reject" else ()
    meant = next((each.name for each in options if {each.name, each.title} & said), None)
    words = decided.reason or decided.comment or None
    return {"responded_at": rfc3339(decided.at), "comment": words, "reject_option_name": meant}


def _function_json(stored: Stored, status: Mapping[str, object]) -> dict[str, object]:
    subject = stored.approval.subject
    kept = {"channel": None, "reject_options": None, "state": None, **_kept(stored)}
    spec = {"fn": subject.tool, "kwargs": shown_args(stored.payload) or {}, **kept}
    return {"run_id": subject.run_id, "call_id": subject.call_id, "spec": spec, "status": status}


async def _denied(counter: Counter, approval_id: str, call: ToolCall, known: ToolSpec, reason: str) -> Answer:
    """A policy that forbids it leaves no approval to look at: what was answered is kept for a day instead."""
    now = rfc3339(counter.site.clock())
    kwargs = redact(call.args, known, await counter.site.store.secret_key(counter.workspace)).value
    spec = {"fn": call.tool, "kwargs": kwargs, **json.loads(call.agent_says or "{}")}
    status = _status(now) | {"responded_at": now, "approved": False, "comment": reason}
    told = json_answer({"run_id": call.run_id, "call_id": call.call_id, "spec": spec, "status": status})
    mark = digest(canonical([call.tool, call.run_id, call.value, call.agent_says]))
    answers, place = counter.site.store.answers, _place(counter, approval_id)
    kept = await answers.claim(place, mark)
    if kept.digest != mark:
        raise _known()
    if kept.mark:  # the first one is what a look tells
        await answers.keep(place, kept.mark, told.status, told.body)
    return told


async def _told_no(counter: Counter, call_id: str) -> Answer:
    kept = await counter.site.store.answers.look(_place(counter, await counter.id_of("function_call", call_id)))
    if kept is None or not kept.status:
        raise _missing()
    return Answer(kept.status, kept.body)


def _place(counter: Counter, approval_id: str) -> Place:
    """Beside the answers to Idempotency-Keys, which are kept by role: no role is called like this."""
    return Place(counter.workspace, f"humanlayer:{counter.caller.owner}", approval_id)


def _contact_json(stored: Stored, outcome: Outcome) -> dict[str, object]:
    subject, args = stored.approval.subject, cast(dict[str, object], shown_args(stored.payload) or {})
    kept = {"channel": None, "response_options": None, "state": None, **_kept(stored)}
    spec = {"msg": args.get("question", ""), "subject": args.get("subject"), **kept}
    status: dict[str, object] = {"requested_at": rfc3339(stored.approval.created_at), "responded_at": None}
    status |= {"response": None, "response_option_name": None}
    match outcome:
        case Answered() if stored.approval.erased_at is not None:
            raise Conflict("What was answered has been erased. Ask again under a new call_id.")
        case Answered(message=message):
            said = _text(message)
            meant = [each.name for each in _options(stored, "response_options") if said in (each.name, each.title)]
            at = _decided(stored).get("responded_at")
            status |= {"responded_at": at, "response": said, "response_option_name": meant[0] if meant else None}
        case Refused(status="expired"):
            raise Expired("Nobody answered this question in time. Ask again under a new call_id.")
        case Refused(reason=reason):
            raise Conflict(f"This question was not answered: {reason}")
        case _:
            pass
    return {"run_id": subject.run_id, "call_id": subject.call_id, "spec": spec, "status": status}


def _decision(body: CallAnswer, stored: Stored) -> Decision:
    """There is no digest: it counts only for what has no findings. Nobody can have edited it."""
    option = _named(stored, "reject_options", body.reject_option_name, "/reject_option_name")
    comment = body.comment or ""
    if body.approved and option:
        problem = Problem("/reject_option_name", "goes with a no")
        raise InvalidDecision("An option to reject goes with approved: false. Nothing was decided.", [problem])
    if body.approved:
        return Approve(Seen(comment=comment))
    if option is None:
        return Reject(comment)
    return Reject((comment or option.prompt_fill or option.label)[:MAX_COMMENT], Seen(comment=option.name))


def _said(option: Option | None, words: str) -> str:
    """Words are never dropped: with an option they are its own ones, or it has to want some."""
    if option is not None and words in ("", option.name, option.title):
        return option.label
    if option is not None and not option.interactive:
        problem = Problem("/response", "not the words of this option")
        raise InvalidDecision("An answer has words, or the name of an option that wants none.", [problem])
    if not words:
        raise InvalidDecision("An answer has words, or the name of an option.", [Problem("/response", "missing")])
    return words


def _named(stored: Stored, field: str, name: str | None, pointer: str) -> Option | None:
    found = next((each for each in _options(stored, field) if each.name == name), None)
    if name is not None and found is None:
        raise InvalidDecision("The agent offered no option of this name.", [Problem(pointer, "unknown")])
    return found


def _options(stored: Stored, field: str) -> Sequence[Option]:
    return [Option.model_validate(each) for each in _kept(stored).get(field) or ()]


def _kept(stored: Stored) -> dict[str, Any]:
    """Besides the call, as the program gave it; nothing once it was erased."""
    return cast(dict[str, Any], json.loads(stored.payload.agent_says or "{}"))


def _text(message: object) -> str:
    return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)


def _known() -> CallMismatch:
    return CallMismatch("This call_id is known with another spec, or from another key. Use a new one.")


def _missing() -> NotFound:
    return NotFound("There is no such call here.")
