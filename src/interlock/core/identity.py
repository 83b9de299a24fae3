"""Who is there, as a key or a session proved it: a person, or an agent's program."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.core.decision import Reviewer

AGENT = "agent"
ROLES = (AGENT, "viewer", "reviewer", "admin")  # an agent proposes and never decides; viewers look


@dataclass(frozen=True, slots=True)
class Principal:
    """`name` is the person's, or the key's of an agent; `credential` is the id of the key or session it came by."""

    workspace: str
    name: str
    role: str
    teams: frozenset[str] = frozenset()
    via: str = "key"
    credential: str = ""

    @property
    def is_agent(self) -> bool:
        return self.role == AGENT

    @property
    def actor(self) -> str:
        """As the record names them."""
        return f"agent:{self.name}" if self.is_agent else self.name

    def reviewer(self) -> Reviewer:
        return Reviewer(self.name, self.role, self.teams, self.via)
