import { expect, it } from "vitest";
import {
  describePending,
  describeShares,
  formatDuration,
  formatMoment,
  listWaiting,
  withOutcomes,
  type OutcomeCounts,
  type StatsHistory,
} from "./statsHistory";

const NONE = {
  approved: 0,
  edited: 0,
  responded: 0,
  rejected: 0,
  expired: 0,
  cancelled: 0,
  allowed: 0,
  refused: 0,
};

it("formats durations in one unit", () => {
  expect([null, 0.4, 40, 60, 90, 5400, 36_000, 172_800].map(formatDuration)).toEqual([
    "–",
    "400 ms",
    "40 s",
    "1 min",
    "1.5 min",
    "1.5 h",
    "10 h",
    "2 d",
  ]);
});

it("labels an interval by its length", () => {
  expect(formatMoment("2027-01-15T12:00:00Z", 86_400)).toMatch(/15/);
  expect(formatMoment("2027-01-15T12:00:00Z", 3_600)).toMatch(/\d\d:00/);
});

it("leaves out calls without an outcome", () => {
  const shares: OutcomeCounts[] = [
    { ...NONE, name: "pay", approved: 2, expired: 1 },
    { ...NONE, name: "look", refused: 3 },
  ];
  expect(withOutcomes(shares).map(({ name, total }) => [name, total])).toEqual([["pay", 3]]);
});

it("sums pending calls by approver", () => {
  const waiting: StatsHistory["waiting"] = [
    { agent: "bot", kind: "team", on: "finance", pending: 2, oldest_seconds: 5 },
    { agent: "office", kind: "team", on: "finance", pending: 1, oldest_seconds: 9 },
    { agent: "", kind: "anyone", on: "", pending: 4, oldest_seconds: 1 },
  ];
  expect(listWaiting({ waiting } as StatsHistory)).toEqual([
    { on: "Any reviewer", pending: 4, oldest: 1, agents: "(no name) 4" },
    { on: "Team finance", pending: 3, oldest: 9, agents: "bot 2, office 1" },
  ]);
});

it("says what stands out", () => {
  const at = (time: string, pending: number) => ({ time, pending });
  expect(describePending([at("Mon", 2), at("Tue", 7), at("Wed", 1)])).toBe("At most 7, Tue; 1 now.");
  expect(describePending([at("Mon", 0)])).toBe("No call waited at the end of any interval.");
  const shares = withOutcomes([
    { ...NONE, name: "pay", approved: 6, edited: 1, rejected: 1 },
    { ...NONE, name: "run_sql", approved: 2, rejected: 4 },
  ]);
  expect(describeShares(shares, "tool")).toBe("Most calls of run_sql are rejected: 4 of 6.");
  expect(describeShares(shares.slice(0, 1), "tool")).toBe(
    "By tool: people approved 7 of the 8 calls that ended.",
  );
});
