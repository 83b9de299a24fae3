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

from interlock.app.workspaces import Doors
from interlock.chat.agents import ASSISTANT
from interlock.chat.threads import Said
from interlock.core.approval.approval import Approval
from interlock.core.call import MAX_NAME, QUESTION
from interlock.core.chat.thread import Line, check_text, is_thread
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
from interlock.server.context import AtDesk
from interlock.server.dependencies import DECIDERS, Described, gives, may, response
from interlock.server.http import Answer, Asked, Body, Many, Receive, Send, invalid_of, json_answer, send_answer
from interlock.server.idempotency import Mismatch, place_of
from interlock.server.protocols.ag_ui.thread import Names, Room, approval_of, asks, replied
from interlock.server.router import PLAIN, Live
from interlock.server.state import Site
from interlock.server.streams.thread_stream import Readers
from interlock.storage.tables.idempotency import Place
from interlock.storage.tables.threads import DONE

MOST = 500  # answers at once
SHA256 = 64  # characters
ABANDONED = "Cancelled without a decision."
UNKNOWN = "There is no interrupt with this id in this thread."
EVENTS = {
    "description": "Events of AG-UI 1.0, until the run is finished, has failed, or is interrupted.",
    "content": {"text/event-stream": {"schema": {"type": "object"}}},
}

router = APIRouter(prefix="/ag-ui", tags=["AG-UI"])

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class Open(BaseModel):
    """What a later version of the protocol adds is left out, and what is known has to be right."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ResumeEntry(Open):
    """The answer to one interrupt."""

    interruptId: Name
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunAgentInput(Open):
    """A run: with a new message of the user as the last one, with answers to interrupts, or to see how it stands.

    Of the messages only the last is read. Tools, context and properties are not used; the state is given back.
    """

    threadId: Name
    runId: Name
    messages: Many[dict[str, Any]]
    state: Any = None
    resume: Annotated[Many[ResumeEntry], Field(max_length=MOST)] = ()


class Payload(Body):
    """The answer to an approval. Nothing but `true` approves; a field that nobody knows may have meant something."""

    approved: bool
    editedArgs: Annotated[dict[str, Any], Field(default_factory=dict)]
    reason: Annotated[str, Field(max_length=MAX_COMMENT)] = ""
    response: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    argsSha256: str = ""
    acknowledged: Many[str] = ()


class Capabilities(BaseModel):
    """AgentCapabilities of AG-UI."""

    identity: dict[str, Any]
    transport: dict[str, Any]
    tools: dict[str, Any]
    state: dict[str, Any]
    multiAgent: dict[str, Any]
    humanInTheLoop: dict[str, Any]


class Message(NamedTuple):
    id: str
    text: str


class Given(NamedTuple):
    """An entry of a resume, with the approval that it is about; no decision: it is given up."""

    stored: Stored
    sha256: str  # of what was shown
    decision: Decision | None

    @property
    def approval(self) -> Approval:
        return self.stored.approval


@router.get("", responses=gives(Capabilities), **may(DECIDERS))
async def show_capabilities(desk: AtDesk) -> Response:
    """What the assistant can do, as AG-UI declares it."""
    return response(json_answer(_capabilities(ASSISTANT)))


@router.get("/{agent}", responses=gives(Capabilities, 404), **may(DECIDERS))
async def show_capabilities_of(agent: str, desk: AtDesk) -> Response:
    """What an agent can do, as AG-UI declares it."""
    _check_agent(desk.site, desk.doors, agent)
    return response(json_answer(_capabilities(agent)))


def streams(site: Site, auth: Auth) -> Sequence[tuple[Live, Described]]:
    runs = Runs(site, auth)
    text = "A run of AG-UI: says the new message, or takes the answers to all open interrupts, and tells what comes."
    described = Described(text, EVENTS, RunAgentInput, fails=(404, 409, 410, 422, 429))
    return (
        (Live("POST", "/ag-ui", DECIDERS, runs.run), described),
        (Live("POST", "/ag-ui/{agent}", DECIDERS, runs.run), described),
    )


class Runs:
    def __init__(self, site: Site, auth: Auth) -> None:
        self._site = site
        self._readers = Readers(site, auth)

    async def run(self, asked: Asked, receive: Receive, send: Send) -> None:
        """All that was posted is checked before anything is said or decided."""
        from interlock.server.protocols.ag_ui.codec import fill  # noqa: PLC0415  the same
        from interlock.server.protocols.ag_ui.run import LAST, Run, nothing  # noqa: PLC0415  types that load slowly

        self._readers.check_room()
        body, agent = await asked.json(RunAgentInput), asked.values[0] if asked.values else ASSISTANT
        doors = await self._site.workspaces.doors(asked.person.workspace)
        _check_agent(self._site, doors, agent)
        said = Said("", agent=agent, name="\n".join(("ag-ui", agent, body.threadId)), via="ag_ui")
        known = await self._done(asked, body, said)
        room, names = await self._room(asked, said.name), Names(body.threadId, body.runId, body.state)
        if room is None:
            await send_answer(send, Answer(200, nothing(names), kind=b"text/event-stream"), PLAIN)
            return
        if known is None:
            run = Run(room, names, await room.lines(lambda found: fill(found) and replied(found)), "snapshots")
        else:
            run = Run(room, names, known)
        reader = self._readers.reader(asked, send, run, run.frame, LAST)
        await self._readers.serve(reader, room.thread, run.position, receive)

    async def _done(self, asked: Asked, body: RunAgentInput, said: Said) -> Sequence[Line] | None:
        """Does what is asked for. Gives the lines that the client knows; None if it wants to see them all."""
        room, message = await self._room(asked, said.name), _new_message(body)
        if body.resume:
            await self._check_new(asked, said, message)
            room, known = await _answered(room, body.resume)
            if message is not None:
                _refuse_open(await room.cards())  # the answers may not have been enough
                await self._say(asked, said, message)
            return known
        if message is None:
            return None
        again = None if room is None else await _again(room, message)
        return await self._say(asked, said, message) if again is None else again

    async def _room(self, asked: Asked, name: str) -> Room | None:
        """None where nothing was said yet. Each person has threads of their own under any name."""
        who, threads = asked.person, self._site.assistant.threads
        doors = await self._site.workspaces.doors(who.workspace)
        with suppress(NotFound):
            thread = await threads.see(who, threads.id_of(who, name))
            return Room(self._site, doors, thread, doors.reviewer(who, self._site.clock()))
        return None

    async def _check_new(self, asked: Asked, said: Said, message: Message | None) -> None:
        if message is not None:
            kept = await self._site.store.answers.look(_place(asked, said, message))
            _refuse_other(_sha256(message.text) if kept is None else kept.digest, message)

    async def _say(self, asked: Asked, said: Said, message: Message) -> Sequence[Line]:
        """Once, however often it is sent. Gives the lines before it."""
        who, threads = asked.person, self._site.assistant.threads
        doors, place = await self._site.workspaces.doors(who.workspace), _place(asked, said, message)
        kept = await threads.say_once(doors, who, said._replace(text=message.text), place, _sha256(message.text))
        _refuse_other(kept.digest, message)
        if kept.status != DONE:
            raise Conflict("This message was sent already; what came of it has been erased.")
        done = json.loads(kept.body)
        thread = await threads.see(who, done["thread_id"])
        room = Room(self._site, doors, thread, doors.reviewer(who, self._site.clock()))
        return await room.lines(replied, done["line"] - 1)


def _place(asked: Asked, said: Said, message: Message) -> Place:
    return place_of(asked.person, f"ag-ui {_sha256(said.name, message.id)}")


def _refuse_other(digest: str, message: Message) -> None:
    if digest != _sha256(message.text):
        raise Mismatch("A message with this id was sent before, with other words. Give each an id of its own.")


async def _again(room: Room, message: Message) -> Sequence[Line] | None:
    """The lines before a message that is sent again while people decide; None if nobody has to.

    A new message is no answer: what waits is neither decided nor given up by what somebody says.
    """
    cards = await room.cards()
    if not cards:
        return None
    lines = await room.lines(lambda found: replied(_before_last(found)))
    known = _before_last(lines)
    if len(known) < len(lines) and lines[len(known)].body["text"] == message.text:
        return known
    _refuse_open(cards)
    return None


def _before_last(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines before the last message."""
    last = max((line.n for line in lines if line.kind == "said"), default=0)
    return [line for line in lines if line.n < last] if last else lines


async def _answered(room: Room | None, resume: Sequence[ResumeEntry]) -> tuple[Room, Sequence[Line]]:
    """Decides all of them, or none. Gives the lines that the client knows: those before the first of these decisions.

    What somebody else decided meanwhile, or time did, stays as it is: so an answer that is sent again does no harm.
    """
    if room is None:
        raise NotFound(UNKNOWN)
    given = [await _given(room, number, entry) for number, entry in enumerate(resume)]
    ids = [each.approval.id for each in given]
    if len(set(ids)) < len(ids):
        raise InvalidRequest("An interrupt is answered twice. Answer each of them once.")
    cards = await room.cards()
    wanted = {*ids, *(card.id for card in cards)}
    known = _known(await room.lines(lambda found: asks(found, wanted)), ids)
    asked = {line.body.get("approval") for line in known if line.kind == "asked"}
    _refuse_open([card for card in cards if card.id in asked and card.id not in ids])
    waiting = [each for each in given if status_at(each.approval, room.site.clock()) == "pending"]
    if any(each.decision and each.sha256 != each.approval.args_sha256 for each in waiting):
        return room, known  # somebody edited it: nothing is decided, and the run ends with what it is now
    steps = [await _step(room, each) for each in waiting]
    for each, decision in zip(waiting, steps, strict=True):
        with suppress(Conflict, Expired):  # somebody was faster
            await _settle(room, each.approval, decision)
    return room, known


async def _given(room: Room, number: int, entry: ResumeEntry) -> Given:
    approval_id, shown = approval_of(entry.interruptId)
    try:
        stored = await room.site.store.get(room.thread.workspace, approval_id)
    except NotFound:
        raise NotFound(UNKNOWN) from None
    subject = stored.approval.subject
    if subject.thread_id != room.thread.id or not is_thread(subject.run_id) or len(shown) != SHA256:
        raise NotFound(UNKNOWN)
    if entry.status == "cancelled":
        return Given(stored, shown, None)
    return Given(stored, shown, _decision(stored, shown, number, entry.payload))


def _decision(stored: Stored, shown: str, number: int, payload: object) -> Decision:
    if stored.approval.subject.tool == QUESTION:
        asked = shown_args(stored.payload)
        typed = isinstance(asked, dict) and (asked.get("schema") is not None or asked.get("choices"))
        return read_decision({"kind": "respond", "args_sha256": shown, "answer" if typed else "message": payload})
    try:
        said = Payload.model_validate(payload)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise invalid_of([(("resume", number, "payload", *each["loc"]), each["msg"]) for each in found]) from None
    if said.argsSha256 not in ("", shown):
        raise InvalidDecision("argsSha256 is not that of this interrupt.", [Problem("/argsSha256", "another one")])
    return read_decision({"args_sha256": shown, "acknowledged": said.acknowledged, **_verb(said)})


def _verb(said: Payload) -> dict[str, object]:
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


async def _step(room: Room, given: Given) -> Decision | None:
    """What is to be done, tried before anything is. Whoever gives up what is not theirs to reject withdraws it."""
    decision = given.decision or Reject(ABANDONED)
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


async def _settle(room: Room, approval: Approval, decision: Decision | None) -> None:
    if decision is None:
        await room.doors.gate.cancel(room.thread.workspace, approval.id, room.thread.person, ABANDONED)
    else:
        await room.doors.inbox.decide(room.thread.workspace, approval.id, decision, room.reviewer)


def _known(lines: Sequence[Line], ids: Sequence[str]) -> Sequence[Line]:
    """All before the first thing that came of one of these calls after people were asked about it."""
    after = (line.n for line in lines if line.kind == "decided" and line.body.get("approval") in ids)
    first = next(after, None)
    return lines if first is None else [line for line in lines if line.n < first]


def _refuse_open(cards: Sequence[Approval]) -> None:
    if cards:
        ids = [card.id for card in cards]
        message = f"Interrupts are open that were not answered: {', '.join(ids)}. Answer or cancel all of them."
        raise Conflict(message, approval_ids=ids)


def _new_message(body: RunAgentInput) -> Message | None:
    """The last one, if it is the user's and not one of those that we gave out. Parts that are no text are left out."""
    match body.messages[-1] if body.messages else None:
        case {"role": "user", "id": str(name), "content": str() | list() as content}:
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            texts: list[Any] = [
                part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"
            ]
            if not all(isinstance(text, str) for text in texts):
                raise InvalidRequest("The text of a message's part is a text.")
            if is_thread(name.partition(":")[0]):
                return None
            check_text(text := "\n".join(texts))
            return Message(name, text)
        case {"role": "user"}:
            raise InvalidRequest("A message of the user has an id, and a text or parts as its content.")
        case _:
            return None


def _check_agent(site: Site, doors: Doors, agent: str) -> None:
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
