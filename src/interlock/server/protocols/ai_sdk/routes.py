"""AI SDK routes: send a message, answer approvals and questions, retry, resume a stream, load the history."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple, cast

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from interlock.chat.stream import Position, StreamEvent
from interlock.chat.threads import UserMessage
from interlock.core.call import MAX_NAME, QUESTION_TOOL
from interlock.core.canonical import read_canonical
from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.core.decision import Decision, read_decision
from interlock.core.errors import AlreadyDecided, Conflict, Error, Expired, InvalidDecision, InvalidRequest, NotFound
from interlock.core.errors import Problem as Complaint
from interlock.server.dependencies import (
    DECIDERS,
    PrincipalDep,
    StateDep,
    documented_responses,
    require_roles,
    to_starlette,
)
from interlock.server.http import (
    SECURITY_HEADERS,
    Header,
    HttpRequest,
    JsonList,
    Receive,
    Send,
    encode_json,
    example,
    json_response,
    validate_model,
)
from interlock.server.idempotency import IdempotencyMismatch, idempotency_slot
from interlock.server.protocols.ai_sdk.stream import (
    AiSdkContext,
    MessagePosition,
    MessageStream,
    Part,
    call_id,
    message_id,
)
from interlock.server.router import AsgiRouter
from interlock.server.state import ServerState
from interlock.server.streams.thread_stream import ThreadStream
from interlock.storage.tables.threads import DONE_STATUS, MAX_ENTRY_NUMBER

router, asgi_routes = APIRouter(prefix="/ai-sdk", tags=["AI SDK"]), AsgiRouter("AI SDK")

HEADERS: tuple[Header, ...] = ((b"x-vercel-ai-ui-message-stream", b"v1"),)
FINAL_EVENTS = frozenset({"end"})
FIRST_READ = 200  # entries that are read first
MAX_DIGITS = 10
UI_MESSAGE_STREAM = "A UI message stream, until the turn is over or an approval or a question is pending."
NO_APPROVAL = "There is no such approval in this chat. Load the chat anew and answer what is shown there."
NOT_REPEATED = "What is done is not done again. Send a new message instead."


class UiMessage(BaseModel):
    """The newest message; earlier ones are not read."""

    model_config = ConfigDict(strict=True, frozen=True)

    id: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    role: Literal["user", "assistant"]
    parts: JsonList[dict[str, Any]]


class AiSdkChatBody(BaseModel):
    """The body that DefaultChatTransport sends. `agent` and `decisions` can be added in the page's `body`."""

    model_config = example(
        {
            "id": "chat-1",
            "messages": [
                {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Publish the post hello-world."}]}
            ],
            "trigger": "submit-message",
        },
        strict=True,
        frozen=True,
    )

    id: Annotated[
        str,
        Field(min_length=1, max_length=MAX_NAME, description="The id of the chat, which is a thread of this person."),
    ]
    messages: Annotated[JsonList[dict[str, Any]], Field(min_length=1)]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    messageId: str | None = None
    agent: Annotated[str, Field(max_length=MAX_NAME, description="The agent of a new chat.")] = ""
    decisions: Annotated[
        dict[str, dict[str, Any]],
        Field(description="By approval id: a full decision in place of yes or no, such as an edit."),
    ] = {}


class ApprovalAnswer(NamedTuple):
    approval_id: str
    decision: Decision


class AiSdkChat(BaseModel):
    """The page's `messages`, for when it is reloaded."""

    messages: list[dict[str, Any]]


@router.get("/chat/{chat_id}", responses=documented_responses(AiSdkChat), **require_roles(DECIDERS))
async def load_chat(chat_id: str, state: StateDep, principal: PrincipalDep) -> Response:
    """The newest messages of the chat in their current state; none for a new chat."""
    context = AiSdkContext(state, await state.workspaces.services(principal.workspace), principal)
    messages: list[dict[str, object]] = []
    with suppress(NotFound):
        thread, lines = await _load_thread(context, chat_id, said=MAX_MESSAGES)
        messages = await load_history(context, thread, lines)
    return to_starlette(json_response({"messages": messages}))


class AiSdkRoutes:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    @asgi_routes.stream("POST", "/ai-sdk/chat", DECIDERS, UI_MESSAGE_STREAM, errors=(404, 409, 422, 429))
    async def send(self, request: HttpRequest, receive: Receive, send: Send, body: AiSdkChatBody) -> None:
        """Send the newest message, or the answers to pending approvals and questions, and stream the reply."""
        message = _newest_message(body)
        context = await self._make_context(request)
        if message.role == "assistant":
            start = await self._answer(context, body, message)
        elif body.trigger == "regenerate-message":
            start = await self._retry(context, body)
        else:
            start = await self._say(context, body, message)
        await self._serve(request, start, receive, send)

    @asgi_routes.stream(
        "GET",
        "/ai-sdk/chat/{chat_id}/stream",
        DECIDERS,
        UI_MESSAGE_STREAM,
        errors=(429,),
        no_content="The chat has no messages.",
    )
    async def resume(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Stream the newest message of the chat from its beginning, in its current state."""
        (chat,), context = request.path_params, await self._make_context(request)
        try:
            thread, lines = await _load_thread(context, chat)
            begin = MessagePosition(_message_line(lines))
        except NotFound:
            await send({"type": "http.response.start", "status": 204, "headers": list(SECURITY_HEADERS)})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._serve(request, _StreamStart(context, thread, begin, lines), receive, send)

    async def _say(self, context: AiSdkContext, body: AiSdkChatBody, message: UiMessage) -> _StreamStart:
        """Add a message, identified by its id: a retry is the same message, streamed from its beginning."""
        principal, threads, text = context.principal, self._state.assistant.threads, _message_text(message)
        idempotency_key = idempotency_slot(principal, f"ai-sdk:{_digest(body.id, message.id)}")
        user_message = UserMessage(text, "", body.agent, body.id, "ai_sdk")
        kept = await threads.say_idempotent(context.services, principal, user_message, idempotency_key, _digest(text))
        if kept.digest != _digest(text):
            raise IdempotencyMismatch(
                "This message was sent before with other words. What was said stays: send a new message."
            )
        if kept.status != DONE_STATUS:
            raise Conflict("This was sent already; what came of it has been erased.")
        done = json.loads(kept.body)
        thread, lines = await threads.show(principal, done["thread_id"], done["line"] - 1)
        return _StreamStart(context, thread, MessagePosition(done["line"]), lines)

    async def _retry(self, context: AiSdkContext, body: AiSdkChatBody) -> _StreamStart:
        """After an error the model is called again; nothing that was recorded is repeated."""
        thread, lines = await _load_thread(context, body.id)
        if lines[-1].kind != "ended" or lines[-1].body["status"] not in ("error", "limit"):
            raise Conflict(NOT_REPEATED, thread_id=thread.id)
        await self._state.assistant.threads.retry(context.principal, thread.id)
        thread, lines = await _load_thread(context, body.id)
        return _StreamStart(context, thread, MessagePosition(_message_line(lines)), lines)

    async def _answer(self, context: AiSdkContext, body: AiSdkChatBody, message: UiMessage) -> _StreamStart:
        """Check all answers before applying any. What others decided meanwhile stands, and is streamed."""
        thread, lines = await _load_thread(context, body.id, _first_step(message))
        step = _last_known_step(message, lines)
        answers = await _read_answers(context, lines, body.decisions, message)
        for each in answers:
            await _check_answer(context, each)
        problem: Error | None = None
        for approval_id, decision in answers:
            try:
                with suppress(AlreadyDecided, Expired):
                    await context.services.inbox.decide(
                        context.services.workspace, approval_id, decision, context.reviewer
                    )
            except Error as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return _StreamStart(context, thread, MessagePosition(_message_line(lines, step), step), lines)

    async def _make_context(self, request: HttpRequest) -> AiSdkContext:
        return AiSdkContext(
            self._state,
            await self._state.workspaces.services(request.current_principal.workspace),
            request.current_principal,
        )

    async def _serve(self, request: HttpRequest, start: _StreamStart, receive: Receive, send: Send) -> None:
        position = Position(start.begin.message_line)
        stream = ThreadStream(MessageStream(*start), _frame, position, FINAL_EVENTS, HEADERS)
        await self._state.thread_streams.serve(request, receive, send, start.thread, stream)


class _StreamStart(NamedTuple):
    context: AiSdkContext
    thread: Thread
    begin: MessagePosition
    lines: Sequence[ThreadEntry]


async def _load_thread(
    context: AiSdkContext, chat: str, step: int = MAX_ENTRY_NUMBER, said: int = 1
) -> tuple[Thread, Sequence[ThreadEntry]]:
    """The thread and its newest entries: from the person's last message before `step`, or the last `said` of them."""
    threads, last = context.state.assistant.threads, FIRST_READ
    while True:
        thread, lines = await threads.show(
            context.principal, threads.named_thread_id(context.principal, chat), last=last
        )
        found = [number for number, entry in enumerate(lines) if entry.kind == "said" and entry.number < step]
        if len(found) >= said:
            return thread, lines[found[-said] :]
        if last >= thread.entry_count:
            return thread, lines
        last *= 8


async def _frame(stream_event: StreamEvent) -> bytes:
    parts = cast(list[dict[str, object]], stream_event.data["parts"])
    frames = b"".join(b"data: %b\n\n" % encode_json(part) for part in parts)
    return frames + b"data: [DONE]\n\n" if stream_event.name in FINAL_EVENTS else frames


def _newest_message(body: AiSdkChatBody) -> UiMessage:
    """The last message, or the earlier one that the page names as the one to continue."""
    named = [each for each in body.messages if each.get("role") == "assistant" and each.get("id") == body.messageId]
    return validate_model(UiMessage, named[-1] if body.messageId is not None and named else body.messages[-1])


def _message_text(message: UiMessage) -> str:
    if any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in message.parts):
        raise InvalidRequest("A message here is text alone, without files. Put what the agent needs into words.")
    text = "\n\n".join(part["text"] for part in message.parts)
    if not text.strip():
        raise InvalidRequest("The message is empty. Say something.")
    return text


def _message_line(lines: Sequence[ThreadEntry], step: int = MAX_ENTRY_NUMBER) -> int:
    said = [entry.number for entry in lines if entry.kind == "said" and entry.number < step]
    if not said:
        raise NotFound("Nothing was said in this chat.")
    return said[-1]


def _first_step(message: UiMessage) -> int:
    """The earliest step that the page refers to; an invalid number is reported as not found later."""
    numbers = [str(part["toolCallId"]).partition(":")[0] for part in _tool_parts(message)]
    return min(
        (int(each) for each in numbers if each.isascii() and each.isdigit() and len(each) <= MAX_DIGITS),
        default=MAX_ENTRY_NUMBER,
    )


def _last_known_step(message: UiMessage, lines: Sequence[ThreadEntry]) -> int:
    """The last reply that the page has; only the start of the stream depends on it."""
    numbers = [str(part["toolCallId"]).partition(":")[0] for part in _tool_parts(message)]
    replies = {str(entry.number): entry.number for entry in lines if entry.kind == "replied"}
    if not numbers or numbers[-1] not in replies:
        raise NotFound("There is no such call in this chat. Load the chat anew, or send a new message.")
    return replies[numbers[-1]]


def _tool_parts(message: UiMessage) -> list[dict[str, Any]]:
    tools = [part for part in message.parts if str(part.get("type")).startswith(("tool-", "dynamic-tool"))]
    return [part for part in tools if isinstance(part.get("toolCallId"), str)]


async def _read_answers(
    context: AiSdkContext, lines: Sequence[ThreadEntry], decisions: Mapping[str, Mapping[str, Any]], message: UiMessage
) -> list[ApprovalAnswer]:
    known, answers, calls = _approvals_by_call(lines), list[ApprovalAnswer](), _tool_parts(message)
    if len({part["toolCallId"] for part in calls}) < len(calls):
        raise InvalidDecision("A call is answered twice. Nothing was decided.", [Complaint("/parts", "twice the same")])
    inbox, workspace = context.services.inbox, context.services.workspace
    for part in calls:
        approval_id = known.get(part["toolCallId"], "")
        async with inbox.recording_refusals(workspace, approval_id, context.reviewer):
            match part.get("state"):
                case "approval-responded":
                    answers.append(_approval_answer(part.get("approval"), approval_id, decisions))
                case "output-available" if approval_id:
                    answers += await _question_answer(context, approval_id, part.get("output"))
                case _:
                    pass
    return answers


async def _check_answer(context: AiSdkContext, answer: ApprovalAnswer) -> None:
    """Raise and record why an answer would be refused; a decision that was made meanwhile is no such reason."""
    inbox, where = context.services.inbox, (context.services.workspace, *answer)
    try:
        with suppress(AlreadyDecided, Expired):
            await inbox.check_decision(*where, context.reviewer)
    except Error as error:
        await inbox.record_refusal(*where, context.reviewer, error)


def _approvals_by_call(lines: Sequence[ThreadEntry]) -> dict[str, str]:
    """The approval ids of the calls that people were asked about, by call id."""
    step, found = 0, dict[str, str]()
    for entry in lines:
        step = entry.number if entry.kind == "replied" else step
        if entry.kind == "asked":
            found[call_id(step, entry.body)] = str(entry.body["approval"])
    return found


def _approval_answer(answer: object, approval_id: str, decisions: Mapping[str, Mapping[str, Any]]) -> ApprovalAnswer:
    """Only `true` approves, and only `false` rejects. The answer counts for the arguments that the page showed."""
    if not isinstance(answer, Mapping) or not approval_id or answer.get("id") != approval_id:
        raise NotFound(NO_APPROVAL)
    approved = answer.get("approved")
    if not isinstance(approved, bool):
        message = "approved is true or false. Nothing was decided."
        raise InvalidDecision(message, [Complaint("/approval/approved", "not a boolean")], approval_id=approval_id)
    shown = answer.get("descriptor")
    digest = {"args_sha256": shown.get("args_sha256")} if isinstance(shown, Mapping) else {}
    given = decisions.get(approval_id)
    if given is None:
        kind = "approve" if approved else "reject"
        return ApprovalAnswer(approval_id, read_decision({"kind": kind, "reason": answer.get("reason"), **digest}))
    if approved != (given.get("kind") in ("approve", "edit")):
        message = "The answer and the decision that comes with it contradict each other. Nothing was decided."
        raise InvalidDecision(message, [Complaint("/decisions", "contradicts approved")], approval_id=approval_id)
    return ApprovalAnswer(approval_id, read_decision({**digest, **given}))


async def _question_answer(context: AiSdkContext, approval_id: str, output: object) -> list[ApprovalAnswer]:
    """An output answers an open question, and nothing else: results of calls are known here."""
    stored = await context.state.store.get(context.services.workspace, approval_id)
    if stored.approval.subject.tool != QUESTION_TOOL or stored.approval.status != "pending":
        return []
    question = cast(Mapping[str, object], read_canonical(stored.payload.args or b"{}"))
    if not isinstance(output, str) and not {"choices", "schema"} & question.keys():
        message = "The answer to this question is a text. Nothing was answered."
        raise InvalidDecision(message, [Complaint("/output", "not a text")], approval_id=approval_id)
    name = "message" if isinstance(output, str) else "answer"
    return [ApprovalAnswer(approval_id, read_decision({"kind": "respond", name: output}))]


def _digest(*texts: str) -> str:
    return sha256(json.dumps(texts).encode()).hexdigest()


MAX_MESSAGES = 20  # messages of the person, each with its reply


async def load_history(context: AiSdkContext, thread: Thread, lines: Sequence[ThreadEntry]) -> list[Part]:
    """The newest messages in their current state."""
    messages: list[Part] = []
    for entry in [entry for entry in lines if entry.kind == "said"][-MAX_MESSAGES:]:
        messages.append(_user_message(thread, entry))
        told = [
            part
            for each in await MessageStream(context, thread, MessagePosition(entry.number), lines).read_events()
            for part in _parts(each.data)
        ]
        answer = fold_parts(told)
        messages += [{"id": message_id(thread, entry.number), "role": "assistant", "parts": answer}] if answer else []
    return messages


def fold_parts(told: Iterable[Part]) -> list[Part]:
    """The parts that the client has after these; parts that only mark a beginning or an end leave nothing."""
    parts: list[Part] = []
    for part in told:
        fold = FOLDS.get(cast(str, part["type"]))
        if fold is not None:
            fold(parts, part)
    return parts


def _user_message(thread: Thread, entry: ThreadEntry) -> Part:
    parts = [{"type": "text", "text": entry.body["text"]}]
    return {"id": f"{message_id(thread, entry.number)}.said", "role": "user", "parts": parts}


def _parts(data: Mapping[str, object]) -> list[Part]:
    return cast(list[Part], data["parts"])


def _step(parts: list[Part], _: Part) -> None:
    parts.append({"type": "step-start"})


def _text(parts: list[Part], _: Part) -> None:
    parts.append({"type": "text", "text": "", "state": "streaming"})


def _text_delta(parts: list[Part], part: Part) -> None:
    parts[-1]["text"] = f"{parts[-1]['text']}{part['delta']}"


def _done(parts: list[Part], _: Part) -> None:
    parts[-1]["state"] = "done"


def _input(parts: list[Part], part: Part) -> None:
    number = part["toolCallId"]
    if not any(each.get("toolCallId") == number for each in parts):
        parts.append({"type": "dynamic-tool", "toolName": part["toolName"], "toolCallId": number})
    _call(parts, part).update(state="input-available", input=part["input"])


def _request(parts: list[Part], part: Part) -> None:
    approval = {"id": part["approvalId"], "descriptor": part["approvalDescriptor"], "requestReason": part["reason"]}
    _call(parts, part).update(state="approval-requested", approval=approval)


def _response(parts: list[Part], part: Part) -> None:
    for each in parts:
        approval = cast(dict[str, object] | None, each.get("approval"))
        if approval is not None and approval["id"] == part["approvalId"]:
            given: Part = {name: part[name] for name in ("approved", "reason") if name in part}
            each["state"], each["approval"] = "approval-responded", approval | given


def _output(parts: list[Part], part: Part) -> None:
    _call(parts, part).update(state="output-available", output=part["output"])


def _error(parts: list[Part], part: Part) -> None:
    _call(parts, part).update(state="output-error", errorText=part["errorText"])


def _denied(parts: list[Part], part: Part) -> None:
    _call(parts, part).update(state="output-denied")


def _data(parts: list[Part], part: Part) -> None:
    known = [each for each in parts if each["type"] == part["type"] and each["id"] == part["id"]]
    if known:
        known[0]["data"] = part["data"]
    else:
        parts.append(dict(part))


def _call(parts: list[Part], part: Part) -> Part:
    return next(each for each in parts if each.get("toolCallId") == part["toolCallId"])


FOLDS: Mapping[str, Callable[[list[Part], Part], None]] = {
    "start-step": _step,
    "text-start": _text,
    "text-delta": _text_delta,
    "text-end": _done,
    "tool-input-available": _input,
    "tool-approval-request": _request,
    "tool-approval-response": _response,
    "tool-output-available": _output,
    "tool-output-error": _error,
    "tool-output-denied": _denied,
    "data-approval": _data,
}
