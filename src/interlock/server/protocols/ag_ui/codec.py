"""AG-UI messages and interrupts, made from the entries of a thread and its approvals."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ag_ui.core import AssistantMessage, FunctionCall, Interrupt, Message, ToolCall, ToolMessage, UserMessage

from interlock.app.workspaces import WorkspaceServices
from interlock.core.approval.approval import Approval
from interlock.core.call import QUESTION_TOOL
from interlock.core.chat.thread import Thread, ThreadEntry, is_thread_id
from interlock.core.chat.transcript import PendingCall, ToolRequest, parse_reply
from interlock.core.decision import MAX_COMMENT, MAX_MESSAGE, Reviewer
from interlock.core.outcome import status_at
from interlock.core.ports import ApprovalQuery
from interlock.server.state import ServerState
from interlock.server.streams.thread_stream import ToolRequestRedactor
from interlock.storage.tables.threads import MAX_ENTRY_NUMBER

Json = Mapping[str, Any]
MAX_RESULT = 50_000  # characters
MAX_HISTORY = 500_000  # bytes
MESSAGE_OVERHEAD = 80  # bytes of a message beside its text
TEXT_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_MESSAGE}


def message_id(thread_id: str, line: int) -> str:
    """The id of a message in a snapshot, which differs from the id of a streamed message.

    A client puts the messages that it knows before the others, so the order is right only if a snapshot has no id that
    was streamed.
    """
    return f"{thread_id}:{line}"


def to_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def result_text(value: object) -> str:
    text = to_text(value)
    return text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}… ({len(text) - MAX_RESULT:,} more characters)"


def fills_snapshot(lines: Sequence[ThreadEntry]) -> bool:
    """Whether these entries fill a snapshot: earlier ones have no room in it."""
    return sum(_min_size(entry) for entry in lines) > MAX_HISTORY


def _min_size(entry: ThreadEntry) -> int:
    match entry.kind:
        case "said" | "replied":
            return MESSAGE_OVERHEAD + len(str(entry.body["text"]))
        case "resulted":
            return MESSAGE_OVERHEAD + min(len(to_text(entry.body["result"])), MAX_RESULT)
        case _:
            return 0


def newest_messages(messages: Sequence[Message]) -> list[Message]:
    """The newest messages, results only with their calls: a client posts all that it has, and a body is bounded."""
    left, first = MAX_HISTORY, len(messages)
    for number in range(len(messages) - 1, -1, -1):
        left -= len(messages[number].model_dump_json())
        if left < 0:
            break
        first = number
    while first < len(messages) and messages[first].role == "tool":
        first += 1
    return list(messages[first:])


def call_ids_by_name(lines: Sequence[ThreadEntry]) -> dict[str, str]:
    """The call ids of the last reply by the ids that its model gave them, which a model may reuse."""
    reply = next((entry for entry in reversed(lines) if entry.kind == "replied"), None)
    return (
        {}
        if reply is None
        else {tool_request.id: _call_id(reply, tool_request) for tool_request in parse_reply(reply.body).tool_requests}
    )


def delegating_calls(lines: Sequence[ThreadEntry]) -> dict[str, str]:
    """The ids of the calls that started sub-agents, by the threads of those."""
    found, names = dict[str, str](), dict[str, str]()
    for entry in lines:
        if entry.kind == "replied":
            names = call_ids_by_name([entry])
        if entry.kind == "delegated":
            found[str(entry.body["thread"])] = names.get(str(entry.body["call"]), "")
    return found


def reply_tool_calls(reply: ThreadEntry, redactor: ToolRequestRedactor) -> list[ToolCall]:
    return [_tool_call(reply, tool_request, redactor) for tool_request in parse_reply(reply.body).tool_requests]


def to_messages(lines: Sequence[ThreadEntry], thread_id: str, redactor: ToolRequestRedactor) -> Iterator[Message]:
    names: dict[str, str] = {}
    for entry in lines:
        body, name = entry.body, message_id(thread_id, entry.number)
        match entry.kind:
            case "said":
                yield UserMessage(id=name, content=str(body["text"]))
            case "replied":
                names, calls = call_ids_by_name([entry]), reply_tool_calls(entry, redactor)
                yield AssistantMessage(id=name, content=str(body["text"]) or None, tool_calls=calls or None)
            case "resulted":
                call = names.get(str(body["call"]), str(body["call"]))
                yield ToolMessage(id=name, tool_call_id=call, content=result_text(body["result"]))
            case _:
                pass


def to_interrupt(view: Json, tool_call_id: str, link: str) -> Interrupt:
    """The interrupt of an approval; `view` is the JSON that our own front ends get."""
    question = view["tool"] == QUESTION_TOOL
    return Interrupt(
        id=interrupt_id(view["id"], view["args_sha256"]),
        reason="input_required" if question else "tool_call",
        message=view["sentence"],
        tool_call_id=tool_call_id,
        response_schema=answer_schema(view["args"] or {}) if question else _decision_schema(view),
        expires_at=view["expires_at"],
        metadata={
            "approvalId": view["id"],
            "argsSha256": view["args_sha256"],
            "tool": view["tool"],
            "args": view["args"],
            "sentence": view["sentence"],
            "risk": view["risk"],
            "findings": view["findings"],
            "mayDecide": view["may_decide"],
            "needed": view["needed"],
            "agentPath": view["agent_path"],
            "link": link,
        },
    )


def answer_schema(question: Json) -> dict[str, Any]:
    """The schema of the answer to a question: the question's own schema, one of its choices, or text."""
    if question.get("schema") is not None:
        return dict(question["schema"])
    return {"type": "string", "enum": list(question["choices"])} if question.get("choices") else TEXT_SCHEMA


def _decision_schema(view: Json) -> dict[str, Any]:
    """`editedArgs` and `response` only if the rule allows them: clients go by their presence."""
    text = {"type": "string", "maxLength": MAX_COMMENT}
    properties: dict[str, Any] = {"approved": {"type": "boolean"}, "reason": text}
    if "edit" in view["decisions"]:
        properties["editedArgs"] = {
            **_nestable_schema(view["schema"]),
            "description": "All arguments, in place of the old ones.",
        }
    if "respond" in view["decisions"]:
        properties["response"] = {
            **TEXT_SCHEMA,
            "description": "What the agent is told in place of a run; not approved.",
        }
    if view["alarms"]:
        properties["acknowledged"] = {"type": "array", "items": {"enum": list(view["alarms"])}}
    properties["argsSha256"] = {"const": view["args_sha256"]}
    return {"type": "object", "properties": properties, "required": ["approved"], "additionalProperties": False}


def _nestable_schema(schema: Json | None) -> dict[str, Any]:
    """The schema for use inside another; any object if it has references, which resolve from a schema's root."""
    if schema is None or '"$ref"' in json.dumps(schema):
        return {"type": "object"}
    return dict(schema)


def _tool_call(reply: ThreadEntry, tool_request: ToolRequest, redactor: ToolRequestRedactor) -> ToolCall:
    args = redactor.redact(cast(tuple[str, str, str], tuple(tool_request)))["args"]
    call = FunctionCall(name=tool_request.tool, arguments="" if args is None else to_text(args))
    return ToolCall(id=_call_id(reply, tool_request), function=call)


def _call_id(reply: ThreadEntry, tool_request: ToolRequest) -> str:
    """The call's id as the gate knows it."""
    return PendingCall(tool_request, reply.number).id


MAX_OPEN = 500  # cards of one thread
FIRST_READ = 200  # entries that are read first
SEPARATOR = ":"  # in an interrupt's id

IsEnough = Callable[[Sequence[ThreadEntry]], bool]


def interrupt_id(approval_id: str, args_sha256: str) -> str:
    """The id has the digest of the shown arguments: an answer counts for those only, even if its client ignores it."""
    return f"{approval_id}{SEPARATOR}{args_sha256}"


def parse_interrupt_id(interrupt_id: str) -> tuple[str, str]:
    """The approval's id, and the digest of the shown arguments."""
    approval_id, _, args_sha256 = interrupt_id.partition(SEPARATOR)
    return approval_id, args_sha256


def has_reply(lines: Sequence[ThreadEntry]) -> bool:
    """Whether the entries tell where in a turn they end."""
    return any(entry.kind == "replied" for entry in lines)


def includes_requests(lines: Sequence[ThreadEntry], ids: Collection[object]) -> bool:
    """Whether the entries have the requests for all these approvals, and the reply that led to the first of them."""
    asked = {entry.body.get("approval"): entry.number for entry in lines if entry.kind == "asked"}
    first = min((asked.get(each, 0) for each in ids), default=MAX_ENTRY_NUMBER)
    return first > 0 and has_reply([entry for entry in lines if entry.number < first])


class ClientRun(NamedTuple):
    """The client's ids of the thread and this run, and its state, which is returned unread."""

    thread_id: str
    run_id: str
    state: object = None


class AgUiContext(NamedTuple):
    """The thread of a run, and the person whose run it is."""

    state: ServerState
    services: WorkspaceServices
    thread: Thread
    reviewer: Reviewer

    async def read_entries(self, is_enough: IsEnough, last: int = MAX_ENTRY_NUMBER - 1) -> Sequence[ThreadEntry]:
        """The newest entries up to `last`: as many as are enough, or all."""
        found, few, start, end = list[ThreadEntry](), FIRST_READ, min(last, self.thread.entry_count), last + 1
        while True:
            start = max(0, start - few)
            read = self.state.store.threads.entries(self.thread.workspace, self.thread.id, start, end)
            found = [*await read, *found]
            if not start or is_enough(found):
                return found
            few, end = few * 4, start + 1

    async def load_pending_approvals(self) -> list[Approval]:
        """The approvals of this thread that are pending now, including those of sub-agents."""
        query = ApprovalQuery(statuses=("pending",), thread_id=self.thread.id, limit=MAX_OPEN)
        found = [stored.approval for stored in (await self.services.inbox.list(self.thread.workspace, query)).items]
        ours = [each for each in found if is_thread_id(each.subject.run_id)]
        return [each for each in ours if status_at(each, self.state.clock()) == "pending"]
