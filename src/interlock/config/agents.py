"""Agents' settings: parsing and checks shared by the configuration file, the HTTP API and the chat.

Tool packs and MCP servers too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from interlock.config.models import (
    OWN_PACK_KEY,
    PACK_SETTINGS,
    RESERVED_TOOL_PREFIXES,
    AgentSettings,
    JsonMapping,
    McpServerSettings,
    PreviewCall,
    ToolSettings,
)
from interlock.config.yaml import Fields, YamlNode, YamlReader, parse_scalar, to_plain
from interlock.core import confusables
from interlock.core.call import EFFECTS
from interlock.core.chat.transcript import DEFAULT_LIMITS, TurnLimits
from interlock.core.errors import InvalidRequest, Misconfigured, Problem, did_you_mean
from interlock.core.sentence import template_names, template_problem
from interlock.runtime.durations import format_duration, parse_duration
from interlock.runtime.functions import secret_problem
from interlock.runtime.import_path import TOOL_ENTRY_POINTS, check_import_path, find_entry_point

AGENT_KEYS = tuple(field.name for field in dataclass_fields(AgentSettings))
AGENT_TOOL_PREFIX = "agent_"  # prefix of the name of a tool that is another agent
MAX_LIMITS: Mapping[str, int] = {"turns": 1_000, "tokens": 100_000_000}  # maximum of each numeric limit
TIME_LIMIT = "time"
MIN_TIME, MAX_TIME = 1_000, 86_400_000  # milliseconds of work for one message
MODEL_NAME = re.compile(r"[a-z][a-z0-9_-]*:\S+")
CALLABLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,58}")  # with the prefix it is a valid tool name for providers

TOOL_KEYS = tuple(field.name for field in dataclass_fields(ToolSettings))
NO_SETTINGS = ToolSettings()
PACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")

MAX_HINTS, MAX_COMPARED = 10, 2_000

Agents = Mapping[str, AgentSettings]


class AvailableTool(NamedTuple):
    """Whether a tool asks by default, its source, and why no switch can turn its approval off, if so."""

    needs_approval: bool
    source: str = ""
    always_reason: str = ""


def read_agents(reader: YamlReader, top: Fields) -> dict[str, AgentSettings]:
    """Agents of the configuration file; problems are noted with their lines."""
    items = reader.mapping(top, "agents")
    agents = {name: _read_agent(reader, item) for name, item in items.items()}
    for name, agent in agents.items():
        for problem in find_agent_problems(name, agent, agents):
            reader.add_problem(_find_line(items[name], problem.pointer), problem.message)
    return agents


def overlay_stored_agent(body: str, base: AgentSettings) -> AgentSettings:
    """Stored settings of an agent, over those of the file or the program."""
    stored: dict[str, Any] = json.loads(body)
    overrides: dict[str, Any] = {name: value for name, value in stored.items() if name in AGENT_KEYS}
    return replace(
        base, **overrides | {name: tuple(overrides[name]) for name in ("tools", "agents") if name in overrides}
    )


def parse_limits(agent: AgentSettings) -> TurnLimits:
    """Limits for each message; missing or invalid ones keep the default, as invalid ones were reported before."""
    given = {name: value for name, value in agent.limits.items() if not [*_limit_problems({name: value})]}
    time_limit = given.get(TIME_LIMIT)
    return TurnLimits(
        cast(int, given.get("turns", DEFAULT_LIMITS.turns)),
        cast(int, given.get("tokens", DEFAULT_LIMITS.tokens)),
        parse_duration(time_limit) if isinstance(time_limit, str) else DEFAULT_LIMITS.work_ms,
    )


def find_agent_problems(name: str, agent: AgentSettings, others: Agents) -> Iterator[Problem]:
    """Problems that make an agent's settings unusable; `others` are all agents."""
    if agent.model and not MODEL_NAME.fullmatch(agent.model):
        yield Problem("/model", f'model is "{agent.model}"; write provider:name, such as openai:gpt-5')
    yield from _limit_problems(agent.limits)
    for number, other in enumerate(agent.agents):
        if message := _subagent_problem(name, other, others):
            yield Problem(f"/agents/{number}", message)


def find_agent_warnings(
    name: str, agent: AgentSettings, known: Mapping[str, AvailableTool], others: Agents
) -> Iterator[str]:
    """Warnings about ignored settings and settings without effect; `known` are all tools by name."""
    hints = _Hints(known)
    for other in sorted(set(agent.agents) - others.keys()):
        yield f'agents names "{other}", which does not exist, so it cannot be called'
    for pattern in sorted(set(agent.tools)):
        if pattern != "*" and not any(matches_tool(pattern, tool, each.source) for tool, each in known.items()):
            yield f'there is no tool "{pattern}" here, so it is ignored{hints.suggest(pattern)}'
    for tool in sorted(agent.tool_approvals):
        is_subagent = tool.startswith(AGENT_TOOL_PREFIX) and tool.removeprefix(AGENT_TOOL_PREFIX) in agent.agents
        if tool not in known and not is_subagent:
            yield f'tool_approvals names "{tool}", which is no tool here, so it is ignored{hints.suggest(tool)}'
    for tool in sorted(tool for tool, asks in agent.tool_approvals.items() if not asks):
        if reason := "; ".join(
            _override_reasons(name, tool, known.get(tool, AvailableTool(needs_approval=True)), others)
        ):
            yield f'tool_approvals: {{"{tool}": false}} has no effect {reason}'


def _override_reasons(name: str, tool: str, known: AvailableTool, others: Agents) -> Iterator[str]:
    if known.always_reason:
        yield f"since {known.always_reason}"
        return
    for caller in find_callers(name, others):
        if others[caller].tool_approvals.get(tool, known.needs_approval):
            yield f"when {name} is called by {caller}, for which it asks"


class _Hints:
    """Suggestions for the first few names only: comparing each with thousands would take seconds."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known if len(known) <= MAX_COMPARED else ()
        self._left = MAX_HINTS

    def suggest(self, name: str) -> str:
        self._left -= 1
        return did_you_mean(name, self._known) if self._left >= 0 else ""


def find_callers(name: str, others: Agents) -> list[str]:
    """Every agent that may call this one, also indirectly."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        called = waiting.pop()
        above = {other for other, agent in others.items() if called in agent.agents} - found
        found |= above
        waiting += above
    return sorted(found - {name})


def matches_tool(pattern: str, tool: str, source: str = "") -> bool:
    """An agent's tools are names, patterns, packs (`cms`), or all of one MCP server (`mcp:files`)."""
    return pattern in (tool, source) or tool.startswith(f"{pattern}_") or confusables.matches_pattern(tool, pattern)


# Reading


def _read_agent(reader: YamlReader, item: YamlNode) -> AgentSettings:
    fields = reader.fields(item, AGENT_KEYS, "an agent")
    switches = reader.mapping(fields, "tool_approvals")
    return AgentSettings(
        reader.text(fields, "model"),
        instructions=reader.text(fields, "instructions"),
        tools=reader.texts(fields, "tools"),
        tool_approvals={tool: reader.boolean(switches, tool, default=True) for tool in switches},
        agents=reader.texts(fields, "agents"),
        limits={key: _read_limit(inner) for key, inner in reader.mapping(fields, "limits").items()},
    )


def _read_limit(item: YamlNode) -> object:
    """The environment only has texts: `${TURNS}` may be used where a number is expected."""
    return parse_scalar(item.value) if item.is_interpolated and isinstance(item.value, str) else to_plain(item)


def _find_line(item: YamlNode, pointer: str) -> int:
    """The line of that part of an agent, or of its nearest parent."""
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


def _limit_problems(limits: JsonMapping) -> Iterator[Problem]:
    for key, value in limits.items():
        if message := _limit_problem(key, value):
            yield Problem(f"/limits/{key}", message)


def _limit_problem(key: str, value: object) -> str:
    if key == TIME_LIMIT:
        return _time_problem(value)
    if key not in MAX_LIMITS:
        return f'unknown key "{key}" in limits{did_you_mean(key, (*MAX_LIMITS, TIME_LIMIT))}'
    if type(value) is not int or not 1 <= value <= MAX_LIMITS[key]:
        return f"limits.{key} must be a whole number from 1 to {MAX_LIMITS[key]:,}"
    return ""


def _time_problem(value: object) -> str:
    try:
        fine = isinstance(value, str) and MIN_TIME <= parse_duration(value) <= MAX_TIME
    except InvalidRequest:
        fine = False
    between = f"from {format_duration(MIN_TIME)} to {format_duration(MAX_TIME)}"
    return "" if fine else f"limits.time must be a duration such as 90s or 10m, {between}"


def _subagent_problem(name: str, other: str, others: Agents) -> str:
    known: Collection[str] = others.keys() - {name}
    if other == name:
        return f"{name} lists itself in agents; remove it there"
    if other not in known:
        return f'unknown agent "{other}"{did_you_mean(other, known)}'
    if not CALLABLE_NAME.fullmatch(other):
        return f'"{other}" cannot be called: the name of such an agent has letters, digits, _ and -, at most 58'
    if other in find_callers(name, others):
        return f"{name} and {other} would call each other in a circle; take one out of the other's agents"
    return ""


def read_mcp_servers(reader: YamlReader, top: Fields, folder: Path) -> dict[str, McpServerSettings]:
    keys = [field.name for field in dataclass_fields(McpServerSettings)]
    servers = {}
    for name, item in reader.mapping(top, "mcp_servers").items():
        fields = reader.fields(item, keys, "an MCP server")
        _check(reader, name, item, fields)
        cwd = reader.text(fields, "cwd")
        servers[name] = McpServerSettings(
            reader.text(fields, "command"),
            tuple(reader.node_text(argument, "args") for argument in reader.entries(fields, "args")),
            env=_read_texts(reader, fields, "env"),
            cwd=str((folder / cwd).absolute()) if cwd else "",
            url=reader.text(fields, "url"),
            headers=_read_texts(reader, fields, "headers"),
            prefix=reader.text(fields, "prefix"),
            reads=reader.texts(fields, "reads"),
            idempotent=reader.texts(fields, "idempotent"),
            workspaces=reader.texts(fields, "workspaces") or McpServerSettings().workspaces,
            tools=_read_server_tools(reader, fields),
        )
    return servers


def _read_server_tools(reader: YamlReader, fields: Fields) -> dict[str, ToolSettings]:
    """Settings of single tools; whether they fit is known when the server has listed its tools."""
    items = reader.mapping(fields, "tools")
    own = {name: reader.fields(item, TOOL_KEYS, f"the tool {name}") for name, item in items.items()}
    tools = {name: read_tool_settings(reader, given) for name, given in own.items()}
    reads = reader.texts(fields, "reads")
    for name, each in tools.items():
        if isinstance(each.preview, PreviewCall) and (problem := _look_up_problem(each, reads, tools)):
            reader.add_problem(own[name]["preview"].line, f"preview: {problem}")
    return tools


def _look_up_problem(own: ToolSettings, reads: Collection[str], tools: Mapping[str, ToolSettings]) -> str:
    """Why a preview must not call its tool: only a read is called unasked, and only people see its result."""
    assert isinstance(own.preview, PreviewCall)  # noqa: S101  checked by the caller
    name = own.preview.tool
    effect = tools[name].effect if name in tools else ""
    is_read = effect == "read" or (not effect and any(confusables.matches_pattern(name, each) for each in reads))
    if not is_read:
        return f'"{name}" has to be a read of this server: add it to reads'
    return "with confirm: chat it is a text, since the model is told what it says" if own.confirm else ""


def read_tool_settings(
    reader: YamlReader, fields: Fields, names: Collection[str] | None = None, base: ToolSettings = NO_SETTINGS
) -> ToolSettings:
    """Settings of an action or a server's tool; `names` are its arguments, None if they are not known here."""
    found = ToolSettings(
        describe=reader.text(fields, "describe", base.describe),
        effect=reader.choice(fields, "effect", EFFECTS, base.effect),
        confirm=reader.choice(fields, "confirm", ("chat",), base.confirm),
        secret=reader.texts(fields, "secret") or base.secret,
        preview=_read_preview(reader, fields) or base.preview,
    )
    for key, problem in find_tool_setting_problems(found, names):
        line = fields[key].line if key in fields else next((item.line for item in fields.values()), 0)
        reader.add_problem(line, f"{key}: {problem}")
    return found


def find_tool_setting_problems(own: ToolSettings, names: Collection[str] | None) -> Iterator[tuple[str, str]]:
    """Why settings of a tool cannot be used, by their keys; `names` are its arguments, None if any may come."""
    previews = _templates(own.preview)
    templates = [("describe", own.describe), *(("preview", each) for each in previews)]
    problems = [(key, problem) for key, template in templates if (problem := template_problem(template, names))]
    yield from problems
    hidden = {pointer.removeprefix("/").partition("/")[0] for pointer in own.secret}
    shown = set() if problems else {name for each in previews for name in template_names(each)}
    if hidden & shown or (shown and "*" in hidden):
        yield "preview", f"it would show a secret argument: {', '.join(sorted(hidden & shown or shown))}"
    if names is not None and (problem := secret_problem(own.secret, names)):
        yield "secret", problem


def _read_preview(reader: YamlReader, fields: Fields) -> str | PreviewCall:
    if "preview" not in fields or not isinstance(fields["preview"].value, dict):
        return reader.text(fields, "preview")
    given = reader.fields(fields["preview"], ("tool", "args"), "a preview")
    if "tool" not in given:
        reader.add_problem(fields["preview"].line, "a preview that looks up needs tool: a read of this server")
    return PreviewCall(reader.text(given, "tool"), plain_mapping(reader.mapping(given, "args")))


def _templates(preview: str | PreviewCall) -> list[str]:
    if isinstance(preview, str):
        return [preview]
    return [value for value in preview.args.values() if isinstance(value, str)]


def read_packs(reader: YamlReader, top: Fields) -> dict[str, JsonMapping]:
    """Settings of each tool pack, whose types the pack itself checks; one from outside the package has a `use`."""
    if "tools" not in top:
        return {}
    own = {name: uses for name, item in reader.mapping(top, "tools").items() if (uses := _own_pack(reader, name, item))}
    entries = reader.fields(top["tools"], {*PACK_SETTINGS, *own}, "tools")
    return {
        name: own[name] if name in own else plain_mapping(reader.section(entries, name, PACK_SETTINGS[name]))
        for name in entries
    }


def _own_pack(reader: YamlReader, name: str, item: YamlNode) -> JsonMapping | None:
    """The settings of a pack from outside: `shop: "mycompany.shop:tools"`, a mapping with `use`, or an entry point."""
    if name in PACK_SETTINGS:
        return None
    fields = {OWN_PACK_KEY: item} if isinstance(item.value, str) and item.value else item.value
    if not isinstance(fields, dict):
        return None
    path = ""
    try:
        path = (
            reader.text(fields, OWN_PACK_KEY) if OWN_PACK_KEY in fields else find_entry_point(TOOL_ENTRY_POINTS, name)
        )
        if not path and OWN_PACK_KEY not in fields:
            return _unknown_pack(reader, name, item)
        check_import_path(path)
    except Misconfigured as error:
        reader.add_problem(item.line, f"{name}: {error.message}")
    if name in RESERVED_TOOL_PREFIXES or not PACK_NAME.fullmatch(name):
        reader.add_problem(item.line, f'"{name}" cannot be the name of a pack: choose other letters, digits, _ or -')
    return {**plain_mapping(fields), OWN_PACK_KEY: path}


def _unknown_pack(reader: YamlReader, name: str, item: YamlNode) -> JsonMapping | None:
    """None for what looks like a built-in pack, which is reported with the others."""
    if get_close_matches(name, PACK_SETTINGS, 1):
        return None
    message = f'unknown pack "{name}" in tools: give it use: module:attribute, or install a package that has it'
    reader.add_problem(item.line, message)
    return {OWN_PACK_KEY: ""}


def plain_mapping(fields: Fields) -> JsonMapping:
    return {key: to_plain(item) for key, item in fields.items()}


def _check(reader: YamlReader, name: str, item: YamlNode, fields: Fields) -> None:
    """Check an MCP server: its prefix names its tools, and must not be that of a built-in tool pack."""
    prefix = reader.text(fields, "prefix", name)
    if ("command" in fields) == ("url" in fields):
        reader.add_problem(item.line, f'the MCP server "{name}" needs a command or a url, and not both')
    if "url" in fields and not _is_http_url(reader.text(fields, "url")):
        reader.add_problem(fields["url"].line, "url must begin with https:// or http://")
    foreign = {"command": ("headers",), "url": ("args", "env", "cwd")}
    for key in (key for kind, others in foreign.items() if kind in fields for key in others if key in fields):
        reader.add_problem(fields[key].line, f"{key} does not go with a {'command' if key == 'headers' else 'url'}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", prefix):
        reader.add_problem(
            item.line, f'"{prefix}" cannot begin the name of a tool: give a prefix of letters and digits'
        )
    if prefix in RESERVED_TOOL_PREFIXES:
        reader.add_problem(item.line, f'tools named {prefix}_… are Interlock\'s own: give "{name}" a prefix of its own')


def _is_http_url(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _read_texts(reader: YamlReader, fields: Fields, key: str) -> dict[str, str]:
    """Names and texts; a number is read as its digits."""
    given = reader.mapping(fields, key)
    texts = {
        name: YamlNode(str(item.value), item.line) if type(item.value) is int else item for name, item in given.items()
    }
    return {name: "" if item.value == "" else reader.node_text(item, name) for name, item in texts.items()}
