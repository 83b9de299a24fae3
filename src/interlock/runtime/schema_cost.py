"""How much work it is to check a value by a JSON Schema, counted beforehand: a schema is a program, and some never end.

The count is of what a checker might have to do, whatever fits: a step for each part of the schema that meets a part of
the value, more for what takes longer. A schema that refers to itself may be counted as well as any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

MAX_STEPS = 20_000  # steps: about 20 ms to count them
MAX_SCHEMA = 128 * 1024  # bytes
MAX_PATTERNS = 200
_BACKTRACKING = re.compile(r"\(\?[=!>]|\(\?<[=!]|\\[1-9k]")  # what only an engine that tries again and again can match
_COMBINATORS = ("allOf", "anyOf", "oneOf")
_CONDITIONALS = ("not", "if", "then", "else")
_MEMBERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS = ("contains", "additionalItems", "unevaluatedItems")
_DYNAMIC_REFS = ("$dynamicRef", "$recursiveRef")
_NONLINEAR_KEYWORDS = frozenset({*_DYNAMIC_REFS, "$ref", "unevaluatedProperties", "unevaluatedItems"})


class SchemaTooCostly(Exception):
    """It would take longer than anybody should have to wait."""


def count_steps(schema: object, value: object) -> int:
    """Raises TooMuch beyond the most, and for references that cannot be followed by looking at the schema alone."""
    count = _StepCounter(schema)
    count.meet(schema, value)
    return count.steps


class SchemaShape(NamedTuple):
    """Of a schema: `parts` may all meet one part of a value; a `tame` one meets each part of a value only once."""

    parts: int
    patterns: int
    tame: bool


def measure_schema(schema: object) -> SchemaShape:
    match schema:
        case Mapping():
            inner = [measure_schema(each) for each in schema.values()]
            parts, texts = 1 + 50 * ("multipleOf" in schema), _patterns(schema)
            tame = schema.keys().isdisjoint(_NONLINEAR_KEYWORDS) and not any(
                _BACKTRACKING.search(text) for text in texts
            )
        case list() | tuple():
            inner = [measure_schema(each) for each in schema]
            parts, texts, tame = len(schema) // 20, [], True
        case _:
            return SchemaShape(0, 0, tame=True)
    return SchemaShape(
        parts + sum(each.parts for each in inner),
        len(texts) + sum(each.patterns for each in inner),
        tame and all(each.tame for each in inner),
    )


def _patterns(schema: Mapping[str, object]) -> list[str]:
    """The patterns that stand in this part."""
    own = schema.get("pattern")
    return [*([own] if isinstance(own, str) else []), *_mapping(schema.get("patternProperties"))]


class _StepCounter:
    def __init__(self, root: object) -> None:
        self.steps = 0
        self._root = root
        self._following = 0  # references within references, without a step into the value

    def add(self, more: int) -> None:
        self.steps += more
        if self.steps > MAX_STEPS:
            raise SchemaTooCostly

    def meet(self, schema: object, value: object) -> None:
        self.add(1)
        if not isinstance(schema, Mapping):
            return
        for word, inner in schema.items():
            self._apply(word, inner, value)
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:  # finds out again what was evaluated
            for word in (*_COMBINATORS, *_CONDITIONALS, "$ref"):
                if word in schema:
                    self._apply(word, schema[word], value)

    def _apply(self, word: str, inner: object, value: object) -> None:
        if word == "$ref":
            self._refer(inner, value)
        elif word in _DYNAMIC_REFS:
            raise SchemaTooCostly
        elif word in _COMBINATORS:
            self._each(_list(inner), value)
        elif word in _CONDITIONALS:
            self.meet(inner, value)
        elif word in ("dependentSchemas", "dependencies"):
            self._each(_mapping(inner).values(), value)
        else:
            self._apply_inside(word, inner, value)

    def _apply_inside(self, word: str, inner: object, value: object) -> None:
        match value:
            case Mapping():
                self._members(word, inner, value)
            case list() | tuple():
                self._items(word, inner, value)
            case str():
                self._text(word, inner, value)
            case float() if word == "multipleOf":
                self.add(50)  # of numbers with hundreds of digits
        if word in ("enum", "required", "const"):
            self.add(len(_list(inner)) // 20)

    def _members(self, word: str, inner: object, value: Mapping[str, object]) -> None:
        if word == "properties":
            for name, schema in _mapping(inner).items():
                if name in value:
                    self.meet(schema, value[name])
        elif word == "patternProperties":
            for pattern, schema in _mapping(inner).items():
                for name in value:
                    self._text("pattern", pattern, name)
                self._all(schema, value.values())
        elif word in _MEMBERS:
            self._all(inner, value if word == "propertyNames" else value.values())

    def _items(self, word: str, inner: object, value: list[object] | tuple[object, ...]) -> None:
        if word in _ITEMS or (word == "items" and isinstance(inner, Mapping)):
            self._all(inner, value)
        elif word in ("items", "prefixItems"):
            for schema, item in zip(_list(inner), value, strict=False):
                self.meet(schema, item)
        elif word == "uniqueItems":
            self.add(len(value) // 10)

    def _text(self, word: str, inner: object, value: str) -> None:
        if word == "pattern" and isinstance(inner, str):
            self.add(len(value) ** 2 // 2_000 if _BACKTRACKING.search(inner) else len(value) // 500)
        elif word == "format":
            self.add(len(value) // 100)

    def _refer(self, reference: object, value: object) -> None:
        self._following += 1
        if self._following > 100:  # in a circle, or as good as
            raise SchemaTooCostly
        self.meet(self._target(reference), value)
        self._following -= 1

    def _target(self, reference: object) -> object:
        """Of `#` and `#/…`; names that stand elsewhere in the schema are not looked for."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise SchemaTooCostly
        found = self._root
        for part in reference.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            match found:
                case Mapping() if key in found:
                    found = found[key]
                case list() if key.isdigit() and int(key) < len(found):
                    found = found[int(key)]
                case _:
                    return True  # it leads nowhere, which whoever checks the schema itself says better
        return found

    def _each(self, schemas: Iterable[object], value: object) -> None:
        for schema in schemas:
            self.meet(schema, value)

    def _all(self, schema: object, values: Iterable[object]) -> None:
        meet: Callable[[object, object], None] = self.meet
        for value in values:
            meet(schema, value)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
