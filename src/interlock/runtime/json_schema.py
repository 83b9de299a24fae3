"""JSON Schema validation of arguments and answers, with a cost limit; messages for people never hold the value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple, cast

import jsonschema_rs
from jsonschema_rs import ValidationError, ValidationErrorKind

from interlock.core.canonical import canonical
from interlock.core.errors import InvalidRequest, Problem

MAX_PROBLEMS = 50
MAX_PARTS = 5_000  # the library collects every error before it gives the first: 200,000 of them took 3.6 s
MAX_MESSAGE = 200
MAX_PATTERN = 256 * 1024  # bytes of one that is compiled
MAX_CACHED_SCHEMA = (
    16 * 1024
)  # bytes of a schema; larger ones are compiled each time, since a thousand of them would fill the memory
MAX_EXPLAINED_STEPS = 1_000  # steps
MAX_QUICK_WORK = 200_000  # parts of a schema by parts of a value, where each pair is visited at most once
MAX_LINEAR_WORK = 3_000_000
UNEXPLAINED = Problem("", "does not fit; the schema is too large to say where")
TOO_COSTLY = Problem("", "takes too much work to check by this schema; declare a simpler schema, or none")
ErrorDetail = Literal["every", "first", "none"]
TYPE_NAMES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}


def validate(schema: Mapping[str, object], value: object) -> tuple[Problem, ...]:
    """At most 50 problems; none if it fits. Drafts 4 to 2020-12, the last unless `$schema` says otherwise."""
    compiled = _get_compiled(canonical(schema))
    try:
        limit = _choose_detail(compiled, schema, value)
    except (SchemaTooCostly, RecursionError):
        return (TOO_COSTLY,)
    try:
        if compiled.validator.is_valid(value):
            return ()
        problems = (problem for error in _errors(compiled.validator, value, limit) for problem in _problems(error))
        return tuple(islice(problems, MAX_PROBLEMS)) or (UNEXPLAINED,)
    except ValueError as error:  # not JSON at all, such as a key that is no text
        return (Problem("", _truncate(str(error))),)


def _choose_detail(compiled: CompiledSchema, schema: Mapping[str, object], value: object) -> ErrorDetail:
    """Finding every reason takes a thousand times as long as finding one. Raises SchemaTooCostly."""
    shape = compiled.shape
    if shape.is_linear:
        work = shape.part_count * len(json.dumps(value, default=str)) // 2  # no part of it takes less than two bytes
        if work <= MAX_QUICK_WORK:
            return "every"
        if work <= MAX_LINEAR_WORK:
            return "first"
    return "every" if count_steps(schema, value) <= MAX_EXPLAINED_STEPS else "none"


def check_schema(schema: Mapping[str, object]) -> None:
    """Raise InvalidRequest if the schema itself is wrong, or refers to something outside of itself."""
    _get_compiled(canonical(schema))


def check_schema_size(schema: Mapping[str, object]) -> None:
    """Raise InvalidRequest for a schema that is so large that even analysing it takes long."""
    if len(json.dumps(schema)) > MAX_SCHEMA:
        raise _too_large()


def _too_large() -> InvalidRequest:
    return InvalidRequest(f"A JSON Schema has at most {MAX_SCHEMA:,} bytes. Declare a smaller one, or none.")


class CompiledSchema(NamedTuple):
    validator: jsonschema_rs.Validator
    shape: SchemaShape


def _get_compiled(schema: bytes) -> CompiledSchema:
    """Small ones are cached by their bytes, so that a schema that is changed in place is compiled again."""
    return _compile(schema) if len(schema) > MAX_CACHED_SCHEMA else _compile_cached(schema)


@lru_cache(maxsize=1_000)
def _compile_cached(schema: bytes) -> CompiledSchema:
    return _compile(schema)


def _compile(schema: bytes) -> CompiledSchema:
    if len(schema) > MAX_SCHEMA:
        raise _too_large()
    shape = measure_schema(json.loads(schema))
    if shape.patterns > MAX_PATTERNS:
        raise InvalidRequest(f"A JSON Schema has at most {MAX_PATTERNS} patterns. Declare a smaller one, or none.")
    try:
        validator = jsonschema_rs.validator_for(
            schema.decode(),
            validate_formats=True,
            mask="the value",  # messages reach logs and channels, where a secret must not go
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT, size_limit=MAX_PATTERN),
            offline=True,
        )
        return CompiledSchema(validator, shape)
    except ValidationError as error:
        where = _pointer(error.instance_path)
        raise InvalidRequest(f"The JSON Schema is wrong{where and f' at {where}'}: {_schema_problem(error)}.") from None
    except ValueError as error:
        raise InvalidRequest(f"The JSON Schema is wrong: {_truncate(str(error))}.") from None


def _schema_problem(error: ValidationError) -> str:
    match error.kind:
        case ValidationErrorKind.Referencing() if "etriev" in error.message:
            return "it refers to another document, and only references within the schema (#/…) are followed"
        case ValidationErrorKind.AnyOf() if error.instance_path[-1:] == ["type"]:
            return f"the type is one of {', '.join(TYPE_NAMES)}, or a list of them"
    return _truncate(error.message)


def _errors(validator: jsonschema_rs.Validator, value: object, reasons: ErrorDetail) -> Iterator[ValidationError]:
    if reasons == "none":
        return
    if reasons == "every" and next(islice(_parts(value), MAX_PARTS, None), None) is None:
        yield from validator.iter_errors(value)
        return
    try:
        validator.validate(value)
    except ValidationError as first:
        yield first


def _parts(value: object) -> Iterator[bool]:
    """One True for every value inside the value, itself included."""
    yield True
    match value:
        case Mapping():
            for inner in value.values():
                yield from _parts(inner)
        case list() | tuple():
            for inner in value:
                yield from _parts(inner)
        case _:
            pass


def _problems(error: ValidationError) -> Iterator[Problem]:
    """Usually one; a missing or an extra member is a problem of that member, so that a form can show it there."""
    match error.kind:
        case ValidationErrorKind.Required(name):
            yield Problem(_pointer([*error.instance_path, name]), "is required")
        case ValidationErrorKind.AdditionalProperties(names) | ValidationErrorKind.UnevaluatedProperties(names):
            for name in names:
                yield Problem(_pointer([*error.instance_path, name]), "is not known here; remove it")
        case _:
            yield Problem(_pointer(error.instance_path), _truncate(_describe_error(error)))


def _describe_error(error: ValidationError) -> str:
    match error.kind:
        case ValidationErrorKind.Type(types):
            return f"must be {' or '.join(sorted(TYPE_NAMES.get(name, name) for name in types))}"
        case ValidationErrorKind.Enum(options):
            return f"must be one of {', '.join(canonical(option).decode() for option in options)}"
        case ValidationErrorKind.Constant(expected):
            return f"must be {canonical(expected).decode()}"
        case ValidationErrorKind.Format(name):
            return f"must be a valid {name}"
        case ValidationErrorKind.Pattern(pattern):
            return f"must match the pattern {pattern}"
        case ValidationErrorKind.AnyOf(context) | ValidationErrorKind.OneOfNotValid(context):
            return f"fits none of the allowed forms: {_alternatives(context)}"
        case ValidationErrorKind.OneOfMultipleValid():
            return "fits more than one of the allowed forms, and must fit exactly one"
        case _:
            return _describe_limit(error)


def _describe_limit(error: ValidationError) -> str:
    match error.kind:
        case ValidationErrorKind.Minimum(limit):
            return f"must be at least {limit}"
        case ValidationErrorKind.Maximum(limit):
            return f"must be at most {limit}"
        case ValidationErrorKind.ExclusiveMinimum(limit):
            return f"must be more than {limit}"
        case ValidationErrorKind.ExclusiveMaximum(limit):
            return f"must be less than {limit}"
        case ValidationErrorKind.FalseSchema():
            return "is not allowed here"
        case ValidationErrorKind.PropertyNames(inner):
            return f"has a member whose name {_describe_error(inner)}"
        case _:
            return _describe_size(error)


def _describe_size(error: ValidationError) -> str:
    match error.kind:
        case ValidationErrorKind.MinLength(limit):
            return "must not be empty" if limit == 1 else f"must have at least {limit} characters"
        case ValidationErrorKind.MaxLength(limit):
            return f"must have at most {limit} characters"
        case ValidationErrorKind.MinItems(limit):
            return f"must have at least {limit} items"
        case ValidationErrorKind.MaxItems(limit):
            return f"must have at most {limit} items"
        case ValidationErrorKind.UniqueItems():
            return "must not hold the same item twice"
        case ValidationErrorKind.Not():
            return "has a form that is not allowed"
        case _:
            return error.message.removeprefix("the value ")


def _alternatives(context: list[list[ValidationError]]) -> str:
    firsts = [next(_problems(errors[0])) for errors in context if errors]
    return "; or ".join(dict.fromkeys(f"{p.pointer} {p.message}".strip() for p in firsts))


def _pointer(path: list[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def _truncate(message: str) -> str:
    line = " ".join(message.split()).rstrip(".")
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


MAX_STEPS = 20_000  # steps: about 20 ms to count them
MAX_SCHEMA = 128 * 1024  # bytes
MAX_PATTERNS = 200
LARGE_PATTERN = 100  # characters and classes: each character of a text meets all of a larger one
BACKTRACK_LIMIT = 10_000  # of one match: about 300 steps
_BACKTRACKING = re.compile(r"\(\?[=!>]|\(\?<[=!]|\\[1-9k]")  # needs a backtracking engine
_COMBINATORS = ("allOf", "anyOf", "oneOf")
_CONDITIONALS = ("not", "if", "then", "else")
_MEMBERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS = ("contains", "additionalItems", "unevaluatedItems")
_DYNAMIC_REFS = ("$dynamicRef", "$recursiveRef")
_NONLINEAR_KEYWORDS = frozenset({*_DYNAMIC_REFS, "$ref", "unevaluatedProperties", "unevaluatedItems"})


class SchemaTooCostly(Exception):
    """Validation would exceed the time limit."""


def count_steps(schema: object, value: object) -> int:
    """Count the steps; raises SchemaTooCostly beyond the limit, and for references that are not static."""
    count = _StepCounter(schema)
    count.visit(schema, value)
    return count.steps


class SchemaShape(NamedTuple):
    """Of a schema: all of `part_count` may apply to one part of a value.

    If it `is_linear`, each part of a value is visited only once.
    """

    part_count: int
    patterns: int
    is_linear: bool


def measure_schema(schema: object) -> SchemaShape:
    match schema:
        case Mapping():
            inner = [measure_schema(each) for each in schema.values()]
            parts, texts = 1 + 50 * ("multipleOf" in schema), _patterns(schema)
            tame = schema.keys().isdisjoint(_NONLINEAR_KEYWORDS) and not any(
                _BACKTRACKING.search(text) or pattern_size(text) > LARGE_PATTERN for text in texts
            )
        case list() | tuple():
            inner = [measure_schema(each) for each in schema]
            parts, texts, tame = len(schema) // 20, [], True
        case _:
            return SchemaShape(0, 0, is_linear=True)
    return SchemaShape(
        parts + sum(each.part_count for each in inner),
        len(texts) + sum(each.patterns for each in inner),
        tame and all(each.is_linear for each in inner),
    )


def _patterns(schema: Mapping[str, object]) -> list[str]:
    """The patterns of this part."""
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

    def visit(self, schema: object, value: object) -> None:
        self.add(1)
        if not isinstance(schema, Mapping):
            return
        for word, inner in schema.items():
            self._apply(word, inner, value)
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:  # evaluates these again
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
            self.visit(inner, value)
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
                    self.visit(schema, value[name])
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
                self.visit(schema, item)
        elif word == "uniqueItems":
            self.add(len(value) // 10)

    def _text(self, word: str, inner: object, value: str) -> None:
        if word == "pattern" and isinstance(inner, str):
            self.add(_pattern_steps(inner, len(value)))
        elif word == "format":
            self.add(len(value) // 100)

    def _refer(self, reference: object, value: object) -> None:
        self._following += 1
        if self._following > 100:  # a cycle, or nearly one
            raise SchemaTooCostly
        self.visit(self._target(reference), value)
        self._following -= 1

    def _target(self, reference: object) -> object:
        """The target of `#` and `#/…`; anchors elsewhere in the schema are not resolved."""
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
                    return True  # it leads nowhere, which the check of the schema itself reports better
        return found

    def _each(self, schemas: Iterable[object], value: object) -> None:
        for schema in schemas:
            self.visit(schema, value)

    def _all(self, schema: object, values: Iterable[object]) -> None:
        meet: Callable[[object, object], None] = self.visit
        for value in values:
            meet(schema, value)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _pattern_steps(pattern: str, length: int) -> int:
    """The steps of one match. A pattern that repeats by number is as large as it is written out."""
    if _BACKTRACKING.search(pattern):
        return 300 + length**2 // 2_000
    size = pattern_size(pattern)
    return length // 500 if size <= LARGE_PATTERN else length * size // 200


@lru_cache(maxsize=1_000)
def pattern_size(pattern: str) -> int:
    """The characters and classes that a pattern matches at most, with numbered repetitions written out."""
    totals, last, place = [0], 0, 0
    while place < len(pattern):
        token = cast(re.Match[str], _TOKEN.match(pattern, place))
        place = token.end()
        if token["open"]:
            totals.append(0)
        elif token["times"] is not None:
            times = max(int(token["times"]), int(token["most"] or 0), 1)
            totals[-1] += last * (times - 1)
            last *= times
        elif not token["sign"]:
            last = totals.pop() if token["close"] and len(totals) > 1 else 1
            totals[-1] += last
    return sum(totals)


_TOKEN = re.compile(
    r"\\.|\[(?:\\.|[^\]\\])*\]?|(?P<open>\()|(?P<close>\))|\{(?P<times>\d+)(?:,(?P<most>\d*))?\}|(?P<sign>[*+?|^$])|.",
    re.DOTALL,
)
