"""OpenAI Agents SDK: every function tool asks the gate, and a run that waits for people is kept until they decided."""

from interlock.integrations.openai_agents.gate import GatedAgent, gated

__all__ = ["GatedAgent", "gated"]
