"""Proposed calls of remote programs, in any protocol: request body, caller identity, tool definition and outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import Field

from interlock.app.workspaces import WorkspaceSnapshot
from interlock.chat.tool_registry import RegisteredTools
from interlock.config.models import ActionSettings, is_builtin_action
from interlock.core.call import MAX_TEXT_LENGTH, Caller, PreCheck, ToolCall, ToolSpec, propose
from interlock.core.confusables import differs_only_in_case, looks_like, matches_pattern, mixed_scripts
from interlock.core.decision import Kind
from interlock.core.declared import AgentText
from interlock.core.errors import Forbidden, InvalidRequest
from interlock.core.fast_dataclasses import fast_construct
from interlock.core.identity import Principal, agents_owner
from interlock.core.outcome import Outcome, Proceed
from interlock.core.pins import Pins, pin_mismatch_reason
from interlock.core.policy.claims import FillTerms
from interlock.core.policy.policy import People, Stage, imitation_reason, mixed_alphabets_reason
from interlock.core.ports import User
from interlock.presenters.approval import outcome_json
from interlock.runtime.durations import parse_duration
from interlock.server.http import HttpResponse, JsonList, RequestBody, encode_json, example

_OTHER_KEY_HINT = (
    "Name that agent (in the library: Interlock(…, agent=NAME); of interlock hook and mcp-gate: --agent NAME), or ask "
    "an admin for another key."
)


class HasRegisteredTools(Protocol):
    """The tools that this process has registered."""

    @property
    def registered(self) -> RegisteredTools: ...


class WorkspaceDirectory(Protocol):
    """A workspace with its people and its pins."""

    @property
    def workspace(self) -> str: ...
    @property
    def snapshot(self) -> WorkspaceSnapshot: ...
    @property
    def people(self) -> Mapping[str, User]: ...
    @property
    def pins(self) -> Pins: ...


class ProposalBody(RequestBody):
    """A tool call that an agent proposes."""

    model_config = example(
        {
            "tool": "fund_transfer",
            "args": {"amount": 100, "recipient": "ann@example.com"},
            "run_id": "run-2027-03-01",
            "call_id": "call-1",
            "effect": "write",
            "initiated_by": "rita",
        }
    )

    tool: str
    args: dict[str, object]
    call_id: str
    run_id: str
    thread_id: str = ""
    agent: str = ""
    agent_path: JsonList[str] = ()
    initiated_by: str = ""
    priority: Literal["", "low", "medium", "high"] = ""
    expires_in: str = ""
    setting: Literal["chat", "queue", "paused"] = "queue"
    switch: Literal["", "on", "off"] = ""
    schema_: Annotated[dict[str, object] | None, Field(alias="schema")] = None
    description: Annotated[str, Field(max_length=MAX_TEXT_LENGTH)] = ""
    effect: Literal["", "read", "write", "destructive"] = ""
    idempotent: bool = False
    secret: Annotated[JsonList[str], Field(max_length=100)] = ()
    preview: str | dict[str, object] | list[object] | None = None
    decisions: JsonList[Kind] = ()
    agent_says: str = ""


def make_tool_call(
    body: ProposalBody,
    principal: Principal,
    state: HasRegisteredTools,
    directory: WorkspaceDirectory,
    setting: str = "queue",
) -> ToolCall:
    """Make the call from the program's claims and what its key proves. `setting` is the interface's own, if any."""
    agent, agents = _agents(body, principal)
    _check_tool(body.tool, principal)
    named, requester_is_proven = _requester(body, principal, directory)
    requester = directory.people.get(named)
    if requester is not None and requester.removed_at is not None:
        # A removed account: the name is unverified, even if the key vouches for it.
        requester, requester_is_proven = None, False
    teams = tuple(sorted(requester.teams)) if requester else ()
    caller = fast_construct(
        Caller,
        owner=agents_owner(*agents) if principal.agents and len(agents) == 1 else principal.owner,
        owners=principal.owners,
        agents=agents,
        credential=principal.credential,
        requester=named if requester_is_proven else "",
        teams=teams if requester_is_proven else (),
        requester_is_proven=requester_is_proven,
        setting=setting,
        root=principal.root or principal.credential,
    )
    return propose(
        body.tool,
        body.args,
        body.run_id,
        body.call_id,
        workspace=directory.workspace,
        agent=agent,
        agent_path=body.agent_path,
        thread_id=body.thread_id,
        requester=named,
        teams=teams,
        aliases=(requester.email,) if requester and requester.email else (),
        priority=body.priority,
        setting=body.setting,
        switch=body.switch,
        expires_in=parse_duration(body.expires_in) if body.expires_in else None,
        agent_says=body.agent_says,
        decisions=body.decisions,
        caller=caller,
        pre_check=PreCheck(
            _lookalike_refusal(body.tool, named, state, directory)
            or _mixed_script_refusal(body, principal, named, state, directory)
        ),
    )


class ResolvedDefinition(NamedTuple):
    """The definition of a tool that counts, and where it comes from."""

    spec: ToolSpec
    origin: Literal["registered", "pinned", "declared"]
    action: ActionSettings | None  # the action of this name, if there is one


def resolve_definition(
    body: ProposalBody, state: HasRegisteredTools, directory: WorkspaceDirectory
) -> ResolvedDefinition:
    """The server's definition of the tool, else the program's; a pin takes sentence and preview from the program."""
    action = state.registered.action(body.tool)
    definition = known_definition(body.tool, action, state, directory)
    if definition is None:
        return ResolvedDefinition(declared_spec(body, believed=action is None), "declared", action)
    if definition.origin == "registered":
        return definition
    claimed = declared_spec(body)
    if claimed.describe or claimed.preview:
        return definition._replace(spec=replace(definition.spec, describe=claimed.describe, preview=claimed.preview))
    return definition


def with_definition(call: ToolCall, body: ProposalBody, definition: ResolvedDefinition) -> ToolCall:
    """Add the digest of the program's own definition, and a doubt if it differs from the pin."""
    if definition.origin == "declared" or call.caller is None:
        return call
    declared = declared_spec(body)
    doubt = pin_mismatch_reason(definition.spec, declared) if definition.origin == "pinned" else ""
    caller = replace(call.caller, spec_sha256=declared.sha256)
    pre_check = call.pre_check._replace(ask_reason=doubt, declared_effect=declared.effect if doubt else "")
    return replace(call, caller=caller, pre_check=pre_check)


def known_definition(
    tool: str, action: ActionSettings | None, state: HasRegisteredTools, directory: WorkspaceDirectory
) -> ResolvedDefinition | None:
    """The server's definition of a tool, for every interface: the registered one, else the pinned one.

    `action` is the action of the tool's name.
    """
    registered = state.registered.spec_for_action(directory.workspace, tool, action)
    if registered is not None:
        return ResolvedDefinition(registered, "registered", action)
    pin = pinned_spec(tool, directory)
    return None if pin is None else ResolvedDefinition(pin, "pinned", action)


def known_spec(tool: str, state: HasRegisteredTools, directory: WorkspaceDirectory) -> ToolSpec | None:
    definition = known_definition(tool, state.registered.action(tool), state, directory)
    return None if definition is None else definition.spec


def pinned_spec(tool: str, directory: WorkspaceDirectory) -> ToolSpec | None:
    pin = directory.pins.find(tool)
    return None if pin is None else pin.spec if pin.tool == tool else replace(pin.spec, name=tool)


def action_team(name: str, state: HasRegisteredTools, directory: WorkspaceDirectory) -> People | None:
    """The team that decides about an action if a rule names no approvers.

    The team of a built-in action counts only if it has members: else nobody could ever decide.
    """
    return _effective_team(state.registered.action(name), directory)


def action_terms(action: ActionSettings | None, directory: WorkspaceDirectory) -> FillTerms | None:
    """Let the action's team decide where a rule names no approvers."""
    team = None if action is None else _effective_team(action, directory)
    return None if team is None else lambda ask, _: replace(ask, stages=with_team(ask.stages, team))


def _effective_team(action: ActionSettings | None, directory: WorkspaceDirectory) -> People | None:
    if action is None or not action.team:
        return None
    here = any(action.team in user.teams for user in directory.people.values() if user.removed_at is None)
    return People(teams=frozenset({action.team})) if here or not is_builtin_action(action) else None


def with_team(stages: tuple[Stage, ...], team: People) -> tuple[Stage, ...]:
    return tuple(stage if stage.approvers else Stage(team, stage.quorum) for stage in stages)


def declared_spec(body: ProposalBody, *, believed: bool = True) -> ToolSpec:
    """The program's claim. Its description is text about one call: no template, nor part of the definition."""
    preview, description = body.preview, body.description
    if body.schema_ is preview is None and not (description or body.secret or body.decisions):  # the common case
        return _plain_spec(body.tool, body.effect if believed else "", body.idempotent)
    return ToolSpec(
        body.tool,
        body.effect if believed else "",
        schema=body.schema_,
        describe=AgentText(description) if description else "",
        preview=None
        if preview is None
        else AgentText(preview if isinstance(preview, str) else encode_json(preview).decode()),
        secret=body.secret,
        idempotent=body.idempotent,
        decisions=body.decisions,
        declared=True,
    )


@lru_cache(maxsize=1_000)  # with its digest; a name that is too long raises, and is not cached
def _plain_spec(tool: str, effect: str, idempotent: bool) -> ToolSpec:  # noqa: FBT001  for the cache
    return ToolSpec(tool, effect, idempotent=idempotent, declared=True)


def _agents(body: ProposalBody, principal: Principal) -> tuple[str, tuple[str, ...]]:
    """The agent's name in the call, and the agents that it is judged as; a bound key cannot use another name."""
    said = body.agent_path[0] if body.agent_path else body.agent
    if body.agent_path and body.agent not in ("", body.agent_path[-1]):
        raise InvalidRequest("agent is the last name of agent_path: the agent that makes the call.")
    last = body.agent_path[-1] if body.agent_path else body.agent
    if not principal.agents:
        return last or principal.name, (principal.name,)
    check_agent(principal, said)
    if said:
        return last, (said,)
    return (principal.agents[0] if len(principal.agents) == 1 else ""), principal.agents


def check_agent(principal: Principal, agent: str) -> str:
    """The agent for which a program with this key acts. Raises Forbidden if the key is bound to another."""
    if principal.agents and agent and agent not in principal.agents:
        bound = ", ".join(principal.agents)
        raise Forbidden(f"This key is bound to the agent {bound}; it cannot speak for {agent!r}. {_OTHER_KEY_HINT}")
    return agent or (principal.agents[0] if principal.agents else principal.name)


def _check_tool(tool: str, principal: Principal) -> None:
    if principal.tools and not any(matches_pattern(tool, pattern) for pattern in principal.tools):
        allowed = ", ".join(principal.tools)
        raise Forbidden(f"This key may propose calls of {allowed} only, not of {tool!r}. Ask an admin for another key.")


def _requester(body: ProposalBody, principal: Principal, directory: WorkspaceDirectory) -> tuple[str, bool]:
    """The requester, by the name of their account if they have one, and whether the key vouches for it."""
    requester = account_name(body.initiated_by, directory)
    match principal.requester:
        case "":
            return requester, False
        case "any":
            return requester, bool(requester)
        case "none" if not requester:
            return "", True
        case "none":
            raise Forbidden("This key has no requester; omit initiated_by.")
        case name if requester in ("", name):
            return name, True
        case name:
            raise Forbidden(f"This key acts for {name} only; leave initiated_by out.")


def account_name(name: str, directory: WorkspaceDirectory) -> str:
    """The name of the account with this name or e-mail address, in any case; other names stay as they are."""
    if not name or name in directory.people:
        return name
    there = [user for user in directory.people.values() if user.removed_at is None]
    by_name = [user.name for user in there if differs_only_in_case(name, user.name)]
    by_email = [user.name for user in there if user.email and differs_only_in_case(name, user.email)]
    return (by_name or by_email or [name])[0]


def _lookalike_refusal(tool: str, requester: str, state: HasRegisteredTools, directory: WorkspaceDirectory) -> str:
    """The reason to refuse a name that only looks like a tool's or a person's; empty if there is none."""
    snapshot = directory.snapshot
    if _is_plain(tool) and _is_plain(requester):  # such a name can only imitate one that is not plain
        tools = (*state.registered.non_ascii_names(directory.workspace), *snapshot.non_ascii_pins)
        if not tools and not snapshot.non_ascii_people:
            return ""
        found = "" if known_spec(tool, state, directory) else _find_lookalike(tool, tools)
        found = found or ("" if requester in snapshot.people else _find_lookalike(requester, snapshot.non_ascii_people))
    else:
        people = {each for user in snapshot.people.values() for each in (user.name, user.email) if each}
        tools = (*state.registered.names(directory.workspace), *snapshot.pins.by_name)
        found = _find_lookalike(tool, tools) or _find_lookalike(requester, people)
    return imitation_reason(found) if found else ""


def _is_plain(name: str) -> bool:
    return name.isascii() and name == name.strip()


def _find_lookalike(name: str, known: Iterable[str]) -> str:
    return next((each for each in known if looks_like(name, each)), "")


def _mixed_script_refusal(
    body: ProposalBody, principal: Principal, requester: str, state: HasRegisteredTools, directory: WorkspaceDirectory
) -> str:
    """The reason to refuse a name that mixes alphabets within one word, unless that very name is known here."""
    agents = [agent for agent in (body.agent, *body.agent_path) if agent not in principal.agents]
    found = next(filter(None, map(mixed_scripts, agents)), "") or (
        "" if requester in directory.people else mixed_scripts(requester)
    )
    if not found and not body.tool.isascii():
        action = state.registered.action(body.tool)
        known = action or known_definition(body.tool, action, state, directory)
        found = "" if known else mixed_scripts(body.tool)
    return mixed_alphabets_reason(found) if found else ""


def outcome_response(outcome: Outcome) -> HttpResponse:
    body = encode_json(outcome_json(outcome))
    if isinstance(outcome, Proceed):
        return HttpResponse(200, b'%b,"args":%b}' % (body[:-1], outcome.args))
    return HttpResponse(200, body)
