"""Writes docs/http.md out of the document: `python -m interlock.server.openapi.reference > docs/http.md`.

With `--openapi` it writes the document itself, from which the page's types are made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from interlock.app.bootstrap import build_gate_and_inbox, build_services
from interlock.app.workspaces import Workspaces
from interlock.chat.assistant import build_assistant
from interlock.config.models import Settings
from interlock.notify.service import build_notification_service
from interlock.server.app import build_fastapi, make_fast_routes
from interlock.server.auth import Auth
from interlock.server.logs import JsonLogger
from interlock.server.openapi.document import API_DESCRIPTION, Document
from interlock.server.openapi.html import DocField, DocModel, DocRoute, doc_groups, response_models
from interlock.server.protocols import load_protocols
from interlock.server.routes.docs import ApiDocs, allowed_roles
from interlock.server.state import ServerState

INTRO = (
    "Made from the server's OpenAPI document, which every server has at `/openapi.json`, and as a page at `/docs`. "
    "`$KEY` is a key: `interlock keys create --name NAME --role ROLE`."
)


def render_markdown(made: Document) -> str:
    return "\n\n".join(_sections(made)) + "\n"


def _sections(made: Document) -> Iterator[str]:
    yield from ("# HTTP", INTRO, API_DESCRIPTION)
    for group in doc_groups(made):
        yield from (f"## {group.name[:1].upper() + group.name[1:]}", group.text)
        for route in group.routes:
            yield from _route(route)
    yield "## Answers"
    for model in response_models(made):
        yield from _model(model)


def _route(route: DocRoute) -> Iterator[str]:
    yield f"### `{route.method} {route.path}`"
    yield _one_line(f"{route.text} {allowed_roles(route)}")
    yield from _table("parameter", route.parameters)
    yield from _table("field of the body", route.body)
    told = [f"Answers `{route.answer}`." if route.answer else "", f"Errors: {', '.join(route.errors)}."]
    yield " ".join(filter(None, told if route.errors else told[:1])) or "Answers nothing."
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
        yield "\n".join([f"| {title} | is | |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Nothing is opened: the routes are all that it takes."""
    parts = build_services("sqlite:///interlock.db")
    workspaces = Workspaces(parts.store, lambda policy: build_gate_and_inbox(parts.store, policy), {})
    log = JsonLogger(parts.clock, "none")
    assistant = build_assistant(Settings(), parts.store, workspaces, log)
    reach = build_notification_service(Settings(), parts.store, workspaces, log)
    site = ServerState(
        settings=Settings(),
        store=parts.store,
        accounts=parts.accounts,
        workspaces=workspaces,
        clock=parts.clock,
        log=log,
        assistant=assistant,
        reach=reach,
    )
    auth = Auth(parts.accounts, "")
    manual: ApiDocs = build_fastapi(site, auth, make_fast_routes(site, auth), load_protocols(site, auth)).state.manual
    sys.stdout.write(manual.json.decode() if "--openapi" in sys.argv else render_markdown(manual.document))


if __name__ == "__main__":
    main()
