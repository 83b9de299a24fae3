import { expect, it } from "vitest";
import type { AgentActivity } from "../../api/activity";
import type { FreezeInfo } from "../../components/FreezeBanner";
import { describeFreeze, describeUse, findFreeze, mergeAgents, percentText } from "./activity";
import type { AgentInfo } from "./queries";

const seen = (name: string, last_seen_at: string | null) => ({ name, last_seen_at }) as AgentActivity;
const known = (name: string) => ({ name }) as AgentInfo;
const freeze = (scope: string, name: string) => ({ scope, name }) as FreezeInfo;
const NOTHING = {
  calls: 0,
  allowed: 0,
  approved: 0,
  edited: 0,
  rejected: 0,
  responded: 0,
  expired: 0,
  cancelled: 0,
  pending: 0,
};

it("lists every agent once, the one that was seen last first", () => {
  const listed = mergeAgents(
    [known("zoe"), known("old"), known("bot")],
    [seen("old", "2026-11-01T00:00:00Z"), seen("bot", "2026-11-02T00:00:00Z"), seen("key-only", null)],
  );
  expect(listed.map(({ name }) => name)).toEqual(["bot", "old", "key-only", "zoe"]);
  expect(listed.find(({ name }) => name === "key-only")?.info).toBeUndefined();
});

it("does not list an agent that was deleted after its calls", () => {
  const deleted = { ...seen("gone", "2026-11-02T00:00:00Z"), last_approval_id: "a1" };
  expect(mergeAgents([known("bot")], [deleted]).map(({ name }) => name)).toEqual(["bot"]);
  expect(mergeAgents([known("gone")], [deleted])[0]?.activity).toBe(deleted);
});

it("finds the freeze that covers an agent", () => {
  expect(findFreeze([freeze("agent", "Bot ")], "bot")).toBeDefined();
  expect(findFreeze([freeze("workspace", "")], "bot")).toBeDefined();
  expect(
    findFreeze([freeze("tool", "bot"), freeze("key", "bot"), freeze("agent", "other")], "bot"),
  ).toBeUndefined();
});

it("says before a freeze what becomes of pending requests", () => {
  expect(describeFreeze("bot", 0).join(" ")).not.toContain("pending");
  expect(describeFreeze("bot", 1)[1]).toBe(
    "Its pending request stays open: people can still decide, and its deadline is paused.",
  );
  expect(describeFreeze("bot", 2)[1]).toContain("Its 2 pending requests stay open");
});

it("says what became of calls", () => {
  expect(describeUse({ ...NOTHING, calls: 3, approved: 2, edited: 1 })).toBe(
    "3 calls: 2 approved, 1 approved with changes",
  );
  expect(describeUse({ ...NOTHING, calls: 1, pending: 1 })).toBe("1 call: 1 pending");
  expect(describeUse(NOTHING)).toBe("No calls with a record");
  expect([percentText(1, 4), percentText(0, 0)]).toEqual(["25 %", "–"]);
});
