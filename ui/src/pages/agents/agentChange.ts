import type { Schemas } from "../../api/client";
import type { AgentInfo, ToolCallCounts, ToolInfo, VerdictReason } from "./queries";

/** What is left out stays as it is. */
export type AgentFields = Partial<Schemas["AgentBody"]>;

export interface AgentChange {
  body: AgentFields;
  version: number;
  reason: string;
}

/** Whether a tool asks as far as the agent's switch and the tool's own default go. */
export function isGated(tool: ToolInfo): boolean {
  return tool.always_asks !== "" || (tool.switch ?? tool.asks_by_default);
}

/** What was changed here before goes along: what is left out would fall back to the configuration. */
export function makeAgentChange(agent: AgentInfo, fields: AgentFields, reason: string): AgentChange {
  const kept = Object.fromEntries(agent.stored.map((field) => [field, agent[field as keyof AgentFields]]));
  return { body: { ...kept, ...fields }, version: agent.version, reason };
}

/** On is always said; off only where the tool asks by itself, since nothing is lifted otherwise. */
export function makeGateChange(agent: AgentInfo, tool: ToolInfo, on: boolean, reason: string): AgentChange {
  const { [tool.name]: _, ...others } = agent.tool_approvals;
  const own = on ? { [tool.name]: true } : tool.asks_by_default ? { [tool.name]: false } : {};
  return makeAgentChange(agent, { tool_approvals: { ...others, ...own } }, reason);
}

/** Rules that ask or deny whatever the switch says. */
export function remainingRules(tool: ToolInfo): VerdictReason[] {
  return tool.reasons.filter((reason) => reason.by === "rule" && reason.verdict !== "allow");
}

/** Whether anything runs unasked once the switch is off: a rule without a condition may stand before it. */
export function liftsGate(tool: ToolInfo): boolean {
  return tool.reasons.some((reason) => reason.by !== "rule");
}

const SAID: Record<VerdictReason["verdict"], string> = {
  allow: "runs without approval",
  ask: "needs approval",
  deny: "is denied",
};

/** Why a call gets its verdict, in one sentence. */
export function explainReason(reason: VerdictReason, tool: ToolInfo): string {
  const said = SAID[reason.verdict];
  const perhaps = reason.conditional ? ", depending on the arguments" : "";
  if (reason.by === "rule") return `It ${said} because of the rule “${reason.rule}”${perhaps}.`;
  if (reason.by === "switch" && reason.rule)
    return `It ${said} because of the switch, although the rule “${reason.rule}” allows it${perhaps}.`;
  if (reason.by === "switch") return `It ${said} because of the switch.`;
  if (tool.always_asks) return `It ${said}: ${tool.always_asks}.`;
  return `It ${said} by default: ${tool.effect ? `its effect is ${tool.effect}` : "its effect is not declared"}.`;
}

const WORDS: [statuses: string[], one: string, many: string][] = [
  [["succeeded"], "succeeded", "succeeded"],
  [["failed", "unknown"], "failed or has an unknown outcome", "failed or have an unknown outcome"],
  [["approved", "running"], "is in progress", "are in progress"],
  [["rejected"], "was rejected", "were rejected"],
  [["responded"], "was answered", "were answered"],
  [["expired"], "expired", "expired"],
  [["cancelled"], "was cancelled", "were cancelled"],
  [["pending"], "is pending", "are pending"],
];

/** "It called this 12 times in the last 30 days: 9 ran well, 3 were rejected." */
export function describeCallCounts(calls: ToolCallCounts, agent: string, days: number): string {
  const total = Object.values(calls.by_status).reduce((sum, count) => sum + count, 0);
  const parts = WORDS.map(([statuses, one, many]) => {
    const count = statuses.reduce((sum, status) => sum + (calls.by_status[status] ?? 0), 0);
    return count ? `${count.toLocaleString("en")} ${count === 1 ? one : many}` : "";
  }).filter(Boolean);
  const times = total === 1 ? "once" : `${total.toLocaleString("en")} times`;
  const told = total
    ? `In the last ${days} days ${agent} called it ${times}: ${parts.join(", ")}.`
    : `In the last ${days} days ${agent} made no recorded calls to it.`;
  const reads = calls.reads
    ? ` It ran without approval ${calls.reads.toLocaleString("en")} times, for all agents.`
    : "";
  return told + reads + (calls.complete ? "" : " Only the newest 100,000 calls were counted.");
}

/** "built in", "configuration file": where an agent comes from. */
export function nameSource(agent: AgentInfo): string {
  const words: Record<AgentInfo["source"], string> = {
    stored: "changed here",
    configuration: "from the configuration file",
    "built-in": "built in",
    calls: "external",
  };
  return words[agent.source];
}

/** The same as a sentence, without its end. */
export function describeOrigin(agent: AgentInfo): string {
  const words: Record<AgentInfo["source"], string> = {
    stored: "This agent was changed here",
    configuration: "This agent comes from the configuration file",
    "built-in": "This agent is built in",
    calls: "This agent runs outside Interlock",
  };
  return words[agent.source];
}
