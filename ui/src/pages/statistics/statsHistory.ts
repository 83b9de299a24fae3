import type { Schemas } from "../../api/client";
import * as messages from "./messages";

export type StatsHistory = Schemas["StatsHistory"];
export type OutcomeCounts = Schemas["OutcomeCounts"];
type Part = Schemas["StatsInterval"];

/** A color and a label for every outcome; distinguishable in grey, in dark mode, and with color blindness. */
export const OUTCOMES = [
  { name: "approved", label: messages.approved, color: "var(--approved)" },
  { name: "edited", label: messages.approvedWithChanges, color: "var(--edited)" },
  { name: "responded", label: messages.answered, color: "var(--responded)" },
  { name: "rejected", label: messages.rejected, color: "var(--rejected)" },
  { name: "expired", label: messages.expired, color: "var(--expired)" },
  { name: "cancelled", label: messages.cancelled, color: "var(--cancelled)" },
  { name: "allowed", label: messages.allowedWithoutApproval, color: "var(--allowed)" },
] as const;

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

/** "1.5 h", "40 s": two digits are enough. */
export function formatDuration(seconds: number | null): string {
  if (seconds === null) return "–";
  if (seconds > 0 && seconds < 1) return messages.milliseconds(Math.max(1, Math.round(seconds * 1_000)));
  const [size, name] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
  const value = seconds / size;
  return `${value >= 10 ? Math.round(value) : Number(value.toFixed(1))} ${name}`;
}

/** The start of an interval: hours within a day, otherwise days. */
export function formatMoment(at: string, step: number): string {
  const day = { month: "short", day: "numeric" } as const;
  const hour = { hour: "2-digit", minute: "2-digit" } as const;
  return new Date(at).toLocaleString(
    undefined,
    step >= 86_400 ? day : step > 3_600 ? { ...day, ...hour } : hour,
  );
}

export const listIntervals = ({ parts, step_seconds }: StatsHistory) =>
  parts.map((part: Part) => ({ ...part, time: formatMoment(part.at, step_seconds) }));

/** Tools or agents with outcomes, without those that only have pending calls. */
export const withOutcomes = (shares: OutcomeCounts[]): (OutcomeCounts & { total: number })[] =>
  shares
    .map((share) => ({ ...share, name: share.name || "(no name)", total: total(share) }))
    .filter((share) => share.total > 0);

const total = (share: OutcomeCounts): number => OUTCOMES.reduce((sum, { name }) => sum + share[name], 0);

/** "At most 27, Nov 13; 18 now." */
export function describePending(data: { time: string; pending: number }[]): string {
  const most = Math.max(0, ...data.map(({ pending }) => pending));
  if (most === 0) return messages.noCallWaited;
  const peak = data.findLast(({ pending }) => pending === most);
  const now = data.at(-1)?.pending ?? 0;
  if (now === most) return messages.nowMostInThisPeriod(now);
  return messages.atMostThenNow(most, peak?.time, now);
}

export function describeTimes({ p50_seconds, p95_seconds }: StatsHistory): string {
  if (p50_seconds === null) return messages.nobodyDecidedInThisPeriod;
  return messages.decidedWithin(formatDuration(p50_seconds), formatDuration(p95_seconds));
}

const ENOUGH = 5; // calls, from which on a share says something

/** What stands out among the outcomes: where people reject most, else how much they approve. */
export function describeShares(data: (OutcomeCounts & { total: number })[], of: string): string {
  const rejected = data
    .filter((share) => share.total >= ENOUGH && share.rejected * 2 > share.total)
    .sort((one, other) => other.rejected / other.total - one.rejected / one.total)[0];
  if (rejected) return messages.mostAreRejected(rejected.name, rejected.rejected, rejected.total);
  const total = data.reduce((sum, share) => sum + share.total, 0);
  const approved = data.reduce((sum, share) => sum + share.approved + share.edited, 0);
  return messages.peopleApproved(of, approved, total);
}

interface WaitingCalls {
  on: string;
  pending: number;
  oldest: number;
  agents: string;
}

/** Pending calls by person or team, with the oldest and the agents. */
export function listWaiting({ waiting }: StatsHistory): WaitingCalls[] {
  const found = new Map<string, WaitingCalls & { agentCounts: string[] }>();
  for (const { kind, on, agent, pending, oldest_seconds } of waiting) {
    const name = kind === "anyone" ? messages.anyReviewer : kind === "team" ? messages.teamNamed(on) : on;
    const now = found.get(name) ?? { on: name, pending: 0, oldest: 0, agents: "", agentCounts: [] };
    now.pending += pending;
    now.oldest = Math.max(now.oldest, oldest_seconds);
    now.agentCounts.push(messages.agentPending(agent, pending));
    found.set(name, now);
  }
  return [...found.values()]
    .map(({ agentCounts, ...rest }) => ({ ...rest, agents: agentCounts.join(", ") }))
    .sort((a, b) => b.pending - a.pending);
}
