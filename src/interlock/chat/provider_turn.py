"""One streamed turn with a model provider: converts the prompt to its messages, and its stream to a reply.

Apart from `chat/providers.py`, which loads it, and its slow library, when the first model is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from interlock.chat.providers import HTML, AnswerNotStreamed, is_whole_answer, to_model_failure
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
TOO_SHORT_LIMIT = "{model} reached its limit before it said anything. Raise max_tokens."
TOO_LARGE = "The answer of {model} is too long to keep. Ask for less at once."
WEB_PAGE = "{model} answered with a web page. Check models.{provider}.url, and any proxy in between."
ODD_ENDING = "The answer of {model} ended in an unknown way ({ending}), maybe within a call. It can be tried again."
REFUSED = "{model} refused to answer this. Put it in other words, or choose another model."
EMPTY = "{model} answered with nothing. It can be tried again."
TRUNCATED = "\n\n[The answer reached the model's limit and ends here.]"
MAX_ANSWER = 1024 * 1024  # characters of one answer: more could not be kept
PROVIDER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # valid as an id or a name for every provider


@dataclass(frozen=True, slots=True)
class ProviderModel:
    """A model at a provider. Each turn is one attempt: the thread's entries determine retries.

    `open_recorded` gives the same model with a recorded answer in place of the network.
    """

    name: str
    api: Model
    settings: Mapping[str, object]
    open_recorded: Callable[[bytes], Model]
    secret: str = field(default="", repr=False)

    async def turn(self, prompt: Prompt) -> AsyncGenerator[Delta | ModelReply]:
        """Stream a turn. Closing it early closes the connection, and the provider stops generating."""
        pieces: list[str] = []
        names = assign_provider_names(prompt.tools)
        request = self._request(prompt, names)
        try:
            length = 0
            async with model_request_stream(self.api, **request) as stream:
                async for event in stream:
                    length += _event_length(event)
                    if length > MAX_ANSWER:
                        raise ModelFailed(TOO_LARGE.format(model=self.name), is_retryable=False)
                    if text := _event_text(event, pieces):
                        pieces.append(text)
                        yield Delta(text)
                response = stream.get()
            reply = _reply(_Answer(response, "".join(pieces)), prompt, self.name, names)
        except ModelFailed:
            raise
        except Exception as error:  # noqa: BLE001 - any exception of a provider's library has to show in the thread
            reply = await self._read_not_streamed(error, prompt, names)
        if rest := reply.text[len("".join(pieces)) :]:
            yield Delta(rest)
        yield reply

    def _request(self, prompt: Prompt, names: ProviderNames) -> dict[str, Any]:
        tools = [_tool(prompt_tool, names) for prompt_tool in prompt.tools]
        return {
            "messages": to_messages(prompt, self.name, names),
            "model_settings": dict(self.settings),
            "model_request_parameters": ModelRequestParameters(function_tools=tools),
        }

    async def _read_not_streamed(self, error: Exception, prompt: Prompt, names: ProviderNames) -> ModelReply:
        """Read the answer that was sent as a whole instead of a stream; any other error is a failure of the model."""
        found = _find_not_streamed(error)
        if found is None:
            raise to_model_failure(error, self.name, self.secret) from None
        if found.content_type == HTML:
            words = WEB_PAGE.format(model=self.name, provider=self.name.partition(":")[0])
            raise ModelFailed(words, is_retryable=True)
        if found.body is None:
            raise ModelFailed(TOO_LARGE.format(model=self.name), is_retryable=False)
        try:
            response = await self._parse_recorded(found.body, self._request(prompt, names))
            text = "\n\n".join(_storable(part.content) for part in response.parts if isinstance(part, TextPart))
            return _reply(_Answer(response, text, is_whole=is_whole_answer(found.body)), prompt, self.name, names)
        except ModelFailed:
            raise
        except Exception as failed:  # noqa: BLE001 - as above
            raise to_model_failure(failed, self.name, self.secret) from None

    async def _parse_recorded(self, body: bytes, request: Mapping[str, Any]) -> ModelResponse:
        """Have the provider's own library parse the answer; nothing is sent."""
        api = self.open_recorded(body)
        if is_whole_answer(body):
            _raise_if_error(body, self.name)
            return await model_request(api, **request)
        async with model_request_stream(api, **request) as stream:
            async for _ in stream:
                pass
            return stream.get()


def _raise_if_error(body: bytes, model: str) -> None:
    """Raise for an error that was sent with the status of a success."""
    match json.loads(body):
        case {"error": {"message": str()} as error}:
            raise ModelHTTPError(500, model, {"error": error})
        case _:
            pass


def _find_not_streamed(error: BaseException | None) -> AnswerNotStreamed | None:
    """Find the exception of our own client, which some libraries wrap in theirs."""
    while error is not None and not isinstance(error, AnswerNotStreamed):
        error = error.__cause__
    return error


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


def _event_length(event: object) -> int:
    match event:
        case PartStartEvent(
            part=TextPart(content=str(text)) | ThinkingPart(content=str(text)) | ToolCallPart(args=str(text))
        ):
            return len(text)
        case PartDeltaEvent(
            delta=TextPartDelta(content_delta=str(text))
            | ThinkingPartDelta(content_delta=str(text))
            | ToolCallPartDelta(args_delta=str(text))
        ):
            return len(text)
        case _:
            return 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """A complete response and its text; `is_whole`: it came as one body, which cannot have been cut off."""

    response: ModelResponse
    text: str
    is_whole: bool = False

    @property
    def calls(self) -> list[ToolCallPart]:
        return [part for part in self.response.parts if isinstance(part, ToolCallPart)]

    @property
    def ending(self) -> str:
        """Return the provider's own word for the end; empty if it sent none."""
        return str((self.response.provider_details or {}).get("finish_reason") or ("none" if self.is_whole else ""))

    @property
    def refusal(self) -> str:
        return _storable(str((self.response.provider_details or {}).get("refusal") or ""))


def _reply(answer: _Answer, prompt: Prompt, model: str, names: ProviderNames) -> ModelReply:
    """Convert an answer. A refusal is the model's last word: what it called before is dropped."""
    response, text, tokens = answer.response, answer.text, answer.response.usage.total_tokens
    if answer.refusal and response.state == "complete":
        return ModelReply("\n\n".join(filter(None, (text, answer.refusal))), tokens=tokens)
    _check(answer, model)
    if not text.strip() and not answer.calls:
        return _empty_reply(answer, prompt, model)
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
    return ModelReply(shown, tool_requests, json.dumps(opaque), tokens)


def _check(answer: _Answer, model: str) -> None:
    """Raise if the response is incomplete: a truncated call must not be proposed with partial arguments."""
    reason = answer.response.finish_reason
    if reason == "content_filter":
        raise ModelFailed(REFUSED.format(model=model), is_retryable=False)
    if not answer.ending or answer.response.state != "complete":
        raise ModelFailed(BROKE_OFF.format(model=model), is_retryable=True)
    if reason == "length" and answer.calls:
        raise ModelFailed(TOO_LONG.format(model=model), is_retryable=True)
    if reason not in ("stop", "tool_call") and not all(_has_whole_arguments(call) for call in answer.calls):
        raise ModelFailed(ODD_ENDING.format(model=model, ending=answer.ending[:40]), is_retryable=True)


def _has_whole_arguments(call: ToolCallPart) -> bool:
    """Return whether the arguments are a complete JSON object: a part of one never is."""
    try:
        return isinstance(json.loads(call.args) if isinstance(call.args, str) else call.args, dict)
    except ValueError:
        return False


def _empty_reply(answer: _Answer, prompt: Prompt, model: str) -> ModelReply:
    """An empty answer to the results of tools ends the turn: the model has nothing to add. To a person it is none."""
    if answer.response.finish_reason == "length":
        raise ModelFailed(TOO_SHORT_LIMIT.format(model=model), is_retryable=False)
    if not prompt.messages or not isinstance(prompt.messages[-1], ToolResult):
        raise ModelFailed(EMPTY.format(model=model), is_retryable=True)
    return ModelReply("", tokens=answer.response.usage.total_tokens)


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
