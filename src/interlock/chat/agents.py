"""Agents as they are configured now: what an admin stored stands over the file, and the file in place of built-ins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from interlock.app.gate import Gate
from interlock.app.inbox import Inbox
from interlock.config.agents import overlay_stored_agent
from interlock.config.models import AgentSettings
from interlock.core.errors import NotFound
from interlock.core.ports import AgentVersion, User

ASSISTANT = "assistant"
INSTRUCTIONS = "You are a careful assistant that can act through tools."
BUILT_IN: Mapping[str, AgentSettings] = {ASSISTANT: AgentSettings(instructions=INSTRUCTIONS, tools=("*",))}

AgentOrigin = Literal["stored", "configuration", "built-in", "calls"]  # "calls": it runs elsewhere, and calls the gate


class ChatServices(Protocol):
    """What the agent needs of a workspace."""

    gate: Gate
    inbox: Inbox

    @property
    def agents(self) -> Mapping[str, AgentVersion]: ...
    @property
    def people(self) -> Mapping[str, User]: ...


@dataclass(frozen=True, slots=True)
class ResolvedAgent:
    """An agent and where it comes from; `stored` is its newest version, if somebody changed it."""

    agent: AgentSettings
    origin: AgentOrigin
    stored: AgentVersion | None = None


class AgentDirectory:
    """`configured` are those of the configuration file, `built_in` those that are there without one."""

    def __init__(
        self, configured: Mapping[str, AgentSettings], built_in: Mapping[str, AgentSettings] = BUILT_IN
    ) -> None:
        self._defaults: dict[str, ResolvedAgent] = {
            name: ResolvedAgent(agent, "built-in") for name, agent in built_in.items()
        }
        self._defaults |= {name: ResolvedAgent(agent, "configuration") for name, agent in configured.items()}

    def get(self, services: ChatServices, name: str) -> AgentSettings:
        known = self._resolve(services.agents, name)
        if known is None:
            raise NotFound(f"There is no agent {name!r}. There are: {', '.join(self.names(services))}.")
        return known.agent

    def names(self, services: ChatServices) -> list[str]:
        return sorted({*self._defaults, *services.agents})

    def all(self, stored: Mapping[str, AgentVersion]) -> dict[str, ResolvedAgent]:
        """By name; `stored` is what the store holds of the workspace."""
        found = {name: self._resolve(stored, name) for name in sorted({*self._defaults, *stored})}
        return {name: known for name, known in found.items() if known is not None}

    def preview(self, name: str, body: str) -> AgentSettings:
        """What an agent would be if this were stored."""
        return overlay_stored_agent(body, self._base(name))

    def _resolve(self, stored: Mapping[str, AgentVersion], name: str) -> ResolvedAgent | None:
        version = stored.get(name)
        if version is None:
            return self._defaults.get(name)
        return ResolvedAgent(overlay_stored_agent(version.body, self._base(name)), "stored", version)

    def _base(self, name: str) -> AgentSettings:
        return self._defaults[name].agent if name in self._defaults else AgentSettings()
