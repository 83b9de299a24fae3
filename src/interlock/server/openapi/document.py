"""The OpenAPI document: every route, its roles, its errors, and an example of every body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.openapi.utils import get_openapi
from starlette.responses import Response
from starlette.routing import BaseRoute

from interlock import __version__
from interlock.core.errors import NotFound
from interlock.server.dependencies import documented_errors, require_roles
from interlock.server.http import MAX_IDEMPOTENCY_KEY
from interlock.server.router import AsgiRoute, declared_routes

API_DESCRIPTION = (
    "An agent proposes a tool call. The policy allows it, denies it, or asks people, who approve, edit, answer or "
    "reject it. The call then runs at most once, with exactly the arguments that were approved.\n\n"
    "Errors are `{error, message, …ids}`: `error` is a code for programs, `message` says what to do next. Times are "
    "RFC 3339 in UTC, durations are like `90s`, `5m`, `2h`, `1d`. Lists are `{items, next}`; `next` is the cursor of "
    "the next page. Objects of another workspace are not found: 404."
)
TAGS = {
    "agents": "For the programs of agents, with an agent's key. They propose calls, and never decide.",
    "approvals": "For people: list, read, discuss and decide approvals.",
    "events": "For people and their programs: the events of the workspace, as a live stream.",
    "outside systems": "For other systems: submit a typed request, which a person answers, and poll for the result.",
    "HumanLayer": "For programs that use HumanLayer's SDK: function calls to approve, and questions to answer.",
    "AI SDK": "For pages made with the AI SDK: chat with an agent, with approvals and questions.",
    "AG-UI": "For AG-UI front ends: chat with an agent; approvals and questions are interrupts.",
    "Agent Inbox": "For LangChain's Agent Inbox: pending approvals, as interrupted threads.",
    "signing in": "For browsers; programs use keys.",
    "people and keys": "People with their roles and teams, and keys.",
    "policy": "The policy: which calls are allowed, which are denied, and which need an approval.",
    "grants": "Grants: standing permissions with a scope, limits and an expiry.",
    "freezes": "Freezes stop a workspace, an agent, a key or a tool at once.",
    "agents and tools": "Agents and their tools, and which tools need an approval.",
    "channels": "Notification channels, and the status of each delivery.",
    "audit": "The ledger: all events of the workspace.",
    "operations": "For operators: health, metrics and statistics.",
    "chat": "For people: chat with an agent, and decide its calls in the conversation.",
}
IDEMPOTENCY_KEY_PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A key of your choice. For a day, a retry with the same key and body is not executed again: it gets "
    "the stored response.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_IDEMPOTENCY_KEY,
        "pattern": "^[!-~]([ -~]*[!-~])?$",
    },
}
OTHER_ERRORS = {
    "description": "Any other error: a body that is too slow (408), too large (413) or of the wrong type (415), too "
    "many requests (429), or an internal error (500).",
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
    for name, model in schemas.items():
        _add_field_descriptions(name, model.get("properties", {}))
    document["components"]["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key, made with: interlock keys create --name NAME --role ROLE",
        },
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "The session of a browser."},
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


def _add_field_descriptions(model: str, properties: Mapping[str, dict[str, Any]]) -> None:
    for name, schema in properties.items():
        schema.pop("title", None)
        text = FIELD_DESCRIPTIONS.get(f"{model}.{name}") or FIELD_DESCRIPTIONS.get(name)
        if text and "description" not in schema and "$ref" not in schema:
            schema["description"] = text


def _add_example(operation: Operation, examples: Mapping[str, object]) -> None:
    """Examples are declared with the models of the bodies; tools show those of the request."""
    for name in body_models(operation):
        if name in examples:
            operation["requestBody"]["content"]["application/json"]["example"] = examples[name]


# By name; where a name means something else in a model, by model and name.
FIELD_DESCRIPTIONS: Mapping[str, str] = {
    "acknowledged": "The ids of the findings that the person acknowledges; all alarms have to be among them.",
    "agent": "The name of the agent.",
    "agent_description": "The description of the call by the agent's program, unverified.",
    "agent_path": "The names of the agents that called each other, outermost first.",
    "agent_preview": "The preview of the effect by the agent's program, unverified.",
    "agent_says": "The agent's reason, shown to people as an unverified quotation.",
    "alarms": "The ids of the findings that have to be acknowledged before the call can be approved.",
    "answer": "The answer to a question, as JSON that fits its schema.",
    "approval_id": "The id of the approval.",
    "args": "The arguments of the call; people see fingerprints in place of secret values.",
    "args_sha256": "The SHA-256 digest of the arguments as people see them; a decision has to contain it.",
    "at": "The time.",
    "attempts": "The number of attempts.",
    "by": "The person or agent; `policy`, or `interlock` for a timer.",
    "call_id": "The id of the call within its run. A known call gets its stored outcome.",
    "choices": "The texts to choose from.",
    "claimed_by": "The person who claimed the approval; others may still decide.",
    "comment": "A comment, stored with the decision.",
    "created_at": "The time of creation.",
    "decisions": "The kinds of decisions that are allowed.",
    "delegations": "The delegations of decisions to other people.",
    "editors": "The people who edited the arguments.",
    "effect": "The effect of the tool: `read`, `write` or `destructive`.",
    "error_message": "The error of a failed call.",
    "excluded": "The people who may not decide: `requester`, `editor`.",
    "expires_at": "The time of expiry.",
    "expires_in": "The duration until expiry, such as `5m`.",
    "fence": "The fencing number of the start or claim; a request with an older one is refused.",
    "findings": "The findings about the call.",
    "gone": "Runners of the same key that have ended.",
    "idempotency_key": "An idempotency key for the system that the tool calls: the same for every start of this call.",
    "idempotent": "Whether the tool may run twice; a call whose lease expired can then be started again.",
    "initiated_by": "The person for whom the agent works.",
    "items": "The items of this page.",
    "lease_seconds": "The duration of the lease, in seconds.",
    "lease_until": "The time at which the lease expires.",
    "may_decide": "The kinds of decisions that the caller may make now.",
    "may_not": "The reason against each of the other kinds of decisions, for the caller.",
    "message": "The message, as text.",
    "needed": "The approvals that are still needed, as text.",
    "next": "The cursor of the next page; null on the last page.",
    "open_questions": "The number of questions that the agent has not answered.",
    "paused_at": "The time at which the run was paused.",
    "pointer": "The position, as a JSON Pointer.",
    "preview": "A preview of the effect.",
    "priority": "The priority: `low`, `medium` or `high`.",
    "questions": "The questions to the agent, with its replies.",
    "reason": "The reason.",
    "release_at": "The time at which a rejection is released to the agent; until then it can be undone.",
    "requester": "The person for whom the agent works.",
    "result": "The result of the tool, or the answer of a person.",
    "risk": "The risk of the call, by its effect and priority.",
    "rule": "The name of the rule; empty if no rule matched.",
    "run_id": "The id of the run, which is one execution of an agent.",
    "runner": "The name of the program that holds the run.",
    "schema": "The JSON Schema of the arguments.",
    "seconds_left": "The seconds until the deadline; null unless the approval is pending.",
    "secret": "The arguments with secret values, as JSON Pointers or names.",
    "sentence": "One line that describes the call: the registered tool's own, else made by the server.",
    "setting": "Where people are asked; this determines the deadline.",
    "spec_sha256": "The SHA-256 digest of the tool's definition.",
    "stages": "The stages of the approval, in order.",
    "start_by": "The time until which an approved call can be started; then it expires.",
    "status": "The current status.",
    "thread_id": "The id of the thread, which is one conversation.",
    "timeline": "The ledger entries of the approval.",
    "tool": "The name of the tool.",
    "version": "The version number, increased by each change.",
    "via": "The way of access: `web`, `key`, or the name of a channel.",
    "votes": "The votes so far.",
    "About.version": "The version of the server.",
    "AcquireRunBody.agent": "The name of the agent; by default, the name of the key.",
    "ApprovalItemJson.expires_at": "The deadline for the decision.",
    "ApprovalJson.expires_at": "The deadline for the decision.",
    "AskPeopleBody.agent": "The name of the agent; by default, the name of the key.",
    "AskPeopleBody.expires_in": "The duration until the deadline, such as `5m`; it can only shorten that of the rule.",
    "AskPeopleBody.schema": "The JSON Schema of the answer.",
    "AwayBody.until": "The end of the absence.",
    "AwayJson.until": "The end of the absence.",
    "BulkDecisionResult.message": "The error as text.",
    "BulkDecisionsBody.decisions": "The decisions, each with the `id` of its approval.",
    "CardFieldJson.findings": "The ids of the findings about this argument.",
    "ChatMessageBody.message": "The text of the message.",
    "ClaimPausesBody.agent": "The name of the agent; by default, the name of the key.",
    "ClaimPausesBody.wait": "The maximum seconds to wait for a run to claim.",
    "CreatedKey.requester": "The person that the key acts for; `any` or `none`.",
    "DecisionBody.args": "The new arguments, of an `edit`.",
    "DecisionBody.kind": "The kind of decision.",
    "DecisionBody.message": "The text of a `respond`.",
    "DecisionJson.kind": "The kind of decision.",
    "DeliveryInfo.reason": "The reason for the message.",
    "ErrorJson.error": "The code of the error, for programs.",
    "ErrorJson.message": "The error as text, with what to do next.",
    "ExecutionJson.args": "The arguments to run the tool with.",
    "FindingJson.kind": "The kind of finding.",
    "FunctionCallBody.status": "Always null.",
    "GrantBody.agent": "The name of the agent whose calls the grant covers; `*` for all.",
    "GrantBody.expires_in": "The duration of the grant, such as `8h`.",
    "HumanContactBody.status": "Always null.",
    "HumanResponse.args": "The text of a `response`, or the arguments of an `edit`.",
    "InboxRun.run_id": "The id of the run.",
    "InboxRun.thread_id": "The id of the thread, which stands for one approval.",
    "InboxSearchBody.status": "The status to search for.",
    "InboxState.next": "The next nodes of the graph.",
    "InboxThread.thread_id": "The id of the thread, which stands for one approval.",
    "KeyBody.requester": "The person that the key acts for; `any` or `none`.",
    "KeyInfo.requester": "The person that the key acts for; `any` or `none`.",
    "LedgerEntryJson.kind": "The kind of event.",
    "LedgerHead.at": "The time, in milliseconds since 1970.",
    "OutcomeJson.args": "The arguments to run the tool with, if the outcome is `proceed`.",
    "OutcomeJson.message": "The answer of a person, if the outcome is `answered`.",
    "OutcomeJson.questions": "The numbers of the questions that the agent has not answered.",
    "OutcomeJson.reason": "The reason for a refusal.",
    "OutcomeJson.until": "The next time at which a timer may change the outcome.",
    "OutcomeJson.warnings": "Why a rule or a switch that seems to allow the call has no effect.",
    "PauseBody.agent": "The name of the agent; by default, the name of the key.",
    "PinBody.agent": "The name of the agent whose definition is pinned; by default, the newest of any agent.",
    "PinBody.effect": "The effect to pin, in place of the declared one.",
    "PinBody.spec_sha256": "The SHA-256 digest of the definition that the person saw; another one is not pinned.",
    "ProposalBody.agent": "The name of the agent; by default, the name of the key.",
    "ProposalBody.args": "The arguments of the call.",
    "ProposalBody.decisions": "The kinds of decisions that people may make; by default, those of the rule.",
    "ProposalBody.description": "One line that describes the call, shown to people as unverified.",
    "ProposalBody.effect": "The effect of the tool, as the agent's program declares it.",
    "ProposalBody.expires_in": "The duration until the deadline, such as `5m`; it can only shorten that of the rule.",
    "ProposalBody.preview": "A preview of the effect, shown to people as unverified.",
    "ProposalBody.switch": "The agent's switch for this tool: `on` asks people; `off` has no effect here.",
    "RemovalEffectsJson.delegations": "The ids of the pending approvals with their delegations.",
    "RemovalEffectsJson.votes": "The ids of the pending approvals with their votes.",
    "ResponseOption.description": "A description of the answer.",
    "ResumeEntry.status": "Whether the interrupt is answered or cancelled.",
    "RuleChange.rule": "The name of the rule.",
    "SignInBody.next": "The path that the page opens after signing in.",
    "SignedInUser.next": "The path that the page opens after signing in.",
    "StartCallBody.spec_sha256": "The SHA-256 digest of the tool's definition; a call that was approved with another "
    "one does not start.",
    "StatsHistory.decisions": "The number of decisions.",
    "StatsHistory.since": "The beginning of the period.",
    "StatsHistory.until": "The end of the period.",
    "StatsInterval.at": "The beginning of the interval.",
    "StatsInterval.decisions": "The number of decisions.",
    "TimelineEntryJson.kind": "The kind of event.",
    "ToolInfo.description": "The description of the tool.",
    "VerdictReason.by": "The origin of the verdict.",
    "VerdictReason.expires_in": "The duration until the deadline, in a chat.",
    "VerificationJson.began": "The time at which the verification began.",
    "VerificationJson.by": "The person who started the verification.",
}


def make_docs_router(*handlers: type) -> APIRouter:
    router = APIRouter()
    for route in (route for each in handlers for route in declared_routes(each)):
        router.add_api_route(
            route.template,
            _make_endpoint(route),
            methods=[route.method],
            tags=[route.docs.tag],
            responses={**route.docs.responses, **documented_errors(*route.docs.error_statuses)},
            **require_roles(route.roles),
        )
    return router


def _make_endpoint(route: AsgiRoute) -> Any:
    async def endpoint(**_: Any) -> Response:
        raise NotFound("There is nothing at this address.")  # unreachable: the router serves this path first

    endpoint.__signature__ = _signature(route)  # type: ignore[attr-defined]  # as FastAPI reads it
    endpoint.__doc__ = route.docs.text
    return endpoint


def _signature(route: AsgiRoute) -> Signature:
    names = [part[1:-1] for part in route.template.split("/") if part.startswith("{")]
    wanted: list[tuple[str, object]] = [(name, str) for name in names]
    wanted += [("body", route.docs.body)] if route.docs.body else []
    wanted += [("query", Annotated[route.docs.query, Query()])] if route.docs.query else []
    return Signature([Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in wanted])
