"""The fields of a form in Slack: made from a tool's JSON Schema and its arguments, and read back exactly.

A number is typed as text, since a number of JSON may have more digits than Slack's own field keeps. What cannot be
shown without being changed (secrets, long texts, characters that nobody sees) is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, Final, Literal

from interlock.core.canonical import canonical, parse_json
from interlock.core.card import visible
from interlock.core.errors import InvalidRequest
from interlock.notify import message_text as words
from interlock.notify.channels.slack.blocks import escape, escape_and_cut, label_object

Json = dict[str, Any]
InputKind = Literal["text", "number", "choice", "json"]
Schema = Mapping[str, object]
MAX_INPUT = 3_000  # characters that Slack's field takes
MAX_OPTIONS = 100
MAX_OPTION = 75  # characters of an option
MAX_INPUTS = 40
MAX_RADIO_OPTIONS = 10  # options that are shown one below the other
ONE_LINE = 80
MISSING: Final = object()  # no value, which is not the same as null
VALUE = "value"  # the action of every field


class InvalidInput(Exception):
    """What was typed cannot be read."""


@dataclass(frozen=True)
class FormInput:
    """`name` is the argument; `current` is its value now, or MISSING."""

    name: str
    kind: InputKind
    required: bool
    current: object = MISSING
    options: Sequence[object] = ()
    nullable: bool = False
    hint: str = ""

    def block(self, block_id: str) -> Json:
        title = escape_and_cut(visible(self.name), 150) or "Answer"
        made: Json = {
            "type": "input",
            "block_id": block_id,
            "label": label_object(f"{title} (JSON)" if self.kind == "json" else title),
            "optional": not self.required or self.current == "",
            "element": self._element(),
        }
        return {**made, "hint": label_object(escape_and_cut(visible(self.hint), 300))} if self.hint else made

    def read(self, state: Mapping[str, Any]) -> object:
        """What was typed or chosen; MISSING leaves the argument out. Raises Unreadable."""
        if self.kind == "choice":
            chosen = state.get("selected_option")
            return self._nothing() if chosen is None else self._chosen(str(chosen.get("value", "")))
        typed = state.get("value")
        if not isinstance(typed, str) or not typed:
            return self._nothing()
        before = self._shown()
        if typed in (before, unescape(before)):  # Slack may show &lt; as <
            return self.current
        return typed if self.kind == "text" else self._parsed(typed)

    def _element(self) -> Json:
        if self.kind == "choice":
            return self._choice()
        shown = self._shown()
        long = self.kind == "json" or len(shown) > ONE_LINE or "\n" in shown
        made: Json = {"type": "plain_text_input", "action_id": VALUE, "multiline": long}
        return {**made, "initial_value": shown} if shown else made

    def _choice(self) -> Json:
        options = [_option(number, value) for number, value in enumerate(self.options)]
        made: Json = {
            "type": "radio_buttons" if len(options) <= MAX_RADIO_OPTIONS else "static_select",
            "action_id": VALUE,
            "options": options,
        }
        at = _index(self.options, self.current)
        return made if at is None else {**made, "initial_option": options[at]}

    def _shown(self) -> str:
        if self.current is MISSING:
            return ""
        if self.kind == "text" and isinstance(self.current, str):
            return self.current
        return canonical(self.current).decode()

    def _nothing(self) -> object:
        if self.current == "" or (self.kind == "text" and self.required):
            return ""
        return None if self.nullable else MISSING

    def _chosen(self, value: str) -> object:
        if not value.isascii() or not value.isdigit() or int(value) >= len(self.options):
            raise InvalidInput("This is none of the choices.")
        return self.options[int(value)]

    def _parsed(self, typed: str) -> object:
        try:
            value = parse_json(typed.strip())
        except InvalidRequest:
            value = MISSING
        if self.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInput("This is not a number.")
        if value is MISSING:
            raise InvalidInput("This is not JSON. Texts stand between quotation marks.")
        return value


def make_inputs(
    args: Mapping[str, object], schema: Schema | None, secret: Sequence[str] = (), *, in_order: bool = False
) -> tuple[list[FormInput], list[str]]:
    """Those that can be changed here, and the names of those that stay as they are.

    What is required comes first, unless all is to be in the order of the arguments.
    """
    shapes = _properties(schema)
    wanted = (schema or {}).get("required")
    required = wanted if isinstance(wanted, list) else []
    found: list[FormInput] = []
    left: list[str] = []
    first = args if in_order else [name for name in (*shapes, *args) if name in required]
    for name in dict.fromkeys((*first, *shapes, *args)):
        current = args.get(name, MISSING)
        made = make_input(name, shapes.get(name), current, is_required=name in required)
        if _is_secret(name, current, secret) or not _can_be_shown(made) or len(found) >= MAX_INPUTS:
            left.append(name)
        else:
            found.append(made)
    return found, left


def make_input(name: str, shape: Schema | None, current: object = MISSING, *, is_required: bool) -> FormInput:
    """By what the schema says; without one, by the value that is there."""
    shape = shape or {}
    types = _types(shape, current)
    nullable = "null" in types and len(types) > 1
    hint = shape.get("description")
    options = _options(shape, types - {"null"})
    kind: InputKind = "choice" if options else _kind(types - {"null"})
    if (
        kind == "text"
        and current is not MISSING
        and not isinstance(current, str)
        and not (nullable and current is None)
    ):
        kind = "json"
    if kind == "text" and current is None:
        current = MISSING
    return FormInput(name, kind, is_required, current, options, nullable, hint if isinstance(hint, str) else "")


def apply_inputs(
    args: Mapping[str, object], inputs: Sequence[FormInput], values: Sequence[object]
) -> dict[str, object]:
    """The arguments with what was typed; those without a field stay."""
    changed = dict(args)
    for each, value in zip(inputs, values, strict=True):
        if value is MISSING:
            changed.pop(each.name, None)
        else:
            changed[each.name] = value
    return changed


def _properties(schema: Schema | None) -> Mapping[str, Schema]:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: shape if isinstance(shape, Mapping) else {} for name, shape in properties.items()}


def _types(shape: Schema, current: object) -> frozenset[str]:
    match shape.get("type"):
        case str(one):
            return frozenset({one})
        case list() as many:
            return frozenset(map(str, many))
        case _:
            return _value_types(current) if not shape else frozenset()


def _value_types(current: object) -> frozenset[str]:
    match current:
        case str():
            return frozenset({"string"})
        case bool():
            return frozenset({"boolean"})
        case int() | float():
            return frozenset({"number"})
        case _:
            return frozenset()


def _kind(types: frozenset[str]) -> InputKind:
    if types == {"string"}:
        return "text"
    return "number" if types and types <= {"number", "integer"} else "json"


def _options(shape: Schema, types: frozenset[str]) -> Sequence[object]:
    """Values to choose from, if there are few enough."""
    values = shape.get("enum")
    if not isinstance(values, list):
        return (True, False) if types == {"boolean"} else ()
    return values if 0 < len(values) <= MAX_OPTIONS else ()


def _option(number: int, value: object) -> Json:
    """One that is too long has a number, by which it can be told from others."""
    text = option_text(value)
    if not text or len(escape(text)) > MAX_OPTION:
        text = f"{number + 1}. {words.shorten(text, MAX_OPTION - 15)}"
    return {"text": label_object(escape_and_cut(text, MAX_OPTION)), "value": str(number)}


def option_text(value: object) -> str:
    return visible(value) if isinstance(value, str) else visible(canonical(value).decode())


def _index(options: Sequence[object], current: object) -> int | None:
    if current is MISSING:
        return None
    same = (number for number, value in enumerate(options) if canonical(value) == canonical(current))
    return next(same, None)


def _is_secret(name: str, current: object, secret: Sequence[str]) -> bool:
    """Also what has a secret somewhere inside: nobody is to type one into Slack."""
    pointer = f"/{name.replace('~', '~0').replace('/', '~1')}"
    marked = isinstance(current, Mapping) and set(current) == {"$secret"}
    return marked or any(each == pointer or each.startswith(f"{pointer}/") for each in secret)


def _can_be_shown(made: FormInput) -> bool:
    """A field must give back exactly what it was given."""
    if made.kind == "choice":
        return made.current is MISSING or _index(made.options, made.current) is not None
    shown = made._shown()
    return len(shown) <= MAX_INPUT and all(line.isprintable() for line in shown.split("\n")) and shown == shown.strip()


def read_inputs(
    inputs: Sequence[FormInput], values: Mapping[str, Any], ids: Sequence[str]
) -> tuple[list[object], dict[str, str]]:
    """What each field holds, and what is wrong with those that cannot be read, by block."""
    read: list[object] = []
    wrong: dict[str, str] = {}
    for each, block_id in zip(inputs, ids, strict=True):
        try:
            read.append(each.read(values.get(block_id, {}).get(VALUE, {})))
        except InvalidInput as error:
            read.append(MISSING)
            wrong[block_id] = str(error)
    return read, wrong


def cut_names(names: Sequence[str], most: int = 10) -> Iterator[str]:
    yield from (words.shorten(visible(name), 100) for name in names[:most])
    if len(names) > most:
        yield f"{len(names) - most} more"
