"""API documentation without a key: /openapi.json for programs, /docs for people. No script, no remote content.

The reference for people has groups of routes, tables of fields, and a curl example for each route; docs/http.md is made
from the same groups.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from interlock import __version__
from interlock.core.identity import RECENT_SIGN_IN
from interlock.runtime.durations import MINUTE
from interlock.server.http import encode_json
from interlock.server.openapi.document import API_DESCRIPTION, Document, Operation, build_openapi, operations

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
EXAMPLE_HOST = "http://127.0.0.1:8321"
Schema = Mapping[str, Any]

router = APIRouter(include_in_schema=False)


class ApiDocs:
    """Built at the first request."""

    def __init__(self, routes: Sequence[BaseRoute], cookie: str) -> None:
        self._routes = routes
        self._cookie = cookie

    @cached_property
    def document(self) -> Document:
        return build_openapi(self._routes, self._cookie)

    @cached_property
    def json(self) -> bytes:
        return encode_json(self.document)

    @cached_property
    def page(self) -> str:
        return "\n".join(_page(doc_groups(self.document), response_models(self.document)))


@router.get("/openapi.json")
async def openapi(request: Request) -> Response:
    api_docs: ApiDocs = request.app.state.api_docs
    return Response(api_docs.json, media_type="application/json")


@router.get("/docs")
async def docs(request: Request) -> Response:
    api_docs: ApiDocs = request.app.state.api_docs
    return Response(api_docs.page, headers={"content-security-policy": CONTENT_SECURITY_POLICY}, media_type="text/html")


def _page(sections: list[DocGroup], models: list[DocModel]) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Interlock: HTTP</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<link rel="stylesheet" href="/docs.css"></head><body><main><h1>Interlock {escape(__version__)}: HTTP</h1>'
    yield from (f"<p>{_html_text(part)}</p>" for part in API_DESCRIPTION.split("\n\n"))
    yield '<p>For programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p><nav><ul>'
    yield from (f'<li><a href="#{_anchor(each.name)}">{escape(each.name)}</a></li>' for each in sections)
    yield '<li><a href="#responses">responses</a></li></ul></nav>'
    for each in sections:
        yield f'<section id="{_anchor(each.name)}"><h2>{escape(each.name)}</h2><p>{_html_text(each.text)}</p>'
        for route in each.routes:
            yield from _route(route)
        yield "</section>"
    yield '<section id="responses"><h2>Responses</h2>'
    for model in models:
        yield f'<article id="model-{escape(model.name)}"><h3>{escape(model.name)}</h3><p>{_html_text(model.text)}</p>'
        yield from _table("Fields", model.fields)
        yield "</article>"
    yield "</section></main></body></html>"


def _route(route: DocRoute) -> Iterator[str]:
    yield f"<article><h3><b>{route.method}</b> <code>{escape(route.path)}</code></h3><p>{_html_text(route.text)}</p>"
    yield f"<p class=who>{escape(allowed_roles(route))}</p>"
    yield from _table("Parameters", route.parameters)
    yield from _table("Body", route.body)
    if route.response_type:
        yield f"<p>Response: <code>{escape(route.response_type)}</code>.</p>"
    yield f"<p>Errors: {escape(', '.join(route.errors))}.</p>" if route.errors else ""
    yield f"<pre>{escape(route.curl)}</pre></article>"


def allowed_roles(route: DocRoute) -> str:
    if not route.roles:
        return "Public: needs no key."
    minutes = RECENT_SIGN_IN // MINUTE
    recent = f" A session needs a sign-in of the last {minutes} minutes, else 403 `recent_sign_in_required`."
    return f"Roles: {', '.join(route.roles)}.{recent if route.recent else ''}"


def _table(title: str, fields: Iterable[DocField]) -> Iterator[str]:
    rows = [
        f"<tr><td><code>{escape(each.name)}</code>{'' if each.required else ' <i>optional</i>'}</td>"
        f"<td>{escape(each.type)}</td><td>{_html_text(each.text)}</td></tr>"
        for each in fields
    ]
    if rows:
        yield f"<div class=table><table><caption>{title}</caption>{''.join(rows)}</table></div>"


def _html_text(words: str) -> str:
    """Escaped HTML, with text between backticks as code."""
    parts = escape(words).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))


def _anchor(name: str) -> str:
    return escape(name.replace(" ", "-"))


# What the document says of each route


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
            tuple(_read_route(document, *each) for each in listed if tag["name"] in each[2]["tags"]),
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


def _read_route(document: Document, method: str, path: str, operation: Operation) -> DocRoute:
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
