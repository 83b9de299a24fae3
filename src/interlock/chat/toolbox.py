"""Which tools there are, and which of them an agent has: packs, MCP servers, documents, and other agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pkgutil import iter_modules

from interlock import tools as packs
from interlock.configuration import Agent
from interlock.core.call import ToolSpec
from interlock.core.errors import ToolFailed
from interlock.tools.tool import Kit, Tool, Use, schema

AGENT = "agent_"  # how the name of a tool begins that is another agent
NOT_PACKS = frozenset({"tool"})

MakeKit = Callable[[str, str], Kit]  # workspace and pack
Source = Callable[[str], Sequence[Tool]]  # tools of a workspace that come and go, such as those of MCP servers


@dataclass(frozen=True)
class Selection:
    """An agent's tools by name; `warnings` say what was asked for and is not there."""

    tools: Mapping[str, Tool]
    warnings: tuple[str, ...] = ()


class Toolbox:
    def __init__(self, make: MakeKit, sources: Sequence[Source] = ()) -> None:
        self._make = make
        self._sources = tuple(sources)
        self._packed: dict[str, dict[str, Tool]] = {}

    def all(self, workspace: str) -> dict[str, Tool]:
        """A pack's tool is never replaced by one of the same name from elsewhere."""
        if workspace not in self._packed:
            self._packed[workspace] = {tool.name: tool for tool in self._from_packs(workspace)}
        moving = {tool.name: tool for source in self._sources for tool in source(workspace)}
        return {**moving, **self._packed[workspace]}

    def of(self, agent: Agent, workspace: str) -> Selection:
        """`tools` of an agent are names, packs or patterns; agents that it lists are tools too."""
        known = self.all(workspace)
        chosen: dict[str, Tool] = {}
        warnings = []
        for wanted in agent.tools:
            found = [name for name in known if _means(wanted, name)]
            chosen |= {name: known[name] for name in found}
            if not found and wanted != "*":
                warnings.append(f"There is no tool {wanted!r}: it is ignored.")
        names = {**known, **{AGENT + name: None for name in agent.agents}}
        warnings += [
            f"tool_approvals names {name!r}, which is no tool here: it is ignored."
            for name in agent.tool_approvals
            if name not in names
        ]
        chosen |= {AGENT + name: agent_tool(name) for name in agent.agents}
        return Selection(chosen, tuple(warnings))

    def _from_packs(self, workspace: str) -> Iterator[Tool]:
        for pack in pack_names():
            try:
                module = import_module(f"{packs.__name__}.{pack}")
            except ModuleNotFoundError:  # what it needs is an extra that is not installed
                continue
            kit = self._make(workspace, pack)
            for side in ("reads", "writes"):
                if hasattr(module, side):
                    yield from getattr(module, side)(kit)


def pack_names() -> list[str]:
    """Every file of the folder is a pack, if it has `reads` or `writes`."""
    return sorted(module.name for module in iter_modules(packs.__path__) if module.name not in NOT_PACKS)


def agent_tool(name: str) -> Tool:
    """To call another agent changes nothing by itself: its own calls are asked about, under the gates of both."""
    task = {
        "type": "string",
        "minLength": 1,
        "maxLength": 20_000,
        "description": "What it is to do, with all it needs.",
    }
    spec = ToolSpec(AGENT + name, "read", schema("task", task=task), describe=f"Let {name} do: {{task}}")
    return Tool(spec, f"Hands a task to the agent {name} and gives its answer.", _not_run)


async def _not_run(_: Use) -> object:
    raise ToolFailed("An agent is not run as a tool.")  # the loop opens a thread for it instead


def _means(wanted: str, name: str) -> bool:
    return wanted == name or name.startswith(f"{wanted}_") or fnmatchcase(name, wanted)
