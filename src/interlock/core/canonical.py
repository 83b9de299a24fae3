"""Canonical JSON with one spelling per value: RFC 8785, except that integers of up to 40 digits stay exact."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]  # typeshed lacks it
from json.scanner import c_make_scanner  # type: ignore[attr-defined]  # typeshed lacks it
from math import isfinite
from typing import cast

from interlock.core.errors import InvalidRequest

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 10_000  # in the arguments of a call: a larger card takes seconds to make and is unreadable
MAX_DIGITS = 40
MAX_INTEGER = 10**MAX_DIGITS


def canonical(value: object, most: int = MAX_BYTES) -> bytes:
    """The bytes that are stored, hashed and executed; raises on any value that two parsers could read differently."""
    try:
        data = _text(value, 1).encode()
    except UnicodeEncodeError:
        raise InvalidRequest("A text holds half a surrogate pair, which is not a character.") from None
    if len(data) > most:
        raise InvalidRequest(f"The value takes {len(data):,} bytes; at most {most:,} are accepted.")
    return data


_SCALARS = frozenset({str, int, float, bool, type(None)})


def canonical_args(args: Mapping[str, object]) -> bytes:
    """Canonical bytes of a call's arguments, also limited to what a person can review."""
    if len(args) <= MAX_VALUES and _SCALARS.issuperset(map(type, args.values())):  # the usual case
        return canonical(args)
    left = MAX_VALUES
    inner: list[object] = [args]
    while inner:
        match inner.pop():
            case Mapping() as found:
                values = list(found.values())
            case list() | tuple() as found:
                values = list(found)
            case _:
                continue
        left -= len(values)
        if left < 0:
            raise InvalidRequest(
                f"The arguments hold more than {MAX_VALUES:,} values. Store them elsewhere and pass a reference."
            )
        inner += [value for value in values if type(value) not in _SCALARS]
    return canonical(args)


def parse_json(data: bytes | str, most: int = MAX_BYTES) -> object:
    """Parse JSON strictly; size and depth are checked before the parser runs."""
    raw = _to_bytes(data)
    if len(raw) > most:
        raise InvalidRequest(f"The body takes {len(raw):,} bytes; at most {most:,} are accepted.")
    _check_depth(raw)
    try:
        value: object = _DECODER.decode(raw.decode())
    except UnicodeDecodeError:
        raise InvalidRequest("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"The body is not JSON: {error}.") from None
    if b"\\u" in raw:
        canonical(value, most)  # escapes are the only way for NUL and lone surrogates to get in
    return value


def plain_json(value: object) -> str:
    """Canonical JSON, fast, for the program's own values: texts, whole numbers, booleans and lists of them."""
    return "".join(_encode_plain(value, 0))


def read_canonical(data: bytes) -> object:
    """Parse bytes that `canonical` made, without checking them again."""
    text = data.decode()  # given bytes, json.loads would detect the encoding first
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    return value if end == len(text) else json.loads(text)  # which says what is wrong


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _text(value: object, depth: int) -> str:
    """Strings and plain objects first: they are the most frequent."""
    if type(value) is str:
        return _string(value)
    if type(value) is dict:
        return _object(value, _next_depth(depth))
    return _other_value(value, depth)


def _string(value: str) -> str:
    if "\x00" in value:
        raise InvalidRequest("A text holds a NUL character, which databases cut or refuse. Remove it.")
    return encode_basestring(value)


def _other_value(value: object, depth: int) -> str:  # noqa: C901  one case for each JSON type
    match value:
        case str():
            return _string(value)
        case None:
            return "null"
        case True:
            return "true"
        case False:
            return "false"
        case int():
            return _integer(value)
        case float():
            return _float(value)
        case Mapping():
            return _object(value, _next_depth(depth))
        case list() | tuple():
            deeper = _next_depth(depth)
            return f"[{','.join([_text(item, deeper) for item in value])}]"
        case _:
            raise InvalidRequest(f"A value of type {type(value).__name__} has no JSON form.")


def _object(value: Mapping[object, object], depth: int) -> str:
    pairs = [f"{_string(key)}:{_text(value[key], depth)}" for key in _sorted_keys(value)]
    return f"{{{','.join(pairs)}}}"


def _sorted_keys(value: Mapping[object, object]) -> list[str]:
    keys = cast(list[str], list(value))
    try:
        plain = "".join(keys).isascii()
    except TypeError:
        odd = next(key for key in value if not isinstance(key, str))
        raise InvalidRequest(f"A member's name is {odd!r}; names are texts.") from None
    keys.sort(key=None if plain else _utf16)
    return keys


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _next_depth(depth: int) -> int:
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"The value is nested deeper than {MAX_DEPTH} levels.")
    return depth + 1


def _integer(value: int) -> str:
    if not -MAX_INTEGER < value < MAX_INTEGER:
        raise InvalidRequest(f"A number has more than {MAX_DIGITS} digits.")
    return int.__repr__(value)


def _float(value: float) -> str:
    """Format a float as ECMAScript does, which RFC 8785 requires."""
    if not isfinite(value):
        raise InvalidRequest("NaN and infinite numbers have no JSON form.")
    text = float.__repr__(value)
    if "e" not in text:
        text = text.removesuffix(".0")
        return "0" if text == "-0" else text
    return _scientific(text)


def _scientific(text: str) -> str:
    negative, numbers, exponent = Decimal(text).as_tuple()
    sign = "-" * negative
    digits = "".join(map(str, numbers)).rstrip("0")
    point = len(numbers) + int(exponent)  # position of the decimal point, counted from the first digit
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


def _to_bytes(data: bytes | str) -> bytes:
    if isinstance(data, bytes):
        return data
    try:
        return data.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("The body holds half a surrogate pair, which is not a character.") from None


_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


def _check_depth(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _TOKENS.finditer(raw):
        mark = token.group()[:1]
        if mark in b"[{":
            depth += 1
            _next_depth(depth)
        elif mark in b"]}":
            depth -= 1


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = Counter(name for name, _ in pairs)
        raise InvalidRequest(f"The name {names.most_common(1)[0][0]!r} appears twice in one object.")
    return members


def _parse_float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise InvalidRequest(f"The number {text[:40]} is too large.")
    return number


def _parse_integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise InvalidRequest(f"A number has more than {MAX_DIGITS} digits.")
    return int(text)


def _reject_constant(text: str) -> float:
    raise InvalidRequest(f"{text} is not JSON.")


def _reject_type(value: object) -> object:
    raise TypeError(f"A value of type {type(value).__name__} has no JSON form.")


# The encoder that JSONEncoder rebuilds at every call: no cycle check, sorted, compact, not only ASCII.
_encode_plain = c_make_encoder(None, _reject_type, encode_basestring, None, ":", ",", True, False, True)
_scan = c_make_scanner(json.JSONDecoder())  # json.loads without the search for white space, which canonical JSON lacks
_DECODER = json.JSONDecoder(
    object_pairs_hook=_reject_duplicates,
    parse_float=_parse_float,
    parse_int=_parse_integer,
    parse_constant=_reject_constant,
)
