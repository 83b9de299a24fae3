"""The OpenAPI document: every route, who may use it, how it may fail, and an example of every body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from interlock import __version__
from interlock.server.openapi.examples import BODY_EXAMPLES, ROUTE_EXAMPLES
from interlock.server.openapi.field_docs import FIELD_DESCRIPTIONS

API_DESCRIPTION = (
    "An agent proposes a tool call; a policy lets it pass, refuses it, or asks people; they approve, edit, answer or "
    "reject it; the call then runs at most once, with exactly the arguments that were approved.\n\n"
    "Errors are `{error, message, …ids}`: `error` is for programs, `message` says what to do next. Times are RFC 3339 "
    "in UTC, durations like `90s`, `5m`, `2h`, `1d`. Lists are `{items, next}`; `next` is the cursor of the next page. "
    "What belongs to another workspace does not exist: 404."
)
TAGS = {
    "agents": "For the programs of agents, with an agent's key. They propose and never decide.",
    "approvals": "For people: look, decide, and talk about what waits.",
    "events": "For people and their programs: what happens, as it happens.",
    "outside systems": "A typed request goes in, a person answers it, whoever asked polls for what came of it.",
    "HumanLayer": "For programs with HumanLayer's SDK as it is: calls to approve and questions to answer.",
    "AI SDK": "For pages made with the AI SDK: the agent that chats, with requests to approve and questions.",
    "AG-UI": "For AG-UI front ends: the agent that chats, with interrupts for what people have to answer.",
    "Agent Inbox": "For LangChain's Agent Inbox: what waits, as threads that were interrupted.",
    "signing in": "For browsers; programs use keys instead.",
    "people and keys": "Who may do what.",
    "policy": "Which calls are allowed, denied or asked about.",
    "grants": "Standing, scoped, expiring permissions.",
    "freezes": "Stop a workspace, an agent, a key or a tool at once.",
    "agents and tools": "What is known of agents, and which of their tools ask.",
    "channels": "The ways to people, and what became of each message.",
    "audit": "The ledger of all that happened.",
    "operations": "For those who run the server.",
}
IDEMPOTENCY_KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request under the same key is done once, and answered the same for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]([ -~]*[!-~])?$"},
}
OTHER_ERRORS = {
    "description": "Any other error: too large or too slow a body (413, 408), a wrong kind of body (415), too many "
    "requests (429), a failure of ours (500).",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorJson"}}},
}
METHODS = ("get", "put", "post", "delete")

Document = dict[str, Any]
Operation = dict[str, Any]


def build_openapi(rest: FastAPI, cookie: str) -> Document:
    """Made once: routes do not change while the server runs."""
    made = get_openapi(
        title="Interlock",
        version=__version__,
        openapi_version="3.1.0",
        summary="The safety interlock between AI agents and the real world.",
        description=API_DESCRIPTION,
        routes=rest.routes,
    )
    for method, path, operation in operations(made):
        _complete_operation(method, path, operation)
    used = dict.fromkeys(tag for _, _, operation in operations(made) for tag in operation["tags"])
    known = [name for name in TAGS if name in used]
    listed = [*known, *(name for name in used if name not in TAGS)]
    made["tags"] = [{"name": name, "description": TAGS.get(name, "")} for name in listed]
    for unused in ("HTTPValidationError", "ValidationError"):
        made["components"]["schemas"].pop(unused, None)
    for model in made["components"]["schemas"].values():
        _add_field_descriptions(model.get("properties", {}))
    made["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "interlock keys create --name NAME --role ROLE"},
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "Set by signing in."},
    }
    return made


def operations(made: Document) -> Iterator[tuple[str, str, Operation]]:
    for path, methods in made["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method.upper(), path, methods[method]


def body_models(operation: Operation) -> Iterator[str]:
    """The names of the models that its JSON body may have."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for each in (schema, *schema.get("anyOf", ())):
        if "$ref" in each:
            yield each["$ref"].rpartition("/")[2]


def _complete_operation(method: str, path: str, operation: Operation) -> None:
    words = operation.get("description", "").strip()
    operation["summary"] = re.split(r"(?<=[.:])\s", words, maxsplit=1)[0].rstrip(".:")
    operation["operationId"] = f"{method.lower()}{re.sub(r'[^a-z0-9]+', '_', path.lower())}".rstrip("_")
    answers: dict[str, Any] = operation["responses"]
    if "HTTPValidationError" in str(answers.get("422", "")):
        del answers["422"]  # the framework's own words for what is 400 here
    answers["default"] = OTHER_ERRORS
    if method == "POST":
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY_PARAMETER)
    _add_examples(f"{method} {path}", operation)


def _add_field_descriptions(properties: Mapping[str, dict[str, Any]]) -> None:
    for name, schema in properties.items():
        schema.pop("title", None)
        if name in FIELD_DESCRIPTIONS and "description" not in schema and "$ref" not in schema:
            schema["description"] = FIELD_DESCRIPTIONS[name]


def _add_examples(route: str, operation: Operation) -> None:
    content: Mapping[str, dict[str, Any]] = operation.get("requestBody", {}).get("content", {})
    for kind, example in ROUTE_EXAMPLES.get(route, {}).items():
        content[kind]["example"] = example
    for name in body_models(operation):
        if name in BODY_EXAMPLES:
            content["application/json"]["example"] = BODY_EXAMPLES[name]
