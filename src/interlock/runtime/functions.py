"""Functions as tools: the decorator that declares one, its schema from type hints, its arguments to JSON and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, NotRequired, Required, cast, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from interlock.core.call import ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.errors import InvalidRequest, Misconfigured, did_you_mean
from interlock.core.sentence import template_problem

TOOL_ATTRIBUTE = "interlock_tool"  # of a function that a program gates: its declaration


def tool(  # noqa: PLR0913  one parameter for each property of a tool
    body: Callable[..., Any] | None = None,
    *,
    effect: str = "",
    describe: str | Callable[[Mapping[str, Any]], str] = "",
    name: str = "",
    preview: Callable[[Mapping[str, Any]], object] | None = None,
    secret: Sequence[str] = (),
    idempotent: bool = False,
    confirm: str = "",
    decisions: Sequence[str] = (),
) -> Any:
    """Declare an async or sync function as a tool, for the chat and for `Interlock.tool`, which gates it.

    Without an effect the tool counts as unknown and asks for approval. Its docstring is what a model is told of it.
    """
    options: dict[str, Any] = {
        "effect": effect,
        "describe": describe,
        "preview": preview,
        "secret": (secret,) if isinstance(secret, str) else tuple(secret),
        "idempotent": idempotent,
        "confirm": confirm,
        "decisions": tuple(decisions),
    }
    if body is None:
        return lambda function: declare_function(function, name, options)
    return declare_function(body, name, options)


def find_declaration(value: object) -> FunctionTool | None:
    """The declaration of a function with `@tool` or `@lock.tool`; None for anything else."""
    found = value if isinstance(value, FunctionTool) else getattr(value, TOOL_ATTRIBUTE, None)
    return found if isinstance(found, FunctionTool) else None


def declare_function(body: Any, name: str, options: Mapping[str, Any]) -> FunctionTool:
    """The declaration of a function with these options, or the one that it has already."""
    known = find_declaration(body)
    if known is None:
        return make_function_tool(body, name, **options)
    if name or any(options.values()):
        raise Misconfigured(
            f"{known.spec.name} is declared as a tool already: give these options there, and only there."
        )
    return known


@dataclass(frozen=True)
class FunctionTool:
    """A declared function. It is not called by itself, since nobody would be asked: `body` is the plain function."""

    body: Callable[..., Any]
    spec: ToolSpec
    signature: inspect.Signature
    arguments: TypeAdapter[Any]
    returns: TypeAdapter[Any] | None

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        name = self.spec.name
        raise Misconfigured(
            f"{name} is only declared as a tool, so nobody would be asked. Call what lock.tool({name}) returns; "
            f"{name}.body is the plain function, for tests."
        )

    @property
    def description(self) -> str:
        """The text for a model: the docstring of the function."""
        return inspect.getdoc(self.body) or ""

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All arguments as plain JSON, defaults included: a reviewer sees what the tool will get."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidRequest(f"{self.spec.name}: {error}.") from None
        bound.apply_defaults()
        try:
            value = self.arguments.validate_python(bound.arguments)
        except ValidationError as error:
            raise InvalidRequest(f"{self.spec.name}: {_first_problem(error)}") from None
        return cast(dict[str, Any], self.arguments.dump_python(value, mode="json", warnings=False))

    def unpack(self, args: bytes) -> dict[str, Any]:
        """The approved arguments, as the types of the function's parameters."""
        return cast(dict[str, Any], self.arguments.validate_python(read_canonical(args)))

    def parse(self, args: Mapping[str, object]) -> dict[str, Any]:
        """The same for arguments of a model; raises InvalidRequest without the values, which may be secret."""
        try:
            return cast(dict[str, Any], self.arguments.validate_python(args))
        except ValidationError as error:
            raise InvalidRequest(f"{self.spec.name}: {_first_problem(error)}") from None

    def defaults(self) -> dict[str, object]:
        """The defaults of the parameters as JSON, so that a reviewer sees what the function will get."""
        given = {p.name: p.default for p in self.signature.parameters.values() if p.default is not p.empty}
        return {name: plain for name, value in given.items() if (plain := _plain(value)) is not _NOT_JSON}

    def restore_result(self, value: object) -> object:
        """A stored result as the function's return type, or unchanged if it does not validate."""
        if self.returns is None:
            return value
        try:
            return self.returns.validate_python(value)
        except ValidationError:
            return value


def make_function_tool(body: Callable[..., Any], name: str = "", **options: Any) -> FunctionTool:
    label = name or getattr(body, "__name__", type(body).__name__)
    signature = inspect.signature(body)
    _check_options(label, signature, options)
    hints = get_type_hints(body, include_extras=True)
    fields = {p.name: _field(p, hints, label) for p in signature.parameters.values()}
    make: Any = TypedDict  # the fields are only known at run time
    shape = make(f"{label}_arguments", fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        arguments: TypeAdapter[Any] = TypeAdapter(shape)
        schema = arguments.json_schema()
    except PydanticUserError as error:
        problem = str(error).partition("\n")[0]
        raise Misconfigured(f"{label}: an argument has a type that has no JSON form. {problem}") from None
    schema.pop("title", None)
    spec = ToolSpec(label, schema=schema, **options)
    return FunctionTool(body, spec, signature, arguments, _returns(hints.get("return", Any)))


def _returns(hint: Any) -> TypeAdapter[Any] | None:
    """How to restore a stored result; None for a type that is not restored."""
    try:
        return None if hint in (Any, None, type(None)) else TypeAdapter(hint)
    except PydanticUserError:
        return None


def _check_options(label: str, signature: inspect.Signature, options: Mapping[str, Any]) -> None:
    """Raise Misconfigured for a sentence or a secret that no argument fits: a typo must not show a secret."""
    names, describe = signature.parameters.keys(), options.get("describe")
    if isinstance(describe, str) and (problem := template_problem(describe, names)):
        raise Misconfigured(f"{label}: describe: {problem}")
    if inspect.iscoroutinefunction(describe):
        raise Misconfigured(f"{label}: describe is a plain function of the arguments, not an async one; use preview.")
    if problem := secret_problem(options.get("secret", ()), names):
        raise Misconfigured(f"{label}: {problem}")


def secret_problem(secret: Sequence[str], known: Collection[str]) -> str:
    """Why one of the secret arguments is none of the tool's; empty if all are. `known` are the names of arguments."""
    for pointer in secret:
        first = pointer.removeprefix("/").partition("/")[0].replace("~1", "/").replace("~0", "~")
        if first != "*" and first not in known:
            return f'secret: there is no argument "{first}"{did_you_mean(first, known)}'
    return ""


def stored_result(value: object) -> bytes:
    """JSON for the ledger: a value without a JSON form is stored as its repr; an iterator is not consumed."""
    if isinstance(value, Iterator):
        return canonical(f"<{type(value).__name__}>")
    try:
        return canonical(to_jsonable_python(value, fallback=repr))
    except (InvalidRequest, ValueError):
        return canonical(repr(value)[:2_000].encode("utf-8", "replace").decode().replace("\x00", ""))


_NOT_JSON = object()


def _plain(value: object) -> object:
    try:
        return read_canonical(canonical(to_jsonable_python(value)))
    except (InvalidRequest, ValueError):
        return _NOT_JSON


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any], label: str) -> Any:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise Misconfigured(
            f"{label}: every argument of a tool needs a name; {parameter} cannot be shown to reviewers."
        )
    hint = hints.get(parameter.name, Any)
    return Required[hint] if parameter.default is parameter.empty else NotRequired[hint]


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "arguments"
    return f"{place}: {first['msg']}."
