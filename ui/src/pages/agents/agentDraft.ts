import { makeAgentChange, type AgentChange, type AgentFields } from "./agentChange";
import * as messages from "./messages";
import type { AgentInfo } from "./queries";

/** The values of the form; `base` is the agent as it was when the draft was begun, null for a new one. */
export interface AgentDraft {
  base: AgentInfo | null;
  name: string;
  model: string;
  instructions: string;
  tools: string[];
  tool_approvals: Record<string, boolean>;
  agents: string[];
  turns: string;
  tokens: string;
  time: string;
  reason: string;
}

export const AGENT_LIMITS = [
  { name: "turns", label: messages.turns, unit: messages.turnsRange, placeholder: "30" },
  { name: "tokens", label: messages.tokens, unit: messages.tokensRange, placeholder: "500000" },
  { name: "time", label: messages.time, unit: messages.timeRange, placeholder: "15m" },
] as const;

export const MAX_AGENT_NAME = 58;
const NAME = /^[A-Za-z0-9_-]+$/;

const EMPTY: AgentDraft = {
  base: null,
  name: "",
  model: "",
  instructions: "",
  tools: [],
  tool_approvals: {},
  agents: [],
  turns: "",
  tokens: "",
  time: "",
  reason: "",
};

/** A draft of changes to this agent. */
export function draftOf(agent: AgentInfo): AgentDraft {
  return { ...settingsOf(agent), base: agent, name: agent.name };
}

/** A draft of a new agent, with the settings of another one if it is a copy. */
export function newDraft(copied?: AgentInfo, taken: string[] = []): AgentDraft {
  return copied ? { ...settingsOf(copied), name: copyName(copied.name, taken) } : EMPTY;
}

function settingsOf(agent: AgentInfo): AgentDraft {
  const limit = (name: string) => String(agent.limits[name] ?? "");
  return {
    ...EMPTY,
    model: agent.model,
    instructions: agent.instructions,
    tools: agent.tools,
    tool_approvals: agent.tool_approvals,
    agents: agent.agents,
    turns: limit("turns"),
    tokens: limit("tokens"),
    time: limit("time"),
  };
}

/** "clerk-copy", or with a number if that is taken. */
export function copyName(name: string, taken: string[]): string {
  const stem = `${name.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, MAX_AGENT_NAME - 9)}-copy`;
  const used = new Set(taken.map((each) => each.toLowerCase()));
  if (!used.has(stem.toLowerCase())) return stem;
  for (let number = 2; ; number++)
    if (!used.has(`${stem}-${number}`.toLowerCase())) return `${stem}-${number}`;
}

/** Why the name cannot be that of a new agent; empty if it can. */
export function nameProblem(name: string): string {
  if (!name) return messages.enterName;
  if (!NAME.test(name)) return messages.useLettersDigitsAndOnly;
  return name.length > MAX_AGENT_NAME ? messages.useAtMostCharacters(MAX_AGENT_NAME) : "";
}

type SettingName = Exclude<keyof AgentDraft, "base" | "name" | "reason">;
const FIELDS: Record<keyof AgentFields, SettingName[]> = {
  model: ["model"],
  instructions: ["instructions"],
  tools: ["tools"],
  tool_approvals: ["tool_approvals"],
  agents: ["agents"],
  limits: ["turns", "tokens", "time"],
};

/** The changed fields, as the API names them: the others keep following the configuration file. */
export function changedFields(draft: AgentDraft): AgentFields {
  const before = draft.base ? draftOf(draft.base) : EMPTY;
  const body = toFields(draft);
  const changed = (Object.keys(FIELDS) as (keyof AgentFields)[]).filter((field) =>
    FIELDS[field].some((name) => !isSame(draft[name], before[name])),
  );
  return Object.fromEntries(changed.map((field) => [field, body[field]]));
}

/** Whether there is something to lose. */
export function isChanged(draft: AgentDraft, initial: AgentDraft): boolean {
  return (Object.keys(draft) as (keyof AgentDraft)[]).some(
    (name) => name !== "base" && !isSame(draft[name], initial[name]),
  );
}

/** What is sent: the changes of a known agent, or all of a new one. */
export function draftChange(draft: AgentDraft): AgentChange {
  const reason = draft.reason.trim();
  if (draft.base) return makeAgentChange(draft.base, changedFields(draft), reason);
  return { body: toFields(draft), version: null, reason };
}

/** The same changes, of the agent as it is now. */
export function rebase(draft: AgentDraft, now: AgentInfo): AgentDraft {
  const before = draft.base ? draftOf(draft.base) : EMPTY;
  const current = draftOf(now);
  const names = Object.values(FIELDS).flat();
  const mine = names.filter((name) => !isSame(draft[name], before[name]));
  return { ...current, reason: draft.reason, ...Object.fromEntries(mine.map((name) => [name, draft[name]])) };
}

/** The tools that would ask less often than before: a reason is required for these. */
export function relaxedTools(draft: AgentDraft): string[] {
  const before = draft.base?.tool_approvals ?? {};
  const weight = (value: boolean | undefined) => (value === undefined ? 1 : value ? 2 : 0);
  return [...new Set([...Object.keys(before), ...Object.keys(draft.tool_approvals)])]
    .filter((tool) => weight(draft.tool_approvals[tool]) < weight(before[tool]))
    .sort();
}

function toFields(draft: AgentDraft): Required<AgentFields> {
  return {
    model: draft.model.trim(),
    instructions: draft.instructions,
    tools: draft.tools,
    tool_approvals: draft.tool_approvals,
    agents: draft.agents,
    limits: toLimits(draft),
  };
}

/** Integers are converted; the server validates everything else. */
function toLimits(draft: AgentDraft): Record<string, unknown> {
  const number = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text);
  const limits = {
    turns: number(draft.turns.trim()),
    tokens: number(draft.tokens.trim()),
    time: draft.time.trim(),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== ""));
}

/** Lists are compared without their order, which means nothing. */
function isSame(one: unknown, other: unknown): boolean {
  const ordered = (value: unknown) =>
    Array.isArray(value)
      ? [...(value as string[])].sort()
      : value && typeof value === "object"
        ? Object.entries(value).sort()
        : value;
  return JSON.stringify(ordered(one)) === JSON.stringify(ordered(other));
}
