"""Writes docs/http.md out of the document: `python -m interlock.server.openapi.reference > docs/http.md`.

With `--openapi` it writes the document itself, from which the page's types are made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from interlock.app.bootstrap import doors_of, wire
from interlock.app.workspaces import Workspaces
from interlock.chat.assistant import assistant_of
from interlock.config.models import Settings
from interlock.notify.service import reach_of
from interlock.server.app import framework, hot_routes
from interlock.server.auth import Auth
from interlock.server.logs import Log
from interlock.server.openapi.document import ABOUT, Document
from interlock.server.openapi.html import Field, Model, Route, answers, groups
from interlock.server.protocols import found
from interlock.server.routes.docs import Manual, who
from interlock.server.state import Site

HEAD = (
    "Made from the server's OpenAPI document, which every server has at `/openapi.json`, and as a page at `/docs`. "
    "`$KEY` is a key: `interlock keys create --name NAME --role ROLE`."
)


def handbook(made: Document) -> str:
    return "\n\n".join(_parts(made)) + "\n"


def _parts(made: Document) -> Iterator[str]:
    yield from ("# HTTP", HEAD, ABOUT)
    for group in groups(made):
        yield from (f"## {group.name[:1].upper() + group.name[1:]}", group.text)
        for route in group.routes:
            yield from _route(route)
    yield "## Answers"
    for model in answers(made):
        yield from _model(model)


def _route(route: Route) -> Iterator[str]:
    yield f"### `{route.method} {route.path}`"
    yield _line(f"{route.text} {who(route)}")
    yield from _table("parameter", route.parameters)
    yield from _table("field of the body", route.body)
    told = [f"Answers `{route.answer}`." if route.answer else "", f"Errors: {', '.join(route.errors)}."]
    yield " ".join(filter(None, told if route.errors else told[:1])) or "Answers nothing."
    yield f"```sh\n{route.curl}\n```"


def _model(model: Model) -> Iterator[str]:
    yield f"### {model.name}"
    if model.text:
        yield _line(model.text)
    yield from _table("field", model.fields)


def _table(title: str, fields: Iterable[Field]) -> Iterator[str]:
    rows = [
        f"| `{each.name}`{'' if each.required else ' (optional)'} | {_cell(each.type)} | {_cell(each.text)} |"
        for each in fields
    ]
    if rows:
        yield "\n".join([f"| {title} | is | |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Nothing is opened: the routes are all that it takes."""
    parts = wire("sqlite:///interlock.db")
    workspaces = Workspaces(parts.store, lambda policy: doors_of(parts.store, policy), {})
    log = Log(parts.clock, "none")
    assistant = assistant_of(Settings(), parts.store, workspaces, log)
    reach = reach_of(Settings(), parts.store, workspaces, log)
    site = Site(Settings(), parts.store, parts.accounts, workspaces, parts.clock, log, assistant, reach)
    auth = Auth(parts.accounts, "")
    manual: Manual = framework(site, auth, hot_routes(site, auth), found(site, auth)).state.manual
    sys.stdout.write(manual.json.decode() if "--openapi" in sys.argv else handbook(manual.document))


if __name__ == "__main__":
    main()
