"""Registry of tools and their assignment to agents: packs, MCP servers, documents, and other agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from interlock.chat import tools as packs
from interlock.chat.tool import Tool, ToolContext, ToolInvocation, object_schema
from interlock.config.agents import AGENT_TOOL_PREFIX, AvailableTool, matches_tool
from interlock.config.models import ActionSettings, AgentSettings, is_builtin_action
from interlock.core.call import QUESTION_TOOL, ToolSpec
from interlock.core.confusables import differs_only_in_case, without_case
from interlock.core.errors import ToolFailed

AGENT_SOURCE = "agent"  # the source of a tool that is another agent

MakeToolContext = Callable[[str, str], ToolContext]  # workspace and pack
ToolSource = Callable[[str], Sequence[Tool]]  # tools of a workspace that come and go, such as those of MCP servers
ToolSelection = Mapping[str, Tool]  # by name


class ToolRegistry:
    def __init__(self, make: MakeToolContext, sources: Sequence[ToolSource] = ()) -> None:
        self._make = make
        self._sources = tuple(sources)
        self._pack_cache: dict[str, dict[str, Tool]] = {}
        self._non_ascii_names: dict[str, tuple[str, ...]] = {}  # names of the packs' tools that are not ASCII
        self._names_without_case: dict[str, dict[str, str]] = {}  # names of the packs' tools, by their case-folded form

    def all(self, workspace: str) -> dict[str, Tool]:
        """Return all tools by name; a pack's tool is never replaced by one from another source."""
        return {**self._dynamic_tools(workspace), **self._pack_tools(workspace)}

    def tools_for_agent(self, agent: AgentSettings, workspace: str) -> ToolSelection:
        """Return an agent's tools, including the agents it may call. Unknown names are left out."""
        chosen = {
            name: tool
            for name, tool in self.all(workspace).items()
            if any(matches_tool(pattern, name, tool.source) for pattern in agent.tools)
        }
        return chosen | {AGENT_TOOL_PREFIX + name: agent_tool(name) for name in agent.agents}

    def spec(self, workspace: str, name: str) -> ToolSpec | None:
        """Return a tool's spec with its functions for sentence and preview, which are not stored."""
        tool = self._pack_tools(workspace).get(name) or self._dynamic_tools(workspace).get(name)
        return None if tool is None else tool.spec

    def spec_like(self, workspace: str, name: str) -> ToolSpec | None:
        """Return the spec of a tool, or of one whose name differs only in case."""
        packed, moving = self._pack_tools(workspace), self._dynamic_tools(workspace) if self._sources else {}
        tool = packed.get(name) or moving.get(name)
        if tool is None:
            found = next((known for known in moving if differs_only_in_case(name, known)), None) if moving else None
            if found is None:
                found = self._names_without_case[workspace].get(without_case(name))
            tool = None if found is None else packed.get(found) or moving[found]
        return None if tool is None else tool.spec

    def non_ascii_names(self, workspace: str) -> tuple[str, ...]:
        """Return the names that are not ASCII, for which an ASCII name could be mistaken."""
        if workspace not in self._pack_cache:
            self._pack_tools(workspace)
        odd = self._non_ascii_names[workspace]
        return (
            odd
            if not self._sources
            else (*odd, *(name for name in self._dynamic_tools(workspace) if not name.isascii()))
        )

    def packs(self, workspace: str) -> dict[str, int]:
        """Count the tools of each pack: none, if it lacks its settings."""
        sources = [tool.source for tool in self.all(workspace).values()]
        return {pack: sources.count(pack) for pack, module in _modules() if _pack_functions(module)}

    def _dynamic_tools(self, workspace: str) -> dict[str, Tool]:
        return {tool.name: tool for source in self._sources for tool in source(workspace)} if self._sources else {}

    def _pack_tools(self, workspace: str) -> dict[str, Tool]:
        known = self._pack_cache.get(workspace)
        if known is None:
            known = {tool.name: tool for tool in self._load_pack_tools(workspace)}
            self._names_without_case[workspace] = {without_case(name): name for name in reversed(known)}
            self._non_ascii_names[workspace] = tuple(name for name in known if not name.isascii())
            self._pack_cache[workspace] = known
        return known

    def _load_pack_tools(self, workspace: str) -> Iterator[Tool]:
        for pack, module in _modules():
            context = self._make(workspace, pack)
            for function_name in _pack_functions(module):
                yield from (replace(tool, source=pack) for tool in getattr(module, function_name)(context))


def _modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the packs, each a module or package; one whose extra is not installed is left out."""
    for found in iter_modules(packs.__path__):
        with suppress(ModuleNotFoundError):
            yield found.name, import_module(f"{packs.__name__}.{found.name}")


def _pack_functions(module: ModuleType) -> list[str]:
    return [side for side in ("read_tools", "write_tools") if hasattr(module, side)]


def known_tools(tools: Iterable[Tool]) -> dict[str, AvailableTool]:
    """Return tools in the form that warnings about an agent need."""
    return {tool.name: AvailableTool(tool.spec.effect != "read", tool.source, always_asks(tool.spec)) for tool in tools}


def always_asks(spec: ToolSpec) -> str:
    """Return why no switch of an agent disables its approval; empty if one does."""
    if spec.name == QUESTION_TOOL:
        return "a question is always for a person"
    return "" if spec.effect else "its effect is not declared: it needs approval unless a rule of the policy allows it"


def agent_tool(name: str) -> Tool:
    """Make the tool that calls another agent. It is a read: the agent's own calls are checked, under both gates."""
    task = {
        "type": "string",
        "minLength": 1,
        "maxLength": 20_000,
        "description": "What it is to do, with all it needs.",
    }
    plain = name.replace("{", "{{").replace("}", "}}")
    spec = ToolSpec(
        AGENT_TOOL_PREFIX + name,
        "read",
        schema=object_schema("task", task=task),
        describe=f"Let {plain} do: {{task}}",
        idempotent=True,
    )
    return Tool(spec, f"Hands a task to the agent {name} and gives its answer.", _not_run, AGENT_SOURCE)


async def _not_run(_: ToolInvocation) -> object:
    raise ToolFailed("An agent is not run as a tool.")  # the loop opens a thread for it instead


class RegisteredTools:
    def __init__(self, actions: Mapping[str, ActionSettings], tool_registry: ToolRegistry) -> None:
        self._tool_registry = tool_registry
        self._actions = actions
        self._non_ascii_actions = tuple(name for name in actions if not name.isascii())
        self._by_case = {without_case(name): actions[name] for name in reversed(list(actions))}

    def action(self, name: str) -> ActionSettings | None:
        """Return a configured action by its name, in any case."""
        return self._actions.get(name) or self._by_case.get(without_case(name))

    def spec(self, workspace: str, tool: str) -> ToolSpec | None:
        """Return the spec of a pack's or MCP server's tool, or of a configured action; case-insensitive, as in rules.

        It has no preview, which is only for the chat: another program's call must not cause look-ups by the server.
        """
        return self.spec_for_action(workspace, tool, self.action(tool))

    def spec_for_action(self, workspace: str, tool: str, action: ActionSettings | None) -> ToolSpec | None:
        """Return the spec, given the `action` of this name."""
        if action is not None and not is_builtin_action(action):
            return ToolSpec(tool, "write", schema=action.schema)
        known = self._tool_registry.spec_like(workspace, tool)
        return None if known is None else replace(known, name=tool, preview=None)

    def names(self, workspace: str) -> set[str]:
        """Return the names of all tools and configured actions."""
        return {*self._tool_registry.all(workspace), *self._actions}

    def non_ascii_names(self, workspace: str) -> tuple[str, ...]:
        """Return the names that are not ASCII, for which an ASCII name could be mistaken."""
        return (*self._tool_registry.non_ascii_names(workspace), *self._non_ascii_actions)

    def specs(self, workspace: str) -> dict[str, ToolSpec]:
        found = {name: self.spec(workspace, name) for name in self.names(workspace)}
        return {name: spec for name, spec in found.items() if spec is not None}
