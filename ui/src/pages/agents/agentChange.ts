import type { Schemas } from "../../api/client";
import * as messages from "./messages";
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
  ask: messages.needsApproval,
  allow: messages.runsWithoutApproval,
  deny: messages.denied,
  depends: messages.dependsOnArguments,
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

/** The reason of a verdict, as a sentence. */
export function explainReason(reason: VerdictReason, tool: ToolInfo): string {
  const verdict = messages.VERDICT_LABELS[reason.verdict];
  const condition = reason.conditional ? messages.dependingOnArguments : "";
  if (reason.by === "rule") return messages.becauseOfRule(verdict, reason.rule, condition);
  if (reason.by === "switch" && reason.rule)
    return messages.becauseOfSwitchAlthough(verdict, reason.rule, condition);
  if (reason.by === "switch") return messages.becauseOfSwitch(verdict);
  if (tool.always_asks) return messages.becauseItAlwaysAsks(verdict, tool.always_asks);
  return messages.byDefault(verdict, tool.effect);
}

/** "It called this 12 times in the last 30 days: 9 succeeded, 3 were rejected." */
export function describeCallCounts(calls: ToolCallCounts, agent: string, days: number): string {
  const total = Object.values(calls.by_status).reduce((sum, count) => sum + count, 0);
  const parts = messages.STATUS_LABELS.map(([statuses, one, many]) => {
    const count = statuses.reduce((sum, status) => sum + (calls.by_status[status] ?? 0), 0);
    return count ? `${count.toLocaleString("en")} ${count === 1 ? one : many}` : "";
  }).filter(Boolean);
  const times = messages.timesCalled(total);
  const callsText = total
    ? messages.calledInDays(days, agent, times, parts.join(", "))
    : messages.noCallsInDays(days, agent);
  const reads = calls.reads ? messages.ranWithoutApproval(calls.reads) : "";
  return messages.onlyNewestCounted(calls.complete, callsText + reads);
}

/** "built in", "from the configuration file": the origin of an agent. */
export function nameSource(agent: AgentInfo): string {
  const words: Record<AgentInfo["source"], string> = {
    stored: agent.base === null ? messages.madeHere : messages.changedHere,
    configuration: messages.fromConfigurationFile,
    "built-in": messages.builtIn,
    calls: "external",
  };
  return words[agent.source];
}

/** What deleting the settings made here is called on the page. */
export function deletionLabel(agent: AgentInfo): string {
  if (agent.base === "configuration") return messages.restoreFilesSettings;
  if (agent.base === "built-in") return messages.restoreBuiltInSettings;
  return agent.base === "calls" ? messages.deleteSettings : messages.deleteAgent;
}

export function deletionTitle(agent: AgentInfo): string {
  if (agent.base === "configuration") return messages.restoreFilesSettingsOf(agent.name);
  if (agent.base === "built-in") return messages.restoreBuiltInSettingsOf(agent.name);
  return agent.base === "calls"
    ? messages.deleteSettingsOf(agent.name)
    : messages.deleteAgentNamed(agent.name);
}

/** The origin of an agent, as a sentence without its full stop. */
export function describeOrigin(agent: AgentInfo): string {
  const words: Record<AgentInfo["source"], string> = {
    stored: agent.base === null ? messages.wasMadeHere : messages.wasChangedHere,
    configuration: messages.comesFromFile,
    "built-in": messages.isBuiltIn,
    calls: messages.runsOutsideInterlock,
  };
  return words[agent.source];
}
