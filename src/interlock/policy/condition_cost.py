"""How much work it is to evaluate a condition, counted beforehand: nothing can stop one that has begun.

The interpreter's lock is held from the first step of an evaluation to its last (measured: a thread beside it stood
still all the while), so that another thread or a deadline would help nobody. What counts is the bound before it. The
count is of what an evaluation might have to do, in nanoseconds of an ordinary machine, whatever the values turn out to
be: all values are converted once; `map` and `filter` copy what they have kept at every step; a name from outside of a
comprehension copies the whole value at every step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

MAX_COST = 50_000_000  # 50 ms; most conditions that come near take less than half of it
CONVERT, COPY, BYTE, STEP = 700, 50, 1, 500  # for each unit, unit, byte of a text, operand of a step
STATE = 20  # for each state of a pattern and byte of a text: what the slowest way of matching takes
MAX_COMPILE = 20_000_000
MAX_INTEGER = 2**63  # CEL would turn a larger one into a double, and two different amounts would be equal
COPYING_MACROS = frozenset({"map", "filter"})
MACROS = frozenset({"all", "exists", "exists_one", "existsOne", *COPYING_MACROS})
_CLASSES = frozenset("pPwWdDsSbB")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class ConditionTooCostly(Exception):
    """It would take longer than anybody should have to wait."""


class PatternCost(NamedTuple):
    """The states that matching may have to visit for each byte, and what it takes to compile it, every time anew."""

    states: int
    compile: int


class ValueSize(NamedTuple):
    """Units of structure (a number 1, a text or name 2, a list or map 4), bytes of text, the longest list or map."""

    units: int
    text: int
    longest: int


SMALL_SIZE = ValueSize(60, 4_000, 20)
CHEAP_COST = 100_000


@dataclass(frozen=True, slots=True)
class ExpressionPart:
    """The body of a comprehension, or all that is outside of one (`macro` is empty there)."""

    macro: str
    operands: int
    joins: int
    literals: int
    reaches_out: bool
    patterns: tuple[PatternCost, ...]

    @property
    def growth(self) -> int:
        """How much larger than what it is made of a value can be that `map` keeps."""
        if self.macro != "map":
            return 1
        return max(1, self.operands) if self.literals else 1 + self.joins


class ConditionCost:
    """What a condition of these words can cost; `patterns` are those of `matches`, by the place of the word."""

    def __init__(self, words: Sequence[str], patterns: Mapping[int, PatternCost]) -> None:
        self._parts = tuple(_expression_parts(words, patterns))
        self._growth = prod(part.growth for part in self._parts)
        self._written = words.count(",") + 1  # a list that stands in the condition is no longer than that
        self._joins = 1 + self._parts[0].joins
        self._small = SMALL_SIZE if self.cost(SMALL_SIZE) <= CHEAP_COST else ValueSize(0, 0, 0)

    @property
    def walks(self) -> bool:
        return len(self._parts) > 1

    def is_cheap(self, weight: ValueSize) -> bool:
        """Not worth counting: a tenth of a millisecond at most."""
        return weight[0] <= self._small[0] and weight[1] <= self._small[1]

    def check(self, weight: ValueSize, spent: int = 0) -> int:
        """What it costs, in nanoseconds; raises TooMuch where that and what was `spent` before are too much."""
        cost = self.cost(weight)
        if spent + cost > MAX_COST:
            raise ConditionTooCostly(
                f"The condition could take {_ms(spent + cost)} for these arguments; {_ms(MAX_COST)} is the most."
            )
        return cost

    def cost(self, weight: ValueSize) -> int:
        converted = weight.units * CONVERT + weight.text * 2 * BYTE
        return converted + sum(self._cost_of(part, weight) for part in self._parts)

    def steps(self, weight: ValueSize) -> int:
        """How often the body of one comprehension is evaluated at most."""
        return (weight.longest + self._written) * self._joins * self._growth

    def _cost_of(self, part: ExpressionPart, weight: ValueSize) -> int:
        steps = self.steps(weight) if part.macro else 1
        passes = steps if part.reaches_out else 1
        each = part.operands * STEP + sum(pattern.compile for pattern in part.patterns)
        read = part.operands * (weight.units * COPY + weight.text * BYTE)
        matched = sum(pattern.states for pattern in part.patterns) * STATE * weight.text
        kept = steps * passes // 2 * weight.units * COPY if part.macro in COPYING_MACROS else 0
        return steps * each + self._growth * (passes * (1 + part.joins) * (read + matched) + kept)


def measure_size(values: Iterable[object]) -> ValueSize:
    """Looks at no more than could be evaluated: raises TooMuch beyond it, and OverflowError for a number of 65 bits."""
    units = text = longest = 0
    left = list(values)
    while left:
        value = left.pop()
        units += 1
        if type(value) is str:  # most of what comes
            units += 1
            text += len(value) if value.isascii() else 4 * len(value)
            continue
        match value:
            case int():
                if not -MAX_INTEGER < value < MAX_INTEGER:
                    raise OverflowError("A number has more than 64 bits; a condition cannot compare it exactly.")
            case dict() | Mapping():
                units, longest = units + 3 + 2 * len(value), max(longest, len(value))
                _check_units(units + len(left) + len(value))
                left += value.values()
                text += 4 * sum(map(len, value))
            case list() | tuple():
                units, longest = units + 3, max(longest, len(value))
                _check_units(units + len(left) + len(value))
                left += value
            case _:
                pass
    return ValueSize(units, text, longest)


def is_flat(values: Iterable[object], most: int) -> bool:
    """Only short texts and ordinary numbers, of `most` characters together."""
    for value in values:
        if type(value) is str:
            most -= len(value)
        elif type(value) is int:
            if not -MAX_INTEGER < value < MAX_INTEGER:
                return False
        elif type(value) is not bool and type(value) is not float:
            return False
    return most >= 0


def estimate_pattern(text: str) -> PatternCost:
    """From above, by its atoms and counted repetitions; a pattern that is wrong gets some number as well."""
    groups = [_NO_COST]
    last = _NO_COST
    for atom in _ATOM.findall(text):
        if atom == "(":
            groups.append(_NO_COST)
            continue
        if atom == ")" and len(groups) > 1:
            last = groups.pop()
        elif repeat := _COUNTED.fullmatch(atom):
            times = max(int(repeat[2] or 0), int(repeat[1]), 1) - 1  # it stands there once already
            last = PatternCost(last.states * times, last.compile * times)
        else:
            last = _atom_cost(atom)
        groups[-1] = PatternCost(groups[-1].states + last.states, groups[-1].compile + last.compile)
    states, compiling = (sum(each) for each in zip(*groups, strict=True))
    return PatternCost(states, 30_000 + compiling)


_NO_COST = PatternCost(0, 0)
_COUNTED = re.compile(r"\{\s*(\d+)\s*(?:,\s*(\d*)\s*)?\}")
_ATOM = re.compile(r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\\\]])*\]|\{\s*\d+\s*(?:,\s*\d*\s*)?\}|.", re.DOTALL)


def _atom_cost(atom: str) -> PatternCost:
    if atom[0] == "\\":
        return PatternCost(4, 300_000) if atom[1:2] in _CLASSES else PatternCost(2, 2_000)
    if atom[0] == "[":
        classes = sum(atom.count(f"\\{letter}") for letter in _CLASSES)
        return PatternCost(4, 40_000 + 300_000 * classes)
    return PatternCost(2, 40_000) if atom == "." else PatternCost(1 if atom.isascii() else 4, 2_000)


def _expression_parts(words: Sequence[str], patterns: Mapping[int, PatternCost]) -> Iterator[ExpressionPart]:
    """What is outside first, then the body of each comprehension. None of them is inside another."""
    bodies = [] if MACROS.isdisjoint(words) else list(_macro_bodies(words))
    outside = [place for place in range(len(words)) if not any(place in body for _, body in bodies)]
    yield _expression_part("", outside, words, patterns, "")
    for macro, body in bodies:
        yield _expression_part(macro, body, words, patterns, words[body.start])


def _macro_bodies(words: Sequence[str]) -> Iterator[tuple[str, range]]:
    for place, word in enumerate(words):
        if word == "(" and words[place - 1] in MACROS:
            yield words[place - 1], range(place + 1, _closing_bracket(words, place))


def _expression_part(
    macro: str, places: Sequence[int], words: Sequence[str], patterns: Mapping[int, PatternCost], bound: str
) -> ExpressionPart:
    operands = [words[place] for place in places if _is_operand(words, place)]
    inside = [words[place] for place in places]
    return ExpressionPart(
        macro,
        len(operands),
        inside.count("+"),
        inside.count("[") + inside.count("{"),
        bool(macro) and any(word.isidentifier() and word != bound for word in operands),
        tuple(patterns[place] for place in places if place in patterns),
    )


def _is_operand(words: Sequence[str], place: int) -> bool:
    """A name or a literal, but no member, no call and no operator."""
    word = words[place]
    if not (word[0].isalnum() or word[0] in "_\"'") or word in ("in", "true", "false", "null"):
        return False
    return words[place - 1 : place] != ["."] and words[place + 1 : place + 2] != ["("]


def _closing_bracket(words: Sequence[str], start: int) -> int:
    depth = 0
    for place in range(start, len(words)):
        depth += (words[place] in _OPENING) - (words[place] in _CLOSING)
        if depth == 0:
            return place
    return len(words)


def _check_units(units: int) -> None:
    if units * CONVERT > MAX_COST:
        raise ConditionTooCostly("The condition would have to look at more values than it can in a moment.")


def _ms(nanoseconds: int) -> str:
    return f"{nanoseconds // 1_000_000:,} ms"
