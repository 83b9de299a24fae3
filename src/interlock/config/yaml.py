"""YAML with line numbers, without its pitfalls: `on` and `no` as booleans, aliases, tags."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn, TypeVar

import yaml

from interlock.core.canonical import MAX_DEPTH
from interlock.core.errors import InvalidRequest, Misconfigured, did_you_mean
from interlock.runtime.durations import HOUR, MAX_DURATION, format_duration, parse_duration

MAX_BYTES = 5 * 1024 * 1024
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times as fast and not always available


@dataclass(slots=True)
class YamlNode:
    """A value and the line of it or its key; `is_interpolated` if part of it comes from the environment."""

    value: Value
    line: int
    is_interpolated: bool = False


Value = str | int | float | bool | None | dict[str, YamlNode] | list[YamlNode]
Fields = Mapping[str, YamlNode]
ReportProblem = Callable[[int, str], None]


def read_yaml(text: str, report_problem: ReportProblem) -> YamlNode | None:
    """Parse YAML; None if empty. Only `true` and `false` are booleans: `on`, `yes` and `no` are texts."""
    _check_size(text)
    tree = _TreeBuilder(report_problem)
    try:
        parser = Loader(_yaml_from_json(text))
        while (event := parser.get_event()) is not None:
            tree.handle_event(event)
    except yaml.YAMLError as error:
        _fail(_error_line(error, text), f"this is not YAML: {_error_text(error)}")
    return tree.root[0] if tree.root else None


def to_json(item: YamlNode) -> str:
    """The same content as JSON text, with everything on its original line."""
    return "".join(_JsonWriter().pieces(item))


def to_plain(item: YamlNode) -> object:
    match item.value:
        case dict() as members:
            return {key: to_plain(inner) for key, inner in members.items()}
        case list() as items:
            return [to_plain(inner) for inner in items]
        case value:
            return value


class _TreeBuilder:
    """Builds the tree from parser events, so that nesting cannot exhaust the stack and aliases are detected."""

    def __init__(self, report_problem: ReportProblem) -> None:
        self._report_problem = report_problem
        self.root: list[YamlNode] = []
        self._open: list[dict[str, YamlNode] | list[YamlNode]] = [self.root]
        self._keys: list[tuple[str, int] | None] = [None]

    def handle_event(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.CollectionEndEvent():
                self._open.pop()
                self._keys.pop()
            case yaml.MappingStartEvent():
                self._enter({}, event)
            case yaml.SequenceStartEvent():
                self._enter([], event)
            case yaml.AliasEvent():
                _fail(_event_line(event), f"aliases are not accepted; write out what *{event.anchor} stands for")
            case yaml.DocumentStartEvent() if self.root:
                _fail(_event_line(event), "a second document begins here; one file holds one document")
            case _:
                pass

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        line, value = _event_line(event), event.value
        if event.tag is not None:
            _fail(line, "tags (!…) are not accepted; put quotes around what has to be a text")
        container = self._open[-1]
        if isinstance(container, list) or self._keys[-1] is not None:
            self._put(parse_scalar(value) if event.implicit[0] else value, line)
        else:
            if value in container:
                self._report_problem(line, f'the key "{value}" appears twice')
            self._keys[-1] = (value, line)

    def _enter(self, value: dict[str, YamlNode] | list[YamlNode], event: yaml.CollectionStartEvent) -> None:
        line = _event_line(event)
        if event.tag is not None:
            _fail(line, "tags (!…) are not accepted")
        if len(self._open) > MAX_DEPTH:
            _fail(line, f"the nesting is deeper than {MAX_DEPTH} levels")
        if isinstance(self._open[-1], dict) and self._keys[-1] is None:
            _fail(line, "a key is a plain text")
        self._put(value, line)
        self._open.append(value)
        self._keys.append(None)

    def _put(self, value: Value, line: int) -> None:
        container = self._open[-1]
        if isinstance(container, list):
            container.append(YamlNode(value, line))
        elif (key := self._keys[-1]) is not None:
            container[key[0]] = YamlNode(value, key[1])
            self._keys[-1] = None


_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]{0,39}))(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")


def parse_scalar(text: str) -> str | int | float | bool | None:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in "-0123456789":
        return text
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    if found[2] is None and found[3] is None:
        return int(text)
    number = float(text)
    return number if isfinite(number) else text


def _check_size(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Misconfigured("The file holds half a surrogate pair, which is not a character.") from None
    if size > MAX_BYTES:
        raise Misconfigured(f"The file takes {size:,} bytes; at most {MAX_BYTES // 1024**2} MiB are accepted.")


_ESCAPE = re.compile(r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def _yaml_from_json(text: str) -> str:
    """JSON is YAML, except for tabs between values and surrogate pairs in escapes."""
    if not text.lstrip().startswith(("{", "[")) or ("\\u" not in text and "\t" not in text):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _ESCAPE.sub(
        lambda found: str(json.loads(f'"{found[0]}"')) if found[1] else found[0], text.replace("\t", " ")
    )


def _event_line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _fail(line: int, message: str) -> NoReturn:
    raise Misconfigured(f"line {line}: {message}")


def _error_line(error: yaml.YAMLError, text: str) -> int:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        return int(mark.line) + 1
    return text[: getattr(error, "position", 0) or 0].count("\n") + 1


def _error_text(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read")


class _JsonWriter:
    def __init__(self) -> None:
        self._line = 1

    def pieces(self, item: YamlNode) -> Iterator[str]:
        match item.value:
            case dict() as members:
                yield "{"
                for number, (key, inner) in enumerate(members.items()):
                    yield from self._separator(number, inner)
                    yield f"{json.dumps(key)}: "
                    yield from self.pieces(inner)
                yield "}"
            case list() as items:
                yield "["
                for number, inner in enumerate(items):
                    yield from self._separator(number, inner)
                    yield from self.pieces(inner)
                yield "]"
            case value:
                yield json.dumps(value)

    def _separator(self, number: int, item: YamlNode) -> Iterator[str]:
        yield ", " if number else ""
        yield "\n" * (item.line - self._line)
        self._line = max(self._line, item.line)


MAX_PROBLEMS = 50
T = TypeVar("T")


@dataclass(slots=True)
class YamlReader:
    """Reads values from fields by key and type; problems are noted, and a default is used instead."""

    problems: list[tuple[int, str]] = field(default_factory=list)

    def add_problem(self, line: int, message: str) -> None:
        self.problems.append((line, message))

    def finish(self) -> None:
        """Raise one Misconfigured with all problems, if there are any."""
        if not self.problems:
            return
        lines = [f"line {line}: {message}" if line else message for line, message in sorted(self.problems)]
        more = [f"… and {len(lines) - MAX_PROBLEMS} more"] if len(lines) > MAX_PROBLEMS else []
        raise Misconfigured("\n".join((*lines[:MAX_PROBLEMS], *more)))

    def document(self, text: str, keys: Collection[str], what: str) -> Fields:
        item = read_yaml(text, self.add_problem)
        return {} if item is None or item.value is None else self.fields(item, keys, what)

    def fields(self, item: YamlNode, keys: Collection[str], what: str) -> Fields:
        """The members of a mapping with known keys; `what` is for messages, as in `in a rule`."""
        members = self._mapping(item, what)
        odd = [key for key, inner in members.items() if key not in keys or inner.value in (None, "")]
        for key in odd:
            if key not in keys:
                self.add_problem(members[key].line, f'unknown key "{key}" in {what}{did_you_mean(key, keys)}')
            elif not is_unset(members[key]):
                self.add_problem(members[key].line, f"{key} is empty; give it a value or remove the key")
        return {key: inner for key, inner in members.items() if key not in odd} if odd else members

    def section(self, fields: Fields, key: str, keys: Collection[str]) -> Fields:
        return self.fields(fields[key], keys, key) if key in fields else {}

    def mapping(self, fields: Fields, key: str) -> Fields:
        """A mapping whose keys are names that the file chooses."""
        return self._mapping(fields[key], key) if key in fields else {}

    def entries(self, fields: Fields, key: str) -> list[YamlNode]:
        if key not in fields:
            return []
        match fields[key].value:
            case list() as items:
                return items
            case _:
                return self._add_type_problem(fields[key], key, "a list", [])

    def text(self, fields: Fields, key: str, default: str = "") -> str:
        return self.node_text(fields[key], key) if key in fields else default

    def node_text(self, item: YamlNode, what: str) -> str:
        match item.value:
            case str(text) if text.strip():
                return text
            case str():
                self.add_problem(item.line, f"{what} is empty")
                return ""
            case _:
                return self._add_type_problem(item, what, "a text", "")

    def texts(self, fields: Fields, key: str, known: Collection[str] | None = None, kind: str = "") -> tuple[str, ...]:
        """One text or a list of them, each one of the known names if given."""
        if key not in fields:
            return ()
        value = fields[key].value
        items = value if isinstance(value, list) else [fields[key]]
        if not items:
            self.add_problem(fields[key].line, f"{key} is an empty list; remove the key or put something in it")
        names = [self.node_text(item, key) for item in items]
        if known is not None:
            for name, item in zip(names, items, strict=True):
                if name and name not in known:
                    self.add_problem(item.line, f'unknown {kind or key} "{name}"{did_you_mean(name, known)}')
        return tuple(dict.fromkeys(names))

    def choice(self, fields: Fields, key: str, choices: Sequence[str], default: str = "") -> str:
        if key not in fields:
            return default
        match fields[key].value:
            case str(text) if text in choices:
                return text
            case str(text):
                self.add_problem(fields[key].line, f'{key} is "{text}"{did_you_mean(text, choices)}')
                return default
            case _:
                return self._add_type_problem(fields[key], key, f"one of {', '.join(choices)}", default)

    def integer(self, fields: Fields, key: str, default: int, least: int, most: int) -> int:
        if key not in fields:
            return default
        match _interpolated_value(fields[key]):
            case int(number) if not isinstance(number, bool) and least <= number <= most:
                return number
            case _:
                return self._add_type_problem(fields[key], key, f"a whole number from {least} to {most}", default)

    def boolean(self, fields: Fields, key: str, *, default: bool) -> bool:
        if key not in fields:
            return default
        match _interpolated_value(fields[key]):
            case bool(value):
                return value
            case _:
                return self._add_type_problem(fields[key], key, "true or false", default)

    def duration(self, fields: Fields, key: str, default: int, least: int = 0) -> int:
        return self.node_duration(fields[key], key, least) if key in fields else default

    def node_duration(self, item: YamlNode, what: str, least: int = 0) -> int:
        match item.value:
            case str(text):
                try:
                    milliseconds = parse_duration(text)
                except InvalidRequest as error:
                    self.add_problem(item.line, f"{what}: {error.message}")
                    return 0
                if milliseconds < least:
                    self.add_problem(item.line, f"{what} is {text}; it must be at least {format_duration(least)}")
                return milliseconds
            case int(number) if not isinstance(number, bool):
                self.add_problem(item.line, f"{what} is {number} without a unit; write {number}s if seconds are meant")
                return 0
            case _:
                return self._add_type_problem(item, what, "a duration such as 90s, 5m, 2h or 1d", 0)

    def node_hours(self, item: YamlNode, what: str) -> int | None:
        """A number of hours, which may have a fraction, in milliseconds; None if it is not one."""
        match _interpolated_value(item):
            case int() | float() as hours if not isinstance(hours, bool) and 1_000 <= hours * HOUR <= MAX_DURATION:
                return round(hours * HOUR)
            case _:
                most = f"{MAX_DURATION // HOUR:,}"
                return self._add_type_problem(item, what, f"a number of hours above 0 and at most {most}", None)

    def _mapping(self, item: YamlNode, what: str) -> Fields:
        match item.value:
            case dict() as members:
                return members
            case _:
                return self._add_type_problem(item, what, "a mapping of keys to values", {})

    def _add_type_problem(self, item: YamlNode, what: str, expected: str, default: T) -> T:
        self.add_problem(item.line, f"{what} must be {expected}, not {_describe_value(item)}")
        return default


def is_unset(item: YamlNode) -> bool:
    """`${NAME:-}` with nothing in the environment: as if the key were not there."""
    return item.is_interpolated and item.value == ""


def _interpolated_value(item: YamlNode) -> Value:
    """The environment only has texts: `${PORT}` may be used where a number is expected."""
    return parse_scalar(item.value) if item.is_interpolated and isinstance(item.value, str) else item.value


def _describe_value(item: YamlNode) -> str:
    if item.is_interpolated:
        return "what the environment holds"  # it may be a secret
    match item.value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case None:
            return "nothing"
        case str(text):
            return f'the text "{text[:50]}"'
        case value:
            return json.dumps(value)
