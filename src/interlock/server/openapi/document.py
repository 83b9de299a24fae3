"""The OpenAPI document: every route, its roles, its errors, and an example of every body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from interlock import __version__

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
    for method, path, operation in operations(document):
        _complete_operation(method, path, operation)
    used = dict.fromkeys(tag for _, _, operation in operations(document) for tag in operation["tags"])
    known = [name for name in TAGS if name in used]
    listed = [*known, *(name for name in used if name not in TAGS)]
    document["tags"] = [{"name": name, "description": TAGS.get(name, "")} for name in listed]
    for unused in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(unused, None)
    for model in document["components"]["schemas"].values():
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


_SHA256 = "d2bb3a09ba4d8ad2d4c3b8b9d3f8c9a0a2c0c4a0a7c0d8a9a3e5b1d7c6f4e2a1"
_ID = "0192f0c1-2b3d-7c4e-9f60-718293a4b5c6"
_THREAD = "thread-0192f0c1-2b3d-7c4e-9f60-718293a4b5c8"
_POLICY = {"version": 1, "rules": [{"name": "reads are free", "effect": "read", "then": "allow"}]}

BODY_EXAMPLES: Mapping[str, object] = {
    "ProposalBody": {
        "tool": "fund_transfer",
        "args": {"amount": 100, "recipient": "ann@example.com"},
        "run_id": "run-2027-03-01",
        "call_id": "call-1",
        "effect": "write",
        "initiated_by": "rita",
    },
    "StartCallBody": {"lease_seconds": 60},
    "RenewCallBody": {"fence": 1, "lease_seconds": 60},
    "FinishCallBody": {"fence": 1, "ok": True, "result": {"transfer": "T-1009"}},
    "CancelCallBody": {"reason": "The user changed their mind."},
    "AbandonCallBody": {"fence": 1},
    "AcquireRunBody": {"agent": "billing", "runner": "worker-1", "lease_seconds": 60},
    "RenewRunBody": {"runner": "worker-1", "lease_seconds": 60},
    "RunnerBody": {"runner": "worker-1"},
    "PauseBody": {"run_id": "run-2027-03-01", "agent": "billing", "state": "eyJtZXNzYWdlcyI6W119"},
    "ClaimPausesBody": {"agent": "billing", "runner": "worker-1", "lease_seconds": 60, "wait": 20},
    "RenewPauseBody": {"run_id": "run-2027-03-01", "fence": 1803891600001, "lease_seconds": 60},
    "ReleasePauseBody": {"run_id": "run-2027-03-01", "fence": 1803891600001, "failed": True},
    "CompletePauseBody": {"run_id": "run-2027-03-01", "fence": 1803891600001},
    "DecisionBody": {"kind": "approve", "args_sha256": _SHA256, "comment": "As agreed on the phone."},
    "BulkDecisionsBody": {
        "decisions": [
            {"id": _ID, "kind": "approve", "args_sha256": _SHA256},
            {
                "id": "0192f0c1-2b3d-7c4e-9f60-718293a4b5c7",
                "kind": "reject",
                "args_sha256": _SHA256,
                "reason": "Not this month.",
            },
        ]
    },
    "FreezeBody": {"scope": "tool", "name": "wire_*", "reason": "The bank asked us to stop."},
    "EmptyBody": {},
    "DelegateBody": {"users": ["eve"]},
    "CommentBody": {"text": "I have asked finance."},
    "AskAgentBody": {"question": "Which invoice is this for?"},
    "ResolveUnknownBody": {"ok": True, "note": "The bank shows the transfer.", "result": {"transfer": "T-1009"}},
    "AskPeopleBody": {
        "question": "Which account should it come from?",
        "choices": ["checking", "savings"],
        "run_id": "run-2027-03-01",
        "call_id": "question-1",
    },
    "ReplyBody": {"number": 1, "text": "For invoice 2027-113."},
    "InboxSearchBody": {"limit": 10, "offset": 0, "status": "interrupted", "metadata": {"graph_id": "interlock"}},
    "InboxResumeBody": {"command": {"resume": [{"type": "accept", "args": None}]}},
    "InboxStateUpdateBody": {"values": None, "as_node": "__end__"},
    "ExternalRequestBody": {
        "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
        "actionType": "fund_transfer",
        "payload": {"amount": 100, "recipient": "ann@example.com"},
        "metadata": {"initiatedBy": "billing", "priority": "high", "expiresAt": "2027-03-01T18:00:00Z"},
    },
    "SubmitAnswerBody": {
        "requestId": "7d0f6c1e-58a9-4b6e-9a43-1f2e3d4c5b6a",
        "decision": "modified",
        "modifiedPayload": {"amount": 50, "recipient": "ann@example.com"},
        "comment": "Half of it now.",
    },
    "FunctionCallBody": {
        "run_id": "billing-4fK2",
        "call_id": "call-9QxZ",
        "spec": {
            "fn": "pay_invoice",
            "kwargs": {"invoice": "2027-113", "amount": 100},
            "reject_options": [{"name": "later", "title": "Not this month"}],
        },
    },
    "HumanContactBody": {
        "run_id": "billing-4fK2",
        "call_id": "call-7LmN",
        "spec": {"msg": "Which account should it come from?"},
    },
    "FunctionCallAnswerBody": {"approved": False, "reject_option_name": "later"},
    "HumanContactAnswerBody": {"response": "The savings account."},
    "EscalationBody": {"escalation_msg": "The invoice is due today."},
    "ChatMessageBody": {"message": "Publish the post hello-world.", "thread_id": _THREAD},
    "AiSdkChatBody": {
        "id": "chat-1",
        "messages": [
            {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Publish the post hello-world."}]}
        ],
        "trigger": "submit-message",
    },
    "RunAgentInput": {
        "threadId": "greetings",
        "runId": "run-1",
        "messages": [{"id": "message-1", "role": "user", "content": "Publish the post hello-world."}],
    },
    "ChatDecisionBody": {"approvalId": _ID, "approved": True, "reason": "As agreed on the phone."},
    "SignInBody": {"name": "ada", "password": "correct horse battery staple"},
    "UseSignInLinkBody": {"token": "the-part-behind-the-#", "name": "ada", "password": "correct horse battery staple"},
    "SignInTokenBody": {"token": "the-part-behind-the-#"},
    "MessageLinkBody": {"token": "the-part-behind-?t="},
    "MessageCodeBody": {"token": "the-part-behind-?t=", "ticket": "what-asking-for-the-code-gave", "code": "12345678"},
    "NewUserBody": {"name": "eve", "role": "reviewer", "teams": ["finance"], "email": "eve@example.com"},
    "UserBody": {"role": "reviewer", "teams": ["finance", "leads"], "email": "eve@example.com"},
    "AwayBody": {"until": "2027-03-15T08:00:00Z", "users": ["bob"], "teams": []},
    "SignInLinkBody": {"expires_in": "1h"},
    "ChangePasswordBody": {"old": "correct horse battery staple", "new": "a longer one, that nobody guesses"},
    "OwnKeyBody": {"name": "my script", "role": "viewer", "expires_in": "30d"},
    "IdentityLinkBody": {"link": "the-part-behind-link="},
    "KeyBody": {"name": "billing", "role": "agent", "agents": ["billing"], "requester": "none"},
    "RotateKeyBody": {"overlap": "24h"},
    "AgentBody": {"tools": ["read_file", "delete_file"], "tool_approvals": {"delete_file": True}},
    "GrantBody": {
        "tool": "send_mail",
        "agent": "billing",
        "expires_in": "8h",
        "max_uses": 20,
        "reason": "Today's letters.",
    },
    "PinBody": {"tool": "get_weather", "agent": "billing", "effect": "read"},
    "PinAllBody": {"agent": "billing"},
}

ROUTE_EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "PUT /api/policy": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/check": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/rehearse": {"application/yaml": _POLICY, "application/json": _POLICY},
    "POST /api/policy/explain": {
        "application/json": {"tool": "fund_transfer", "args": {"amount": 100, "recipient": "ann@example.com"}}
    },
}


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
