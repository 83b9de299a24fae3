"""Conditions on a call, in CEL: bounded when they load, cheap when they run, never able to change anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from interlock.core.errors import Misconfigured
from interlock.core.policy import FACTS, Condition, Facts

if TYPE_CHECKING:
    import cel

MAX_SOURCE = 2_000
MAX_ITEMS = 1_000
MAX_MACROS = 5  # `map` over 1,000 items takes 30 ms, and CEL has no limit on steps
MAX_INTEGER = 2**63  # CEL would turn a larger one into a double, and two different amounts would be equal
MACROS = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter"})
TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})
FUNCTIONS = (
    *("size", "contains", "startsWith", "endsWith", "matches"),
    *("int", "uint", "double", "string", "bytes", "type", "dyn", "duration", "timestamp"),
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds", "getMilliseconds"),
)


@lru_cache(maxsize=1_000)  # a grant's condition is compiled at every call; a compiled one holds no state
def compile_condition(source: str) -> Condition:
    """Raises Misconfigured for what can never be evaluated; what only some calls trip over raises when it is called."""
    if len(source) > MAX_SOURCE:
        raise Misconfigured(f"The condition has {len(source):,} characters; at most {MAX_SOURCE:,} are accepted.")
    program = _parsed(source)
    words = _words(source)
    bound = _bound_names(words)
    _check_functions(program)
    _check_patterns(words)
    variables = _checked_variables(program, bound)
    longest = MAX_ITEMS // (1 + words.count("+")) if bound else None  # lists that are joined count together
    return _condition(program, variables, _members(words), longest)


def _condition(program: cel.Program, variables: list[str], members: list[str] | None, longest: int | None) -> Condition:
    others = [name for name in variables if name != "args"]
    uses_args = "args" in variables

    def condition(facts: Facts) -> object:
        seen = {name: facts[name] for name in others}
        if uses_args:
            seen["args"] = _bounded(facts["args"], members, longest)
        try:
            return program.execute(seen)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as panic:  # a panic in Rust is no Exception, and core must be able to catch it
            raise RuntimeError(f"The condition could not be evaluated: {panic}") from panic

    return condition


def _bounded(args: object, members: list[str] | None, longest: int | None) -> object:
    """Only the arguments that the condition names: converting the others costs more than evaluating."""
    if members is None or not isinstance(args, Mapping):
        _check_value(args, longest)
        return args
    seen = {name: args[name] for name in members if name in args}
    for value in seen.values():
        if type(value) is not str:
            _check_value(value, longest)
    return seen


def _check_value(value: object, longest: int | None) -> None:
    match value:
        case int():
            if not -MAX_INTEGER < value < MAX_INTEGER:
                raise OverflowError("A number has more than 64 bits; a condition cannot compare it exactly.")
        case Mapping():
            for inner in value.values():
                _check_value(inner, longest)
        case list() | tuple():
            if longest is not None and len(value) > longest:
                raise ValueError(f"A list has {len(value):,} items; this condition looks at {longest:,} at most.")
            for inner in value:
                _check_value(inner, longest)
        case _:
            pass


# The lexer of CEL's grammar, as far as it is needed to tell names and brackets from texts and comments.
_WORD = re.compile(
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


def _words(source: str) -> list[str]:
    words = _WORD.findall(source)
    return [word for word in words if not word.startswith("//")] if "//" in source else words


_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (?:Syntax error: )?(.*)")


def _compile(source: str) -> cel.Program:
    """Loaded with the first condition: the package brings a terminal toolkit along, which takes 0.15 s."""
    import cel  # noqa: PLC0415  see above

    return cel.compile(source)


def _parsed(source: str) -> cel.Program:
    try:
        return _compile(source)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception, and must not end the program
        raise Misconfigured(f"The condition cannot be read: {_plain(str(error), source)}.") from None


def _plain(error: str, source: str) -> str:
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


def _checked_variables(program: cel.Program, bound: frozenset[str]) -> list[str]:
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
        if name in MACROS:  # those that are used rightly are gone by now
            raise Misconfigured(f"The condition uses {name}() wrongly: it takes a name and a condition.")
        if name.isidentifier() and name not in FUNCTIONS:  # operators have names like _>_
            near = get_close_matches(name, (*FUNCTIONS, *MACROS), 1)
            hint = f'; did you mean "{near[0]}"?' if near else "."
            raise Misconfigured(f'The condition uses an unknown function "{name}"{hint}')


def _check_patterns(words: list[str]) -> None:
    """A regular expression that stands in the condition is tried now: later it would raise at every call."""
    for number in _places("matches", words):
        if words[number + 3 : number + 4] == [")"]:
            pattern = words[number + 2]
            try:
                if pattern[-1] in "\"'":
                    _compile(f"''.matches({pattern})").execute({})
            except RuntimeError:
                raise Misconfigured(f"The condition has {pattern}, which is not a regular expression.") from None


def _members(words: list[str]) -> list[str] | None:
    """The arguments that the condition can look at; None when it could be any, as in `args[name]` or `size(args)`."""
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
