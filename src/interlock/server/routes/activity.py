"""What agents did in the last days: when they were last seen, their calls by outcome, and the tools they use.

Every count is bounded, by an index and a limit, so that a page view costs the same however many calls there were.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from interlock.core.identity import AGENT, ApiKey, Principal
from interlock.runtime.durations import DAY, optional_rfc3339, rfc3339
from interlock.server.dependencies import VIEWERS, PrincipalDep, StateDep, documented_errors, require_roles
from interlock.server.routes.agents import load_agent_catalog, require_agent
from interlock.server.state import ServerState
from interlock.storage.tables.history import (
    MAX_AGENT_CALLS,
    MAX_AGENTS,
    MAX_DENIED,
    MAX_DETAILED_CALLS,
    MAX_NAMED_AGENTS,
    AgentOutcomeCount,
)

router = APIRouter(tags=["agents and tools"])
COUNTED_DAYS = 30
ASKED_BY_PEOPLE = ("approved", "edited", "rejected", "responded", "expired", "cancelled")
Days = Annotated[int, Query(ge=1, le=90)]


class AgentActivity(BaseModel):
    """`calls` are those with an approval, allowed ones included; reads that need none are not counted by agent.

    `denied` are calls that a rule or a freeze refused. `last_seen_at` is the time of the newest call, or `key_used_at`:
    when a key that is bound to this agent alone was last used. `last_approval_id` is that of the newest call, if any;
    `last_bound_approval_id` is that of the newest of the last 100 calls whose key is bound to this agent: others only
    claim its name. `complete` is false if there were more calls than are counted for each agent (1,000) or more denied
    calls than are counted in all (10,000).
    """

    name: str
    last_seen_at: str | None
    key_used_at: str | None
    last_approval_id: str | None
    last_bound_approval_id: str | None
    calls: int
    pending: int
    denied: int
    complete: bool


class AgentActivityList(BaseModel):
    """Agents that made a call, and those that an active key is bound to.

    First, by name, those that are configured or that a key is bound to; then at most 1,000 that are known from calls
    alone, the last seen first. `complete` is false if there are more of these; `left_out` is their number, as far as
    they are counted (10,000).
    """

    since: str
    items: list[AgentActivity]
    next: str | None = None
    left_out: int
    complete: bool


class DailyCalls(BaseModel):
    """A day begins at midnight UTC. `asked` of the `calls` were put to people, whether they decided or not."""

    at: str
    calls: int
    asked: int


class ToolActivity(BaseModel):
    """A tool of an agent. `first_used_at` is the first time it was seen; `calls` since then without approval: reads."""

    tool: str
    first_used_at: str | None
    last_used_at: str | None
    calls: int
    allowed: int
    approved: int
    edited: int
    rejected: int
    responded: int
    expired: int
    cancelled: int
    pending: int


class AgentActivityDetails(BaseModel):
    """Recorded calls of one agent since a time, by outcome, day and tool; tools that it used first come last.

    `asked` of the `calls` were put to people, whether they decided or not; `allowed` ran by a rule or a grant; `denied`
    have no approval and are not among the calls. `last_seen_at` is the time of the newest of all calls, or when a key
    that is bound to this agent alone was last used. `complete` is false if there were more than the 10,000 newest,
    which are counted, or more than 10,000 denied calls in all.
    """

    name: str
    since: str
    first_seen_at: str | None
    last_seen_at: str | None
    calls: int
    asked: int
    allowed: int
    approved: int
    edited: int
    rejected: int
    responded: int
    expired: int
    cancelled: int
    pending: int
    denied: int
    complete: bool
    days: list[DailyCalls]
    tools: list[ToolActivity]


@router.get("/api/activity", responses=documented_errors(), **require_roles(VIEWERS))
async def list_activity(state: StateDep, principal: PrincipalDep, days: Days = COUNTED_DAYS) -> AgentActivityList:
    """What each agent did in the last days."""
    since = state.clock() - days * DAY
    statistics, workspace = state.store.statistics, principal.workspace
    denied = {each.agent: each for each in await statistics.denied_by_agent(workspace, since)}
    pending = await statistics.pending_by_agent(workspace)
    keys = await _keys_by_agent(state, principal)
    seen = Counter(await statistics.newest_agents(workspace))
    for each in denied.values():
        seen[each.agent] = max(seen[each.agent], each.last_at)
    own_names = sorted({*keys, *await _configured_agents(state, workspace)})
    others = _last_seen_first(seen.keys() - {"", *own_names}, seen)
    listed = others[:MAX_AGENTS]
    calls = {each.agent: each for each in await statistics.agent_calls(workspace, since, [*own_names, *listed])}
    all_denied = sum(each.n for each in denied.values()) <= MAX_DENIED
    items = []
    active = {*calls, *denied, *keys}
    for name in (*(name for name in own_names if name in active), *listed):
        own, refused, used = calls.get(name), denied.get(name), _used_at(keys.get(name, ()))
        items.append(
            AgentActivity(
                name=name,
                last_seen_at=_newest(own and own.last_at, refused and refused.last_at, *used),
                key_used_at=_newest(*used),
                last_approval_id=own.last_id if own else None,
                last_bound_approval_id=own.last_bound_id if own else None,
                calls=min(own.n, MAX_AGENT_CALLS) if own else 0,
                pending=pending.get(name, 0),
                denied=refused.n if refused else 0,
                complete=all_denied and (own is None or own.n <= MAX_AGENT_CALLS),
            )
        )
    left_out = len(others) - len(listed)
    complete = not left_out and len(seen) <= MAX_NAMED_AGENTS
    return AgentActivityList(since=rfc3339(since), items=items, left_out=left_out, complete=complete)


@router.get("/api/agents/{name}/activity", responses=documented_errors(404), **require_roles(VIEWERS))
async def show_activity(
    name: str, state: StateDep, principal: PrincipalDep, days: Days = COUNTED_DAYS
) -> AgentActivityDetails:
    """What one agent did in the last days, by day and tool; the tool that it used first most recently comes first."""
    workspace = principal.workspace
    require_agent(await load_agent_catalog(state, workspace), name)
    now = state.clock()
    since = now - days * DAY
    statistics = state.store.statistics
    counts = await statistics.outcomes_of_agent(workspace, name, since)
    all_denied = await statistics.denied_by_agent(workspace, since)
    denied = [each for each in all_denied if each.agent == name]
    first_call, newest_call = await statistics.call_times_of_agent(workspace, name)
    first_uses = await _first_uses(state, workspace, name)
    keys = (await _keys_by_agent(state, principal)).get(name, ())
    total = _outcomes(counts)
    calls = sum(each.n for each in counts)
    pending = (await statistics.pending_by_agent(workspace)).get(name, 0)
    return AgentActivityDetails(
        name=name,
        since=rfc3339(since),
        first_seen_at=_oldest(first_call, *first_uses.values()),
        last_seen_at=_newest(newest_call, *(each.last_at for each in denied), *_used_at(keys)),
        calls=calls,
        asked=calls - total["allowed"],
        **{**total, "pending": pending},
        denied=sum(each.n for each in denied),
        complete=calls <= MAX_DETAILED_CALLS and sum(each.n for each in all_denied) <= MAX_DENIED,
        days=_days(counts, range(since // DAY, now // DAY + 1)),
        tools=_tools(counts, first_uses),
    )


async def _configured_agents(state: ServerState, workspace: str) -> Sequence[str]:
    """The agents that are not known from calls alone, whose names any key may claim."""
    catalog = await load_agent_catalog(state, workspace)
    return [name for name, known in catalog.agents.items() if known.origin != "calls"]


def _last_seen_first(names: Iterable[str], seen: Mapping[str, int]) -> Sequence[str]:
    return sorted(names, key=lambda name: (-seen[name], name))


async def _first_uses(state: ServerState, workspace: str, agent: str) -> Mapping[str, int]:
    """When each tool of the agent was first seen."""
    found: dict[str, int] = {}
    for tool in await state.store.tools(workspace):
        if tool.agent == agent:
            found[tool.name] = min(tool.at, found.get(tool.name, tool.at))
    return found


async def _keys_by_agent(state: ServerState, principal: Principal) -> Mapping[str, Sequence[ApiKey]]:
    """The active keys that are bound to one agent alone, so that their use is that agent's."""
    found: dict[str, list[ApiKey]] = defaultdict(list)
    now = state.clock()
    for key in await state.accounts.keys(principal.workspace):
        expired = key.expires_at is not None and key.expires_at <= now
        if key.role == AGENT and len(key.agents) == 1 and key.revoked_at is None and not expired:
            found[key.agents[0]].append(key)
    return found


def _used_at(keys: Iterable[ApiKey]) -> Sequence[int | None]:
    return [key.used_at for key in keys]


def _newest(*times: int | None) -> str | None:
    return optional_rfc3339(max((at for at in times if at is not None), default=None))


def _oldest(*times: int | None) -> str | None:
    return optional_rfc3339(min((at for at in times if at is not None), default=None))


def _outcomes(counts: Iterable[AgentOutcomeCount]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in counts:
        found[each.outcome] += each.n
    return {name: found[name] for name in (*ASKED_BY_PEOPLE, "allowed", "pending")}


def _days(counts: Iterable[AgentOutcomeCount], days: range) -> list[DailyCalls]:
    calls: Counter[int] = Counter()
    allowed: Counter[int] = Counter()
    for each in counts:
        calls[each.day] += each.n
        allowed[each.day] += each.n if each.outcome == "allowed" else 0
    return [DailyCalls(at=rfc3339(day * DAY), calls=calls[day], asked=calls[day] - allowed[day]) for day in days]


def _tools(counts: Iterable[AgentOutcomeCount], first_uses: Mapping[str, int]) -> list[ToolActivity]:
    by_tool: dict[str, list[AgentOutcomeCount]] = defaultdict(list)
    for each in counts:
        by_tool[each.tool].append(each)
    names = sorted({*by_tool, *first_uses}, key=lambda name: (-first_uses.get(name, 0), name))
    return [
        ToolActivity(
            tool=name,
            first_used_at=optional_rfc3339(first_uses.get(name)),
            last_used_at=_newest(*(each.last_at for each in by_tool[name])),
            calls=sum(each.n for each in by_tool[name]),
            **_outcomes(by_tool[name]),
        )
        for name in names
    ]
