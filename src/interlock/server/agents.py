"""Agents and their tools: what is known of them, and which of their calls ask whatever the tool's default says."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from interlock.configuration import Agent, Settings
from interlock.core.call import MAX_NAME
from interlock.core.card import visible
from interlock.core.decision import MAX_COMMENT
from interlock.core.errors import Forbidden, NotFound
from interlock.core.identity import ADMIN, Principal, check_name
from interlock.core.policy import Policy
from interlock.core.ports import SeenTool
from interlock.durations import optional_rfc3339
from interlock.inbox import QUESTION
from interlock.reading.reader import nearest
from interlock.server.routing import DECIDERS, LOOKERS, Caller, Given, Here, fails, may
from interlock.web.asgi import Body, encoded
from interlock.web.site import Site
from interlock.web.versions import check_match, etag

router = APIRouter(tags=["agents and tools"])

MOST = 1_000  # names in one list of an agent
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
NameList = Annotated[list[Name], Field(default_factory=list, max_length=MOST)]


class AgentBody(Body):
    """All that is to be known of an agent: what is left out is empty from then on.

    `tool_approvals`: true makes a tool ask; false lifts only the tool's own default, never a rule of the policy.
    """

    model: Annotated[str, Field(max_length=MAX_NAME)] = ""
    instructions: Annotated[str, Field(max_length=100_000)] = ""
    tools: NameList
    tool_approvals: Annotated[dict[Name, bool], Field(default_factory=dict, max_length=MOST)]
    agents: NameList
    limits: Annotated[dict[str, object], Field(default_factory=dict, max_length=MOST)]


class AgentInfo(BaseModel):
    """`version` is 0 for what stands in the configuration file, or is known from calls alone."""

    name: str
    version: int
    source: Literal["stored", "configuration", "calls"]
    model: str
    instructions: str
    tools: list[str]
    tool_approvals: dict[str, bool]
    agents: list[str]
    limits: dict[str, object]
    warnings: list[str]
    changed_by: str | None
    changed_at: str | None


class AgentList(BaseModel):
    items: list[AgentInfo]
    next: str | None = None


class ToolInfo(BaseModel):
    """`effect` is what its newest definition says, null where none is known; `definitions` counts them."""

    name: str
    effect: str | None
    agents: list[str]
    definitions: int
    spec_sha256: str | None
    seen_at: str | None
    source: Literal["calls", "reads", "configuration"]


class ToolList(BaseModel):
    items: list[ToolInfo]
    next: str | None


class Wanted(BaseModel):
    """`q` is a part of the name; `after` is what the page before gave as `next`."""

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=MAX_NAME)] = ""
    after: Annotated[str, Field(max_length=MAX_NAME)] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 100


@dataclass(frozen=True, slots=True)
class Known:
    """An agent, from where it is known, and who changed it last."""

    agent: Agent
    source: Literal["stored", "configuration", "calls"]
    version: int = 0
    author: str | None = None
    at: int | None = None


@router.get("/api/agents", responses=fails(), **may(LOOKERS))
async def list_agents(site: Here, who: Caller) -> AgentList:
    """Agents that are stored, configured, or known from their calls."""
    agents, seen = await _agents(site, who.workspace)
    tools = _names(site.settings, seen)
    return AgentList(items=[_info(name, known, agents, tools) for name, known in sorted(agents.items())])


@router.get("/api/agents/{name}", responses=fails(404), **may(LOOKERS))
async def show_agent(name: str, site: Here, who: Caller, response: Response) -> AgentInfo:
    """One agent. The ETag is its version."""
    return await _shown(site, who, name, response)


@router.put("/api/agents/{name}", responses=fails(409), **may(DECIDERS))
async def put_agent(
    name: str,
    body: AgentBody,
    site: Here,
    who: Caller,
    asked: Given,
    response: Response,
    reason: Annotated[str, Query(max_length=MAX_COMMENT)] = "",
) -> AgentInfo:
    """Replaces what is known of an agent; reviewers change `tool_approvals`, and lift only what they may approve."""
    check_name(name)
    agents, _ = await _agents(site, who.workspace)
    before = agents.get(name, Known(Agent(), "calls"))
    if who.role != ADMIN:
        doors = await site.workspaces.doors(who.workspace)
        _check_reviewer(who, before.agent, body, doors.loaded.policy)
    # the rights were checked against this very version
    bound = check_match(asked.headers, etag(before.version)) or who.role != ADMIN
    text = encoded(body.model_dump()).decode()
    seen = before.version if bound else None
    await site.workspaces.put_agent(who.workspace, name, text, who.name, reason, seen)
    return await _shown(site, who, name, response)


@router.get("/api/tools", responses=fails(), **may(LOOKERS))
async def list_tools(site: Here, who: Caller, wanted: Annotated[Wanted, Query()]) -> ToolList:
    """The tools that are known here, by name: from calls, from reads, and the actions of the configuration."""
    by_name: dict[str, list[SeenTool]] = defaultdict(list)
    for tool in await site.store.tools(who.workspace):
        by_name[tool.name].append(tool)
    names = sorted({*by_name, *site.settings.actions})
    fitting = [name for name in names if name > wanted.after and wanted.q.casefold() in name.casefold()]
    page = fitting[: wanted.limit]
    items = [await _tool(site, name, by_name.get(name, [])) for name in page]
    return ToolList(items=items, next=page[-1] if len(fitting) > len(page) else None)


async def _shown(site: Site, who: Principal, name: str, response: Response) -> AgentInfo:
    agents, seen = await _agents(site, who.workspace)
    if name not in agents:
        raise NotFound("No agent of this name is known. GET /api/agents lists them.", agent=name)
    response.headers["etag"] = etag(agents[name].version)
    return _info(name, agents[name], agents, _names(site.settings, seen))


async def _agents(site: Site, workspace: str) -> tuple[dict[str, Known], Sequence[SeenTool]]:
    seen = await site.store.tools(workspace)
    agents = {tool.agent: Known(Agent(), "calls") for tool in seen if tool.agent}
    agents |= {name: Known(agent, "configuration") for name, agent in site.settings.agents.items()}
    for each in await site.store.agents(workspace):
        agents[each.name] = Known(_read(each.body), "stored", each.version, each.author, each.at)
    return agents, seen


def _read(body: str) -> Agent:
    stored = json.loads(body)
    return Agent(**{**stored, "tools": tuple(stored["tools"]), "agents": tuple(stored["agents"])})


def _names(settings: Settings, seen: Sequence[SeenTool]) -> set[str]:
    return {QUESTION, *settings.actions, *(tool.name for tool in seen)}


def _info(name: str, known: Known, agents: Collection[str], tools: Collection[str]) -> AgentInfo:
    fields = cast(dict[str, Any], json.loads(encoded(asdict(known.agent))))
    return AgentInfo(
        name=name,
        version=known.version,
        source=known.source,
        **fields,
        warnings=list(_warnings(known.agent, agents, tools)),
        changed_by=known.author,
        changed_at=optional_rfc3339(known.at),
    )


def _warnings(agent: Agent, agents: Collection[str], tools: Collection[str]) -> Iterator[str]:
    """What is not known is kept: an agent elsewhere may bring it yet."""
    for tool in sorted({*agent.tools, *agent.tool_approvals} - {*tools}):
        yield f'no tool called "{visible(tool)}" was seen here yet{nearest(tool, tools)}'
    for other in sorted({*agent.agents} - {*agents}):
        yield f'no agent called "{visible(other)}" is known here{nearest(other, agents)}'


# Who may switch a gate off


def _check_reviewer(who: Principal, before: Agent, body: AgentBody, policy: Policy) -> None:
    if body.model_dump(exclude={"tool_approvals"}) != _rest(before):
        raise Forbidden(f"{who.name} is {who.role} here: only admins change more than tool_approvals. Ask an admin.")
    for tool in _lifted(before.tool_approvals, body.tool_approvals):
        if not _may_approve(who, tool, policy):
            raise Forbidden(
                f"{who.name} may not approve every call of {visible(tool)}, so cannot switch its question off. "
                "Ask an admin.",
                tool=tool,
            )


def _rest(agent: Agent) -> dict[str, object]:
    fields: dict[str, object] = json.loads(encoded(asdict(agent)))
    del fields["tool_approvals"]
    return fields


def _lifted(before: Mapping[str, bool], after: Mapping[str, bool]) -> list[str]:
    """The tools that would be asked about less: from on to unsaid, from unsaid to off."""
    weight = {True: 2, None: 1, False: 0}
    return [tool for tool in {*before, *after} if weight[after.get(tool)] < weight[before.get(tool)]]


def _may_approve(who: Principal, tool: str, policy: Policy) -> bool:
    """By every rule that could ask about it, whatever the arguments: in doubt, somebody else has to say so."""
    stages = [
        stage
        for rule in policy.rules
        if rule.then == "ask" and not rule.shadow and (not rule.tools or any(fnmatchcase(tool, g) for g in rule.tools))
        for stage in rule.ask.stages
    ]
    return all(stage.approvers is None or stage.approvers.include(who.name, who.teams) for stage in stages)


# Tools


async def _tool(site: Site, name: str, seen: Sequence[SeenTool]) -> ToolInfo:
    defined = sorted((tool for tool in seen if tool.spec_sha256), key=lambda tool: tool.at)
    spec = await site.store.spec(defined[-1].spec_sha256) if defined else None
    return ToolInfo(
        name=name,
        effect=(spec.effect or None) if spec else ("read" if seen else None),
        agents=sorted({tool.agent for tool in defined if tool.agent}),
        definitions=len({tool.spec_sha256 for tool in defined}),
        spec_sha256=defined[-1].spec_sha256 if defined else None,
        seen_at=optional_rfc3339(min((tool.at for tool in seen), default=None)),
        source="calls" if defined else "reads" if seen else "configuration",
    )
