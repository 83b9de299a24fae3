"""A chat as the AI SDK keeps it: messages with their parts, put together as its own client does from the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from interlock.core.chat.thread import Thread, ThreadEntry
from interlock.server.protocols.ai_sdk.stream import AiSdkContext, MessagePosition, MessageStream, Part, message_id

MAX_MESSAGES = 20  # messages of the person, with what came of each


async def load_history(reader: AiSdkContext, thread: Thread, lines: Sequence[ThreadEntry]) -> list[Part]:
    """The newest messages, as they stand now."""
    messages: list[Part] = []
    for line in [line for line in lines if line.kind == "said"][-MAX_MESSAGES:]:
        messages.append(_user_message(thread, line))
        told = [
            part
            for each in await MessageStream(reader, thread, MessagePosition(line.n), lines).news()
            for part in _parts(each.data)
        ]
        answer = fold_parts(told)
        messages += [{"id": message_id(thread, line.n), "role": "assistant", "parts": answer}] if answer else []
    return messages


def fold_parts(told: Iterable[Part]) -> list[Part]:
    """What the client has after these; parts that only say that something begins or ends leave nothing."""
    parts: list[Part] = []
    for part in told:
        fold = FOLDS.get(cast(str, part["type"]))
        if fold is not None:
            fold(parts, part)
    return parts


def _user_message(thread: Thread, line: ThreadEntry) -> Part:
    parts = [{"type": "text", "text": line.body["text"]}]
    return {"id": f"{message_id(thread, line.n)}.said", "role": "user", "parts": parts}


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
