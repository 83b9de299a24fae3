"""Conditions on a call, in CEL: bounded when they load and before they run, and without side effects.

It is long because the cost limit of a condition is enforced where it is compiled and run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from interlock.core.errors import Misconfigured
from interlock.core.policy.condition_budget import ConditionBudget
from interlock.core.policy.policy import BUDGET_FACT, FACTS, Condition, Facts

if TYPE_CHECKING:
    import cel
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

MAX_COST = 50_000_000  # 50 ms; most conditions that come near take less than half of it
CONVERT, COPY, BYTE, STEP = 700, 50, 1, 500  # for each unit, unit, byte of a text, operand of a step
STATE = 20  # for each state of a pattern and byte of a text: the slowest way of matching
MAX_COMPILE = 20_000_000
MAX_INTEGER = 2**63  # CEL would turn a larger one into a double, and two different amounts would be equal
COPYING_MACROS = frozenset({"map", "filter"})
MACROS = frozenset({"all", "exists", "exists_one", "existsOne", *COPYING_MACROS})
_CLASSES = frozenset("pPwWdDsSbB")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class ConditionTooCostly(Exception):
    """Evaluating it would exceed the time limit."""


class PatternCost(NamedTuple):
    """The states that matching may have to visit for each byte, and the cost of compiling it, which is not cached."""

    states: int
    compile: int


class ValueSize(NamedTuple):
    """Units of structure (a number 1, a text or name 2, a list or map 4), bytes of text, the longest list or map."""

    units: int
    text_bytes: int
    max_items: int


SMALL_SIZE = ValueSize(60, 4_000, 20)
CHEAP_COST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionPart:
    """The body of a comprehension, or everything outside of one (`macro` is empty there)."""

    macro: str
    operands: int
    joins: int
    literals: int
    uses_outer_names: bool
    patterns: tuple[PatternCost, ...]

    @property
    def growth(self) -> int:
        """How much larger than its source a value can be that `map` keeps."""
        if self.macro != "map":
            return 1
        return max(1, self.operands) if self.literals else 1 + self.joins


class ConditionCost:
    """The maximum cost of a condition of these words; `patterns` are those of `matches`, by word position."""

    def __init__(self, words: Sequence[str], patterns: Mapping[int, PatternCost]) -> None:
        self._parts = tuple(_expression_parts(words, patterns))
        self._growth = prod(part.growth for part in self._parts)
        self._written = words.count(",") + 1  # a list in the condition itself is no longer than that
        self._joins = 1 + self._parts[0].joins
        self._small = SMALL_SIZE if self.cost(SMALL_SIZE) <= CHEAP_COST else ValueSize(0, 0, 0)

    @property
    def has_comprehension(self) -> bool:
        return len(self._parts) > 1

    def is_cheap(self, size: ValueSize) -> bool:
        """Too cheap to count: a tenth of a millisecond at most."""
        return size[0] <= self._small[0] and size[1] <= self._small[1]

    def check(self, size: ValueSize, spent: int = 0) -> int:
        """The cost in nanoseconds; raises ConditionTooCostly if it and what was `spent` before exceed the limit."""
        cost = self.cost(size)
        if spent + cost > MAX_COST:
            raise ConditionTooCostly(
                f"The condition could take {_ms(spent + cost)} for these arguments; {_ms(MAX_COST)} is the most."
            )
        return cost

    def cost(self, size: ValueSize) -> int:
        converted = size.units * CONVERT + size.text_bytes * 2 * BYTE
        return converted + sum(self._part_cost(part, size) for part in self._parts)

    def steps(self, size: ValueSize) -> int:
        """How often the body of one comprehension is evaluated at most."""
        return (size.max_items + self._written) * self._joins * self._growth

    def _part_cost(self, part: ExpressionPart, size: ValueSize) -> int:
        steps = self.steps(size) if part.macro else 1
        passes = steps if part.uses_outer_names else 1
        each = part.operands * STEP + sum(pattern.compile for pattern in part.patterns)
        read = part.operands * (size.units * COPY + size.text_bytes * BYTE)
        matched = sum(pattern.states for pattern in part.patterns) * STATE * size.text_bytes
        kept = steps * passes // 2 * size.units * COPY if part.macro in COPYING_MACROS else 0
        return steps * each + self._growth * (passes * (1 + part.joins) * (read + matched) + kept)


def measure_size(values: Iterable[object]) -> ValueSize:
    """Measure no more than could be evaluated: raises ConditionTooCostly beyond that.

    Raises OverflowError for a number of 65 bits.
    """
    units = text = longest = 0
    left = list(values)
    while left:
        value = left.pop()
        units += 1
        if type(value) is str:  # the most frequent type
            units += 1
            text += len(value) if value.isascii() else 4 * len(value)
            continue
        match value:
            case int():
                if abs(value) >= MAX_INTEGER:
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
            if abs(value) >= MAX_INTEGER:
                return False
        elif type(value) is not bool and type(value) is not float:
            return False
    return most >= 0


def estimate_pattern(text: str) -> PatternCost:
    """An upper bound, by atoms and counted repetitions; an invalid pattern gets some number as well."""
    groups = [_NO_COST]
    last = _NO_COST
    for atom in _ATOM.findall(text):
        if atom == "(":
            groups.append(_NO_COST)
            continue
        if atom == ")" and len(groups) > 1:
            last = groups.pop()
        elif repeat := _COUNTED.fullmatch(atom):
            times = max(int(repeat[2] or 0), int(repeat[1]), 1) - 1  # the first one is counted already
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
    """The part outside first, then the body of each comprehension. None of them is inside another."""
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
        macro=macro,
        operands=len(operands),
        joins=inside.count("+"),
        literals=inside.count("[") + inside.count("{"),
        uses_outer_names=bool(macro) and any(word.isidentifier() and word != bound for word in operands),
        patterns=tuple(patterns[place] for place in places if place in patterns),
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


MAX_SOURCE = 2_000
MAX_ITEMS = 1_000
MAX_MACROS = 5
MAX_FLAT, MAX_FLAT_VALUES = 400, 8
MAX_UNCOUNTED = 100  # conditions on a few short values that are evaluated again rather than cached
CHEAP_EVALUATION_COST = 10_000  # nanoseconds of one that is too cheap to count
MEASURE_COST = 100  # for each unit that is measured
MAX_MEASURE_COST = MAX_COST // CONVERT * MEASURE_COST
TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})
FUNCTIONS = (
    *("size", "contains", "startsWith", "endsWith", "matches"),
    *("int", "uint", "double", "string", "bytes", "type", "dyn", "duration", "timestamp"),
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)


@lru_cache(maxsize=1_000)  # a grant's condition is compiled at every call; a compiled one holds no state
def compile_condition(source: str) -> Condition:
    """Raise Misconfigured for what can never be evaluated; what fails only for some calls raises when it is called."""
    if len(source) > MAX_SOURCE:
        raise Misconfigured(f"The condition has {len(source):,} characters; at most {MAX_SOURCE:,} are accepted.")
    program = _parse_condition(source)
    words = _tokens(source)
    bound = _bound_names(words)
    _check_functions(program)
    condition_cost = ConditionCost(words, _patterns(words))
    variables = _find_variables(program, bound)
    longest = (
        MAX_ITEMS // (1 + words.count("+")) if condition_cost.has_comprehension else None
    )  # lists that are joined count together
    return _make_condition(variables, _used_members(words), _BoundedProgram(program, condition_cost, longest))


def _make_condition(variables: list[str], members: list[str] | None, bound: _BoundedProgram) -> Condition:
    others = [name for name in variables if name != "args"]
    uses_args = "args" in variables

    def condition(facts: Facts) -> object:
        seen = {name: facts[name] for name in others} if others else {}
        flat = bound.accepts_flat(seen) if others else bound.may_be_flat
        if uses_args:
            args = seen["args"] = _used_args(facts["args"], members)
            flat = flat and type(args) is dict and bound.accepts_flat(args)
        budget = _facts_budget(facts)
        if flat:
            budget.cheap_evaluations += 1
            if budget.cheap_evaluations <= MAX_UNCOUNTED:
                return bound.execute(seen)
        names = [seen[name] for name in others]
        place = (condition, *(tuple(each) if type(each) is list else each for each in names))
        return budget.evaluate_once(
            place, lambda: (bound.execute_cheap if flat else bound.execute_measured)(seen, budget)
        )

    return condition


class _BoundedProgram:
    """A program that raises, before anything is evaluated, for arguments that would take too long."""

    def __init__(self, program: cel.Program, condition_cost: ConditionCost, longest: int | None) -> None:
        self._program = program
        self._condition_cost = condition_cost
        self._longest = longest
        self.may_be_flat = condition_cost.is_cheap(ValueSize(SMALL_SIZE.units, 2 * MAX_FLAT, MAX_FLAT_VALUES))

    def execute(self, seen: dict[str, object]) -> object:
        try:
            return self._program.execute(seen)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as panic:  # a panic in Rust is no Exception, and core must be able to catch it
            raise RuntimeError(f"The condition could not be evaluated: {panic}") from panic

    def accepts_flat(self, values: dict[str, object]) -> bool:
        """A few short values need no measuring, which would take a fifth of the time of most conditions."""
        return self.may_be_flat and len(values) <= MAX_FLAT_VALUES and is_flat(values.values(), MAX_FLAT)

    def execute_cheap(self, seen: dict[str, object], budget: ConditionBudget) -> object:
        """Evaluate a condition that is too cheap to measure, but may come often."""
        _check_budget_left(budget)
        budget.spent += CHEAP_EVALUATION_COST
        return self.execute(seen)

    def execute_measured(self, seen: dict[str, object], budget: ConditionBudget) -> object:
        """Evaluate within the budget of the call: a thousand conditions must not take a thousand times as long.

        Finding out that one would take too long takes time as well, and counts.
        """
        _check_budget_left(budget)
        before = budget.spent
        budget.spent = before + MAX_MEASURE_COST
        size = measure_size(seen.values())
        budget.spent = before + size.units * MEASURE_COST
        if self._longest is not None and size.max_items > self._longest:
            raise ValueError(
                f"A list or map has {size.max_items:,} items; this condition looks at {self._longest:,} at most."
            )
        budget.spent = before + (
            CHEAP_EVALUATION_COST if self._condition_cost.is_cheap(size) else self._condition_cost.check(size, before)
        )
        return self.execute(seen)


def _check_budget_left(budget: ConditionBudget) -> None:
    if budget.spent >= MAX_COST:
        raise ConditionTooCostly("The conditions on this call have taken all the time that they have together.")


def _facts_budget(facts: Facts) -> ConditionBudget:
    """The budget of the facts' call; other arguments are another call."""
    effort = facts.get(BUDGET_FACT)
    return effort if isinstance(effort, ConditionBudget) and effort.args is facts.get("args") else ConditionBudget({})


def _used_args(args: object, members: list[str] | None) -> object:
    """Only the arguments that the condition names: converting the others costs more than evaluating."""
    if members is None or (type(args) is not dict and not isinstance(args, Mapping)):
        return args
    return {name: args[name] for name in members if name in args}


# The lexer of CEL's grammar, as far as it is needed to tell names and brackets from texts and comments.
_TOKEN = re.compile(
    r"""
    \s*+(
        [A-Za-z_][A-Za-z0-9_]*+ (?!["'])
      | //[^\n]*
      | [bB]?[rR](?: \"{3}[\s\S]*?\"{3} | '{3}[\s\S]*?'{3} | "[^"\r\n]*" | '[^'\r\n]*' )
      | [bB]?(?: \"{3}(?:\\[\s\S]|[^\\])*?\"{3} | '{3}(?:\\[\s\S]|[^\\])*?'{3} )
      | [bB]?(?: "(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*' )
      | [0-9]++
      | \S
    )
    """,
    re.VERBOSE,
)


def _tokens(source: str) -> list[str]:
    words = _TOKEN.findall(source)
    return [word for word in words if not word.startswith("//")] if "//" in source else words


_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (?:Syntax error: )?(.*)")


def _compile(source: str) -> cel.Program:
    """Import with the first condition: the package loads a terminal toolkit, which takes 0.15 s."""
    import cel  # noqa: PLC0415  see above

    return cel.compile(source)


def _parse_condition(source: str) -> cel.Program:
    try:
        return _compile(source)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception, and must not end the program
        raise Misconfigured(f"The condition cannot be read: {_syntax_error_text(str(error), source)}.") from None


def _syntax_error_text(error: str, source: str) -> str:
    found = _ERROR.search(error)
    if found is None:
        return "it is not CEL"
    line, column, problem = found.groups()
    problem = problem.split(" expecting ")[0].replace("mismatched input '<EOF>'", "it ends too early")
    where = f"at character {column}" + (f" of its line {line}" if "\n" in source.strip() else "")
    if re.search(r"(?<![=!<>])=(?!=)", source):
        problem += " (equality is written ==)"
    elif re.search(r"\b(and|or|not)\b", source):
        problem += " (CEL writes && for and, || for or, ! for not)"
    return f"{where}: {problem}"


def _bound_names(words: list[str]) -> frozenset[str]:
    """The names that comprehensions bind; a comprehension within another could run for minutes."""
    if MACROS.isdisjoint(words):
        return frozenset()
    names: list[str] = []
    brackets: list[bool] = []
    for word, before, after in zip(words, ["", *words], [*words[1:], ""], strict=False):
        if word in ("(", "[", "{"):
            macro = word == "(" and before in MACROS
            if macro and any(brackets):
                raise Misconfigured(
                    f"The condition has {before}() inside another comprehension. Use only one at a time."
                )
            brackets.append(macro)
            names += [after] if macro else []
        elif word in (")", "]", "}"):
            brackets.pop()
    _check_bound(names)
    return frozenset(names)


def _check_bound(names: list[str]) -> None:
    if len(names) > MAX_MACROS:
        raise Misconfigured(f"The condition has {len(names)} comprehensions; at most {MAX_MACROS} are accepted.")
    for name in names:
        if name in FACTS:
            raise Misconfigured(
                f'The condition uses "{name}" for the items of a list, which hides the {name} of the call.'
            )


def _find_variables(program: cel.Program, bound: frozenset[str]) -> list[str]:
    free = [name for name in program.variables() if name not in bound]
    for name in free:
        if name not in FACTS and name not in TYPES:
            near = get_close_matches(name, FACTS, 1) or [f"args.{name.lstrip('.')}"]
            raise Misconfigured(
                f'The condition uses an unknown name "{name}"; did you mean "{near[0]}"? It can see {", ".join(FACTS)}.'
            )
    return [name for name in free if name in FACTS]


def _check_functions(program: cel.Program) -> None:
    for name in program.functions():
        if name in MACROS:  # correctly used ones are gone by now
            raise Misconfigured(f"The condition uses {name}() wrongly: it takes a name and a condition.")
        if name.isidentifier() and name not in FUNCTIONS:  # operators have names like _>_
            near = get_close_matches(name, (*FUNCTIONS, *MACROS), 1)
            hint = f'; did you mean "{near[0]}"?' if near else "."
            raise Misconfigured(f'The condition uses an unknown function "{name}"{hint}')


def _patterns(words: list[str]) -> dict[int, PatternCost]:
    """The regular expressions, which have to be literals: one from the arguments could take minutes."""
    found = {}
    for place in _places("matches", words):
        if words[place + 1 : place + 2] == ["("]:
            if words[place + 3 : place + 4] != [")"] or words[place + 2][-1] not in "\"'":
                raise Misconfigured("The condition needs a text in quotes for matches(): matches('^[a-z]+$').")
            found[place] = _pattern(words[place + 2])
    return found


def _pattern(word: str) -> PatternCost:
    """Compile the pattern now: later it would raise at every call."""
    try:
        text = _compile(word).execute({})
        pattern = estimate_pattern(text if isinstance(text, str) else "")
        if pattern.compile <= MAX_COMPILE:
            _compile(f"''.matches({word})").execute({})
            return pattern
    except RuntimeError:
        raise Misconfigured(f"The condition has {word}, which is not a regular expression.") from None
    raise Misconfigured(f"The condition has {word}, which is too large a pattern: repeat fewer things less often.")


def _used_members(words: list[str]) -> list[str] | None:
    """The arguments that the condition can use; None if it could be any, as in `args[name]` or `size(args)`."""
    names: set[str] = set()
    for number in _places("args", words):
        if words[number - 1 : number] != ["."]:
            if words[number + 1 : number + 2] != ["."] or words[number + 3 : number + 4] == ["("]:
                return None
            names.add(words[number + 2])
    return sorted(names)


def _places(word: str, words: list[str]) -> Iterator[int]:
    place = -1
    for _ in range(words.count(word)):
        place = words.index(word, place + 1)
        yield place
