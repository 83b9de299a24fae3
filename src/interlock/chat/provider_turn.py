"""One streamed turn with a model provider: converts the prompt to its messages, and its stream to a reply.

Apart from `chat/providers.py`, which loads it, and its slow library, when the first model is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from interlock.chat.providers import to_model_failure
from interlock.core.chat.transcript import (
    Delta,
    ModelReply,
    Prompt,
    PromptMessage,
    PromptTool,
    PromptUserMessage,
    ToolRequest,
    ToolResult,
)
from interlock.core.errors import ModelFailed

BROKE_OFF = "The answer of {model} broke off. It can be tried again."
TOO_LONG = "The answer of {model} reached its limit within a call. Ask for less at once, or raise max_tokens."
REFUSED = "{model} refused to answer this. Put it in other words, or choose another model."
EMPTY = "{model} answered with nothing. It can be tried again."
TRUNCATED = "\n\n[The answer reached the model's limit and ends here.]"
PROVIDER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # valid as an id or a name for every provider


@dataclass(frozen=True, slots=True)
class ProviderModel:
    """A model at a provider. Each turn is one attempt: the thread's entries determine retries."""

    name: str
    api: Model
    settings: Mapping[str, object]
    secret: str = field(default="", repr=False)

    async def turn(self, prompt: Prompt) -> AsyncGenerator[Delta | ModelReply]:
        """Stream a turn. Closing it early closes the connection, and the provider stops generating."""
        pieces: list[str] = []
        names = assign_provider_names(prompt.tools)
        tools = [_tool(prompt_tool, names) for prompt_tool in prompt.tools]
        try:
            async with model_request_stream(
                self.api,
                to_messages(prompt, self.name, names),
                model_settings=dict(self.settings),
                model_request_parameters=ModelRequestParameters(function_tools=tools),
            ) as stream:
                async for event in stream:
                    if text := _event_text(event, pieces):
                        pieces.append(text)
                        yield Delta(text)
                response = stream.get()
            reply = _reply(response, "".join(pieces), prompt, self.name, names)
        except ModelFailed:
            raise
        except Exception as error:  # noqa: BLE001 - any exception of a provider's library has to show in the thread
            raise to_model_failure(error, self.name, self.secret) from None
        if rest := reply.text[len("".join(pieces)) :]:
            yield Delta(rest)
        yield reply


ProviderNames = Mapping[str, str]  # of tools: our name → the provider's name


def assign_provider_names(offers: Sequence[PromptTool]) -> ProviderNames:
    """Assign names that providers accept: short, plain and distinct."""
    names: dict[str, str] = {}
    for prompt_tool in offers:
        names[prompt_tool.name] = _unused_name(_plain_name(prompt_tool.name), set(names.values()))
    return names


def to_messages(prompt: Prompt, model: str, names: ProviderNames) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    for message in prompt.messages:
        match message:
            case ModelReply():
                messages += _reply_messages(message, model, names)
            case PromptUserMessage(text):
                _request(messages, prompt.instructions).append(UserPromptPart(text))
            case ToolResult(call_id, tool, content):
                _request(messages, prompt.instructions).append(
                    ToolReturnPart(_provider_name(tool, names), content, call_id)
                )
    return messages


def _request(messages: list[ModelMessage], instructions: str) -> list[Any]:
    """Return the parts of the request being built: messages and tool results since the last reply."""
    if not messages or not isinstance(messages[-1], ModelRequest):
        messages.append(ModelRequest(parts=[], instructions=instructions or None))
    parts: list[Any] = messages[-1].parts
    return parts


def _reply_messages(reply: ModelReply, model: str, names: ProviderNames) -> Iterable[ModelMessage]:
    """Convert a reply: the original response, with signatures, for the same provider; plain text for any other."""
    if kept := _original_response(reply, model):
        return (kept,)
    text = [TextPart(reply.text)] if reply.text else []
    calls = [
        ToolCallPart(_provider_name(tool_request.tool, names), tool_request.args, tool_request.id)
        for tool_request in reply.tool_requests
    ]
    return (ModelResponse(parts=[*text, *calls]),) if text or calls else ()


def _original_response(reply: ModelReply, model: str) -> ModelResponse | None:
    try:
        opaque = json.loads(reply.opaque) if reply.opaque else {}
        if opaque.get("provider") != model.partition(":")[0]:
            return None
        response = ModelMessagesTypeAdapter.validate_python([opaque["response"]])[0]
    except (ValueError, KeyError, AttributeError):
        return None  # written by another version: the plain text is enough
    ids = [part.tool_call_id for part in response.parts if isinstance(part, ToolCallPart)]
    return response if ids == [tool_request.id for tool_request in reply.tool_requests] else None


def _tool(prompt_tool: PromptTool, names: ProviderNames) -> ToolDefinition:
    return ToolDefinition(
        name=names[prompt_tool.name],
        description=prompt_tool.description,
        parameters_json_schema=dict(prompt_tool.schema),
        strict=False,
    )


def _event_text(event: object, before: Sequence[str]) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            return ("\n\n" if before else "") + _storable(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return _storable(text)
        case _:
            return ""


def _reply(response: ModelResponse, text: str, prompt: Prompt, model: str, names: ProviderNames) -> ModelReply:
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    _check(response, text, calls, model)
    named = _with_ids(response.parts, prompt.messages)
    kept = replace(response, parts=[_with_provider_name(part) for part in named])
    ours = {theirs: own for own, theirs in names.items()}
    tool_requests = tuple(
        ToolRequest(part.tool_call_id, ours.get(part.tool_name) or _storable(part.tool_name), _args(part))
        for part in named
        if isinstance(part, ToolCallPart)
    )
    opaque = {
        "provider": model.partition(":")[0],
        "response": ModelMessagesTypeAdapter.dump_python([kept], mode="json")[0],
    }
    shown = text + TRUNCATED if response.finish_reason == "length" else text
    return ModelReply(shown, tool_requests, json.dumps(opaque), response.usage.total_tokens)


def _check(response: ModelResponse, text: str, calls: Sequence[ToolCallPart], model: str) -> None:
    """Raise if the response is incomplete: a truncated call must not be proposed with partial arguments."""
    ending = response.finish_reason
    ended = (response.provider_details or {}).get("finish_reason")  # as sent by the provider, not inferred
    if not ended or response.state != "complete":
        raise ModelFailed(BROKE_OFF.format(model=model), is_retryable=True)
    if ending == "length" and calls:
        raise ModelFailed(TOO_LONG.format(model=model), is_retryable=True)
    if ending == "content_filter":
        raise ModelFailed(REFUSED.format(model=model), is_retryable=False)
    if not text.strip() and not calls:
        raise ModelFailed(EMPTY.format(model=model), is_retryable=True)


def _with_ids(parts: Sequence[Any], messages: Sequence[PromptMessage]) -> list[Any]:
    """Give every call of a thread a unique id: a reused one would refer to the earlier call."""
    used = {tool_request.id for each in messages if isinstance(each, ModelReply) for tool_request in each.tool_requests}
    turn = sum(isinstance(each, ModelReply) for each in messages)
    named: list[Any] = []
    for number, part in enumerate(parts):
        if not isinstance(part, ToolCallPart):
            named.append(part)
            continue
        given = part.tool_call_id
        fits = given not in used and PROVIDER_NAME.fullmatch(given) and not given.startswith("pyd_ai_")
        own = given if fits else _unused_name(f"call_{turn}_{number}", used)
        used.add(own)
        named.append(replace(part, tool_call_id=own))
    return named


def _with_provider_name(part: Any) -> Any:
    """Replace characters in a name that the model invented: else the provider rejects the next request."""
    return replace(part, tool_name=_plain_name(part.tool_name)) if isinstance(part, ToolCallPart) else part


def _provider_name(tool: str, names: ProviderNames) -> str:
    return names.get(tool) or _plain_name(tool)


def _plain_name(name: str) -> str:
    return name if PROVIDER_NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60] or "_"


def _unused_name(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    return name


def _args(call: ToolCallPart) -> str:
    """Return the arguments as the model wrote them, or an empty object."""
    match call.args:
        case str() as text:
            return _storable(text) or "{}"
        case None:
            return "{}"
        case args:
            return json.dumps(args)


def _storable(text: str) -> str:
    """Replace what no database can store: NUL and unpaired surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
