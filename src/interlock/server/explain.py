"""Explains what a policy does with a hypothetical call, which is treated like a call with an agent's key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from interlock.core.call import ToolCall, ToolSpec, propose
from interlock.core.errors import Forbidden, InvalidRequest, did_you_mean
from interlock.core.identity import AGENT, ANY_REQUESTER, NO_REQUESTER, Principal
from interlock.core.policy.claims import FillTerms
from interlock.core.policy.policy import Policy
from interlock.policy.explain import NO_LINES, Explanation, explain
from interlock.runtime.durations import parse_duration
from interlock.runtime.json_schema import validate
from interlock.server.http import validate_model
from interlock.server.proposals import (
    HasRegisteredTools,
    ProposalBody,
    ResolvedDefinition,
    WorkspaceDirectory,
    action_terms,
    known_definition,
    make_tool_call,
    resolve_definition,
    with_definition,
)

CALL_KEYS = (
    *("tool", "args", "agent", "agent_path", "initiated_by", "teams", "priority", "setting", "switch", "expires_in"),
    *("thread_id", "run_id", "call_id", "agent_says", "key", "embedded"),
)
KEY_KEYS = ("name", "agents", "requester", "teams")
SPEC_KEYS = ("effect", "schema", "description", "preview", "secret", "idempotent", "decisions", "confirm", "declared")
EXPLAIN_ONLY_KEYS = frozenset({"teams", "key", "embedded", "confirm", "declared"})  # not in calls over HTTP
SPEC_FIELD_NAMES = {"description": "describe"}  # as `ToolSpec` calls them
DEFAULT_KEY_NAME = "key"  # the name of a key without a name
DEFAULT_REQUESTER = "somebody"  # a program with the database always acts for somebody: the person who started it
EMBEDDED_JUDGED_AS = "as a call of a program that opens the database itself: what it says of its tool is known"


class ExplainRequest(NamedTuple):
    """`judged_as` says whose call it is judged as, `notes` how its claims were treated."""

    call: ToolCall
    spec: ToolSpec
    judged_as: str
    fill: FillTerms | None = None
    notes: tuple[str, ...] = ()

    def explain(self, policy: Policy, lines: Mapping[str, int] = NO_LINES) -> Explanation:
        found = explain(policy, self.call, self.spec, lines, self.fill)
        return replace(found, judged_as=self.judged_as, notes=(*self.notes, *found.notes))


def parse_explain_request(body: object, state: HasRegisteredTools, directory: WorkspaceDirectory) -> ExplainRequest:
    """Parse a call: of an agent's key (`key`, bound to nobody unless it says so), or of an `embedded` program."""
    call, spec = _parse_call(body, directory.workspace)
    fields = cast(Mapping[str, Any], body)
    if not fields.get("embedded", False):
        return _agent_key_request(fields, state, directory)
    definition = known_definition(call.tool, state.registered.action(call.tool), state, directory)
    named = call if call.requester else replace(call, requester=DEFAULT_REQUESTER)
    own = spec if definition is None or spec.effect else definition.spec
    return ExplainRequest(
        named, own, EMBEDDED_JUDGED_AS, None, (*_program_notes(spec, definition), *_schema_notes(call, own))
    )


def _agent_key_request(
    fields: Mapping[str, Any], state: HasRegisteredTools, directory: WorkspaceDirectory
) -> ExplainRequest:
    key = _parse_key(fields.get("key", {}))
    principal = _key_principal(key, directory.workspace)
    told = {"args": {}, "run_id": "explain", "call_id": "explain", **fields}
    if "expires_in" in told:
        told["expires_in"] = str(told["expires_in"])
    body = validate_model(ProposalBody, {name: value for name, value in told.items() if name not in EXPLAIN_ONLY_KEYS})
    definition = resolve_definition(body, state, directory)
    try:
        call = with_definition(make_tool_call(body, principal, state, directory), body, definition)
    except Forbidden as error:
        raise InvalidRequest(f"The server refuses such a call of this key. {error.message}") from None
    call = _with_teams(call, fields, key)
    notes = (*_claim_notes(body, definition), *_schema_notes(call, definition.spec))
    return ExplainRequest(
        call, definition.spec, _judged_as(principal), action_terms(definition.action, directory), notes
    )


def _judged_as(principal: Principal) -> str:
    agents = (
        [f"to the agent{'s' if len(principal.agents) > 1 else ''} {', '.join(principal.agents)}"]
        if principal.agents
        else []
    )
    person = {"": "", ANY_REQUESTER: "to the requester that it names", NO_REQUESTER: "to no requester"}
    bound = [*agents, person.get(principal.requester, f"to the requester {principal.requester}")]
    bindings = " and ".join(filter(None, bound)) or "to no agent"
    return f"as a call with an agent key that is bound {bindings}: what it declares about its tool is a claim"


def _with_teams(call: ToolCall, fields: Mapping[str, Any], key: Mapping[str, Any]) -> ToolCall:
    """Use the teams of the accounts, unless the request assumes others."""
    teams = tuple(fields["teams"]) if "teams" in fields else call.teams
    caller = call.caller
    if caller is not None and caller.requester:
        caller = replace(caller, teams=tuple(key["teams"]) if "teams" in key else teams)
    return replace(call, teams=teams, caller=caller)


# Notes on the claims of the call


def _claim_notes(body: ProposalBody, definition: ResolvedDefinition) -> Iterator[str]:
    said, spec = body.effect, definition.spec
    if definition.origin != "declared":
        but = f": the effect {said} that the call declares is ignored" if said and said != spec.effect else ""
        yield f"{body.tool} is {definition.origin} as {spec.effect or 'a tool of unknown effect'}{but}."
    elif said and not spec.effect and definition.action is not None:
        yield f"{body.tool} is not a configured action: the effect {said} that the call declares is ignored."


def _program_notes(declared: ToolSpec, definition: ResolvedDefinition | None) -> Iterator[str]:
    """Notes for an embedded program, which brings its own tools: pins and registered tools are for calls with a key."""
    if definition is None or declared.effect == definition.spec.effect:
        return
    stands = f"{declared.name} is {definition.origin} as {definition.spec.effect or 'a tool of unknown effect'}"
    if declared.effect:
        own = f"for an embedded program its own definition is used: {declared.effect}"
        yield f"{stands}. That applies to calls with a key; {own}."
    else:
        yield f"{stands}, and is judged as that. For an embedded program its own definition is used."


def _schema_notes(call: ToolCall, spec: ToolSpec) -> Iterator[str]:
    found = validate(spec.schema, call.parsed_args) if spec.schema is not None else ()
    if found:
        first = ": ".join(filter(None, (found[0].pointer, found[0].message)))
        yield f"Its arguments do not fit the schema of {spec.name} ({first}): a call with them is never allowed."


# Parsing


def _parse_call(body: object, workspace: str) -> tuple[ToolCall, ToolSpec]:
    """Parse the call as an embedded program would make it."""
    if not isinstance(body, Mapping) or not isinstance(body.get("tool"), str):
        raise InvalidRequest('A call is an object such as {"tool": "pay", "args": {"amount": 5}}.')
    for key in body:
        if key not in (*CALL_KEYS, *SPEC_KEYS):
            raise InvalidRequest(f"A call has no {key!r}{did_you_mean(key, (*CALL_KEYS, *SPEC_KEYS))}")
    if not isinstance(body.get("embedded", False), bool) or (body.get("embedded") and "key" in body):
        raise InvalidRequest("embedded is true for a call of a program that opens the database, and then has no key.")
    said = ("agent", "thread_id", "priority", "setting", "switch", "agent_says")
    more = {key: body[key] for key in said if key in body}
    more |= {key: tuple(_string_list(body, key)) for key in ("agent_path", "teams") if key in body}
    more |= {"requester": body["initiated_by"]} if "initiated_by" in body else {}
    more |= {"expires_in": parse_duration(str(body["expires_in"]))} if "expires_in" in body else {}
    run_id, call_id = str(body.get("run_id", "explain")), str(body.get("call_id", "explain"))
    return propose(body["tool"], body.get("args", {}), run_id, call_id, workspace=workspace, **more), _parse_spec(body)


def _parse_key(key: object) -> Mapping[str, Any]:
    """The key that the call is made with: its `name`, and the `agents` and the `requester` that it is bound to."""
    if not isinstance(key, Mapping) or set(key) - set(KEY_KEYS):
        raise InvalidRequest(f"key of a call is an object with {', '.join(KEY_KEYS)}; without one: embedded.")
    if not all(isinstance(key.get(name, ""), str) for name in ("name", "requester")):
        raise InvalidRequest("name and requester of a key are texts.")
    for name in ("agents", "teams"):
        if name in key:
            _string_list(key, name)
    return key


def _key_principal(key: Mapping[str, Any], workspace: str) -> Principal:
    return Principal(
        workspace,
        key.get("name") or DEFAULT_KEY_NAME,
        AGENT,
        credential="explain",
        agents=tuple(key.get("agents", ())),
        requester=key.get("requester", ""),
    )


def _parse_spec(body: Mapping[str, Any]) -> ToolSpec:
    told = {SPEC_FIELD_NAMES.get(key, key): body[key] for key in SPEC_KEYS if key in body and key != "preview"}
    told |= {key: tuple(_string_list(body, key)) for key in ("secret", "decisions") if key in body}
    for key, kind in (("schema", dict), ("idempotent", bool), ("declared", bool), ("describe", str)):
        if key in told and not isinstance(told[key], kind):
            raise InvalidRequest(f"{key} of a call is not what it should be: {kind.__name__}.")
    return ToolSpec(body["tool"], **told)


def _string_list(body: Mapping[str, Any], key: str) -> list[str]:
    value = body[key]
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InvalidRequest(f"{key} of a call is a list of texts.")
    return cast(list[str], value)
