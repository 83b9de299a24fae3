"""Interrupt payloads of LangGraph, in the current and the legacy shape, their answers, and a config's switches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from interlock.core.call import Args, ToolSpec
from interlock.core.canonical import canonical_args
from interlock.core.decision import KINDS, MAX_COMMENT, Acknowledgement, Approve, Decision, Edit, Reject, Respond
from interlock.core.errors import InvalidDecision, InvalidRequest, Problem

Shape = Literal["hitl", "legacy"]
RECHECK = "look again"  # the resume value of an automatic resume: it decides nothing
LEGACY_TYPES = {"accept": "approve", "ignore": "reject", "response": "respond"}  # decision types of the legacy shape
NO_MARKUP = re.compile(r"[\w .,:;'\"@$€%+/=?&-]*")
PYTHON_TYPES: Mapping[str, Any] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


SWITCHES_KEY = "tool_approvals"  # key in a config, as the Open Agent Platform names it
SWITCH_SECTIONS = ("mcp_config", "rag")  # sections of a config with switches of their own, for their own tools
SAVED_SWITCHES_KEY = "interlock_tool_approvals"  # the sections' switches, in the config of a resumed thread


def read_switch(configurable: Mapping[str, Any], tool: str, *, from_config: bool) -> str:
    """The switch of a tool in a graph's configuration: "on", "off", or "" if it says nothing about the tool.

    Whoever starts the graph may require approval; only `from_config` lets them lift it. The map of a section speaks of
    the tools that it names; with a map for all tools, one that it does not name needs no approval.
    """
    every = configurable.get(SWITCHES_KEY)
    maps = [every, *section_switches(configurable).values(), *_saved_switches(configurable)]
    named = [switches[tool] for switches in maps if isinstance(switches, Mapping) and tool in switches]
    if any(value is not False for value in named):
        return "on"
    return "off" if from_config and (named or isinstance(every, Mapping)) else ""


def kept_switches(configurable: Mapping[str, Any]) -> dict[str, Any]:
    """The switches that a resumed thread needs, without anything else of the sections: they may hold secrets."""
    of_sections = [*section_switches(configurable).values(), *_saved_switches(configurable)]
    kept = {SAVED_SWITCHES_KEY: of_sections} if of_sections else {}
    return {SWITCHES_KEY: configurable[SWITCHES_KEY], **kept} if SWITCHES_KEY in configurable else kept


def section_switches(configurable: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in SWITCH_SECTIONS:
        section = configurable.get(name)
        given = section.get(SWITCHES_KEY) if isinstance(section, Mapping) else getattr(section, SWITCHES_KEY, None)
        if isinstance(given, Mapping):
            found[name] = dict(given)
    return found


def _saved_switches(configurable: Mapping[str, Any]) -> list[Any]:
    saved = configurable.get(SAVED_SWITCHES_KEY)
    return saved if isinstance(saved, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptRequest:
    """The interrupt of a pending call. `answered` is the number of resume values that its task had before."""

    approval_id: str
    args_sha256: str
    spec: ToolSpec
    args: Args
    words: str
    answered: int = 0

    def value(self, shape: Shape) -> Any:
        mark = {"approval_id": self.approval_id, "args_sha256": self.args_sha256, "answered": self.answered}
        allowed = [kind for kind in KINDS if not self.spec.decisions or kind in self.spec.decisions]
        if shape == "hitl":
            request = {"name": self.spec.name, "args": self.args, "description": self.words}
            review = {"action_name": self.spec.name, "allowed_decisions": allowed}
            return {"action_requests": [request], "review_configs": [review], **mark}
        config = {f"allow_{old}": kind in allowed for old, kind in LEGACY_TYPES.items() if old != "response"}
        config |= {"allow_respond": "respond" in allowed, "allow_edit": "edit" in allowed}
        request = {"action": self.spec.name, "args": self.args}
        return [{"action_request": request, "config": config, "description": self.words, **mark}]


def safe_sentence(spec: ToolSpec, args: Args) -> str:
    """A description for front ends, which render Markdown; a generic one if it could hold markup or links."""
    words = spec.sentence(args)
    markup = any(part in words for part in ("://", "www.", "__"))
    return f"Execute {spec.name}?" if markup or not NO_MARKUP.fullmatch(words) else words


@dataclass(frozen=True, slots=True)
class InterruptMark:
    """The identification of an interrupt, as stored in the checkpoint."""

    approval_id: str
    args_sha256: str
    answered: int


def read_mark(value: object) -> InterruptMark | None:
    """Read the mark; None for an interrupt that is not Interlock's."""
    inner = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
    if not isinstance(inner, Mapping):
        return None
    match inner.get("approval_id"), inner.get("args_sha256"), inner.get("answered"):
        case str(approval_id), str(sha256), int(answered):
            return InterruptMark(approval_id, sha256, answered)
        case _:
            return None


def parse_decision(answer: object, spec: ToolSpec, shown: InterruptMark) -> Decision:
    """Parse an answer in either shape. Strict: anything but exactly one decision about this very call is invalid."""
    said = _single_decision(answer)
    for name in ("approval_id", "args_sha256"):
        if said.get(name, getattr(shown, name)) != getattr(shown, name):
            raise _invalid(f"The answer is for another call: its {name} differs.")
    seen = Acknowledgement(shown.args_sha256)
    kind = said.get("type")
    match LEGACY_TYPES.get(kind, kind) if isinstance(kind, str) else None:
        case "approve":
            return Approve(seen)
        case "edit":
            return Edit(_edited_arguments(said, spec), seen)
        case "respond":
            return Respond(_text(said, kind, "an answer"), seen=seen)
        case "reject":
            return Reject(_text(said, kind, "")[:MAX_COMMENT], seen)
        case _:
            raise _invalid(f"The type of an answer is one of {', '.join((*KINDS, *LEGACY_TYPES))}.")


def coerce_arguments(args: Args, schema: Mapping[str, Any] | None) -> dict[str, object]:
    """Convert text values to the types of the schema where they fit: some front ends have only text fields."""
    properties = (schema or {}).get("properties", {})
    return {name: _coerce_value(value, properties.get(name), schema or {}) for name, value in args.items()}


def _single_decision(answer: object) -> Mapping[str, Any]:
    inner = answer.get("decisions", answer) if isinstance(answer, Mapping) else answer
    if isinstance(inner, list | tuple):
        if len(inner) != 1:
            raise _invalid(f"This question takes one decision, and the answer has {len(inner)}.")
        inner = inner[0]
    if not isinstance(inner, Mapping):
        raise _invalid('An answer is an object with a type, such as {"type": "approve"}.')
    return inner


def _edited_arguments(said: Mapping[str, Any], spec: ToolSpec) -> bytes:
    action = said.get("edited_action", said.get("args"))
    if not isinstance(action, Mapping) or not isinstance(action.get("args"), Mapping):
        raise _invalid("An edit carries the name of the tool and its arguments.")
    if action.get("name", action.get("action")) != spec.name:
        raise _invalid(f"An edit changes arguments, never the tool: it is {spec.name}.")
    try:
        return canonical_args(coerce_arguments(action["args"], spec.schema))
    except InvalidRequest as error:
        raise _invalid(error.message) from None


def _text(said: Mapping[str, Any], kind: object, needed: str) -> str:
    text = said.get("args" if kind in LEGACY_TYPES else "message")
    if isinstance(text, str) and (text or not needed):
        return text
    if needed:
        raise _invalid(f"It needs {needed} in words.")
    return ""


def _coerce_value(value: object, schema: object, root: Mapping[str, Any]) -> object:
    if not isinstance(value, str) or not isinstance(schema, Mapping):
        return value
    wanted = set(_types(schema, root, 8))
    if not wanted or "string" in wanted:
        return value
    try:
        found = json.loads(value)
    except ValueError:
        return value  # the gate refuses it with a message to the person
    fits = any(isinstance(found, PYTHON_TYPES.get(name, ())) for name in wanted)
    return value if not fits or (isinstance(found, bool) and "boolean" not in wanted) else found


def _types(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterator[str]:
    """The JSON types that a schema accepts, through references and alternatives."""
    kinds = schema.get("type", ())
    yield from [kinds] if isinstance(kinds, str) else kinds
    if not kinds and "enum" in schema:
        yield from {"string" for each in schema["enum"] if isinstance(each, str)}
    inner = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
    reference = schema.get("$ref", "")
    inner += [root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})] if reference else []
    for each in inner if depth else ():
        yield from _types(each, root, depth - 1)


def _invalid(message: str) -> InvalidDecision:
    return InvalidDecision(f"{message} Nothing was decided.", [Problem("", message)])
