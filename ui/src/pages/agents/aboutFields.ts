import type { AgentInfo } from "./data";
import type { Fields } from "./switching";

export interface Filled {
  model: string;
  instructions: string;
  tools: string;
  agents: string;
  turns: string;
  tokens: string;
  time: string;
}

export const LIMITS = [
  { name: "turns", label: "Turns", placeholder: "30" },
  { name: "tokens", label: "Tokens", placeholder: "500000" },
  { name: "time", label: "Time", placeholder: "15m" },
] as const;

export function filledIn(agent: AgentInfo): Filled {
  const limit = (name: string) => String(agent.limits[name] ?? "");
  return {
    model: agent.model,
    instructions: agent.instructions,
    tools: agent.tools.join("\n"),
    agents: agent.agents.join("\n"),
    turns: limit("turns"),
    tokens: limit("tokens"),
    time: limit("time"),
  };
}

/** What differs from the agent as it is, in the server's words. */
export function fieldsOf(filled: Filled, agent: AgentInfo): Fields {
  const before = filledIn(agent);
  const differs = (...names: (keyof Filled)[]) => names.some((name) => filled[name] !== before[name]);
  return {
    ...(differs("model") && { model: filled.model.trim() }),
    ...(differs("instructions") && { instructions: filled.instructions }),
    ...(differs("tools") && { tools: lines(filled.tools) }),
    ...(differs("agents") && { agents: lines(filled.agents) }),
    ...(differs("turns", "tokens", "time") && { limits: limits(filled) }),
  };
}

function lines(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean);
}

/** A whole number is one; anything else goes as it is, and the server says what is wrong with it. */
function limits(filled: Filled): Record<string, unknown> {
  const number = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text);
  const said = { turns: number(filled.turns), tokens: number(filled.tokens), time: filled.time };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== ""));
}
