"""Agents: their settings, and which of their tools need approval regardless of the tool's default."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from interlock.chat.agents import AgentOrigin, ResolvedAgent
from interlock.chat.tool_registry import known_tools
from interlock.config.agents import AGENT_KEYS, AvailableTool, find_agent_problems, find_agent_warnings
from interlock.config.models import AgentSettings
from interlock.core.call import MAX_NAME
from interlock.core.card import escape_invisible
from interlock.core.confusables import escape_non_ascii, fold_confusables, mixed_scripts
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, did_you_mean
from interlock.core.identity import ADMIN, Principal, check_name
from interlock.core.policy.policy import People, Policy, Stage
from interlock.core.ports import AgentDeletion, AgentsChanged, AgentVersion, FirstSeenTool
from interlock.runtime.durations import optional_rfc3339
from interlock.server.agent_deletion import AgentDependents, find_dependents
from interlock.server.dependencies import (
    ADMINS,
    DECIDERS,
    VIEWERS,
    PrincipalDep,
    RequestDep,
    StateDep,
    check_if_match,
    documented_errors,
    etag,
    require_recent_sign_in,
    require_roles,
)
from interlock.server.http import HttpRequest, RequestBody, encode_json, example
from interlock.server.proposals import action_team
from interlock.server.state import ServerState

router = APIRouter(tags=["agents and tools"])

MAX_NAMES = 1_000  # names in one list of an agent
MAX_CHECKS = 20  # of all agents for one change, if others change meanwhile
T = TypeVar("T")
REMOTE_AGENT = ResolvedAgent(AgentSettings(), "calls")
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
NameList = Annotated[list[Name], Field(default_factory=list, max_length=MAX_NAMES)]


class AgentBody(RequestBody):
    """Omitted fields stay as in the configuration file or the program, and are empty if neither has the agent.

    `tools` are names, patterns, packs such as `cms`, or `mcp:<server>`. `tool_approvals`: true makes a tool ask; false
    lifts only the tool's own default, never a rule of the policy. `limits` for each message: `turns`, `tokens`, `time`.
    """

    model_config = example({"tools": ["read_file", "delete_file"], "tool_approvals": {"delete_file": True}})

    model: Annotated[str, Field(max_length=MAX_NAME)] = ""
    instructions: Annotated[str, Field(max_length=100_000)] = ""
    tools: NameList
    tool_approvals: Annotated[dict[Name, bool], Field(default_factory=dict, max_length=MAX_NAMES)]
    agents: NameList
    limits: Annotated[dict[str, object], Field(default_factory=dict, max_length=MAX_NAMES)]

    @model_validator(mode="before")
    @classmethod
    def _know_every_key(cls, given: object) -> object:
        odd = sorted(str(key) for key in given if key not in AGENT_KEYS) if isinstance(given, Mapping) else []
        if odd:
            message = f'unknown key "{escape_invisible(odd[0])[:MAX_NAME]}"{did_you_mean(odd[0], AGENT_KEYS)}'
            raise PydanticCustomError("unknown_key", "{message}", {"message": message})
        return given


class AgentInfo(BaseModel):
    """`version` is 0 for an agent that was never changed here; `source` "calls" is a remote agent.

    `base` is its source without the changes made here, to which deleting them returns; null if it was made here.
    `warnings` say what of it is ignored or has no effect. `stored` names the fields that were changed here: a PUT that
    omits one of them resets it to the configuration.
    """

    name: str
    version: int
    source: AgentOrigin
    base: AgentOrigin | None
    model: str
    instructions: str
    tools: list[str]
    tool_approvals: dict[str, bool]
    agents: list[str]
    limits: dict[str, object]
    warnings: list[str]
    stored: list[str]
    changed_by: str | None
    changed_at: str | None


class AgentList(BaseModel):
    items: list[AgentInfo]
    next: str | None = None


class AgentDependentsJson(BaseModel):
    """What depends on an agent, and in `consequences` what becomes of each if it is deleted.

    `remains_as` is its source after that, null if nothing of it remains. `blocked` says why it cannot be deleted, or is
    empty. `open_calls` are approvals in its conversations that have not started.
    """

    name: str
    remains_as: AgentOrigin | None
    threads: int
    active_threads: int
    open_calls: int
    callers: list[str]
    switches: list[str]
    keys: list[str]
    rules: list[str]
    grants: int
    blocked: str
    consequences: list[str]


class DeletedAgent(BaseModel):
    """`cancelled` are the ids of the approvals that were cancelled with it; `remains_as` is its source now, if any."""

    name: str
    remains_as: AgentOrigin | None
    cancelled: list[str]


class ModelInfo(BaseModel):
    """A model; `problem` says why it cannot be used, such as a missing key, or is empty. No connection is made."""

    name: str
    problem: str


class ModelList(BaseModel):
    """`default` is the model of agents that name none; empty if there is none. `items` begin with it."""

    default: str
    items: list[ModelInfo]
    next: str | None = None


@dataclass(frozen=True)
class AgentCatalog:
    """All agents and tools of a workspace, by name; `bases` are the sources of agents without their stored settings.

    `revision` is that of the stored agents: a change that was checked against all of them is written only to it.
    """

    agents: Mapping[str, ResolvedAgent]
    tools: Mapping[str, AvailableTool]
    bases: Mapping[str, AgentOrigin]
    revision: int

    def info(self, name: str) -> AgentInfo:
        known = self.agents[name]
        others = {other: each.agent for other, each in self.agents.items()}
        fields = cast(dict[str, Any], json.loads(encode_json(asdict(known.agent))))
        return AgentInfo(
            name=name,
            version=known.stored.version if known.stored else 0,
            source=known.origin,
            base=self.bases.get(name),
            **fields,
            warnings=[escape_invisible(line) for line in find_agent_warnings(name, known.agent, self.tools, others)],
            stored=sorted(json.loads(known.stored.body)) if known.stored else [],
            changed_by=known.stored.author if known.stored else None,
            changed_at=optional_rfc3339(known.stored.at if known.stored else None),
        )


@router.get("/api/agents", responses=documented_errors(), **require_roles(VIEWERS))
async def list_agents(state: StateDep, principal: PrincipalDep) -> AgentList:
    """Agents that are stored, configured, built in, or known from their calls."""
    catalog = await load_agent_catalog(state, principal.workspace)
    return AgentList(items=[catalog.info(name) for name in sorted(catalog.agents)])


@router.get("/api/agents/{name}", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_agent(name: str, state: StateDep, principal: PrincipalDep, response: Response) -> AgentInfo:
    """One agent. The ETag is its version; GET /api/audit has the earlier ones: agent_changed, agent_deleted."""
    return await _show_agent(state, principal, name, response)


@router.put("/api/agents/{name}", responses=documented_errors(409), **require_recent_sign_in(DECIDERS))
async def put_agent(
    name: str,
    body: AgentBody,
    state: StateDep,
    principal: PrincipalDep,
    request: RequestDep,
    response: Response,
    reason: Annotated[str, Query(max_length=MAX_COMMENT)] = "",
) -> AgentInfo:
    """Change an agent, from its next call on, or create one.

    Reviewers can only change `tool_approvals`, and switch approval off only for what they may approve. With
    `If-None-Match: *` only a new agent is created, and an existing one is left unchanged. A new name that looks like
    that of another agent is refused.
    """
    check_name(name)
    text = encode_json(body.model_dump(exclude_unset=True)).decode()
    await _retry_check(lambda: _put_checked(state, principal, request, (name, text), reason))
    return await _show_agent(state, principal, name, response)


async def _put_checked(
    state: ServerState, principal: Principal, request: HttpRequest, settings: tuple[str, str], reason: str
) -> None:
    """Check the settings of an agent, a name and JSON, against all agents, and store them."""
    name, text = settings
    catalog = await load_agent_catalog(state, principal.workspace)
    _check_new_name(name, catalog, is_create=request.headers.get(b"if-none-match", b"").strip() == b"*")
    if name not in catalog.agents and principal.role != ADMIN:
        raise Forbidden("Only admins create agents. Reviewers change the switches of agents that exist.")
    before = catalog.agents.get(name, REMOTE_AGENT)
    after = state.assistant.agents.preview(name, text)
    _check_valid(name, after, catalog)
    await _check_permission(state, principal, before.agent, after)
    version, is_new = before.stored.version if before.stored else 0, name not in catalog.agents
    # permissions were checked against this very version; a new name and sub-agents against all agents
    bound = check_if_match(request.headers, etag(version)) or principal.role != ADMIN or is_new
    await state.workspaces.put_agent(
        principal.workspace,
        name,
        text,
        principal.name,
        reason,
        version if bound else None,
        agents_revision=catalog.revision if is_new or after.agents else None,
    )


@router.get("/api/agents/{name}/dependents", responses=documented_errors(404), **require_roles(ADMINS))
async def show_agent_dependents(name: str, state: StateDep, principal: PrincipalDep) -> AgentDependentsJson:
    """What depends on an agent, and what deleting the agent would do. Nothing is changed."""
    catalog = await load_agent_catalog(state, principal.workspace)
    found = await find_dependents(
        state, principal.workspace, name, require_agent(catalog, name).agents, catalog.bases.get(name)
    )
    return AgentDependentsJson(name=name, consequences=found.consequences(), **_shown_fields(found))


@router.delete("/api/agents/{name}", responses=documented_errors(404, 409), **require_recent_sign_in(ADMINS))
async def delete_agent(
    name: str,
    state: StateDep,
    principal: PrincipalDep,
    request: RequestDep,
    reason: Annotated[str, Query(max_length=MAX_COMMENT)] = "",
) -> DeletedAgent:
    """Delete the stored settings of an agent; GET /api/agents/{name}/dependents says what that does.

    An agent of the configuration file, or a built-in one, returns to its original settings. Any other agent is gone:
    its conversations cannot continue, and their approvals that have not started are cancelled in the same transaction.
    An agent that others may call as a sub-agent is not deleted. With `If-Match`, a changed agent is not deleted.
    """
    return await _retry_check(lambda: _delete_checked(state, principal, request, name, reason))


async def _delete_checked(
    state: ServerState, principal: Principal, request: HttpRequest, name: str, reason: str
) -> DeletedAgent:
    """Check that nothing keeps an agent from being deleted, and delete it."""
    catalog = await load_agent_catalog(state, principal.workspace)
    stored = require_agent(catalog, name).agents[name].stored
    version = stored.version if stored else 0
    check_if_match(request.headers, etag(version))
    found = await find_dependents(state, principal.workspace, name, catalog.agents, catalog.bases.get(name))
    if found.blocked:
        raise Conflict(found.blocked, agent=name, agents=list(found.callers))
    if (default := state.assistant.agents.find_default(name)) is not None:
        _check_valid(name, default.agent, catalog)  # its sub-agents may have changed meanwhile
    effect = AgentDeletion(remains=found.remains_as is not None, withdraws_calls=found.leaves_chat)
    cancelled = await state.workspaces.delete_agent(
        principal.workspace, name, effect, principal.name, reason, version, agents_revision=catalog.revision
    )
    return DeletedAgent(name=name, remains_as=found.remains_as, cancelled=list(cancelled))


async def _retry_check(change: Callable[[], Awaitable[T]]) -> T:
    """Check and change again if another agent changed in between: each alone is valid, and both together may not be."""
    for _ in range(MAX_CHECKS - 1):
        with suppress(AgentsChanged):
            return await change()
    return await change()


@router.get("/api/models", responses=documented_errors(), **require_roles(DECIDERS))
async def list_models(
    state: StateDep, principal: PrincipalDep, name: Annotated[str, Query(max_length=MAX_NAME)] = ""
) -> ModelList:
    """The default model and those that agents name, or only the one with this `name`; and whether each can be used."""
    catalog = await load_agent_catalog(state, principal.workspace)
    models = state.assistant.models
    others = sorted({known.agent.model for known in catalog.agents.values()} - {models.default, ""})
    shown = [name] if name else [models.default, *others]
    items = [ModelInfo(name=each, problem=await models.find_problem(each)) for each in shown]
    return ModelList(default=models.default, items=items)


async def load_agent_catalog(state: ServerState, workspace: str) -> AgentCatalog:
    seen = await state.store.tools(workspace)
    stored = {each.name: each for each in await state.store.agents(workspace)}
    elsewhere = {tool.agent: REMOTE_AGENT for tool in seen if tool.agent and _is_external(tool, stored.get(tool.agent))}
    unchanged = {**elsewhere, **state.assistant.agents.all({})}
    return AgentCatalog(
        {**elsewhere, **state.assistant.agents.all(stored)},
        _tools(state, workspace, seen),
        {name: known.origin for name, known in unchanged.items()},
        sum(each.version for each in stored.values()),
    )


def _is_external(tool: FirstSeenTool, stored: AgentVersion | None) -> bool:
    """Whether a tool was seen in calls of a program, as far as is known: calls in the chat are recorded likewise.

    An agent with more settings than switches is one of the chat; a deleted one is external once it shows a new tool.
    """
    if stored is None or not stored.has_settings:
        return stored is None or not stored.is_gone or tool.at > stored.at
    return not json.loads(stored.body).keys() - {"tool_approvals"}


def _tools(state: ServerState, workspace: str, seen: Sequence[FirstSeenTool]) -> dict[str, AvailableTool]:
    """Tools that are known from reads only have no definition, and need no approval."""
    tools = {tool.name: AvailableTool(bool(tool.spec_sha256)) for tool in seen}
    tools |= dict.fromkeys(state.settings.actions, AvailableTool(needs_approval=True))
    return tools | known_tools(state.assistant.tool_registry.all(workspace).values())


async def _show_agent(state: ServerState, principal: Principal, name: str, response: Response) -> AgentInfo:
    shown = require_agent(await load_agent_catalog(state, principal.workspace), name).info(name)
    response.headers["etag"] = etag(shown.version)
    return shown


def require_agent(catalog: AgentCatalog, name: str) -> AgentCatalog:
    if name not in catalog.agents:
        raise NotFound(f"There is no agent {name!r}. See the Agents page.", agent=name)
    return catalog


def _shown_fields(found: AgentDependents) -> dict[str, Any]:
    """As JSON has them."""
    return cast(dict[str, Any], json.loads(encode_json(asdict(found))))


def _check_new_name(name: str, catalog: AgentCatalog, *, is_create: bool) -> None:
    """Refuse a new name that a reader would take for another agent's: switches and rules are found by name."""
    known = catalog.agents.get(name)
    if known is not None:
        if is_create:
            where = "is known from its calls" if known.origin == "calls" else "exists already"
            raise Conflict(
                f"An agent with the name {name} {where}. Choose another name, or change that one.", agent=name
            )
        return
    here = [other for other, each in catalog.agents.items() if each.origin != "calls"]
    twin = next((other for other in here if fold_confusables(other) == fold_confusables(name)), "")
    if twin or mixed_scripts(name):
        why = f'looks like "{escape_non_ascii(twin)}"' if twin else f"mixes alphabets: {mixed_scripts(name)}"
        raise InvalidRequest(
            f"This name {why}. Choose another.", problems=[{"pointer": "/name", "message": f"The name {why}"}]
        )


def _check_valid(name: str, after: AgentSettings, catalog: AgentCatalog) -> None:
    """Check the settings; remote agents cannot be called from here."""
    here = {other: known.agent for other, known in catalog.agents.items() if known.origin != "calls"}
    problems = [*find_agent_problems(name, after, {**here, name: after})]
    if problems:
        told = [{"pointer": problem.pointer, "message": escape_invisible(problem.message)} for problem in problems]
        raise InvalidRequest(f"{told[0]['pointer']}: {told[0]['message']}.", problems=told)


# Who may switch approval off


def may_disable_approval(principal: Principal, tool: str, policy: Policy, team: People | None = None) -> bool:
    """Admins, and people who may approve the tool by every rule that could ask, for any arguments; if uncertain, no.

    `team` decides about an action if no rule names approvers.
    """
    stages = [
        stage
        for rule in policy.rules
        if rule.then == "ask" and not rule.shadow and (not rule.tools or rule.names_tool(tool) or "*" in rule.tools)
        for stage in rule.ask.stages
    ]
    stages += [] if team is None else [Stage(team)]
    approves = all(
        stage.approvers is None or stage.approvers.include(principal.name, principal.teams) for stage in stages
    )
    return principal.role == ADMIN or (principal.role in DECIDERS and approves)


async def _check_permission(
    state: ServerState, principal: Principal, before: AgentSettings, after: AgentSettings
) -> None:
    """Admins change everything, reviewers what they may switch off."""
    if principal.role == ADMIN:
        return
    services = await state.workspaces.services(principal.workspace)
    _check_reviewer(principal, before, after)
    for tool in _relaxed_tools(before.tool_approvals, after.tool_approvals):
        if not may_disable_approval(principal, tool, services.loaded_policy.policy, action_team(tool, state, services)):
            raise _may_not_disable(principal, tool)


def _check_reviewer(principal: Principal, before: AgentSettings, after: AgentSettings) -> None:
    if replace(after, tool_approvals=before.tool_approvals) != before:
        raise Forbidden("Only admins change more than tool_approvals. Ask an admin.")


def _may_not_disable(principal: Principal, tool: str) -> Forbidden:
    message = f"You may not approve every call of {escape_invisible(tool)}, so you cannot switch its question off."
    return Forbidden(f"{message} Ask an admin.", tool=tool)


def _relaxed_tools(before: Mapping[str, bool], after: Mapping[str, bool]) -> list[str]:
    """The tools that would ask less: from on to unset, from unset to off."""
    weight = {True: 2, None: 1, False: 0}
    return sorted(tool for tool in {*before, *after} if weight[after.get(tool)] < weight[before.get(tool)])
