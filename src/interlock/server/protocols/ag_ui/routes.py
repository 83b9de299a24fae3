"""AG-UI routes: run an agent, answer interrupts, show capabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from interlock.app.workspaces import WorkspaceServices
from interlock.chat.agents import ASSISTANT
from interlock.chat.threads import UserMessage
from interlock.core.approval.approval import Approval, already_decided_error
from interlock.core.call import MAX_NAME, QUESTION_TOOL
from interlock.core.chat.thread import ThreadEntry, check_text, is_thread_id
from interlock.core.decision import DIGEST_LENGTH, MAX_COMMENT, MAX_MESSAGE, Decision, Reject, read_decision
from interlock.core.errors import (
    AlreadyDecided,
    Conflict,
    DigestMismatch,
    Error,
    Expired,
    InvalidDecision,
    InvalidRequest,
    NotFound,
    Problem,
)
from interlock.core.ledger.event import Stored
from interlock.core.outcome import status_at
from interlock.presenters.approval import shown_args
from interlock.server.dependencies import (
    DECIDERS,
    ContextDep,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import (
    SECURITY_HEADERS,
    HttpRequest,
    HttpResponse,
    JsonList,
    Receive,
    RequestBody,
    Send,
    example,
    invalid_request,
    json_response,
    send_response,
)
from interlock.server.idempotency import IdempotencyMismatch, idempotency_slot
from interlock.server.protocols.ag_ui.codec import (
    AgUiContext,
    ClientRun,
    has_reply,
    includes_requests,
    parse_interrupt_id,
)
from interlock.server.router import AsgiRouter
from interlock.server.state import ServerState
from interlock.server.streams.thread_stream import ThreadStream
from interlock.storage.tables.idempotency import IdempotencyKey
from interlock.storage.tables.threads import DONE_STATUS

MAX_ANSWERS = 500  # answers at once
CANCELLED_REASON = "Cancelled without a decision."
UNKNOWN_INTERRUPT = "There is no interrupt with this id in this thread."
AG_UI_EVENT_STREAM = "Events of AG-UI 1.0, until the run is finished, has failed, or is interrupted."
RUN_ERRORS = (404, 409, 410, 422, 429)

router, asgi_routes = APIRouter(prefix="/ag-ui", tags=["AG-UI"]), AsgiRouter("AG-UI")

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class LenientModel(BaseModel):
    """Ignores fields that a later version of the protocol adds, and checks the known ones strictly."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ResumeEntry(LenientModel):
    """The answer to one interrupt."""

    interruptId: Name
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunAgentInput(LenientModel):
    """A run: with a new message of the user as the last one, with answers to interrupts, or to get the current state.

    Only the last message is read. Tools, context and properties are not used; the state is returned.
    """

    model_config = example(
        {
            "threadId": "greetings",
            "runId": "run-1",
            "messages": [{"id": "message-1", "role": "user", "content": "Publish the post hello-world."}],
        }
    )

    threadId: Name
    runId: Name
    messages: JsonList[dict[str, Any]]
    state: Any = None
    resume: Annotated[JsonList[ResumeEntry], Field(max_length=MAX_ANSWERS)] = ()


class ResumePayload(RequestBody):
    """The answer to an approval. Only `true` approves; unknown fields are refused: they may have meant something."""

    approved: bool
    editedArgs: Annotated[dict[str, Any], Field(default_factory=dict)]
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    response: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    argsSha256: str = ""
    acknowledged: JsonList[str] = ()


class AgentCapabilities(BaseModel):
    """AgentCapabilities of AG-UI."""

    identity: dict[str, Any]
    transport: dict[str, Any]
    tools: dict[str, Any]
    state: dict[str, Any]
    multiAgent: dict[str, Any]
    humanInTheLoop: dict[str, Any]


class PostedMessage(NamedTuple):
    id: str
    text: str


class ResumeAnswer(NamedTuple):
    """An entry of a resume with its approval; without a decision it is cancelled."""

    stored: Stored
    sha256: str  # of the shown arguments
    decision: Decision | None

    @property
    def approval(self) -> Approval:
        return self.stored.approval


@router.get("", responses=documented_responses(AgentCapabilities), **require_roles(DECIDERS))
async def show_capabilities(context: ContextDep) -> Response:
    """The capabilities of the assistant, as AG-UI declares them."""
    return to_starlette(json_response(_capabilities(ASSISTANT)))


@router.get("/{agent}", responses=documented_responses(AgentCapabilities, 404), **require_roles(DECIDERS))
async def show_agent_capabilities(agent: str, context: ContextDep) -> Response:
    """The capabilities of an agent, as AG-UI declares them."""
    _check_agent(context.state, context.services, agent)
    return to_starlette(json_response(_capabilities(agent)))


class AgUiRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    @asgi_routes.stream("POST", "/ag-ui", DECIDERS, AG_UI_EVENT_STREAM, errors=RUN_ERRORS)
    async def run(self, request: HttpRequest, receive: Receive, send: Send, body: RunAgentInput) -> None:
        """Run the assistant: send the new message, or the answers to all open interrupts, and stream the events."""
        await self._run(request, receive, send, body, ASSISTANT)

    @asgi_routes.stream("POST", "/ag-ui/{agent}", DECIDERS, AG_UI_EVENT_STREAM, errors=RUN_ERRORS)
    async def run_agent(self, request: HttpRequest, receive: Receive, send: Send, body: RunAgentInput) -> None:
        """Run an agent: send the new message, or the answers to all open interrupts, and stream the events."""
        await self._run(request, receive, send, body, request.path_params[0])

    async def _run(self, request: HttpRequest, receive: Receive, send: Send, body: RunAgentInput, agent: str) -> None:
        """Serve a run; all input is checked before anything is said or decided."""
        from interlock.server.protocols.ag_ui.codec import fills_snapshot  # noqa: PLC0415  slow import
        from interlock.server.protocols.ag_ui.run import FINAL_EVENTS, AgUiRun, empty_run  # noqa: PLC0415  slow import

        services = await self._state.workspaces.services(request.current_principal.workspace)
        _check_agent(self._state, services, agent)
        user_message = UserMessage("", agent=agent, name="\n".join(("ag-ui", agent, body.threadId)), via="ag_ui")
        known = await self._handle_input(request, body, user_message)
        context, client_run = (
            await self._load_context(request, user_message.name),
            ClientRun(body.threadId, body.runId, body.state),
        )
        if context is None:
            await send_response(
                send, HttpResponse(200, empty_run(client_run), content_type=b"text/event-stream"), SECURITY_HEADERS
            )
            return
        if known is None:
            run = AgUiRun(
                context,
                client_run,
                await context.read_entries(lambda found: fills_snapshot(found) and has_reply(found)),
                "snapshots",
            )
        else:
            run = AgUiRun(context, client_run, known)
        stream = ThreadStream(run, run.encode, run.position, FINAL_EVENTS)
        await self._state.thread_streams.serve(request, receive, send, context.thread, stream)

    async def _handle_input(
        self, request: HttpRequest, body: RunAgentInput, user_message: UserMessage
    ) -> Sequence[ThreadEntry] | None:
        """Apply the input. Returns the entries that the client knows; None if it wants to see all of them."""
        context, message = await self._load_context(request, user_message.name), _new_message(body)
        if body.resume:
            await self._check_new(request, user_message, message)
            context, known = await _apply_resume(context, body.resume)
            if message is not None:
                _check_all_answered(await context.load_pending_approvals())  # an answer may not be enough
                await self._say(request, user_message, message)
            return known
        if message is None:
            return None
        again = None if context is None else await _lines_before_repeat(context, message)
        return await self._say(request, user_message, message) if again is None else again

    async def _load_context(self, request: HttpRequest, name: str) -> AgUiContext | None:
        """Load the thread; None if nothing was said in it yet. Thread names are private to each person."""
        principal, threads = request.current_principal, self._state.assistant.threads
        services = await self._state.workspaces.services(principal.workspace)
        with suppress(NotFound):
            thread = await threads.get(principal, threads.named_thread_id(principal, name))
            return AgUiContext(self._state, services, thread, services.reviewer(principal, self._state.clock()))
        return None

    async def _check_new(self, request: HttpRequest, user_message: UserMessage, message: PostedMessage | None) -> None:
        if message is not None:
            kept = await self._state.store.idempotency.find(_message_slot(request, user_message, message))
            _check_same_text(_sha256(message.text) if kept is None else kept.digest, message)

    async def _say(
        self, request: HttpRequest, user_message: UserMessage, message: PostedMessage
    ) -> Sequence[ThreadEntry]:
        """Add the message once, however often it is sent. Returns the entries before it."""
        principal, threads = request.current_principal, self._state.assistant.threads
        services, idempotency_key = (
            await self._state.workspaces.services(principal.workspace),
            _message_slot(request, user_message, message),
        )
        kept = await threads.say_idempotent(
            services, principal, user_message._replace(text=message.text), idempotency_key, _sha256(message.text)
        )
        _check_same_text(kept.digest, message)
        if kept.status != DONE_STATUS:
            raise Conflict("This message was sent already; what came of it has been erased.")
        done = json.loads(kept.body)
        thread = await threads.get(principal, done["thread_id"])
        context = AgUiContext(self._state, services, thread, services.reviewer(principal, self._state.clock()))
        return await context.read_entries(has_reply, done["line"] - 1)


def _message_slot(request: HttpRequest, user_message: UserMessage, message: PostedMessage) -> IdempotencyKey:
    return idempotency_slot(request.current_principal, f"ag-ui {_sha256(user_message.name, message.id)}")


def _check_same_text(digest: str, message: PostedMessage) -> None:
    if digest != _sha256(message.text):
        raise IdempotencyMismatch(
            "A message with this id was already sent with different text. Use a new id for each message."
        )


async def _lines_before_repeat(context: AgUiContext, message: PostedMessage) -> Sequence[ThreadEntry] | None:
    """The entries before a message that is retried while approvals are pending; None if there are none.

    A new message is no answer: it neither decides nor cancels pending approvals.
    """
    cards = await context.load_pending_approvals()
    if not cards:
        return None
    lines = await context.read_entries(lambda found: has_reply(_lines_before_last_message(found)))
    known = _lines_before_last_message(lines)
    if len(known) < len(lines) and lines[len(known)].body["text"] == message.text:
        return known
    _check_all_answered(cards)
    return None


def _lines_before_last_message(lines: Sequence[ThreadEntry]) -> Sequence[ThreadEntry]:
    """The entries before the user's last message."""
    last = max((entry.number for entry in lines if entry.kind == "said"), default=0)
    return [entry for entry in lines if entry.number < last] if last else lines


async def _apply_resume(
    context: AgUiContext | None, resume: Sequence[ResumeEntry]
) -> tuple[AgUiContext, Sequence[ThreadEntry]]:
    """Apply all answers, or none. Returns the entries that the client knows: those before the first of these decisions.

    Approvals that another person or a timer decided meanwhile stay as they are, so a retry does no harm.
    """
    if context is None:
        raise NotFound(UNKNOWN_INTERRUPT)
    answers = [await _read_answer(context, number, entry) for number, entry in enumerate(resume)]
    ids = [each.approval.id for each in answers]
    if len(set(ids)) < len(ids):
        raise InvalidRequest("An interrupt is answered twice. Answer each of them once.")
    cards = await context.load_pending_approvals()
    wanted = {*ids, *(card.id for card in cards)}
    known = _lines_before_decisions(await context.read_entries(lambda found: includes_requests(found, wanted)), ids)
    asked = {line.body.get("approval") for line in known if line.kind == "asked"}
    _check_all_answered([card for card in cards if card.id in asked and card.id not in ids])
    now = context.state.clock()
    waiting = [each for each in answers if status_at(each.approval, now) == "pending"]
    for each in answers:
        await _record_outdated(context, each, now)
    if any(each.decision and each.sha256 != each.approval.args_sha256 for each in waiting):
        return context, known  # the arguments were edited: nothing is decided, and the run ends with the new interrupt
    steps = [await _plan_decision(context, each) for each in waiting]
    for each, decision in zip(waiting, steps, strict=True):
        with suppress(Conflict, Expired):  # decided by somebody else meanwhile
            await _apply_decision(context, each.approval, decision)
    return context, known


async def _read_answer(context: AgUiContext, number: int, entry: ResumeEntry) -> ResumeAnswer:
    approval_id, shown = parse_interrupt_id(entry.interruptId)
    try:
        stored = await context.state.store.get(context.thread.workspace, approval_id)
    except NotFound:
        raise NotFound(UNKNOWN_INTERRUPT) from None
    subject = stored.approval.subject
    if subject.thread_id != context.thread.id or not is_thread_id(subject.run_id) or len(shown) != DIGEST_LENGTH:
        raise NotFound(UNKNOWN_INTERRUPT)
    if entry.status == "cancelled":
        return ResumeAnswer(stored, shown, None)
    inbox, workspace = context.services.inbox, context.thread.workspace
    async with inbox.recording_refusals(workspace, stored.approval.id, context.reviewer):
        return ResumeAnswer(stored, shown, _decision(stored, shown, number, entry.payload))


def _decision(stored: Stored, shown: str, number: int, payload: object) -> Decision:
    if stored.approval.subject.tool == QUESTION_TOOL:
        question = shown_args(stored.payload)
        typed = isinstance(question, dict) and (question.get("schema") is not None or question.get("choices"))
        return read_decision({"kind": "respond", "args_sha256": shown, "answer" if typed else "message": payload})
    try:
        answer = ResumePayload.model_validate(payload)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise invalid_request([(("resume", number, "payload", *each["loc"]), each["msg"]) for each in found]) from None
    if answer.argsSha256 not in ("", shown):
        raise InvalidDecision("argsSha256 is not that of this interrupt.", [Problem("/argsSha256", "another one")])
    return read_decision({"args_sha256": shown, "acknowledged": answer.acknowledged, **_decision_fields(answer)})


def _decision_fields(answer: ResumePayload) -> dict[str, object]:
    edited = "editedArgs" in answer.model_fields_set
    match answer.approved, edited, answer.response:
        case True, True, "":
            return {"kind": "edit", "args": answer.editedArgs, "reason": answer.reason}
        case True, False, "":
            return {"kind": "approve", "reason": answer.reason}
        case False, False, "":
            return {"kind": "reject", "reason": answer.reason}
        case False, False, _:
            return {"kind": "respond", "message": answer.response, "reason": answer.reason}
        case _:
            message = "editedArgs go with approved: true, and a response with approved: false. Nothing was decided."
            raise InvalidDecision(message, [Problem("/approved", "contradicts the rest")])


async def _record_outdated(context: AgUiContext, answer: ResumeAnswer, now: int) -> None:
    """Record an answer to what others decided, or to other arguments; a retry of the person's own decision is none."""
    approval, status = answer.approval, status_at(answer.approval, now)
    if answer.decision is None or (approval.decision is not None and approval.decision.by == context.reviewer.name):
        return
    error: Error | None = None
    if status != "pending":
        error = already_decided_error(replace(approval, status=status))
    elif answer.sha256 != approval.args_sha256:
        error = DigestMismatch("The arguments changed since you saw them.", approval_id=approval.id)
    if error is not None:
        with suppress(Conflict, Expired):
            await context.services.inbox.record_refusal(
                context.thread.workspace, approval.id, answer.decision, context.reviewer, error
            )


async def _plan_decision(context: AgUiContext, answer: ResumeAnswer) -> Decision | None:
    """Check the decision before anything is applied. Cancelling what this person may not reject withdraws it (None)."""
    decision = answer.decision or Reject(CANCELLED_REASON)
    where, name = context.thread.workspace, answer.approval.id
    try:
        await context.services.inbox.check_decision(where, name, decision, context.reviewer)
    except (AlreadyDecided, Expired):
        return decision
    except Error as error:
        if answer.decision is None:
            return None
        await context.services.inbox.record_refusal(where, name, decision, context.reviewer, error)
    return decision


async def _apply_decision(context: AgUiContext, approval: Approval, decision: Decision | None) -> None:
    if decision is None:
        await context.services.gate.cancel(
            context.thread.workspace, approval.id, context.thread.person, CANCELLED_REASON
        )
    else:
        await context.services.inbox.decide(context.thread.workspace, approval.id, decision, context.reviewer)


def _lines_before_decisions(lines: Sequence[ThreadEntry], ids: Sequence[str]) -> Sequence[ThreadEntry]:
    """The entries before the first decision about one of these calls."""
    decided = (entry for entry in lines if entry.kind == "decided" and "release_at" not in entry.body)
    first = next((entry.number for entry in decided if entry.body.get("approval") in ids), None)
    return lines if first is None else [entry for entry in lines if entry.number < first]


def _check_all_answered(cards: Sequence[Approval]) -> None:
    if cards:
        ids = [card.id for card in cards]
        message = f"Interrupts are open that were not answered: {', '.join(ids)}. Answer or cancel all of them."
        raise Conflict(message, approval_ids=ids)


def _new_message(body: RunAgentInput) -> PostedMessage | None:
    """The last message, if it is the user's and its id is not one of ours. Parts that are no text are skipped."""
    match body.messages[-1] if body.messages else None:
        case {"role": "user", "id": str(name), "content": str() | list() as content}:
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            texts: list[Any] = [
                part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"
            ]
            if not all(isinstance(text, str) for text in texts):
                raise InvalidRequest("The text of a message's part is a text.")
            if is_thread_id(name.partition(":")[0]):
                return None
            check_text(text := "\n".join(texts))
            return PostedMessage(name, text)
        case {"role": "user"}:
            raise InvalidRequest("A message of the user has an id, and a text or parts as its content.")
        case _:
            return None


def _check_agent(state: ServerState, services: WorkspaceServices, agent: str) -> None:
    if agent not in state.assistant.agents.names(services):
        raise NotFound(f"There is no agent {agent!r}. See the Agents page.")


def _sha256(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()


def _capabilities(agent: str) -> dict[str, object]:
    return {
        "identity": {"name": agent, "type": "interlock"},
        "transport": {"streaming": True, "websocket": False, "httpBinary": False},
        "tools": {"supported": True, "clientProvided": False},
        "state": {"snapshots": True, "deltas": False},
        "multiAgent": {"supported": True, "delegation": True, "handoffs": False},
        "humanInTheLoop": {"supported": True, "approvals": True, "interrupts": True, "approveWithEdits": True},
    }
