import type { AgentActivity, AgentActivityDetails } from "../../api/activity";
import type { FreezeInfo } from "../../components/FreezeBanner";
import * as messages from "./messages";
import type { AgentInfo } from "./queries";

export type ToolActivity = AgentActivityDetails["tools"][number];

/** An agent that is configured or made a call, or one that only has a key so far. */
export interface ListedAgent {
  name: string;
  info?: AgentInfo;
  activity?: AgentActivity;
}

/**
 * All agents once: those seen last come first, those never seen last, by name. An unknown agent with calls was deleted;
 * one without calls only has a key so far.
 */
export function mergeAgents(agents: AgentInfo[], activities: AgentActivity[]): ListedAgent[] {
  const infos = new Map(agents.map((info) => [info.name, info]));
  const listedActivities = activities.filter(
    ({ name, last_approval_id }) => infos.has(name) || !last_approval_id,
  );
  const byName = new Map(listedActivities.map((activity) => [activity.name, activity]));
  const listed = [...new Set([...infos.keys(), ...byName.keys()])].map((name) => ({
    name,
    info: infos.get(name),
    activity: byName.get(name),
  }));
  const seen = ({ activity }: ListedAgent) => Date.parse(activity?.last_seen_at ?? "") || 0;
  return listed.sort((one, other) => seen(other) - seen(one) || one.name.localeCompare(other.name));
}

/** The freeze that stops an agent, if any; names are compared as the server does for plain letters. */
export function findFreeze(freezes: FreezeInfo[], agent: string): FreezeInfo | undefined {
  const fold = (name: string) => name.trim().normalize("NFKC").toLowerCase();
  return freezes.find(
    ({ scope, name }) => scope === "workspace" || (scope === "agent" && fold(name) === fold(agent)),
  );
}

/** What a freeze of an agent does, in sentences. */
export function describeFreeze(agent: string, pending: number): string[] {
  const open = messages.openRequestsStay(pending);
  return [
    messages.callsAreRefusedUntilUnfrozen(agent),
    ...(pending > 0 ? [open] : []),
    messages.callsThatAreRunningFinish,
    messages.itAlsoStops(agent),
  ];
}

/** "41 calls: 30 approved, 5 with changes, 6 rejected" */
export function describeUse(tool: Omit<ToolActivity, "tool" | "first_used_at" | "last_used_at">): string {
  const parts: [number, string][] = [
    [tool.allowed, messages.withoutAsking],
    [tool.approved, messages.approvedResult],
    [tool.edited, messages.approvedWithChanges],
    [tool.rejected, messages.rejected],
    [tool.responded, messages.answered],
    [tool.expired, messages.expired],
    [tool.cancelled, messages.cancelled],
    [tool.pending, messages.pending],
  ];
  const told = parts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count.toLocaleString("en")} ${word}`);
  if (!tool.calls) return messages.noCallsWithRecord;
  return `${countText(tool.calls, messages.call)}: ${told.join(", ")}`;
}

/** "1 call", "2 calls" */
export function countText(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

export function percentText(part: number, whole: number): string {
  return whole ? `${Math.round((part / whole) * 100)} %` : "–";
}
