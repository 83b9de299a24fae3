"""The API reference for people: groups of routes, tables of fields, and a curl example for each route."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from interlock.server.openapi.document import Document, Operation, operations

EXAMPLE_HOST = "http://127.0.0.1:8321"
Schema = Mapping[str, Any]


class DocField(NamedTuple):
    name: str
    type: str
    required: bool
    text: str


class DocRoute(NamedTuple):
    """`kinds` are the content types of the body; `response_type` is the name of the response's type.

    `recent`: a session needs a recent sign-in.
    """

    method: str
    path: str
    text: str
    roles: tuple[str, ...]
    parameters: tuple[DocField, ...]
    body: tuple[DocField, ...]
    kinds: tuple[str, ...]
    response_type: str
    errors: tuple[str, ...]
    curl: str
    recent: bool = False


class DocModel(NamedTuple):
    name: str
    text: str
    fields: tuple[DocField, ...]


class DocGroup(NamedTuple):
    name: str
    text: str
    routes: tuple[DocRoute, ...]


def doc_groups(document: Document) -> list[DocGroup]:
    listed = list(operations(document))
    return [
        DocGroup(
            tag["name"],
            tag["description"],
            tuple(_route(document, *each) for each in listed if tag["name"] in each[2]["tags"]),
        )
        for tag in document["tags"]
    ]


def response_models(document: Document) -> list[DocModel]:
    """The models of all responses, with the models that they contain."""
    wanted = [name for _, _, operation in operations(document) for name in _model_names(_response_schema(operation))]
    found: dict[str, Schema] = {}
    while wanted:
        name = wanted.pop(0)
        if name not in found:
            found[name] = document["components"]["schemas"][name]
            wanted += _model_names(found[name])
    return [DocModel(name, found[name].get("description", ""), _fields(found[name])) for name in sorted(found)]


def _route(document: Document, method: str, path: str, operation: Operation) -> DocRoute:
    content: Mapping[str, Schema] = operation.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {}).get("schema", {})
    answer = _response_schema(operation)
    return DocRoute(
        method,
        path,
        text=operation.get("description", ""),
        roles=tuple(operation.get("x-roles", ())),
        parameters=tuple(_parameter(each) for each in operation.get("parameters", ())),
        body=tuple(
            field for name in _model_names(body)[:1] for field in _fields(document["components"]["schemas"][name])
        ),
        kinds=tuple(content),
        response_type=_type_text(answer) if answer else "",
        errors=tuple(
            f"{status} {HTTPStatus(int(status)).phrase}" for status in operation["responses"] if status[0] in "45"
        ),
        curl=_curl(method, path, content, secret="x-roles" in operation),
        recent=bool(operation.get("x-recent-sign-in")),
    )


def _response_schema(operation: Operation) -> Schema:
    for status, answer in operation["responses"].items():
        for kind, content in answer.get("content", {}).items():
            if status.startswith("2"):
                schema: Schema = content["schema"] if kind == "application/json" else {"type": kind}
                return schema
    return {}


def _parameter(given: Schema) -> DocField:
    where = "" if given["in"] == "query" else f" ({given['in']})"
    text = given.get("description", "")
    return DocField(given["name"] + where, _type_text(given["schema"]), bool(given.get("required")), text)


def _fields(schema: Schema) -> tuple[DocField, ...]:
    required = schema.get("required", ())
    return tuple(
        DocField(name, _type_text(each), name in required, each.get("description", ""))
        for name, each in schema.get("properties", {}).items()
    )


def _type_text(schema: Schema) -> str:
    """A short name of the type."""
    match schema:
        case {"$ref": ref}:
            return str(ref).rpartition("/")[2]
        case {"anyOf": several}:
            return " or ".join(dict.fromkeys(_type_text(each) for each in several))
        case {"enum": values}:
            return " or ".join(json.dumps(value) for value in values)
        case {"const": value}:
            return json.dumps(value)
        case {"type": "array", "items": items}:
            return f"list of {_type_text(items)}"
        case {"type": name}:
            return f"{name} ({schema['format']})" if "format" in schema else str(name)
        case _:
            return "any"


def _model_names(schema: object) -> list[str]:
    """The models that a schema refers to."""
    return list(dict.fromkeys(_walk_refs(schema)))


def _walk_refs(schema: object) -> Iterator[str]:
    match schema:
        case {"$ref": str(ref)}:
            yield ref.rpartition("/")[2]
        case Mapping():
            for inner in schema.values():
                yield from _walk_refs(inner)
        case list():
            for inner in schema:
                yield from _walk_refs(inner)
        case _:
            return


def _curl(method: str, path: str, content: Mapping[str, Schema], *, secret: bool) -> str:
    """A curl command that can be typed, with path parameters as variables in capitals."""
    address = EXAMPLE_HOST + path.replace("{", "$").replace("}", "")
    words = ["curl", *([] if method == "GET" else ["-X", method])]
    lines = [" ".join([*words, f'"{_upper_path_params(address)}"' if "$" in address else address])]
    lines += ['-H "Authorization: Bearer $KEY"'] if secret else []
    for kind, each in list(content.items())[:1]:
        example = each.get("example", {})
        text = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False)
        lines += [f'-H "Content-Type: {kind}"', f"--data-binary {shlex.quote(text)}"]
    return " \\\n  ".join(lines)


def _upper_path_params(address: str) -> str:
    return "/".join(part.upper() if part.startswith("$") else part for part in address.split("/"))
