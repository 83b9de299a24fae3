"""A strict reader of YAML: types and keys are checked, and every complaint is collected before it gives up."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar

from interlock.core.errors import InvalidRequest, Misconfigured
from interlock.durations import parse_duration, show_duration
from interlock.reading.yaml_lines import Fields, Item, Value, read_yaml, typed

MAX_COMPLAINTS = 50
T = TypeVar("T")


@dataclass(slots=True)
class Reader:
    """Takes values out of fields by key and kind; what is wrong is noted, and a default goes on in its place."""

    found: list[tuple[int, str]] = field(default_factory=list)

    def complain(self, line: int, message: str) -> None:
        self.found.append((line, message))

    def finish(self) -> None:
        """Raises one Misconfigured with all complaints, if there are any."""
        if not self.found:
            return
        lines = [f"line {line}: {message}" if line else message for line, message in sorted(self.found)]
        more = [f"… and {len(lines) - MAX_COMPLAINTS} more"] if len(lines) > MAX_COMPLAINTS else []
        raise Misconfigured("\n".join((*lines[:MAX_COMPLAINTS], *more)))

    def document(self, text: str, keys: Collection[str], what: str) -> Fields:
        item = read_yaml(text, self.complain)
        return {} if item is None or item.value is None else self.fields(item, keys, what)

    def fields(self, item: Item, keys: Collection[str], what: str) -> Fields:
        """The members of a mapping with known keys; `what` is for the complaint, as in `in a rule`."""
        members = self._mapping(item, what)
        odd = [key for key, inner in members.items() if key not in keys or inner.value in (None, "")]
        for key in odd:
            if key not in keys:
                self.complain(members[key].line, f'unknown key "{key}" in {what}{nearest(key, keys)}')
            elif not _unset(members[key]):
                self.complain(members[key].line, f"{key} is empty; give it a value or remove the key")
        return {key: inner for key, inner in members.items() if key not in odd} if odd else members

    def section(self, fields: Fields, key: str, keys: Collection[str]) -> Fields:
        return self.fields(fields[key], keys, key) if key in fields else {}

    def mapping(self, fields: Fields, key: str) -> Fields:
        """A mapping whose keys are names that the file chooses."""
        return self._mapping(fields[key], key) if key in fields else {}

    def entries(self, fields: Fields, key: str) -> list[Item]:
        if key not in fields:
            return []
        match fields[key].value:
            case list() as items:
                return items
            case _:
                return self._wrong(fields[key], key, "a list", [])

    def text(self, fields: Fields, key: str, default: str = "") -> str:
        return self.one(fields[key], key) if key in fields else default

    def one(self, item: Item, what: str) -> str:
        match item.value:
            case str(text) if text.strip():
                return text
            case str():
                self.complain(item.line, f"{what} is empty")
                return ""
            case _:
                return self._wrong(item, what, "a text", "")

    def texts(self, fields: Fields, key: str, known: Collection[str] | None = None, kind: str = "") -> tuple[str, ...]:
        """One text or a list of them, each one of the known names if those are known."""
        if key not in fields:
            return ()
        value = fields[key].value
        items = value if isinstance(value, list) else [fields[key]]
        if not items:
            self.complain(fields[key].line, f"{key} is an empty list; remove the key or put something in it")
        names = [self.one(item, key) for item in items]
        if known is not None:
            for name, item in zip(names, items, strict=True):
                if name and name not in known:
                    self.complain(item.line, f'unknown {kind or key} "{name}"{nearest(name, known)}')
        return tuple(dict.fromkeys(names))

    def choice(self, fields: Fields, key: str, choices: Sequence[str], default: str = "") -> str:
        if key not in fields:
            return default
        match fields[key].value:
            case str(text) if text in choices:
                return text
            case str(text):
                self.complain(fields[key].line, f'{key} is "{text}"{nearest(text, choices)}')
                return default
            case _:
                return self._wrong(fields[key], key, f"one of {', '.join(choices)}", default)

    def whole(self, fields: Fields, key: str, default: int, least: int, most: int) -> int:
        if key not in fields:
            return default
        match _unfilled(fields[key]):
            case int(number) if not isinstance(number, bool) and least <= number <= most:
                return number
            case _:
                return self._wrong(fields[key], key, f"a whole number from {least} to {most}", default)

    def truth(self, fields: Fields, key: str, *, default: bool) -> bool:
        if key not in fields:
            return default
        match _unfilled(fields[key]):
            case bool(value):
                return value
            case _:
                return self._wrong(fields[key], key, "true or false", default)

    def duration(self, fields: Fields, key: str, default: int, least: int = 0) -> int:
        return self.time(fields[key], key, least) if key in fields else default

    def time(self, item: Item, what: str, least: int = 0) -> int:
        match item.value:
            case str(text):
                try:
                    milliseconds = parse_duration(text)
                except InvalidRequest as error:
                    self.complain(item.line, f"{what}: {error.message}")
                    return 0
                if milliseconds < least:
                    self.complain(item.line, f"{what} is {text}; it must be at least {show_duration(least)}")
                return milliseconds
            case int(number) if not isinstance(number, bool):
                self.complain(item.line, f"{what} is {number} without a unit; write {number}s if seconds are meant")
                return 0
            case _:
                return self._wrong(item, what, "a duration such as 90s, 5m, 2h or 1d", 0)

    def _mapping(self, item: Item, what: str) -> Fields:
        match item.value:
            case dict() as members:
                return members
            case _:
                return self._wrong(item, what, "a mapping of keys to values", {})

    def _wrong(self, item: Item, what: str, wanted: str, default: T) -> T:
        self.complain(item.line, f"{what} must be {wanted}, not {_shown(item)}")
        return default


def nearest(name: str, choices: Collection[str]) -> str:
    """The end of a complaint: what was probably meant, or what there is if that is a short list."""
    near = get_close_matches(name, choices, 1)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; it is one of {', '.join(sorted(choices))}" if 0 < len(choices) <= 12 else ""


def _unset(item: Item) -> bool:
    """`${NAME:-}` with nothing in the environment: as if the key were not there."""
    return item.filled and item.value == ""


def _unfilled(item: Item) -> Value:
    """The environment only knows texts: `${PORT}` may stand where a number is wanted."""
    return typed(item.value) if item.filled and isinstance(item.value, str) else item.value


def _shown(item: Item) -> str:
    if item.filled:
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
