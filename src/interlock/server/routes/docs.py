"""API documentation without a key: /openapi.json for programs, /docs for people. No script, no remote content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from html import escape

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from interlock import __version__
from interlock.core.identity import RECENT_SIGN_IN
from interlock.runtime.durations import MINUTE
from interlock.server.http import encode_json
from interlock.server.openapi.document import API_DESCRIPTION, Document, build_openapi
from interlock.server.openapi.html import DocField, DocGroup, DocModel, DocRoute, doc_groups, response_models

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

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
