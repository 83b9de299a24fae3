"""What an agent may be: one meaning for the configuration file, for the interface and for the chat."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any, NamedTuple, cast

from interlock.config.models import Agent, Free
from interlock.config.yaml import Fields, Item, Reader, nearest, plain, typed
from interlock.core import names
from interlock.core.chat.next_step import DEFAULT_LIMITS, Limits
from interlock.core.errors import InvalidRequest, Problem
from interlock.runtime.durations import parse_duration, show_duration

KEYS = tuple(field.name for field in dataclass_fields(Agent))
AGENT = "agent_"  # how the name of a tool begins that is another agent
WHOLE: Mapping[str, int] = {"turns": 1_000, "tokens": 100_000_000}  # the most of each limit that is a number
TIME = "time"
SHORTEST, LONGEST = 1_000, 86_400_000  # milliseconds of work for one message
MODEL = re.compile(r"[a-z][a-z0-9_-]*:\S+")
CALLED = re.compile(r"[A-Za-z0-9_-]{1,58}")  # with its beginning it is the name of a tool, as providers take them

MOST_HINTS, MOST_COMPARED = 10, 2_000

Agents = Mapping[str, Agent]


class KnownTool(NamedTuple):
    """Whether it asks by default, where it comes from, and if no switch can lift its question, why."""

    asks: bool
    source: str = ""
    always: str = ""


def read_agents(read: Reader, top: Fields) -> dict[str, Agent]:
    """Those of the configuration file; what is wrong is noted with its line."""
    items = read.mapping(top, "agents")
    agents = {name: _read_agent(read, item) for name, item in items.items()}
    for name, agent in agents.items():
        for problem in problems_of(name, agent, agents):
            read.complain(_line(items[name], problem.pointer), problem.message)
    return agents


def overlaid(body: str, base: Agent) -> Agent:
    """What is stored of an agent, over what the file or the program says of it."""
    stored: dict[str, Any] = json.loads(body)
    told: dict[str, Any] = {name: value for name, value in stored.items() if name in KEYS}
    return replace(base, **told | {name: tuple(told[name]) for name in ("tools", "agents") if name in told})


def limits_of(agent: Agent) -> Limits:
    """For each message. What is missing or odd keeps the default: it was refused where it was written."""
    given = {name: value for name, value in agent.limits.items() if not [*_limit_problems({name: value})]}
    took = given.get(TIME)
    return Limits(
        cast(int, given.get("turns", DEFAULT_LIMITS.turns)),
        cast(int, given.get("tokens", DEFAULT_LIMITS.tokens)),
        parse_duration(took) if isinstance(took, str) else DEFAULT_LIMITS.took,
    )


def problems_of(name: str, agent: Agent, others: Agents) -> Iterator[Problem]:
    """What keeps an agent from being used as it is written; `others` are all agents that there are."""
    if agent.model and not MODEL.fullmatch(agent.model):
        yield Problem("/model", f'model is "{agent.model}"; write provider:name, such as openai:gpt-5')
    yield from _limit_problems(agent.limits)
    for number, other in enumerate(agent.agents):
        if message := _family_problem(name, other, others):
            yield Problem(f"/agents/{number}", message)


def warnings_of(name: str, agent: Agent, known: Mapping[str, KnownTool], others: Agents) -> Iterator[str]:
    """What is ignored, and what has no effect; `known` are all tools by name."""
    hints = _Hints(known)
    for wanted in sorted(set(agent.tools)):
        if wanted != "*" and not any(fits(wanted, tool, each.source) for tool, each in known.items()):
            yield f'there is no tool "{wanted}" here, so it is ignored{hints.near(wanted)}'
    for tool in sorted(agent.tool_approvals):
        called = tool.startswith(AGENT) and tool.removeprefix(AGENT) in agent.agents
        if tool not in known and not called:
            yield f'tool_approvals names "{tool}", which is no tool here, so it is ignored{hints.near(tool)}'
    for tool in sorted(tool for tool, asks in agent.tool_approvals.items() if not asks):
        if why := "; ".join(_overruled(name, tool, known.get(tool, KnownTool(asks=True)), others)):
            yield f'tool_approvals: {{"{tool}": false}} has no effect {why}'


def _overruled(name: str, tool: str, known: KnownTool, others: Agents) -> Iterator[str]:
    if known.always:
        yield f"since {known.always}"
        return
    for caller in callers_of(name, others):
        if others[caller].tool_approvals.get(tool, known.asks):
            yield f"when {name} is called by {caller}, for which it asks"


class _Hints:
    """What was probably meant, for the first few names: to look at thousands for each would take seconds."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known if len(known) <= MOST_COMPARED else ()
        self._left = MOST_HINTS

    def near(self, name: str) -> str:
        self._left -= 1
        return nearest(name, self._known) if self._left >= 0 else ""


def callers_of(name: str, others: Agents) -> list[str]:
    """Every agent that may call this one, over others too."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        called = waiting.pop()
        above = {other for other, agent in others.items() if called in agent.agents} - found
        found |= above
        waiting += above
    return sorted(found - {name})


def fits(wanted: str, tool: str, source: str = "") -> bool:
    """An agent's tools are names, patterns, packs (`cms`), or all of one MCP server (`mcp:files`)."""
    return wanted in (tool, source) or tool.startswith(f"{wanted}_") or names.fits(tool, wanted)


# Reading


def _read_agent(read: Reader, item: Item) -> Agent:
    fields = read.fields(item, KEYS, "an agent")
    switches = read.mapping(fields, "tool_approvals")
    return Agent(
        read.text(fields, "model"),
        read.text(fields, "instructions"),
        read.texts(fields, "tools"),
        {tool: read.truth(switches, tool, default=True) for tool in switches},
        read.texts(fields, "agents"),
        {key: _limit(inner) for key, inner in read.mapping(fields, "limits").items()},
    )


def _limit(item: Item) -> object:
    """The environment only knows texts: `${TURNS}` may stand where a number is wanted."""
    return typed(item.value) if item.filled and isinstance(item.value, str) else plain(item)


def _line(item: Item, pointer: str) -> int:
    """Where that part of an agent stands, as far as it stands there."""
    for step in pointer.split("/")[1:]:
        match item.value:
            case dict() as members if step in members:
                item = members[step]
            case list() as items if step.isdigit() and int(step) < len(items):
                item = items[int(step)]
            case _:
                break
    return item.line


# Checking


def _limit_problems(limits: Free) -> Iterator[Problem]:
    for key, value in limits.items():
        if message := _limit_problem(key, value):
            yield Problem(f"/limits/{key}", message)


def _limit_problem(key: str, value: object) -> str:
    if key == TIME:
        return _time_problem(value)
    if key not in WHOLE:
        return f'unknown key "{key}" in limits{nearest(key, (*WHOLE, TIME))}'
    if type(value) is not int or not 1 <= value <= WHOLE[key]:
        return f"limits.{key} must be a whole number from 1 to {WHOLE[key]:,}"
    return ""


def _time_problem(value: object) -> str:
    try:
        fine = isinstance(value, str) and SHORTEST <= parse_duration(value) <= LONGEST
    except InvalidRequest:
        fine = False
    between = f"from {show_duration(SHORTEST)} to {show_duration(LONGEST)}"
    return "" if fine else f"limits.time must be a duration such as 90s or 10m, {between}"


def _family_problem(name: str, other: str, others: Agents) -> str:
    known: Collection[str] = others.keys() - {name}
    if other == name:
        return f"{name} lists itself in agents; remove it there"
    if other not in known:
        return f'unknown agent "{other}"{nearest(other, known)}'
    if not CALLED.fullmatch(other):
        return f'"{other}" cannot be called: the name of such an agent has letters, digits, _ and -, at most 58'
    if other in callers_of(name, others):
        return f"{name} and {other} would call each other in a circle; take one out of the other's agents"
    return ""
