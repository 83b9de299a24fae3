"""OpenAI Agents SDK: every function tool asks the gate, and a run that waits for people is kept until they decided."""

from interlock.integrations.openai_agents.gate import Gated, gated

__all__ = ["Gated", "gated"]
