"""Generates docs/http.md from the OpenAPI document: `python -m interlock.server.openapi.reference > docs/http.md`.

With `--openapi` it writes the OpenAPI document itself, from which the types of the web app are generated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from interlock.server.app import framework_routes
from interlock.server.auth import COOKIE_NAME
from interlock.server.http import encode_json
from interlock.server.openapi.document import API_DESCRIPTION, Document, build_openapi
from interlock.server.routes.docs import DocField, DocModel, DocRoute, allowed_roles, doc_groups, response_models

INTRO = (
    "Generated from the OpenAPI document, which every server has at `/openapi.json`, and as a page at `/docs`. "
    "`$KEY` is a key: `interlock keys create --name NAME --role ROLE`."
)


def render_markdown(document: Document) -> str:
    return "\n\n".join(_sections(document)) + "\n"


def _sections(document: Document) -> Iterator[str]:
    yield from ("# HTTP", INTRO, API_DESCRIPTION)
    for group in doc_groups(document):
        yield from (f"## {group.name[:1].upper() + group.name[1:]}", group.text)
        for route in group.routes:
            yield from _route(route)
    yield "## Responses"
    for model in response_models(document):
        yield from _model(model)


def _route(route: DocRoute) -> Iterator[str]:
    yield f"### `{route.method} {route.path}`"
    yield _one_line(f"{route.text} {allowed_roles(route)}")
    yield from _table("parameter", route.parameters)
    yield from _table("body field", route.body)
    response = f"Response: `{route.response_type}`." if route.response_type else "No response body."
    yield f"{response} Errors: {', '.join(route.errors)}." if route.errors else response
    yield f"```sh\n{route.curl}\n```"


def _model(model: DocModel) -> Iterator[str]:
    yield f"### {model.name}"
    if model.text:
        yield _one_line(model.text)
    yield from _table("field", model.fields)


def _table(title: str, fields: Iterable[DocField]) -> Iterator[str]:
    rows = [
        f"| `{each.name}`{'' if each.required else ' (optional)'} | {_cell(each.type)} | {_cell(each.text)} |"
        for each in fields
    ]
    if rows:
        yield "\n".join([f"| {title} | type | description |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    document = build_openapi(framework_routes(), COOKIE_NAME)
    sys.stdout.write(encode_json(document).decode() if "--openapi" in sys.argv else render_markdown(document))


if __name__ == "__main__":
    main()
