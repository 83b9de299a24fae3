"""Texts on the card of a tool that only an agent's program declared: the server's words first, the agent's marked.

A description and a preview that come with a call are stored together in the preview field, after a mark that no other
preview can begin with, so that their author is known without the tool's definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import NamedTuple, cast

from interlock.core.call import Args, RedactedArgs, ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.card import Finding, escape_invisible, find_findings, head_and_tail
from interlock.core.ledger.event import Payload
from interlock.core.masking import mask_text
from interlock.core.sentence import (
    MAX_NAME,
    GeneratedSentence,
    argument_order,
    arguments_sentence,
    exact_title,
    tool_title,
)

MAX_NAMED = 10  # hidden arguments that a finding spells out
AGENT_SECRET = "agent_secret:"  # noqa: S105  the id of a finding
_MARK = "\x1eagent\x1e"
# Schema keywords about values; all others are annotations.
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_NESTED = frozenset(
    {
        *("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"),
        *("contains", "propertyNames", "not", "if", "then", "else"),
    }
)
_PLAIN = frozenset(
    {
        *("type", "enum", "const", "required", "pattern", "multipleOf", "uniqueItems", "dependentRequired"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
        *("minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties"),
        *("$ref", "$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor"),
    }
)


@dataclass(frozen=True, slots=True)
class AgentText:
    """A description or a preview of one call, in the words of the agent's program."""

    text: str

    def __call__(self, _: Args) -> str:
        return self.text


class CardTexts(NamedTuple):
    """The texts of a card: `sentence` and `preview` are the server's or the tool's own, the others the agent's."""

    sentence: str
    preview: str = ""
    agent_description: str = ""
    agent_preview: str = ""


def call_sentence(spec: ToolSpec, shown: RedactedArgs) -> str:
    """The tool's own sentence if it is trusted, else the server's: the tool and its arguments."""
    if not _is_agent_text(spec) and not isinstance(spec.describe, GeneratedSentence):
        own = spec.described(shown.value)
        if own:
            return own
    order = () if spec.declared else argument_order(spec.schema)  # an agent's order could push arguments out of sight
    return arguments_sentence(_title(spec), shown.value, shown.secrets, order=order)


def stored_preview(spec: ToolSpec, args: bytes, shown: RedactedArgs, preview: str) -> str:
    """The value of the preview field, with secrets masked; the agent's words have a mark."""
    if not preview and not spec.declared and type(spec.describe) is str:  # the agent has said nothing
        return ""
    if not _is_agent_text(spec):
        preview = mask_text(preview, args, shown.data) if preview and spec.secret else preview
        return f" {preview}" if preview.startswith(_MARK) else preview
    described = spec.described(shown.value)
    said = {"description": described, "preview": preview}
    kept = {name: mask_text(text, args, shown.data) for name, text in said.items() if text}
    return _MARK + canonical(kept).decode() if kept else ""


def card_texts(spec: ToolSpec, payload: Payload, shown: RedactedArgs) -> CardTexts:
    """The stored texts by author. A row older than the mark may have the agent's description as its sentence."""
    sentence, preview = payload.sentence or "", payload.preview or ""
    if preview.startswith(_MARK):
        said = cast(dict[str, str], read_canonical(preview.removeprefix(_MARK).encode()))
        return CardTexts(sentence, "", said.get("description", ""), said.get("preview", ""))
    if not spec.declared or not sentence:
        return CardTexts(sentence, preview)
    own = call_sentence(spec, shown)
    described = "" if sentence in (own, f"Execute {spec.name}?") else sentence
    return CardTexts(own, "", described, preview)


def call_findings(spec: ToolSpec, value: Args, secrets: frozenset[str], data: bytes = b"") -> tuple[Finding, ...]:
    """Findings in redacted arguments, plus one alarm for all that only the agent's program declares secret."""
    found = find_findings(value, spec.known_arguments, secrets, data)
    return found + _hidden_by_agent(secrets) if spec.declared and secrets else found


def _hidden_by_agent(secrets: frozenset[str]) -> tuple[Finding, ...]:
    names = [_shorten(escape_invisible(pointer.removeprefix("/"))) for pointer in sorted(secrets)]
    more = [f"{len(names) - MAX_NAMED:,} more"] if len(names) > MAX_NAMED else []
    many = f"{len(names):,} argument{'' if len(names) == 1 else 's'}"
    message = f"The agent hides {many} from you: {', '.join(names[:MAX_NAMED] + more)}."
    return (Finding(AGENT_SECRET, AGENT_SECRET.removesuffix(":"), "alarm", "", message),)


def shown_schema(spec: ToolSpec) -> Mapping[str, object] | None:
    """The schema for cards and forms; titles, descriptions and other annotations only if the definition is trusted."""
    return _strip_annotations(spec.schema) if spec.declared and spec.schema is not None else spec.schema


def declared_effect_hint(spec: ToolSpec, effect: str, rules: Callable[[str], Sequence[object]]) -> str:
    """What an admin can do if other rules would match by the effect that is only declared."""
    if effect or not (spec.declared and spec.effect):
        return ""
    here = rules(effect)
    if all(rule in here for rule in rules(spec.effect)):
        return ""
    return f" That {spec.name} is a {spec.effect} is only declared by its agent. {_how_to_pin(spec)}"


def unknown_tool_reason(tool: str, spec: ToolSpec) -> str:
    return f"{tool} is not a known tool.{f' {_how_to_pin(spec)}' if spec.declared else ''}"


def _how_to_pin(spec: ToolSpec) -> str:
    """How to pin a tool, with its effect: the definition of a call that was only refused is not stored."""
    return f"An admin can pin it: interlock tools pin {quote(spec.name)} --effect EFFECT"


def _title(spec: ToolSpec) -> str:
    if spec.declared:
        return exact_title(spec.name)
    return spec.describe.title if isinstance(spec.describe, GeneratedSentence) else tool_title(spec.name)


def _is_agent_text(spec: ToolSpec) -> bool:
    return spec.declared or isinstance(spec.describe, AgentText) or isinstance(spec.preview, AgentText)


def _shorten(text: str) -> str:
    head, tail = head_and_tail(text, MAX_NAME)
    return f"{head}…{tail}" if tail else head


def _strip_annotations(schema: object) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for word, value in cast(Mapping[str, object], schema).items():
        if word in _PLAIN:
            found[word] = value
        elif word in _NESTED | _LISTS | _NAMED:
            found[word] = _strip_inner(word, value)
    return found


def _strip_inner(word: str, value: object) -> object:
    """Strip annotations inside a keyword; old drafts allow lists and mixtures, and what is no schema is kept."""
    match value:
        case Mapping() if word in _NAMED:
            return {name: _strip_inner("", each) for name, each in value.items()}
        case Mapping():
            return _strip_annotations(value)
        case list():
            return [_strip_inner("", each) for each in value]
        case _:
            return value
