"""Masking of secret arguments that a program repeats in the report of a call's outcome.

Work is bounded, since the program sizes the arguments and the report: past the bound the whole report is masked.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast
from urllib.parse import quote, quote_plus

from interlock.core.canonical import canonical, read_canonical
from interlock.core.errors import InvalidRequest
from interlock.core.ledger.event import Payload

MASK = "[hidden]"
MIN_SECRET_LENGTH = 4  # characters of a secret that is searched inside texts; a shorter one has to be the whole text
MAX_SCANNED = 128_000_000  # characters to search, for all spellings of all secrets
MAX_SECRETS = 2_000  # different texts, names and numbers inside the secret arguments
PADDED_LENGTH = 30_000  # Python searches longer texts in linear time, and shorter ones in the time of their product

_FIELD_NAME = re.compile("[A-Za-z_-]{1,32}")  # the names of most objects; they are not secret with their values
_URL_SAFE = str.maketrans("+/", "-_")
_URI_COMPONENT = "!*'()"  # what encodeURIComponent of JavaScript leaves as it is
_URI = _URI_COMPONENT + ";,/?:@&=+$#"  # and encodeURI


def mask_report(report: Payload, stored: Payload) -> Payload:
    """Mask a report; `stored` has the call's arguments. If they were erased, all of the report is masked."""
    if stored.args is None:
        return _mask_all(report)
    if stored.shown is None:
        return report
    secrets = dict.fromkeys(_secrets(read_canonical(stored.args), read_canonical(stored.shown)))
    if len(secrets) > MAX_SECRETS:
        return _mask_all(report)
    spellings = _secret_spellings(secrets)
    said = (report.error or "", (report.result or b"").decode())
    if sum(map(spellings.search_work, said)) > MAX_SCANNED:
        return _mask_all(report)
    if spellings.is_in(said[0]):
        report = report._replace(error=spellings.mask_text(said[0]))
    return report._replace(result=_mask_result(said[1], spellings)) if spellings.is_in(said[1]) else report


def mask_text(text: str, args: bytes, shown: bytes) -> str:
    """Mask a text about the call; `shown` are its redacted arguments."""
    seen = None if shown == args else shown
    return mask_report(Payload(error=text), Payload(args, seen)).error or ""


class _Spellings(NamedTuple):
    """Spellings of secrets: `substrings` are replaced anywhere, longest first, `exact_texts` only as a whole text."""

    substrings: Sequence[str]
    exact_texts: frozenset[str]
    numbers: frozenset[str]

    sought: Sequence[str]  # all of them, as they are and as the canonical JSON of a result spells them

    def search_work(self, text: str) -> int:
        """The characters that are searched, at most: to find each spelling, and to replace it."""
        spellings = (*self.sought, *self.substrings)
        return sum(min(len(text) * len(each), len(text) + PADDED_LENGTH) for each in spellings)

    def is_in(self, text: str) -> bool:
        return any(_find(text, each) for each in self.sought)

    def mask_text(self, text: str) -> str:
        return MASK if text in self.exact_texts else self._mask_substrings(text)

    def mask_texts(self, texts: Iterable[str]) -> dict[str, str]:
        """The masked forms of the texts of a result, replaced in all of them at once; stored JSON has no NUL."""
        given = list(dict.fromkeys(texts))
        masked = self._mask_substrings("\0".join(given)).split("\0") if given else []
        return {text: MASK if text in self.exact_texts else made for text, made in zip(given, masked, strict=True)}

    def _mask_substrings(self, text: str) -> str:
        for each in self.substrings:
            text = _replace(text, each)
        return text

    def mask_value(self, value: object) -> object:
        return self._rebuild(value, self.mask_texts(_texts(value)))

    def _rebuild(self, value: object, masked: Mapping[str, str]) -> object:
        match value:
            case str():
                return masked[value]
            case Mapping():
                made: dict[str, object] = {}
                for name, inner in value.items():
                    made[_free_name(masked[name], made)] = self._rebuild(inner, masked)
                return made
            case list():
                return [self._rebuild(inner, masked) for inner in value]
            case bool() | None:
                return value
            case _:
                return MASK if canonical(value).decode() in self.numbers else value


def _find(text: str, secret: str) -> bool:
    return secret in _padded(text, secret)


def _replace(text: str, secret: str) -> str:
    padded = _padded(text, secret)
    return padded.replace(secret, MASK).removesuffix(padded[len(text) :])


def _padded(text: str, secret: str) -> str:
    """The text, long enough to be searched in linear time where the search could take longer than that."""
    if len(text) * len(secret) <= PADDED_LENGTH:
        return text
    return text + "\0" * (PADDED_LENGTH - len(text))


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for name, inner in value.items():
                yield name
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case _:
            pass


def _mask_result(text: str, spellings: _Spellings) -> bytes:
    value = read_canonical(text.encode())
    try:
        return canonical(spellings.mask_value(value))
    except InvalidRequest:  # the marks made it too large to store
        return canonical(MASK)


def _mask_all(report: Payload) -> Payload:
    return report._replace(
        error=MASK if report.error else report.error,
        result=canonical(MASK) if report.result is not None else None,
    )


def _secrets(value: object, shown: object) -> Iterator[object]:
    """The texts and numbers that people see redacted."""
    match shown:
        case {"$secret": str()} if len(cast(Mapping[str, object], shown)) == 1 and value != shown:
            yield from _leaves(value)
        case Mapping() if isinstance(value, Mapping):
            for name, inner in shown.items():
                yield from _secrets(value.get(name), inner)
        case list() if isinstance(value, list):
            for one, seen in zip(value, shown, strict=False):
                yield from _secrets(one, seen)
        case _:
            pass


def _leaves(value: object) -> Iterator[object]:
    match value:
        case Mapping():
            for name, inner in value.items():
                if _FIELD_NAME.fullmatch(name) is None:  # "number" of a card is no secret, an address as a name may be
                    yield from _leaves(name)
                yield from _leaves(inner)
        case list():
            for inner in value:
                yield from _leaves(inner)
        case bool() | None | "":
            pass
        case _:
            yield value


def _secret_spellings(secrets: Iterable[object]) -> _Spellings:
    inside: set[str] = set()
    whole: set[str] = set()
    numbers: set[str] = set()
    for secret in secrets:
        text = secret if isinstance(secret, str) else canonical(secret).decode()
        if not isinstance(secret, str):
            numbers.add(text)
        if len(text) < MIN_SECRET_LENGTH:
            whole.add(text)
        else:
            inside.update(_spellings(text))
    found = (*inside, *whole, *numbers)
    sought = dict.fromkeys((*found, *(json.dumps(each, ensure_ascii=False)[1:-1] for each in found)))
    return _Spellings(sorted(inside, key=len, reverse=True), frozenset(whole), frozenset(numbers), tuple(sought))


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it is, inside JSON or Python's `repr`, percent-encoded, in base64 and in hexadecimal."""
    yield from (secret, repr(secret)[1:-1])
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    percent = (quote(secret, safe=safe) for safe in ("", "/", _URI_COMPONENT, _URI))
    for encoded in (*percent, quote_plus(secret), quote_plus(secret, safe="*").replace("~", "%7E")):
        yield from (encoded, _lower_case(encoded))
    data = secret.encode()
    for plain in (b64encode(data), *(_base64_inside(data, offset) for offset in range(3))):
        for text in (plain.decode(), plain.decode().rstrip("=")):
            yield from (text, text.translate(_URL_SAFE))
    for digits in (data.hex(), data.hex().upper()):
        yield from (digits, re.sub("..", r"%\g<0>", digits))


def _base64_inside(data: bytes, offset: int) -> bytes:
    """The characters of base64 that do not depend on the bytes around these, which begin so many after a triple."""
    return b64encode(bytes(offset) + data)[-(-8 * offset // 6) : 8 * (offset + len(data)) // 6]


def _lower_case(encoded: str) -> str:
    """Lower-case the hexadecimal digits only: %2F and %2f are the same."""
    head, *rest = encoded.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def _free_name(name: str, taken: Mapping[str, object]) -> str:
    """A free name, so that two masked names stay distinct."""
    number = len(taken)
    while name in taken:
        name, number = f"{name} {number}", number + 1
    return name
