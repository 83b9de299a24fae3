"""A Python function as a tool: its JSON schema from the type hints, and its arguments to JSON and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, Required, cast, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from interlock.core.call import ToolSpec
from interlock.core.canonical import canonical, read_canonical
from interlock.core.errors import InvalidRequest, Misconfigured


@dataclass(frozen=True)
class FunctionTool:
    body: Callable[..., Any]
    spec: ToolSpec
    signature: inspect.Signature
    arguments: TypeAdapter[Any]
    returns: TypeAdapter[Any] | None

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
    hints = get_type_hints(body, include_extras=True)
    fields = {p.name: _field(p, hints, label) for p in signature.parameters.values()}
    make: Any = TypedDict  # the fields are only known at run time
    shape = make(f"{label}_arguments", fields)
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    arguments: TypeAdapter[Any] = TypeAdapter(shape)
    schema = arguments.json_schema()
    schema.pop("title", None)
    returned = hints.get("return", Any)
    returns = None if returned in (Any, None, type(None)) else TypeAdapter(returned)
    spec = ToolSpec(label, schema=schema, **options)
    return FunctionTool(body, spec, signature, arguments, returns)


def stored_result(value: object) -> bytes:
    """JSON for the ledger: a value without a JSON form is stored as its repr; an iterator is not consumed."""
    if isinstance(value, Iterator):
        return canonical(f"<{type(value).__name__}>")
    try:
        return canonical(to_jsonable_python(value, fallback=repr))
    except (InvalidRequest, ValueError):
        return canonical(repr(value)[:2_000].encode("utf-8", "replace").decode().replace("\x00", ""))


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
