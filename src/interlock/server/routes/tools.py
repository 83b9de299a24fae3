"""Tools of packs, MCP servers and agents, and tools that were seen in calls; and which of them ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from interlock.app.workspaces import WorkspaceServices
from interlock.chat.tool import Tool
from interlock.chat.tool_registry import AGENT_SOURCE, agent_tool, always_asks
from interlock.config.agents import AGENT_TOOL_PREFIX
from interlock.core.call import MAX_NAME, QUESTION_TOOL, ToolCall, ToolSpec, propose
from interlock.core.errors import NotFound
from interlock.core.identity import Principal
from interlock.core.policy.policy import Ask, VerdictKind
from interlock.core.ports import FirstSeenTool
from interlock.policy.explain import PossibleVerdict, VerdictSource, possible_verdicts
from interlock.presenters.text import approvers_text
from interlock.runtime.durations import DAY, format_duration, optional_rfc3339, rfc3339
from interlock.server.dependencies import VIEWERS, PrincipalDep, StateDep, documented_errors, require_roles
from interlock.server.proposals import action_team
from interlock.server.routes.agents import load_agent_catalog, may_disable_approval, require_agent
from interlock.server.state import ServerState
from interlock.storage.engine.queries import MAX_LIMIT

router = APIRouter(tags=["agents and tools"])


class VerdictReason(BaseModel):
    """One verdict that a call can get, by a `rule`, by the agent's `switch`, or by the tool's `default`.

    `rule` is the rule that matched, if any; `conditional` if it depends on the arguments. If people are asked, `needs`
    says who has to agree, `answers` what they may decide, and `expires_in` how long they have in chats.
    """

    verdict: VerdictKind
    by: VerdictSource
    rule: str
    conditional: bool
    needs: str | None
    answers: list[str]
    expires_in: str | None


class ToolInfo(BaseModel):
    """`source` is `pack`, `documents`, `mcp:<server>`, `agent`, `configuration` (an action), `pin`, or `seen` in calls.

    `effect` is that of the newest definition, null if none is known; `definitions` counts those seen in calls.
    `asks_by_default` is the tool's own; `verdict` is the result of the policy and the agent's switches, for you as the
    person who chats: `depends` if the arguments decide; `reasons` say why, in the order of the rules. `switch` is the
    value in the agent's `tool_approvals`; `always_asks` says why no switch lifts its approval, if none does.
    """

    name: str
    source: str
    pack: str | None
    effect: str | None
    description: str
    # not `schema`, which pydantic's models have already
    parameters: dict[str, Any] | None = Field(serialization_alias="schema")
    confirm: str
    asks_by_default: bool
    verdict: Literal["allow", "ask", "deny", "depends"]
    reasons: list[VerdictReason]
    offered: bool | None
    switch: bool | None
    may_switch_off: bool
    always_asks: str
    agents: list[str]
    definitions: int
    spec_sha256: str | None
    seen_at: str | None


class ToolList(BaseModel):
    items: list[ToolInfo]
    next: str | None


class ToolsQuery(BaseModel):
    """`q` is a part of the name; `cursor` is the `next` of the previous page.

    With an `agent`, everything is for that agent; `offered` true gives only the tools that it has, false only the
    others. An agent that is known from its calls has the tools that it called.
    """

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str, Field(max_length=MAX_NAME)] = ""
    agent: Annotated[str, Field(max_length=MAX_NAME)] = ""
    offered: bool | None = None
    cursor: Annotated[str, Field(max_length=MAX_NAME)] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 100


@dataclass(frozen=True, kw_only=True)
class WorkspaceTools:
    """The known tools of a workspace, by name; `agent_tools` are the names of those of the agent in question."""

    registered: Mapping[str, Tool]
    seen: Mapping[str, Sequence[FirstSeenTool]]
    agent_tools: Collection[str] | None
    tool_approvals: Mapping[str, bool]
    agent: str
    pinned: Collection[str]


class ToolCallCountsJson(BaseModel):
    """The number of calls of a tool since then: `by_status` with an approval, `reads` without one.

    `reads` are those of all agents, since their agents are not recorded. `complete` is false if the workspace had more
    than 100,000 calls: these are its newest.
    """

    tool: str
    agent: str
    since: str
    by_status: dict[str, int]
    reads: int
    complete: bool


class ToolCallsQuery(BaseModel):
    """Without an `agent`: calls of all agents."""

    model_config = ConfigDict(extra="forbid")

    agent: Annotated[str, Field(max_length=MAX_NAME)] = ""
    days: Annotated[int, Field(ge=1, le=366)] = 30


@router.get("/api/tools/{name:path}/calls", responses=documented_errors(404), **require_roles(VIEWERS))
async def count_calls(
    name: str, state: StateDep, principal: PrincipalDep, counting: Annotated[ToolCallsQuery, Query()]
) -> ToolCallCountsJson:
    """The number of calls of a tool in the last days, by outcome."""
    if name not in _tool_names(state, await _load_tools(state, principal.workspace, "")):
        raise NotFound(f"There is no tool {name!r}. See the Agents page, or: interlock tools list", tool=name)
    since = state.clock() - counting.days * DAY
    found = await state.store.metrics.tool_status_counts(principal.workspace, name, counting.agent, since)
    return ToolCallCountsJson(tool=name, agent=counting.agent, since=rfc3339(since), **found._asdict())


@router.get("/api/tools", responses=documented_errors(404), **require_roles(VIEWERS))
async def list_tools(state: StateDep, principal: PrincipalDep, query: Annotated[ToolsQuery, Query()]) -> ToolList:
    """The known tools, by name, and whether they need an approval."""
    services = await state.workspaces.services(principal.workspace)
    workspace_tools = await _load_tools(state, principal.workspace, query.agent)
    names = sorted(_tool_names(state, workspace_tools))
    matching = [name for name in names if name > query.cursor and query.q.casefold() in name.casefold()]
    if workspace_tools.agent_tools is not None and query.offered is not None:
        matching = [name for name in matching if (name in workspace_tools.agent_tools) == query.offered]
    page = matching[: query.limit]
    items = [await _tool_info(state, services, principal, workspace_tools, name) for name in page]
    return ToolList(items=items, next=page[-1] if len(matching) > len(page) else None)


def _tool_names(state: ServerState, workspace_tools: WorkspaceTools) -> set[str]:
    return {*workspace_tools.registered, *workspace_tools.seen, *workspace_tools.pinned, *state.settings.actions}


async def _load_tools(state: ServerState, workspace: str, name: str) -> WorkspaceTools:
    catalog = await load_agent_catalog(state, workspace)
    seen: dict[str, list[FirstSeenTool]] = defaultdict(list)
    for tool in await state.store.tools(workspace):
        seen[tool.name].append(tool)
    callable_ones = [other for other, known in catalog.agents.items() if known.origin != "calls"]
    registered = {AGENT_TOOL_PREFIX + other: agent_tool(other) for other in callable_ones}
    registered |= state.assistant.tool_registry.all(workspace)
    pinned = (await state.workspaces.services(workspace)).pins.by_name
    if not name:
        return WorkspaceTools(
            registered=registered, seen=seen, agent_tools=None, tool_approvals={}, agent="", pinned=pinned
        )
    agent = require_agent(catalog, name).agents[name].agent
    is_remote = catalog.agents[name].origin == "calls"
    called = [tool for tool, uses in seen.items() if is_remote and any(use.agent == name for use in uses)]
    return WorkspaceTools(
        registered=registered,
        seen=seen,
        agent_tools={*state.assistant.tool_registry.tools_for_agent(agent, workspace), *called},
        tool_approvals=agent.tool_approvals,
        agent=name,
        pinned=pinned,
    )


async def _tool_info(
    state: ServerState, services: WorkspaceServices, principal: Principal, workspace_tools: WorkspaceTools, name: str
) -> ToolInfo:
    tool = workspace_tools.registered.get(name)
    defined = sorted(
        (each for each in workspace_tools.seen.get(name, ()) if each.spec_sha256), key=lambda each: each.at
    )
    last = await state.store.spec(defined[-1].spec_sha256) if defined else None
    pin = None if tool else services.pins.by_name.get(name)
    seen = last or ToolSpec(name, "read" if name in workspace_tools.seen else "")
    spec = tool.spec if tool else pin.spec if pin else seen
    prospects = possible_verdicts(
        services.loaded_policy.policy, _example_call(principal, name, workspace_tools.agent), spec
    )
    certain = {prospect.verdict.kind for prospect in prospects}
    return ToolInfo(
        name=name,
        source=_source(tool) if tool else "pin" if pin else "seen" if name in workspace_tools.seen else "configuration",
        pack=tool.source if tool and _source(tool) in ("pack", "documents") else None,
        effect=spec.effect or None,
        description=tool.description if tool else "",
        parameters=dict(tool.prompt_tool.schema if tool else spec.schema or {}) or None,
        confirm=spec.confirm,
        asks_by_default=spec.effect != "read" or name == QUESTION_TOOL,
        verdict="ask" if name == QUESTION_TOOL else next(iter(certain)) if len(certain) == 1 else "depends",
        reasons=[_verdict_reason(prospect) for prospect in prospects],
        offered=name in workspace_tools.agent_tools if workspace_tools.agent_tools is not None else None,
        switch=workspace_tools.tool_approvals.get(name),
        may_switch_off=not always_asks(spec)
        and may_disable_approval(principal, name, services.loaded_policy.policy, action_team(name, state, services)),
        always_asks=always_asks(spec),
        agents=sorted({each.agent for each in defined if each.agent}),
        definitions=len({each.spec_sha256 for each in defined}),
        spec_sha256=spec.sha256 if tool or pin else defined[-1].spec_sha256 if defined else None,
        seen_at=optional_rfc3339(min((each.at for each in workspace_tools.seen.get(name, ())), default=None)),
    )


def _verdict_reason(prospect: PossibleVerdict) -> VerdictReason:
    verdict = prospect.verdict
    terms = verdict if isinstance(verdict, Ask) else None
    return VerdictReason(
        verdict=verdict.kind,
        by=prospect.source,
        rule=prospect.rule,
        conditional=prospect.conditional,
        needs=approvers_text(terms) if terms else None,
        answers=list(terms.decisions) if terms else [],
        expires_in=format_duration(terms.expires_in) if terms else None,
    )


def _source(tool: Tool) -> str:
    return tool.source if tool.source.startswith("mcp:") or tool.source in (AGENT_SOURCE, "documents") else "pack"


def _example_call(principal: Principal, name: str, agent: str) -> ToolCall:
    """A call as it would come from the chat; the policy's verdict may still depend on its arguments."""
    place = {"workspace": principal.workspace, "agent": agent, "setting": "chat"}
    return propose(
        name, {}, "example", "example", **place, requester=principal.name, teams=tuple(sorted(principal.teams))
    )
