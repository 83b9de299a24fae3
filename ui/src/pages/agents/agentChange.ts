import type { Schemas } from "../../api/client";
import type { AgentInfo, ToolCallCounts, ToolInfo, VerdictReason } from "./queries";

/** Omitted fields stay as they are. */
export type AgentFields = Partial<Schemas["AgentBody"]>;

export interface AgentChange {
  body: AgentFields;
  /** The version that is changed; null for a new agent. */
  version: number | null;
  reason: string;
}

/** What happens to a call, in short. */
export const VERDICT_NAMES: Record<ToolInfo["verdict"], string> = {
  ask: "needs approval",
  allow: "runs without approval",
  deny: "denied",
  depends: "depends on the arguments",
};

/** Whether a tool needs approval, by the agent's switch and the tool's default. */
export function isGated(tool: ToolInfo): boolean {
  return tool.always_asks !== "" || (tool.switch ?? tool.asks_by_default);
}

/** Includes earlier stored changes, since omitted fields fall back to the configuration. */
export function makeAgentChange(agent: AgentInfo, fields: AgentFields, reason: string): AgentChange {
  const kept = Object.fromEntries(agent.stored.map((field) => [field, agent[field as keyof AgentFields]]));
  return { body: { ...kept, ...fields }, version: agent.version, reason };
}

/** The switches with this one set: "on" is always stored, "off" only for a tool that asks by default. */
export function setSwitch(
  switches: Record<string, boolean>,
  tool: Pick<ToolInfo, "name" | "asks_by_default">,
  on: boolean,
): Record<string, boolean> {
  const { [tool.name]: _, ...others } = switches;
  if (on) return { ...others, [tool.name]: true };
  return tool.asks_by_default ? { ...others, [tool.name]: false } : others;
}

export function makeGateChange(agent: AgentInfo, tool: ToolInfo, on: boolean, reason: string): AgentChange {
  return makeAgentChange(agent, { tool_approvals: setSwitch(agent.tool_approvals, tool, on) }, reason);
}

/** Rules that ask or deny regardless of the switch. */
export function remainingRules(tool: ToolInfo): VerdictReason[] {
  return tool.reasons.filter((reason) => reason.by === "rule" && reason.verdict !== "allow");
}

/** Whether anything runs without approval once the switch is off: an unconditional rule may match first. */
export function liftsGate(tool: ToolInfo): boolean {
  return tool.reasons.some((reason) => reason.by !== "rule");
}

const VERDICT_LABELS: Record<VerdictReason["verdict"], string> = {
  allow: "runs without approval",
  ask: "needs approval",
  deny: "is denied",
};

/** The reason of a verdict, as a sentence. */
export function explainReason(reason: VerdictReason, tool: ToolInfo): string {
  const verdict = VERDICT_LABELS[reason.verdict];
  const condition = reason.conditional ? ", depending on the arguments" : "";
  if (reason.by === "rule") return `It ${verdict} because of the rule “${reason.rule}”${condition}.`;
  if (reason.by === "switch" && reason.rule)
    return `It ${verdict} because of the switch, although the rule “${reason.rule}” allows it${condition}.`;
  if (reason.by === "switch") return `It ${verdict} because of the switch.`;
  if (tool.always_asks) return `It ${verdict}: ${tool.always_asks}.`;
  return `It ${verdict} by default: ${tool.effect ? `its effect is ${tool.effect}` : "its effect is not declared"}.`;
}

const STATUS_LABELS: [statuses: string[], one: string, many: string][] = [
  [["succeeded"], "succeeded", "succeeded"],
  [["failed", "unknown"], "failed or has an unknown outcome", "failed or have an unknown outcome"],
  [["approved", "running"], "is in progress", "are in progress"],
  [["rejected"], "was rejected", "were rejected"],
  [["responded"], "was answered", "were answered"],
  [["expired"], "expired", "expired"],
  [["cancelled"], "was cancelled", "were cancelled"],
  [["pending"], "is pending", "are pending"],
];

/** "It called this 12 times in the last 30 days: 9 succeeded, 3 were rejected." */
export function describeCallCounts(calls: ToolCallCounts, agent: string, days: number): string {
  const total = Object.values(calls.by_status).reduce((sum, count) => sum + count, 0);
  const parts = STATUS_LABELS.map(([statuses, one, many]) => {
    const count = statuses.reduce((sum, status) => sum + (calls.by_status[status] ?? 0), 0);
    return count ? `${count.toLocaleString("en")} ${count === 1 ? one : many}` : "";
  }).filter(Boolean);
  const times = total === 1 ? "once" : `${total.toLocaleString("en")} times`;
  const callsText = total
    ? `In the last ${days} days ${agent} called it ${times}: ${parts.join(", ")}.`
    : `In the last ${days} days ${agent} made no recorded calls to it.`;
  const reads = calls.reads
    ? ` It ran without approval ${calls.reads.toLocaleString("en")} times, for all agents.`
    : "";
  return callsText + reads + (calls.complete ? "" : " Only the newest 100,000 calls were counted.");
}

/** "built in", "from the configuration file": the origin of an agent. */
export function nameSource(agent: AgentInfo): string {
  const words: Record<AgentInfo["source"], string> = {
    stored: agent.base === null ? "made here" : "changed here",
    configuration: "from the configuration file",
    "built-in": "built in",
    calls: "external",
  };
  return words[agent.source];
}

/** What deleting the settings made here is called on the page. */
export function deletionLabel(agent: AgentInfo): string {
  if (agent.base === "configuration") return "Restore the file’s settings";
  if (agent.base === "built-in") return "Restore built-in settings";
  return agent.base === "calls" ? "Delete settings" : "Delete agent";
}

export function deletionTitle(agent: AgentInfo): string {
  if (agent.base === "configuration") return `Restore the file’s settings of ${agent.name}?`;
  if (agent.base === "built-in") return `Restore the built-in settings of ${agent.name}?`;
  return agent.base === "calls" ? `Delete the settings of ${agent.name}?` : `Delete ${agent.name}?`;
}

/** The origin of an agent, as a sentence without its full stop. */
export function describeOrigin(agent: AgentInfo): string {
  const words: Record<AgentInfo["source"], string> = {
    stored: agent.base === null ? "This agent was made here" : "This agent was changed here",
    configuration:
      "This agent comes from the configuration file. Changes made here are stored and override the file",
    "built-in": "This agent is built in. Changes made here are stored and override it",
    calls: "This agent runs outside Interlock",
  };
  return words[agent.source];
}
