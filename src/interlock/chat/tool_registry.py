"""Registry of tools and their assignment to agents: packs, MCP servers, documents, and other agents.

Packs are modules in `chat/tools`, and those of the configuration, which are loaded from outside the package.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from interlock.chat import tools as packs
from interlock.chat.tool import Tool, ToolContext, ToolInvocation, adapt_tool, make_tool, object_schema
from interlock.config.agents import AGENT_TOOL_PREFIX, AvailableTool, matches_tool
from interlock.config.models import RESERVED_TOOL_PREFIXES, ActionSettings, AgentSettings, is_builtin_action
from interlock.core.call import QUESTION_TOOL, ToolSpec
from interlock.core.confusables import differs_only_in_case, without_case
from interlock.core.errors import Error, Misconfigured, ToolFailed
from interlock.core.sentence import TemplatePreview
from interlock.runtime.functions import find_declaration
from interlock.runtime.import_path import INSTALLED_CODE, CodeSource, describe_code_error, import_object
from interlock.runtime.json_schema import check_schema

AGENT_SOURCE = "agent"  # the source of a tool that is another agent

MakeToolContext = Callable[[str, str], ToolContext]  # workspace and pack
ToolSource = Callable[[str], Sequence[Tool]]  # tools of a workspace that come and go, such as those of MCP servers
ToolSelection = Mapping[str, Tool]  # by name
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what model providers accept


@dataclass(frozen=True, slots=True)
class OwnPacks:
    """Packs of the configuration, by workspace: where the tools of each are, `module:attribute` or `module`.

    `reserved_names` are those of configured actions.
    """

    paths: Callable[[str], Mapping[str, str]] = lambda _: {}
    source: CodeSource = INSTALLED_CODE
    reserved_names: Collection[str] = ()


class ToolRegistry:
    def __init__(
        self, make: MakeToolContext, sources: Sequence[ToolSource] = (), own_packs: OwnPacks | None = None
    ) -> None:
        self._make = make
        self._sources = tuple(sources)
        self._own_packs = own_packs or OwnPacks()
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
        built_in = [pack for pack, module in _modules() if _pack_functions(module)]
        return {pack: sources.count(pack) for pack in (*built_in, *self._loadable(workspace))}

    def pack_tool_names(self, workspace: str) -> Iterable[str]:
        """Load the packs. Raises Misconfigured if one of them, or its settings, are wrong."""
        return self._pack_tools(workspace).keys()

    def packs_not_loaded(self, workspace: str) -> Mapping[str, str]:
        """Return the configured packs that are not imported here, and where they are."""
        return {} if self._own_packs.source.is_trusted else self._own_packs.paths(workspace)

    def _loadable(self, workspace: str) -> Mapping[str, str]:
        return self._own_packs.paths(workspace) if self._own_packs.source.is_trusted else {}

    def _dynamic_tools(self, workspace: str) -> dict[str, Tool]:
        return {tool.name: tool for source in self._sources for tool in source(workspace)} if self._sources else {}

    def _pack_tools(self, workspace: str) -> dict[str, Tool]:
        known = self._pack_cache.get(workspace)
        if known is None:
            known = {tool.name: tool for tool in self._load_pack_tools(workspace)}
            for tool in self._load_own_tools(workspace):
                _check_own_name(tool, known, self._own_packs.reserved_names)
                known[tool.name] = tool
            self._names_without_case[workspace] = {without_case(name): name for name in reversed(known)}
            self._non_ascii_names[workspace] = tuple(name for name in known if not name.isascii())
            self._pack_cache[workspace] = known
        return known

    def _load_pack_tools(self, workspace: str) -> Iterator[Tool]:
        for pack, module in _modules():
            context = self._make(workspace, pack)
            for function_name in _pack_functions(module):
                yield from (replace(tool, source=pack) for tool in getattr(module, function_name)(context))

    def _load_own_tools(self, workspace: str) -> Iterator[Tool]:
        for pack, path in self._loadable(workspace).items():
            try:
                found = _load_own_pack(path, self._make(workspace, pack), self._own_packs.source)
            except Error as error:
                raise Misconfigured(f"tools.{pack}: {error.message}") from None
            yield from (replace(tool, source=pack) for tool in found)


def _load_own_pack(path: str, context: ToolContext, source: CodeSource) -> Sequence[Tool]:
    """Import the tools of a pack from outside. Raises Misconfigured, whatever is wrong with them."""
    return [_own_tool(each, path) for each in _find_tools(import_object(path, source), path, context)]


def _find_tools(value: object, path: str, context: ToolContext) -> Iterable[object]:
    """The tools at a path: one, a list of them, a module that has some, or a function of the context."""
    match value:
        case Tool():
            return [value]
        case list() | tuple():
            return _require_tools(value, path)
        case ModuleType():
            factories = [getattr(value, function) for function in _pack_functions(value)]
            made = [tool for factory in factories for tool in _call_factory(factory, path, context)]
            return made if factories else _require_tools(_declared_in(value), path)
        case _ if find_declaration(value) is not None:
            return [value]
        case _ if _is_factory(value):
            return _call_factory(value, path, context)
        case _:
            raise Misconfigured(
                f"{path} is {_describe(value)}. It has to be a list of functions with @tool, one of them, a module, or "
                "a function with one parameter, context, that returns such a list."
            )


def _require_tools(found: Sequence[object], path: str) -> Sequence[object]:
    if not found:
        raise Misconfigured(f"{path} has no tools: put @tool on a function in it.")
    return found


def _declared_in(module: ModuleType) -> list[object]:
    return list({id(found): found for each in vars(module).values() if (found := find_declaration(each))}.values())


def _is_factory(value: object) -> bool:
    """Whether it makes tools; any other function must not be called, since nobody knows what it does."""
    if not inspect.isfunction(value):
        return False
    return list(inspect.signature(value).parameters) == ["context"]


def _call_factory(factory: object, path: str, context: ToolContext) -> Iterable[object]:
    assert callable(factory)  # noqa: S101  checked before
    try:
        made = factory(context)
    except Error:
        raise
    except Exception as error:
        raise Misconfigured(f"{path} failed: {describe_code_error(error)}") from error
    if not isinstance(made, list | tuple):
        if inspect.iscoroutine(made):
            made.close()
        raise Misconfigured(f"{path} returned {_describe(made)}; it has to return a list of tools, and not be async.")
    return made  # none, if it lacks its settings


def _own_tool(value: object, path: str) -> Tool:
    declared = find_declaration(value)
    if declared is not None:
        return make_tool(declared)
    if not isinstance(value, Tool):
        raise Misconfigured(f"{path} contains {_describe(value)}, which is no tool: put @tool on it.")
    check_schema(value.spec.schema or {})
    return adapt_tool(value)


def _describe(value: object) -> str:
    if inspect.isfunction(value):
        return f"{value.__name__}, a function without @tool"
    return f"a value of the type {type(value).__name__}"


def _check_own_name(tool: Tool, known: Mapping[str, Tool], reserved: Collection[str]) -> None:
    """Raise Misconfigured for a name that is taken, or that stands for something else."""
    said = f"tools.{tool.source}: {tool.name}"
    if not TOOL_NAME.fullmatch(tool.name):
        raise Misconfigured(f"{said} is no name that models can call: it has letters, digits, _ and -, at most 64.")
    prefix = tool.name.partition("_")[0].lower()
    if prefix in RESERVED_TOOL_PREFIXES and prefix != "request" and "_" in tool.name:
        raise Misconfigured(f"{said}: tools named {prefix}_… are Interlock's own. Give it another name.")
    if without_case(tool.name) in map(without_case, reserved):
        raise Misconfigured(f"{said} is also one of the actions in the configuration. Give one of them another name.")
    taken = next((other for other in known.values() if without_case(other.name) == without_case(tool.name)), None)
    if taken is not None:
        raise Misconfigured(f"{said}: the pack {taken.source} has a tool {taken.name} already. Give it another name.")


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


def action_spec(name: str, action: ActionSettings) -> ToolSpec:
    """Return the definition of an action. Its preview is a template, so another program's call looks nothing up."""
    own = action.tool
    return ToolSpec(
        name,
        own.effect or "write",
        schema=action.schema,
        describe=own.describe,
        preview=TemplatePreview(own.preview) if own.preview and isinstance(own.preview, str) else None,
        secret=own.secret,
        confirm=own.confirm,
    )


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
            return action_spec(tool, action)
        known = self._tool_registry.spec_like(workspace, tool)
        return None if known is None else replace(known, name=tool, preview=None)

    def packs_not_loaded(self, workspace: str) -> Mapping[str, str]:
        """Return the configured packs whose tools are not known here."""
        return self._tool_registry.packs_not_loaded(workspace)

    def names(self, workspace: str) -> set[str]:
        """Return the names of all tools and configured actions."""
        return {*self._tool_registry.all(workspace), *self._actions}

    def non_ascii_names(self, workspace: str) -> tuple[str, ...]:
        """Return the names that are not ASCII, for which an ASCII name could be mistaken."""
        return (*self._tool_registry.non_ascii_names(workspace), *self._non_ascii_actions)

    def specs(self, workspace: str) -> dict[str, ToolSpec]:
        found = {name: self.spec(workspace, name) for name in self.names(workspace)}
        return {name: spec for name, spec in found.items() if spec is not None}
