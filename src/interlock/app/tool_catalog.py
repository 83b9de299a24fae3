"""The tools of a workspace and the source of their definitions: registered, pinned, or only declared by agents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from interlock.core.call import ToolSpec
from interlock.core.confusables import escape_non_ascii, fold_confusables, looks_like
from interlock.core.errors import Conflict, NotFound
from interlock.core.pins import (
    MAX_DECLARED,
    MAX_LISTED,
    Pin,
    Pins,
    check_pin_name,
    lookalike_error,
    make_pinned_spec,
    naming_rule_text,
    spec_differences,
    trusts_declared,
)
from interlock.core.policy.policy import Policy
from interlock.core.ports import AgentToolUsage, FirstSeenTool, ToolStore
from interlock.runtime.durations import DAY

ToolStatus = Literal["registered", "pinned", "declared"]
USAGE_DAYS = 30
UNSEEN_REASON = "it was not shown, or the agent has changed its declaration"
NO_EFFECT_REASON = "its effect is not declared: pin it with an effect"


@dataclass(frozen=True, kw_only=True)
class CatalogTool:
    """A tool; `spec` is the definition that counts, `declared` the newest one of an agent.

    `changed` says how it differs from the pin, if it came after it. `named_by` is the rule or switch that names the
    tool, which then has to be pinned singly; `is_declaration_trusted`: the policy trusts the effect that its agent
    declares. `looks_like` are other tools whose names a reader would take for this one.
    """

    name: str
    status: ToolStatus
    spec: ToolSpec
    declared: ToolSpec | None
    pin: Pin | None
    agents: tuple[str, ...]
    first_at: int | None
    last_at: int | None
    calls: int
    changed: tuple[str, ...]
    named_by: str
    is_declaration_trusted: bool
    looks_like: tuple[str, ...] = ()


class PinSelection(NamedTuple):
    """Tools of an agent to pin in one step, and those left out, with the reason."""

    specs: tuple[ToolSpec, ...]
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ToolCatalog:
    """All known tools of a workspace; of one agent, if it is named."""

    store: ToolStore
    workspace: str
    policy: Policy
    registered: Mapping[str, ToolSpec]
    agent: str = ""

    async def tools(self, now: int) -> list[CatalogTool]:
        """Tools by name, without those of programs that open the database themselves, whose definitions are trusted."""
        pins = Pins(tuple(await self.store.pins(self.workspace)))
        used = await self._load_usage(now - USAGE_DAYS * DAY)
        seen: dict[str, list[tuple[FirstSeenTool, ToolSpec]]] = defaultdict(list)
        for each in await self._declared():
            seen[each[0].name].append(each)
        theirs = () if self.agent else (*self.registered, *pins.by_name)
        found = [self._make_tool(name, pins, seen[name], used[name]) for name in sorted({*seen, *theirs})]
        twins = await self._names_by_fold(pins)
        return [replace(tool, looks_like=_similar_names(tool.name, twins)) for tool in found]

    async def describe_limits(self) -> list[str]:
        """Why the list may lack tools, as text; empty if it is complete."""
        told = [
            f"The key {key} has declared {MAX_DECLARED:,} definitions of tools or more: further ones of its reads are "
            "not listed."
            for key in await self.store.keys_over_limit(self.workspace)
        ]
        seen = sum(bool(tool.spec_sha256) for tool in await self.store.tools(self.workspace))
        if seen >= MAX_LISTED:
            told.append(f"Agents have declared {MAX_LISTED:,} definitions or more: of each key the newest are listed.")
        return told

    async def definition(self, tool: str) -> ToolSpec | None:
        """The newest definition that an agent declared."""
        found = [each for each in await self._declared() if each[0].name == tool]
        return max(found, key=lambda each: each[0].at)[1] if found else None

    async def make_pin_spec(self, tool: str, effect: str = "") -> ToolSpec:
        """The definition to pin for this tool; raises if there is nothing to pin."""
        if tool in self.registered:
            raise Conflict(f"{tool} is registered: the server's own definition already applies.", tool=tool)
        known = next((name for name in self.registered if looks_like(tool, name)), "")
        if known:
            raise lookalike_error(tool, known, "registered")
        check_pin_name(Pins(tuple(await self.store.pins(self.workspace))), tool)
        spec = await self.definition(tool)
        if spec is None and (self.agent or not effect):
            whose = f"the agent {self.agent}" if self.agent else "any agent"
            raise NotFound(f"No definition of {tool} by {whose} was seen. To pin it unseen, give an effect.", tool=tool)
        return make_pinned_spec(spec or ToolSpec(tool), effect)

    async def find_similar_names(self, tool: str) -> tuple[str, ...]:
        """Other tools whose names a reader would take for this one."""
        return _similar_names(tool, await self._names_by_fold(Pins(tuple(await self.store.pins(self.workspace)))))

    async def select_pins(self, now: int, shown: Mapping[str, str] | None = None) -> PinSelection:
        """Select the agent's tools that are not pinned or registered; `shown` are digests of what the person saw."""
        tools = [tool for tool in await self.tools(now) if tool.status == "declared"]
        if not tools:
            raise NotFound(f"The agent {self.agent} has declared no tool that could be pinned.", agent=self.agent)
        specs, left_out = [], []
        for tool in tools:
            unseen = shown is not None and shown.get(tool.name) != tool.spec.sha256
            alike = f"its name looks like {escape_non_ascii(tool.looks_like[0])}" if tool.looks_like else ""
            reason = (
                tool.named_by
                or alike
                or ("" if tool.spec.effect else NO_EFFECT_REASON)
                or (UNSEEN_REASON if unseen else "")
            )
            if reason:
                left_out.append((tool.name, reason))
            else:
                specs.append(make_pinned_spec(tool.spec))
        return PinSelection(tuple(specs), tuple(left_out))

    async def _declared(self) -> list[tuple[FirstSeenTool, ToolSpec]]:
        """Definitions that external programs declared; not those judged as pinned, nor those of local programs."""
        seen = [tool for tool in await self.store.tools(self.workspace) if tool.spec_sha256]
        mine = [tool for tool in seen if not self.agent or tool.agent == self.agent]
        found = [(tool, await self.store.spec(tool.spec_sha256)) for tool in mine]
        return [(tool, spec) for tool, spec in found if spec is not None and spec.declared]

    async def _names_by_fold(self, pins: Pins) -> Mapping[str, Sequence[str]]:
        """Names by their folded form: of every agent's tools, also if only those of one agent are listed."""
        found: dict[str, list[str]] = defaultdict(list)
        seen = (tool.name for tool in await self.store.tools(self.workspace))
        for name in sorted({*self.registered, *pins.by_name, *seen}):
            found[fold_confusables(name)].append(name)
        return found

    async def _load_usage(self, since: int) -> Mapping[str, Sequence[AgentToolUsage]]:
        found: dict[str, list[AgentToolUsage]] = defaultdict(list)
        for each in await self.store.tool_usage(self.workspace, since):
            if not self.agent or each.agent in ("", self.agent):
                found[each.tool].append(each)
        return found

    def _make_tool(
        self, name: str, pins: Pins, seen: Sequence[tuple[FirstSeenTool, ToolSpec]], used: Sequence[AgentToolUsage]
    ) -> CatalogTool:
        newest = max(seen, key=lambda each: each[0].at, default=None)
        said = None if newest is None else newest[1]
        pin, registered = pins.find(name), self.registered.get(name)
        status: ToolStatus = "registered" if registered else "pinned" if pin else "declared"
        agents = sorted({tool.agent for tool, _ in seen if tool.agent})
        named = next(filter(None, (naming_rule_text(self.policy, name, agent) for agent in agents or ("",))), "")
        believed = status == "declared" and said is not None and bool(said.effect) and not named
        after = pin is not None and newest is not None and newest[0].at >= pin.at
        return CatalogTool(
            name=name,
            status=status,
            spec=registered or (pin.spec if pin else said) or ToolSpec(name),
            declared=said,
            pin=pin,
            agents=tuple(agents),
            first_at=min((tool.at for tool, _ in seen), default=None),
            last_at=max((each.last_at for each in used), default=newest[0].at if newest else None),
            calls=sum(each.calls for each in used),
            changed=spec_differences(pin.spec, said) if pin and said and after else (),
            named_by=named,
            is_declaration_trusted=believed and trusts_declared(self.policy),
        )


def _similar_names(name: str, twins: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(other for other in twins.get(fold_confusables(name), ()) if looks_like(name, other))


def count_trusted_declarations(tools: Iterable[CatalogTool]) -> int:
    return sum(tool.is_declaration_trusted for tool in tools)
