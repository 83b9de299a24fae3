"""Sentences about calls that are made from the tool's name and its arguments, and checks of templates for others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from string import Formatter
from unicodedata import category

from interlock.core.canonical import canonical
from interlock.core.errors import did_you_mean

MAX_ARGUMENTS = 8  # in a sentence; the card has all of them
MAX_NAME = 60
MAX_VALUE = 160
MAX_TEMPLATE = 2_000  # characters of a sentence or preview in the configuration
HIDDEN = "(hidden)"
# A short name of plain words reads as words. One that begins with `run` would read like the title of another tool.
_WORDS = re.compile(r"(?!run(?:_|$))[a-z][a-z0-9]*(?:_[a-z0-9]+){0,3}")
_NAME = re.compile(r"[\w.-]+")
_BARE = re.compile(r"[^\W\d_/][^\",=…]*|[/@#._][^\",=…]*")  # can only be read as text
_ARGUMENT = re.compile(r"\{([^{}!:.\[]+)\}")  # a template that is one argument as it is
_LITERALS = frozenset({"true", "false", "null"})


@dataclass(frozen=True, slots=True)
class GeneratedSentence:
    """The `describe` of a tool without words of its own: a title, and the arguments."""

    title: str

    def __call__(self, shown: Mapping[str, object]) -> str:
        return arguments_sentence(self.title, shown)


def tool_title(name: str) -> str:
    """The name of a known tool as the beginning of a sentence: "Delete file" for `delete_file`.

    A name that is no short list of plain words is kept as it is: two tools never have the same title.
    """
    is_words = len(name) <= MAX_NAME and _WORDS.fullmatch(name)
    return name.replace("_", " ").capitalize() if is_words else exact_title(name)


def exact_title(name: str) -> str:
    """The title of a tool whose name an agent's program chose: it must not read as words of the server."""
    return f"Run {_name(name)}"


def arguments_sentence(
    title: str, shown: Mapping[str, object], secrets: Set[str] = frozenset(), *, order: Iterable[str] = ()
) -> str:
    """List redacted arguments after a title, those of `order` first; `secrets` are the pointers to hidden values."""
    first = [name for name in order if name in shown] if len(shown) <= MAX_ARGUMENTS else []  # no order may hide one
    names = list(dict.fromkeys([*first, *shown]))
    listed = [_argument(name, shown[name], secrets) for name in names[:MAX_ARGUMENTS]]
    more = len(shown) - len(listed)
    listed += [f"and {more} more {'argument' if more == 1 else 'arguments'}"] if more else []
    return f"{title}: {', '.join(listed)}" if listed else title


def argument_order(schema: Mapping[str, object] | None) -> tuple[str, ...]:
    """The arguments as the author of a schema ordered them, as the card shows them.

    Where they are sorted, the order was lost on the way: then required arguments come first, in their own order.
    """
    properties, required = (schema or {}).get("properties"), (schema or {}).get("required")
    names = list(properties) if isinstance(properties, Mapping) else []
    if names == sorted(names) and isinstance(required, list):
        known = set(names)
        names = [*(name for name in required if isinstance(name, str) and name in known), *names]
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class TemplatePreview:
    """A preview that is a template over the arguments, as the configuration has it: it looks nothing up."""

    template: str

    def __call__(self, args: Mapping[str, object]) -> str:
        return self.template.format_map(_GivenArguments(args))


def fill_arguments(templates: Mapping[str, object], args: Mapping[str, object]) -> dict[str, object]:
    """Arguments for a look-up from those of a call: `{path}` alone is the value itself, left out if it is missing."""
    filled: dict[str, object] = {}
    for name, template in templates.items():
        alone = _ARGUMENT.fullmatch(template) if isinstance(template, str) else None
        if alone is None:
            filled[name] = TemplatePreview(template)(args) if isinstance(template, str) else template
        elif alone[1] in args:
            filled[name] = args[alone[1]]
    return filled


class _GivenArguments(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return "(not given)"


def template_problem(template: str, known: Collection[str] | None) -> str:
    """Why a template cannot be filled in; empty if it can. `known` are the names of arguments, None if any may come."""
    if len(template) > MAX_TEMPLATE:
        return f"it is longer than {MAX_TEMPLATE:,} characters"
    try:
        names = template_names(template)
    except ValueError as error:
        return f"it is no template ({error}); write {{{{ and }}}} for braces"
    unknown = next((name for name in names if name.isdigit() or (known is not None and name not in known)), None)
    return "" if unknown is None else f"there is no argument {{{unknown}}}{did_you_mean(unknown, known or ())}"


def template_names(template: str) -> list[str]:
    """The arguments that a template names; raises ValueError if it is no template."""
    parts = [(field, form or "") for _, field, form, _ in Formatter().parse(template) if field is not None]
    if any("{" in form for _, form in parts):
        raise ValueError("a width or format is not taken from an argument")  # which could make it huge
    if any(not field for field, _ in parts):
        raise ValueError("{} names no argument")
    return [re.split(r"[.\[]", field)[0] for field, _ in parts]


def _argument(name: str, value: object, secrets: Set[str]) -> str:
    pointer = f"/{name.replace('~', '~0').replace('/', '~1')}"
    return f"{_name(name)} = {HIDDEN if pointer in secrets else _value(value)}"


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) and len(name) <= MAX_NAME else _quoted(name, MAX_NAME)


def _value(value: object) -> str:
    if not isinstance(value, str):
        text = canonical(value).decode()
        return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… ({len(text):,} characters)"
    is_bare = _BARE.fullmatch(value) and value == value.strip() and value not in _LITERALS and len(value) <= MAX_VALUE
    return value if is_bare else _quoted(value, MAX_VALUE)


def _quoted(text: str, limit: int) -> str:
    """Quote a text; a combining mark at its start would join the quotation mark, so it gets a base character."""
    head = text[:limit].replace('"', '""')
    head = f"◌{head}" if head and (head[0] == "◌" or category(head[0])[0] == "M") else head
    return f'"{head}"' if len(text) <= limit else f'"{head}"… ({len(text):,} characters)'
