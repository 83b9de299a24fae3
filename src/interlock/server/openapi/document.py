"""The OpenAPI document: every route, its roles, its errors, and an example of every body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from interlock import __version__
from interlock.server.http import MAX_IDEMPOTENCY_KEY

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
    "outside systems": "A typed request goes in, a person answers it, and the caller polls for the result.",
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
    "channels": "Notification channels, and the status of each delivery.",
    "audit": "The ledger of all that happened.",
    "operations": "For those who run the server.",
    "chat": "For people: chat with an agent, and decide its calls in the conversation.",
}
IDEMPOTENCY_KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request under the same key is done once, and answered the same for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_IDEMPOTENCY_KEY, "pattern": "^[!-~]([ -~]*[!-~])?$"},
}
OTHER_ERRORS = {
    "description": "Any other error: too large or too slow a body (413, 408), a wrong kind of body (415), too many "
    "requests (429), a failure of ours (500).",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorJson"}}},
}
METHODS = ("get", "put", "post", "delete")

Document = dict[str, Any]
Operation = dict[str, Any]


def build_openapi(routes: Sequence[BaseRoute], cookie: str) -> Document:
    """Build the OpenAPI document; called once, since routes do not change while the server runs."""
    document = get_openapi(
        title="Interlock",
        version=__version__,
        openapi_version="3.1.0",
        summary="The safety interlock between AI agents and the real world.",
        description=API_DESCRIPTION,
        routes=routes,
    )
    schemas = document["components"]["schemas"]
    examples = {name: json.loads(schema.pop("example")) for name, schema in schemas.items() if "example" in schema}
    for method, path, operation in operations(document):
        _complete_operation(method, path, operation)
        _add_example(operation, examples)
    used = dict.fromkeys(tag for _, _, operation in operations(document) for tag in operation["tags"])
    known = [name for name in TAGS if name in used]
    listed = [*known, *(name for name in used if name not in TAGS)]
    document["tags"] = [{"name": name, "description": TAGS.get(name, "")} for name in listed]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for model in schemas.values():
        _add_field_descriptions(model.get("properties", {}))
    document["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "interlock keys create --name NAME --role ROLE"},
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "Set by signing in."},
    }
    return document


def operations(document: Document) -> Iterator[tuple[str, str, Operation]]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method.upper(), path, methods[method]


def body_models(operation: Operation) -> Iterator[str]:
    """The names of the models that the operation's JSON body may have."""
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
        del answers["422"]  # the framework's own description of what is 400 here
    answers["default"] = OTHER_ERRORS
    if method == "POST":
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY_PARAMETER)


def _add_field_descriptions(properties: Mapping[str, dict[str, Any]]) -> None:
    for name, schema in properties.items():
        schema.pop("title", None)
        if name in FIELD_DESCRIPTIONS and "description" not in schema and "$ref" not in schema:
            schema["description"] = FIELD_DESCRIPTIONS[name]


def _add_example(operation: Operation, examples: Mapping[str, object]) -> None:
    """Examples are declared with the models of the bodies; tools show those of the request."""
    for name in body_models(operation):
        if name in examples:
            operation["requestBody"]["content"]["application/json"]["example"] = examples[name]


FIELD_DESCRIPTIONS: Mapping[str, str] = {
    "acknowledged": "Ids of the findings that the person looked at; alarms have to be among them.",
    "agent": "The agent that wants it; the name of the key, if left out.",
    "agent_path": "The agents that called each other, the outermost first.",
    "agent_description": "What the agent's program says that the call does, unverified.",
    "agent_preview": "What the agent's program says would happen, unverified.",
    "agent_says": "The agent's own reason, shown as an unverified quotation.",
    "alarms": "Ids of the findings that have to be acknowledged.",
    "answer": "JSON that answers a question; its schema checks it.",
    "approval_id": "The id of the approval.",
    "args": "The arguments, with fingerprints in place of secrets where people look.",
    "args_sha256": "The digest of the arguments as people saw them; a decision carries it.",
    "at": "When.",
    "attempts": "How often it was tried.",
    "by": "Who; a person, an agent, the policy, or interlock for what time did.",
    "call_id": "The call within its run. A known one gets its standing outcome.",
    "choices": "The texts to choose from.",
    "claimed_by": "Who is on it; everybody may still decide.",
    "comment": "A remark that is kept with the decision.",
    "decisions": "The kinds of decisions that are allowed.",
    "description": "One line that says what the call does; people see it as the agent's words, unverified.",
    "effect": "What the program says of the tool.",
    "expires_at": "Nobody can decide after that.",
    "expires_in": "A duration such as 5m; it can only shorten what the rule gives.",
    "fence": "The number of the start; a report under an old one is refused.",
    "idempotency_key": "For the other side: the same for every start of this call.",
    "idempotent": "Whether running it twice does no harm; then a lost run is started again.",
    "initiated_by": "The person whose request the agent works on.",
    "items": "The page.",
    "kind": "What kind it is.",
    "lease_seconds": "How long the program counts as alive without a sign of life.",
    "lease_until": "Until when the program counts as alive.",
    "message": "In words.",
    "next": "The cursor of the next page; null on the last.",
    "paused_at": "When the run was paused.",
    "pointer": "The place in the JSON, as a JSON Pointer.",
    "preview": "What would happen, for people to see; of a call it is the agent's word, unverified.",
    "priority": "How urgent it is.",
    "quorum": "How many different people have approved, and have to.",
    "reason": "Why.",
    "release_at": "When the agent is told of a rejection; until then it can be undone.",
    "requester": "The person whose request the agent works on.",
    "result": "What the tool gave, or what a person answered.",
    "rule": "The rule that matched; empty for the default.",
    "run_id": "One execution of an agent.",
    "runner": "The program that holds the run.",
    "schema": "A JSON Schema.",
    "secret": "JSON Pointers or names of arguments that nobody may see.",
    "sentence": "One line for people: the registered tool's own, else the server's from name and arguments.",
    "setting": "Where people are asked: it sets how long they have.",
    "spec_sha256": "The digest of the tool's definition: a start is refused if another was approved.",
    "start_by": "An approval that is not started by then lapses.",
    "status": "How it stands, by the clock.",
    "thread_id": "The conversation that it belongs to.",
    "tool": "The name of the tool.",
    "until": "When the clock alone may change the answer.",
    "version": "Counts the changes.",
    "via": "The way they came: web, key, or a channel.",
}
