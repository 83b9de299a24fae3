"""Mutants: a module with one small mistake."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

CONTEXT = 30  # characters that are shown on both sides of a change
MARKER = "XX"  # stands for the first two characters, so that nothing is left of a short text
NOTHING_AT_RUN_TIME = {"annotation", "returns", "decorator_list", "bases", "format_spec", "cls"}
TYPES_ONLY = {"Literal", "ClassVar", "Callable", "Mapping", "TypeVar"}
PAIRS = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
    (ast.LShift, ast.RShift),
    (ast.BitOr, ast.BitAnd),
)
SWAPS = {old: new for pair in PAIRS for old, new in (pair, pair[::-1])} | {ast.Div: ast.Mult, ast.Mod: ast.FloorDiv}
HAVE_OTHERS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)  # conditions that are changed in themselves


@dataclass(frozen=True)
class CodePosition:
    """`function` is the line where the outermost function begins; 0 where code runs when the module is loaded."""

    statement: ast.AST
    scope: str = ""
    function: int = 0


@dataclass(frozen=True, eq=False)
class Mutant:
    """`lines` are those of its statement, up to the change."""

    path: str
    tree: ast.Module
    place: CodePosition
    lines: range
    change: str
    node: ast.AST
    field: str
    value: object

    def __str__(self) -> str:
        return f"{self.path} {self.place.scope or 'module'}: {self.change}"

    def apply(self) -> ast.Module:
        """The tree that it was made from, changed for good."""
        setattr(self.node, self.field, self.value)
        return ast.fix_missing_locations(self.tree)


def find_mutants(path: str, source: str) -> Iterator[Mutant]:
    """Those that read alike are numbered, so that a name means one."""
    seen: Counter[str] = Counter()
    tree = ast.parse(source)
    for place, node, field, value in _walk(tree, CodePosition(tree)):
        change = _describe_change(place.statement, node, field, value)
        mutant = Mutant(path, tree, place, _lines(place.statement, node), change, node, field, value)
        seen[str(mutant)] += 1
        again = seen[str(mutant)]
        yield replace(mutant, change=f"{change} ({again})") if again > 1 else mutant


def _walk(node: ast.AST, place: CodePosition) -> Iterator[tuple[CodePosition, ast.AST, str, object]]:
    if isinstance(node, ast.stmt | ast.match_case):
        place = replace(place, statement=node)
    for sort in (_operators, _values, _conditions, _removals):
        yield from ((place, node, field, value) for field, value in sort(node))
    for child, inner in _children(node, place):
        yield from _walk(child, inner)


# What a field could be instead

Changes = Iterator[tuple[str, object]]


def _operators(node: ast.AST) -> Changes:
    match node:
        case ast.Compare(ops=ops):
            for number, op in enumerate(ops):
                yield "ops", [*ops[:number], SWAPS[type(op)](), *ops[number + 1 :]]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPS:
            yield "op", SWAPS[type(op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub() as op, operand=operand):
            yield "operand", ast.UnaryOp(type(op)(), operand)


def _values(node: ast.AST) -> Changes:
    match node:
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int() | float() as value):
            yield "value", value + 1
        case ast.Constant(value=str(value)):
            yield "value", MARKER + value[len(MARKER) :]
        case ast.Constant(value=bytes(value)):
            yield "value", MARKER.encode() + value[len(MARKER) :]
        case ast.JoinedStr(values=values):
            yield "values", [ast.Constant(MARKER), *values]
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "value", ast.Constant(None)


def _conditions(node: ast.AST) -> Changes:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(test, HAVE_OTHERS):
            yield "test", ast.UnaryOp(ast.Not(), test)
        case ast.comprehension(ifs=[test]) if not isinstance(test, HAVE_OTHERS):
            yield "ifs", [ast.UnaryOp(ast.Not(), test)]
        case ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None):
            return  # all that is left
        case ast.match_case(guard=guard):
            yield "guard", ast.Constant(False)
            if guard is not None:
                yield "guard", None


def _removals(node: ast.AST) -> Changes:
    match node:
        case ast.Call(keywords=keywords):
            named = [number for number, keyword in enumerate(keywords) if keyword.arg]
            yield from (("keywords", [*keywords[:number], *keywords[number + 1 :]]) for number in named)
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "__class__", ast.Pass
        case ast.Raise() | ast.Delete() | ast.Continue() | ast.Break():
            yield "__class__", ast.Pass


# Where to look


def _children(node: ast.AST, place: CodePosition) -> Iterator[tuple[ast.AST, CodePosition]]:
    """Not into what only the type checker reads."""
    inside = place
    match node:
        case ast.ClassDef(name=name):
            inside = place = replace(place, scope=f"{place.scope}.{name}".strip("."))
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            place = replace(place, scope=f"{place.scope}.{name}".strip("."))
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            inside = replace(place, function=place.function or first)
    for field, child in _parts(node):
        yield child, inside if field == "body" else place


def _parts(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            kept: set[str] = set()
        case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.ClassDef(bases=[ast.Name(id="Protocol")]):
            kept = set()
        case ast.Call(func=ast.Name(id=name)) | ast.Subscript(value=ast.Name(id=name)) if name in TYPES_ONLY:
            kept = set()
        case ast.match_case(body=[ast.Expr(value=ast.Call(func=ast.Name(id="assert_never")))]):
            kept = set()
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            kept = {"orelse"}
        case _:
            kept = {*node._fields} - NOTHING_AT_RUN_TIME
    for field, value in ast.iter_fields(node):
        found = value if isinstance(value, list) else [value]
        yield from ((field, each) for each in found if field in kept and _counts(node, each))


def _counts(node: ast.AST, part: object) -> bool:
    match node:
        case ast.JoinedStr():
            return isinstance(part, ast.FormattedValue)
        case (
            ast.Call(func=ast.Name(id="cast"), args=[only_type, _])
            | ast.Call(func=ast.Name(id="isinstance"), args=[_, only_type])
        ):
            return isinstance(part, ast.AST) and part is not only_type
        case _:
            return isinstance(part, ast.AST)


# Descriptions


def _lines(statement: ast.AST, node: ast.AST) -> range:
    at = node.pattern if isinstance(node, ast.match_case) else node
    line = getattr(at, "lineno", getattr(statement, "lineno", 1))
    last = getattr(at, "end_lineno", line) if isinstance(at, ast.expr) else line
    return range(min(line, getattr(statement, "lineno", line)), last + 1)


def _describe_change(statement: ast.AST, node: ast.AST, field: str, value: object) -> str:
    """What was and what became of it, with a little of what stands around."""
    before, kept = _first_line(statement), getattr(node, field)
    setattr(node, field, value)
    after = _first_line(statement)
    setattr(node, field, kept)
    start = max(0, _read_alike(before, after) - CONTEXT)
    end = max(0, _read_alike(before[start:][::-1], after[start:][::-1]) - CONTEXT)
    return f"{before[start : len(before) - end]} -> {after[start : len(after) - end]}"


def _read_alike(one: str, other: str) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _first_line(node: ast.AST) -> str:
    return next(line for line in ast.unparse(ast.fix_missing_locations(node)).splitlines() if not line.startswith("@"))
