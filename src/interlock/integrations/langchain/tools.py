"""A LangChain tool for the gate: its spec and schema, its arguments as plain JSON, and its result as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from interlock.core.call import MAX_TEXT_LENGTH, Args, ToolSpec
from interlock.core.canonical import canonical_args
from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.presenters.model_message import message_text


@dataclass(frozen=True)
class LangChainTool:
    """A tool inspected once. `model` is None if the schema is plain JSON, as for MCP tools."""

    tool: Any
    spec: ToolSpec
    model: type[BaseModel] | None
    fixed: frozenset[str]

    def to_json_args(self, args: Args) -> Args:
        """The arguments as the tool will parse them, with fixed defaults; unchanged if they have no JSON form.

        Defaults from a factory are left to the tool, since a replayed call must have the same arguments.
        """
        if self.model is None:
            return args
        try:
            made = self.model.model_validate(args)
        except ValidationError as error:
            raise InvalidRequest(f"{self.spec.name}: {_first_problem(error)}") from None
        given = made.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
        unset = set(self.fixed - made.model_fields_set)
        fixed = made.model_dump(mode="json", by_alias=True, include=unset, warnings=False) if unset else {}
        return {**fixed, **given} if _round_trips(self.model, made, given) else args


def inspect_tool(tool: Any, said: str | ToolSpec, name: str) -> LangChainTool:
    """Inspect a tool, without arguments that LangGraph injects: neither reviewers nor the model see those."""
    shape = None if tool is None else tool.tool_call_schema
    model = shape if isinstance(shape, type) and issubclass(shape, BaseModel) else None
    schema = model.model_json_schema() if model else shape if isinstance(shape, Mapping) else None
    spec = said if isinstance(said, ToolSpec) else ToolSpec(name, said)
    fields = model.model_fields.items() if model else ()
    fixed = frozenset(name for name, each in fields if each.default_factory is None)
    return LangChainTool(tool, spec if spec.schema else replace(spec, schema=_without_titles(schema)), model, fixed)


def single_use_tool(tool: Any, spec: ToolSpec, args: Args) -> Any:
    """The tool restricted to one approved call, so that later middleware can neither repeat nor change it."""
    if not isinstance(tool, BaseTool):
        return tool
    guarded, left = tool.model_copy(), [canonical_args(args)]
    shown = (spec.schema or {}).get("properties")
    names = {*args, *(shown if isinstance(shown, Mapping) else ())}  # all others are injected

    def check(wanted: Any) -> None:
        given = {name: value for name, value in wanted["args"].items() if name in names}
        if not left or canonical_args(given) != left.pop():
            raise Misconfigured(
                f"{spec.name}: middleware behind the gate repeated or changed a call. Put the gate last."
            )

    def invoke(wanted: Any, *more: Any, **others: Any) -> Any:
        check(wanted)
        return tool.invoke(wanted, *more, **others)

    async def ainvoke(wanted: Any, *more: Any, **others: Any) -> Any:
        check(wanted)
        return await tool.ainvoke(wanted, *more, **others)

    object.__setattr__(guarded, "invoke", invoke)
    object.__setattr__(guarded, "ainvoke", ainvoke)
    return guarded


def find_model_message(state: Any, key: str, call_id: str) -> AIMessage | None:
    """The message of the model that contains the call."""
    messages: Any = state if isinstance(state, list) else None
    if messages is None:
        messages = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
    for message in reversed(messages or ()):
        if isinstance(message, AIMessage) and any(call["id"] == call_id for call in message.tool_calls):
            return message
    return None


def model_text(turn: AIMessage | None) -> str:
    """The model's text beside its calls, without characters that cannot be stored."""
    return str(turn.text).replace("\x00", "").encode("utf-8", "replace").decode()[:MAX_TEXT_LENGTH] if turn else ""


def result_content(result: Any, call_id: str) -> object:
    """The result for the ledger: the content that the model gets."""
    match result:
        case ToolMessage():
            return result.content
        case Command(update=Mapping() as update):
            return next((m.content for m in update.get("messages", ()) if _is_about(m, call_id)), "done")
        case Command():
            return "done"
        case list():
            return [result_content(each, call_id) for each in result]
        case _:
            return result


def message_content(value: object) -> str | list[Any]:
    """The content of a message: text, or the content blocks that a tool returned."""
    if isinstance(value, list | tuple) and value and all(isinstance(v, Mapping) and "type" in v for v in value):
        return list(value)
    return message_text(value)


def _is_about(message: object, call_id: str) -> bool:
    return isinstance(message, ToolMessage) and message.tool_call_id == call_id


def _round_trips(model: type[BaseModel], made: BaseModel, plain: Args) -> bool:
    """Whether the JSON form validates to the same values; a secret that prints as asterisks does not."""
    try:
        again = model.model_validate(plain)
    except ValidationError:
        return False
    return again.model_dump(exclude_unset=True) == made.model_dump(exclude_unset=True)


def _without_titles(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return schema and {name: value for name, value in schema.items() if name not in ("title", "description")}


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'arguments'}: {first['msg']}."
