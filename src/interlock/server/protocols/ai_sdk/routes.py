"""The routes of the protocol, and what they do with what is posted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple, cast

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from interlock.chat.stream import Position, Told
from interlock.chat.threads import Said
from interlock.core.call import MAX_NAME, QUESTION
from interlock.core.canonical import read
from interlock.core.chat.thread import Line, Thread
from interlock.core.decision import Decision, read_decision
from interlock.core.errors import AlreadyDecided, Conflict, Error, Expired, InvalidDecision, InvalidRequest, NotFound
from interlock.core.errors import Problem as Complaint
from interlock.server.auth import Auth
from interlock.server.dependencies import DECIDERS, Caller, Described, Here, gives, may, response
from interlock.server.http import Asked, Header, Many, Receive, Send, checked, encoded, json_answer
from interlock.server.idempotency import Mismatch, place_of
from interlock.server.protocols.ai_sdk.history import MOST, history
from interlock.server.protocols.ai_sdk.stream import Begin, Reader, Telling, call_id
from interlock.server.router import PLAIN, Live
from interlock.server.state import Site
from interlock.server.streams.thread_stream import Readers
from interlock.storage.tables.threads import DONE, NO_END

router = APIRouter(prefix="/ai-sdk", tags=["AI SDK"])

HEADERS: tuple[Header, ...] = ((b"x-vercel-ai-ui-message-stream", b"v1"),)
LAST = frozenset({"end"})
FEW = 200  # lines that are read first
MAX_DIGITS = 10
STREAM = {
    "description": "A UI message stream, until the turn is over or somebody has to answer.",
    "content": {"text/event-stream": {"schema": {"type": "object"}}},
}
NO_APPROVAL = "There is no such approval in this chat. Load the chat anew and answer what is shown there."
AGAIN = "What is done is not done again. Send a new message instead."


class Message(BaseModel):
    """The newest one; of those before it nothing is read."""

    model_config = ConfigDict(strict=True, frozen=True)

    id: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    role: Literal["user", "assistant"]
    parts: Many[dict[str, Any]]


class AiSdkPost(BaseModel):
    """What DefaultChatTransport sends. `agent` and `decisions` may stand in the page's `body`."""

    model_config = ConfigDict(strict=True, frozen=True)

    id: Annotated[str, Field(min_length=1, max_length=MAX_NAME, description="The chat: a thread of this person.")]
    messages: Annotated[Many[dict[str, Any]], Field(min_length=1)]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    messageId: str | None = None
    agent: Annotated[str, Field(max_length=MAX_NAME, description="Whom a new chat is with.")] = ""
    decisions: Annotated[
        dict[str, dict[str, Any]],
        Field(description="By approval: a whole decision in place of a yes or no, as for an edit."),
    ] = {}


class Answer(NamedTuple):
    approval_id: str
    decision: Decision


class AiSdkChat(BaseModel):
    """For the page's `messages`, when it is loaded anew."""

    messages: list[dict[str, Any]]


@router.get("/chat/{chat_id}", responses=gives(AiSdkChat), **may(DECIDERS))
async def load_chat(chat_id: str, site: Here, caller: Caller) -> Response:
    """The newest messages of the chat, as they stand now; none, if nothing was said in it."""
    reader = Reader(site, await site.workspaces.doors(caller.workspace), caller)
    messages: list[dict[str, object]] = []
    with suppress(NotFound):
        thread, lines = await _thread(reader, chat_id, said=MOST)
        messages = await history(reader, thread, lines)
    return response(json_answer({"messages": messages}))


def streams(site: Site, auth: Auth) -> Sequence[tuple[Live, Described]]:
    chat = Chat(site, auth)
    return (
        (
            Live("POST", "/ai-sdk/chat", DECIDERS, chat.send),
            Described(
                "Takes the person's newest message, or their answers to what is open, and tells what comes of it.",
                STREAM,
                AiSdkPost,
                fails=(404, 409, 422, 429),
            ),
        ),
        (
            Live("GET", "/ai-sdk/chat/{chat_id}/stream", DECIDERS, chat.resume),
            Described(
                "The newest message of the chat, from its beginning and as it stands now.",
                STREAM,
                fails=(429,),
                nothing="Nothing was said in this chat.",
            ),
        ),
    )


class Chat:
    def __init__(self, site: Site, auth: Auth) -> None:
        self._site = site
        self._readers = Readers(site, auth)

    async def send(self, asked: Asked, receive: Receive, send: Send) -> None:
        self._readers.check_room()
        posted = await asked.json(AiSdkPost)
        message = _newest(posted)
        reader = await self._reader(asked)
        if message.role == "assistant":
            told = await self._answer(reader, posted, message)
        elif posted.trigger == "regenerate-message":
            told = await self._retry(reader, posted)
        else:
            told = await self._say(reader, posted, message)
        await self._serve(asked, told, receive, send)

    async def resume(self, asked: Asked, receive: Receive, send: Send) -> None:
        self._readers.check_room()
        (chat,), reader = asked.values, await self._reader(asked)
        try:
            thread, lines = await _thread(reader, chat)
            begin = Begin(_said_before(lines))
        except NotFound:
            await send({"type": "http.response.start", "status": 204, "headers": list(PLAIN)})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._serve(asked, _Told(reader, thread, begin, lines), receive, send)

    async def _say(self, reader: Reader, posted: AiSdkPost, message: Message) -> _Told:
        """A message goes by its id: sent again it is the same one, and is told from its beginning."""
        who, threads, text = reader.person, self._site.assistant.threads, _text(message)
        place = place_of(who, f"ai-sdk:{_digest(posted.id, message.id)}")
        said = Said(text, "", posted.agent, posted.id, "ai_sdk")
        kept = await threads.say_once(reader.doors, who, said, place, _digest(text))
        if kept.digest != _digest(text):
            raise Mismatch("This message was sent before with other words. What was said stays: send a new message.")
        if kept.status != DONE:
            raise Conflict("This was sent already; what came of it has been erased.")
        done = json.loads(kept.body)
        thread, lines = await threads.show(who, done["thread_id"], done["line"] - 1)
        return _Told(reader, thread, Begin(done["line"]), lines)

    async def _retry(self, reader: Reader, posted: AiSdkPost) -> _Told:
        """After an error the model is asked again; nothing that was recorded is done again."""
        thread, lines = await _thread(reader, posted.id)
        if lines[-1].kind != "ended" or lines[-1].body["status"] not in ("error", "limit"):
            raise Conflict(AGAIN, thread_id=thread.id)
        await self._site.assistant.threads.retry(reader.person, thread.id)
        thread, lines = await _thread(reader, posted.id)
        return _Told(reader, thread, Begin(_said_before(lines)), lines)

    async def _answer(self, reader: Reader, posted: AiSdkPost, message: Message) -> _Told:
        """All answers are looked at before any counts. What others decided meanwhile stands, and is told."""
        thread, lines = await _thread(reader, posted.id, _first_step(message))
        step = _step_of(message, lines)
        answers = await _answers(reader, lines, posted.decisions, message)
        for each in answers:
            await _try(reader, each)
        problem: Error | None = None
        for approval_id, decision in answers:
            try:
                with suppress(AlreadyDecided, Expired):
                    await reader.doors.inbox.decide(reader.doors.workspace, approval_id, decision, reader.reviewer)
            except Error as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return _Told(reader, thread, Begin(_said_before(lines, step), step), lines)

    async def _reader(self, asked: Asked) -> Reader:
        return Reader(self._site, await self._site.workspaces.doors(asked.person.workspace), asked.person)

    async def _serve(self, asked: Asked, told: _Told, receive: Receive, send: Send) -> None:
        reader = self._readers.reader(asked, send, Telling(*told), _frame, LAST)
        await self._readers.serve(reader, told.thread, Position(told.begin.said), receive, HEADERS)


class _Told(NamedTuple):
    reader: Reader
    thread: Thread
    begin: Begin
    lines: Sequence[Line]


async def _thread(reader: Reader, chat: str, step: int = NO_END, said: int = 1) -> tuple[Thread, Sequence[Line]]:
    """With its newest lines alone: from the person's last message before `step` on, or the last so many of them."""
    threads, last = reader.site.assistant.threads, FEW
    while True:
        thread, lines = await threads.show(reader.person, threads.id_of(reader.person, chat), last=last)
        found = [number for number, line in enumerate(lines) if line.kind == "said" and line.n < step]
        if len(found) >= said:
            return thread, lines[found[-said] :]
        if last >= thread.lines:
            return thread, lines
        last *= 8


async def _frame(told: Told) -> bytes:
    parts = cast(list[dict[str, object]], told.data["parts"])
    frames = b"".join(b"data: %b\n\n" % encoded(part) for part in parts)
    return frames + b"data: [DONE]\n\n" if told.name in LAST else frames


def _newest(posted: AiSdkPost) -> Message:
    """The last one, or the earlier one that the page says it goes on with."""
    named = [each for each in posted.messages if each.get("role") == "assistant" and each.get("id") == posted.messageId]
    return checked(Message, named[-1] if posted.messageId is not None and named else posted.messages[-1])


def _text(message: Message) -> str:
    if any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in message.parts):
        raise InvalidRequest("A message here is text alone, without files. Put what the agent needs into words.")
    text = "\n\n".join(part["text"] for part in message.parts)
    if not text.strip():
        raise InvalidRequest("The message is empty. Say something.")
    return text


def _said_before(lines: Sequence[Line], step: int = NO_END) -> int:
    said = [line.n for line in lines if line.kind == "said" and line.n < step]
    if not said:
        raise NotFound("Nothing was said in this chat.")
    return said[-1]


def _first_step(message: Message) -> int:
    """How far back the page goes; what is no number of ours is not found later."""
    numbers = [str(part["toolCallId"]).partition(":")[0] for part in _calls(message)]
    return min(
        (int(each) for each in numbers if each.isascii() and each.isdigit() and len(each) <= MAX_DIGITS), default=NO_END
    )


def _step_of(message: Message, lines: Sequence[Line]) -> int:
    """The reply up to which the page has the message: nothing depends on it but where the telling begins."""
    numbers = [str(part["toolCallId"]).partition(":")[0] for part in _calls(message)]
    replies = {str(line.n): line.n for line in lines if line.kind == "replied"}
    if not numbers or numbers[-1] not in replies:
        raise NotFound("There is no such call in this chat. Load the chat anew, or send a new message.")
    return replies[numbers[-1]]


def _calls(message: Message) -> list[dict[str, Any]]:
    tools = [part for part in message.parts if str(part.get("type")).startswith(("tool-", "dynamic-tool"))]
    return [part for part in tools if isinstance(part.get("toolCallId"), str)]


async def _answers(
    reader: Reader, lines: Sequence[Line], decisions: Mapping[str, Mapping[str, Any]], message: Message
) -> list[Answer]:
    known, answers, calls = _asked_in(lines), list[Answer](), _calls(message)
    if len({part["toolCallId"] for part in calls}) < len(calls):
        raise InvalidDecision("A call is answered twice. Nothing was decided.", [Complaint("/parts", "twice the same")])
    for part in calls:
        approval_id = known.get(part["toolCallId"], "")
        match part.get("state"):
            case "approval-responded":
                answers.append(_yes_or_no(part.get("approval"), approval_id, decisions))
            case "output-available" if approval_id:
                answers += await _response(reader, approval_id, part.get("output"))
            case _:
                pass
    return answers


async def _try(reader: Reader, answer: Answer) -> None:
    """Raises why it would not count, and keeps that somebody tried; what was decided meanwhile is no such reason."""
    inbox, where = reader.doors.inbox, (reader.doors.workspace, *answer)
    try:
        with suppress(AlreadyDecided, Expired):
            await inbox.foresee(*where, reader.reviewer)
    except Error as error:
        await inbox.refuse(*where, reader.reviewer, error)


def _asked_in(lines: Sequence[Line]) -> dict[str, str]:
    """The approval of each call that people were asked about."""
    step, found = 0, dict[str, str]()
    for line in lines:
        step = line.n if line.kind == "replied" else step
        if line.kind == "asked":
            found[call_id(step, line.body)] = str(line.body["approval"])
    return found


def _yes_or_no(said: object, approval_id: str, decisions: Mapping[str, Mapping[str, Any]]) -> Answer:
    """A yes is `true` and a no is `false`: nothing else is either. It counts for what the page showed."""
    if not isinstance(said, Mapping) or not approval_id or said.get("id") != approval_id:
        raise NotFound(NO_APPROVAL)
    approved = said.get("approved")
    if not isinstance(approved, bool):
        message = "approved is true or false. Nothing was decided."
        raise InvalidDecision(message, [Complaint("/approval/approved", "not a boolean")], approval_id=approval_id)
    shown = said.get("descriptor")
    digest = {"args_sha256": shown.get("args_sha256")} if isinstance(shown, Mapping) else {}
    given = decisions.get(approval_id)
    if given is None:
        kind = "approve" if approved else "reject"
        return Answer(approval_id, read_decision({"kind": kind, "reason": said.get("reason"), **digest}))
    if approved != (given.get("kind") in ("approve", "edit")):
        message = "The answer and the decision that comes with it contradict each other. Nothing was decided."
        raise InvalidDecision(message, [Complaint("/decisions", "contradicts approved")], approval_id=approval_id)
    return Answer(approval_id, read_decision({**digest, **given}))


async def _response(reader: Reader, approval_id: str, output: object) -> list[Answer]:
    """An output answers an open question, and nothing else: what a call gave is known here."""
    stored = await reader.site.store.get(reader.doors.workspace, approval_id)
    if stored.approval.subject.tool != QUESTION or stored.approval.status != "pending":
        return []
    asked = cast(Mapping[str, object], read(stored.payload.args or b"{}"))
    if not isinstance(output, str) and not {"choices", "schema"} & asked.keys():
        message = "The answer to this question is a text. Nothing was answered."
        raise InvalidDecision(message, [Complaint("/output", "not a text")], approval_id=approval_id)
    name = "message" if isinstance(output, str) else "answer"
    return [Answer(approval_id, read_decision({"kind": "respond", name: output}))]


def _digest(*texts: str) -> str:
    return sha256(json.dumps(texts).encode()).hexdigest()
