"""Amounts in arguments, added up exactly: decimal numbers as the canonical bytes spell them, never floats."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from functools import cached_property

from interlock.core.canonical import MAX_DIGITS
from interlock.core.errors import InvalidRequest

# A sum has at most 40 digits before the point, and no JSON number that Python reads has more than 400 behind it.
PRECISION = 500
_NUMBER = re.compile(rf"[0-9]{{1,{MAX_DIGITS}}}(?:\.[0-9]{{1,{MAX_DIGITS}}})?")


@dataclass(frozen=True)
class Amounts:
    """The numbers of a call, from its arguments as people may see them: a secret one is none, and no sum tells it."""

    shown: bytes

    def at(self, place: str) -> Decimal | None:
        """The amount at a JSON pointer or under a plain name; None where there is none that can be counted."""
        found = self._value
        for step in steps_of(place):
            # Not into lists: the amounts beside the one that was meant would go uncounted.
            found = found.get(step) if isinstance(found, Mapping) else None
        return found if isinstance(found, Decimal) and found >= 0 else None

    @cached_property
    def _value(self) -> object:
        return json.loads(self.shown, parse_int=Decimal, parse_float=Decimal)


def steps_of(place: str) -> tuple[str, ...]:
    """`/a/b` as in RFC 6901, or one plain name."""
    if not place.startswith("/"):
        return (place,)
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in place[1:].split("/"))


def read_budget(text: str) -> str:
    """The one spelling of a budget that a person wrote."""
    if _NUMBER.fullmatch(text) is None or Decimal(text) == 0:
        raise InvalidRequest(
            f"A budget is a number above 0, such as 500 or 99.50, of at most {MAX_DIGITS} digits; not {text[:50]!r}."
        )
    return plain(Decimal(text))


def left_of(budget: str, spent: str) -> str:
    return plain(_exact().subtract(Decimal(budget), Decimal(spent)))


def within(amount: Decimal, budget: str, spent: str) -> bool:
    try:
        return _exact().add(Decimal(spent), amount) <= Decimal(budget)
    except ArithmeticError:  # a sum that cannot be made exactly, or a row that is no number, is within nothing
        return False


def added(spent: str, amount: Decimal) -> str:
    return plain(_exact().add(Decimal(spent), amount))


def plain(number: Decimal) -> str:
    """Digits alone, without an exponent or trailing zeros, so that equal numbers are equal texts."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _exact() -> Context:
    return Context(prec=PRECISION, traps=[Inexact])
