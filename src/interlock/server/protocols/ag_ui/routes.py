"""The routes of the protocol, and what they do with what is posted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from interlock.app.workspaces import WorkspaceServices
from interlock.chat.agents import ASSISTANT
from interlock.chat.threads import UserMessage
from interlock.core.approval.approval import Approval
from interlock.core.call import MAX_NAME, QUESTION_TOOL
from interlock.core.chat.thread import ThreadEntry, check_text, is_thread_id
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE, Decision, Reject, read_decision
from interlock.core.errors import (
    AlreadyDecided,
    Conflict,
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
from interlock.server.auth import Auth
from interlock.server.dependencies import (
    DECIDERS,
    ContextDep,
    RouteDocs,
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
from interlock.server.router import StreamRoute
from interlock.server.state import ServerState
from interlock.server.streams.thread_stream import ThreadSubscribers
from interlock.storage.tables.idempotency import IdempotencyKey
from interlock.storage.tables.threads import DONE_STATUS

MAX_ANSWERS = 500  # answers at once
SHA256_LENGTH = 64  # characters
CANCELLED_REASON = "Cancelled without a decision."
UNKNOWN_INTERRUPT = "There is no interrupt with this id in this thread."
AG_UI_EVENT_STREAM = {
    "description": "Events of AG-UI 1.0, until the run is finished, has failed, or is interrupted.",
    "content": {"text/event-stream": {"schema": {"type": "object"}}},
}

router = APIRouter(prefix="/ag-ui", tags=["AG-UI"])

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class LenientModel(BaseModel):
    """What a later version of the protocol adds is left out, and what is known has to be right."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ResumeEntry(LenientModel):
    """The answer to one interrupt."""

    interruptId: Name
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunAgentInput(LenientModel):
    """A run: with a new message of the user as the last one, with answers to interrupts, or to see how it stands.

    Of the messages only the last is read. Tools, context and properties are not used; the state is given back.
    """

    threadId: Name
    runId: Name
    messages: JsonList[dict[str, Any]]
    state: Any = None
    resume: Annotated[JsonList[ResumeEntry], Field(max_length=MAX_ANSWERS)] = ()


class ResumePayload(RequestBody):
    """The answer to an approval. Nothing but `true` approves; a field that nobody knows may have meant something."""

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
    """An entry of a resume, with the approval that it is about; no decision: it is given up."""

    stored: Stored
    sha256: str  # of what was shown
    decision: Decision | None

    @property
    def approval(self) -> Approval:
        return self.stored.approval


@router.get("", responses=documented_responses(AgentCapabilities), **require_roles(DECIDERS))
async def show_capabilities(desk: ContextDep) -> Response:
    """What the assistant can do, as AG-UI declares it."""
    return to_starlette(json_response(_capabilities(ASSISTANT)))


@router.get("/{agent}", responses=documented_responses(AgentCapabilities, 404), **require_roles(DECIDERS))
async def show_agent_capabilities(agent: str, desk: ContextDep) -> Response:
    """What an agent can do, as AG-UI declares it."""
    _check_agent(desk.site, desk.doors, agent)
    return to_starlette(json_response(_capabilities(agent)))


def streams(site: ServerState, auth: Auth) -> Sequence[tuple[StreamRoute, RouteDocs]]:
    runs = AgUiRoutes(site, auth)
    text = "A run of AG-UI: says the new message, or takes the answers to all open interrupts, and tells what comes."
    described = RouteDocs(text, AG_UI_EVENT_STREAM, RunAgentInput, fails=(404, 409, 410, 422, 429))
    return (
        (StreamRoute("POST", "/ag-ui", DECIDERS, runs.run), described),
        (StreamRoute("POST", "/ag-ui/{agent}", DECIDERS, runs.run), described),
    )


class AgUiRoutes:
    def __init__(self, site: ServerState, auth: Auth) -> None:
        self._site = site
        self._readers = ThreadSubscribers(site, auth)

    async def run(self, asked: HttpRequest, receive: Receive, send: Send) -> None:
        """All that was posted is checked before anything is said or decided."""
        from interlock.server.protocols.ag_ui.codec import fills_snapshot  # noqa: PLC0415  the same
        from interlock.server.protocols.ag_ui.run import FINAL_EVENTS, AgUiRun, empty_run  # noqa: PLC0415  types that load slowly

        self._readers.check_room()
        body, agent = await asked.json(RunAgentInput), asked.values[0] if asked.values else ASSISTANT
        doors = await self._site.workspaces.doors(asked.person.workspace)
        _check_agent(self._site, doors, agent)
        said = UserMessage("", agent=agent, name="\n".join(("ag-ui", agent, body.threadId)), via="ag_ui")
        known = await self._done(asked, body, said)
        room, names = await self._room(asked, said.name), ClientRun(body.threadId, body.runId, body.state)
        if room is None:
            await send_response(send, HttpResponse(200, empty_run(names), kind=b"text/event-stream"), SECURITY_HEADERS)
            return
        if known is None:
            run = AgUiRun(
                room, names, await room.lines(lambda found: fills_snapshot(found) and has_reply(found)), "snapshots"
            )
        else:
            run = AgUiRun(room, names, known)
        reader = self._readers.reader(asked, send, run, run.frame, FINAL_EVENTS)
        await self._readers.serve(reader, room.thread, run.position, receive)

    async def _done(self, asked: HttpRequest, body: RunAgentInput, said: UserMessage) -> Sequence[ThreadEntry] | None:
        """Does what is asked for. Gives the lines that the client knows; None if it wants to see them all."""
        room, message = await self._room(asked, said.name), _new_message(body)
        if body.resume:
            await self._check_new(asked, said, message)
            room, known = await _apply_resume(room, body.resume)
            if message is not None:
                _check_all_answered(await room.cards())  # the answers may not have been enough
                await self._say(asked, said, message)
            return known
        if message is None:
            return None
        again = None if room is None else await _lines_before_repeat(room, message)
        return await self._say(asked, said, message) if again is None else again

    async def _room(self, asked: HttpRequest, name: str) -> AgUiContext | None:
        """None where nothing was said yet. Each person has threads of their own under any name."""
        who, threads = asked.person, self._site.assistant.threads
        doors = await self._site.workspaces.doors(who.workspace)
        with suppress(NotFound):
            thread = await threads.see(who, threads.id_of(who, name))
            return AgUiContext(self._site, doors, thread, doors.reviewer(who, self._site.clock()))
        return None

    async def _check_new(self, asked: HttpRequest, said: UserMessage, message: PostedMessage | None) -> None:
        if message is not None:
            kept = await self._site.store.answers.look(_message_slot(asked, said, message))
            _check_same_text(_sha256(message.text) if kept is None else kept.digest, message)

    async def _say(self, asked: HttpRequest, said: UserMessage, message: PostedMessage) -> Sequence[ThreadEntry]:
        """Once, however often it is sent. Gives the lines before it."""
        who, threads = asked.person, self._site.assistant.threads
        doors, place = await self._site.workspaces.doors(who.workspace), _message_slot(asked, said, message)
        kept = await threads.say_once(doors, who, said._replace(text=message.text), place, _sha256(message.text))
        _check_same_text(kept.digest, message)
        if kept.status != DONE_STATUS:
            raise Conflict("This message was sent already; what came of it has been erased.")
        done = json.loads(kept.body)
        thread = await threads.see(who, done["thread_id"])
        room = AgUiContext(self._site, doors, thread, doors.reviewer(who, self._site.clock()))
        return await room.lines(has_reply, done["line"] - 1)


def _message_slot(asked: HttpRequest, said: UserMessage, message: PostedMessage) -> IdempotencyKey:
    return idempotency_slot(asked.person, f"ag-ui {_sha256(said.name, message.id)}")


def _check_same_text(digest: str, message: PostedMessage) -> None:
    if digest != _sha256(message.text):
        raise IdempotencyMismatch(
            "A message with this id was sent before, with other words. Give each an id of its own."
        )


async def _lines_before_repeat(room: AgUiContext, message: PostedMessage) -> Sequence[ThreadEntry] | None:
    """The lines before a message that is sent again while people decide; None if nobody has to.

    A new message is no answer: what waits is neither decided nor given up by what somebody says.
    """
    cards = await room.cards()
    if not cards:
        return None
    lines = await room.lines(lambda found: has_reply(_lines_before_last_message(found)))
    known = _lines_before_last_message(lines)
    if len(known) < len(lines) and lines[len(known)].body["text"] == message.text:
        return known
    _check_all_answered(cards)
    return None


def _lines_before_last_message(lines: Sequence[ThreadEntry]) -> Sequence[ThreadEntry]:
    """The lines before the last message."""
    last = max((line.n for line in lines if line.kind == "said"), default=0)
    return [line for line in lines if line.n < last] if last else lines


async def _apply_resume(
    room: AgUiContext | None, resume: Sequence[ResumeEntry]
) -> tuple[AgUiContext, Sequence[ThreadEntry]]:
    """Decides all of them, or none. Gives the lines that the client knows: those before the first of these decisions.

    What somebody else decided meanwhile, or time did, stays as it is: so an answer that is sent again does no harm.
    """
    if room is None:
        raise NotFound(UNKNOWN_INTERRUPT)
    given = [await _read_answer(room, number, entry) for number, entry in enumerate(resume)]
    ids = [each.approval.id for each in given]
    if len(set(ids)) < len(ids):
        raise InvalidRequest("An interrupt is answered twice. Answer each of them once.")
    cards = await room.cards()
    wanted = {*ids, *(card.id for card in cards)}
    known = _lines_before_decisions(await room.lines(lambda found: includes_requests(found, wanted)), ids)
    asked = {line.body.get("approval") for line in known if line.kind == "asked"}
    _check_all_answered([card for card in cards if card.id in asked and card.id not in ids])
    waiting = [each for each in given if status_at(each.approval, room.site.clock()) == "pending"]
    if any(each.decision and each.sha256 != each.approval.args_sha256 for each in waiting):
        return room, known  # somebody edited it: nothing is decided, and the run ends with what it is now
    steps = [await _plan_decision(room, each) for each in waiting]
    for each, decision in zip(waiting, steps, strict=True):
        with suppress(Conflict, Expired):  # somebody was faster
            await _apply_decision(room, each.approval, decision)
    return room, known


async def _read_answer(room: AgUiContext, number: int, entry: ResumeEntry) -> ResumeAnswer:
    approval_id, shown = parse_interrupt_id(entry.interruptId)
    try:
        stored = await room.site.store.get(room.thread.workspace, approval_id)
    except NotFound:
        raise NotFound(UNKNOWN_INTERRUPT) from None
    subject = stored.approval.subject
    if subject.thread_id != room.thread.id or not is_thread_id(subject.run_id) or len(shown) != SHA256_LENGTH:
        raise NotFound(UNKNOWN_INTERRUPT)
    if entry.status == "cancelled":
        return ResumeAnswer(stored, shown, None)
    return ResumeAnswer(stored, shown, _decision(stored, shown, number, entry.payload))


def _decision(stored: Stored, shown: str, number: int, payload: object) -> Decision:
    if stored.approval.subject.tool == QUESTION_TOOL:
        asked = shown_args(stored.payload)
        typed = isinstance(asked, dict) and (asked.get("schema") is not None or asked.get("choices"))
        return read_decision({"kind": "respond", "args_sha256": shown, "answer" if typed else "message": payload})
    try:
        said = ResumePayload.model_validate(payload)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise invalid_request([(("resume", number, "payload", *each["loc"]), each["msg"]) for each in found]) from None
    if said.argsSha256 not in ("", shown):
        raise InvalidDecision("argsSha256 is not that of this interrupt.", [Problem("/argsSha256", "another one")])
    return read_decision({"args_sha256": shown, "acknowledged": said.acknowledged, **_decision_fields(said)})


def _decision_fields(said: ResumePayload) -> dict[str, object]:
    edited = "editedArgs" in said.model_fields_set
    match said.approved, edited, said.response:
        case True, True, "":
            return {"kind": "edit", "args": said.editedArgs, "reason": said.reason}
        case True, False, "":
            return {"kind": "approve", "reason": said.reason}
        case False, False, "":
            return {"kind": "reject", "reason": said.reason}
        case False, False, _:
            return {"kind": "respond", "message": said.response, "reason": said.reason}
        case _:
            message = "editedArgs go with approved: true, and a response with approved: false. Nothing was decided."
            raise InvalidDecision(message, [Problem("/approved", "contradicts the rest")])


async def _plan_decision(room: AgUiContext, given: ResumeAnswer) -> Decision | None:
    """What is to be done, tried before anything is. Whoever gives up what is not theirs to reject withdraws it."""
    decision = given.decision or Reject(CANCELLED_REASON)
    where, name = room.thread.workspace, given.approval.id
    try:
        await room.doors.inbox.foresee(where, name, decision, room.reviewer)
    except (AlreadyDecided, Expired):
        return decision
    except Error as error:
        if given.decision is None:
            return None
        await room.doors.inbox.refuse(where, name, decision, room.reviewer, error)
    return decision


async def _apply_decision(room: AgUiContext, approval: Approval, decision: Decision | None) -> None:
    if decision is None:
        await room.doors.gate.cancel(room.thread.workspace, approval.id, room.thread.person, CANCELLED_REASON)
    else:
        await room.doors.inbox.decide(room.thread.workspace, approval.id, decision, room.reviewer)


def _lines_before_decisions(lines: Sequence[ThreadEntry], ids: Sequence[str]) -> Sequence[ThreadEntry]:
    """All before the first thing that came of one of these calls after people were asked about it."""
    after = (line.n for line in lines if line.kind == "decided" and line.body.get("approval") in ids)
    first = next(after, None)
    return lines if first is None else [line for line in lines if line.n < first]


def _check_all_answered(cards: Sequence[Approval]) -> None:
    if cards:
        ids = [card.id for card in cards]
        message = f"Interrupts are open that were not answered: {', '.join(ids)}. Answer or cancel all of them."
        raise Conflict(message, approval_ids=ids)


def _new_message(body: RunAgentInput) -> PostedMessage | None:
    """The last one, if it is the user's and not one of those that we gave out. Parts that are no text are left out."""
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


def _check_agent(site: ServerState, doors: WorkspaceServices, agent: str) -> None:
    if agent not in site.assistant.agents.names(doors):
        raise NotFound(f"There is no agent {agent!r}. GET /api/agents lists them.")


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
