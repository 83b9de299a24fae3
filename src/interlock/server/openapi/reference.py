"""Generates docs/http.md from the OpenAPI document: `python -m interlock.server.openapi.reference > docs/http.md`.

With `--openapi` it writes the OpenAPI document itself, from which the types of the web app are generated.
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


def render_markdown(document: Document) -> str:
    return "\n\n".join(_sections(document)) + "\n"


def _sections(document: Document) -> Iterator[str]:
    yield from ("# HTTP", INTRO, API_DESCRIPTION)
    for group in doc_groups(document):
        yield from (f"## {group.name[:1].upper() + group.name[1:]}", group.text)
        for route in group.routes:
            yield from _route(route)
    yield "## Answers"
    for model in response_models(document):
        yield from _model(model)


def _route(route: DocRoute) -> Iterator[str]:
    yield f"### `{route.method} {route.path}`"
    yield _one_line(f"{route.text} {allowed_roles(route)}")
    yield from _table("parameter", route.parameters)
    yield from _table("field of the body", route.body)
    told = [f"Answers `{route.response_type}`." if route.response_type else "", f"Errors: {', '.join(route.errors)}."]
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
    """Write the reference. Nothing is opened: only the routes are needed."""
    app_services = build_services("sqlite:///interlock.db")
    workspaces = Workspaces(app_services.store, lambda policy: build_gate_and_inbox(app_services.store, policy), {})
    log = JsonLogger(app_services.clock, "none")
    assistant = build_assistant(Settings(), app_services.store, workspaces, log)
    notifications = build_notification_service(Settings(), app_services.store, workspaces, log)
    state = ServerState(
        settings=Settings(),
        store=app_services.store,
        accounts=app_services.accounts,
        workspaces=workspaces,
        clock=app_services.clock,
        log=log,
        assistant=assistant,
        notifications=notifications,
    )
    auth = Auth(app_services.accounts, "")
    api_docs: ApiDocs = build_fastapi(
        state, auth, make_fast_routes(state, auth), load_protocols(state, auth)
    ).state.manual
    sys.stdout.write(api_docs.json.decode() if "--openapi" in sys.argv else render_markdown(api_docs.document))


if __name__ == "__main__":
    main()
