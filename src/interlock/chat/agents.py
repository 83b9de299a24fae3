"""Configured agents: a version stored by an admin overrides the file, and the file replaces built-in agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

MISSING_AGENT = "The agent {name} does not exist any more, so this conversation cannot continue. Start a new one."

AgentOrigin = Literal["stored", "configuration", "built-in", "calls"]  # "calls": an external agent that calls the gate


class ChatServices(Protocol):
    """The services of a workspace that the chat needs."""

    gate: Gate
    inbox: Inbox

    @property
    def agents(self) -> Mapping[str, AgentVersion]: ...
    @property
    def people(self) -> Mapping[str, User]: ...


@dataclass(frozen=True, slots=True)
class ResolvedAgent:
    """An agent and its origin; `stored` is its newest version, if it was changed."""

    agent: AgentSettings
    origin: AgentOrigin
    stored: AgentVersion | None = None


class AgentDirectory:
    """Directory of agents: `configured` in the configuration file, `built_in` as defaults."""

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
        return sorted(self.all(services.agents))

    def find_missing(self, services: ChatServices, names: Iterable[str]) -> str:
        """Return the first of these agents that does not exist any more, or an empty text."""
        return next((name for name in names if self._resolve(services.agents, name) is None), "")

    def all(self, stored: Mapping[str, AgentVersion]) -> dict[str, ResolvedAgent]:
        """Return all agents by name; `stored` are the versions in the workspace's store."""
        found = {name: self._resolve(stored, name) for name in sorted({*self._defaults, *stored})}
        return {name: known for name, known in found.items() if known is not None}

    def find_default(self, name: str) -> ResolvedAgent | None:
        """Return the agent of the configuration file or the program, as it is without stored settings."""
        return self._defaults.get(name)

    def preview(self, name: str, body: str) -> AgentSettings:
        """Return the agent as it would be if this body were stored."""
        return overlay_stored_agent(body, self._base(name))

    def _resolve(self, stored: Mapping[str, AgentVersion], name: str) -> ResolvedAgent | None:
        version = stored.get(name)
        if version is None or not version.has_settings:
            return self._defaults.get(name)
        return ResolvedAgent(overlay_stored_agent(version.body, self._base(name)), "stored", version)

    def _base(self, name: str) -> AgentSettings:
        return self._defaults[name].agent if name in self._defaults else AgentSettings()
