import { describe, expect, it } from "vitest";
import {
  describeCallCounts,
  describeOrigin,
  explainReason,
  isGated,
  liftsGate,
  makeAgentChange,
  makeGateChange,
  remainingRules,
} from "./agentChange";
import type { AgentInfo, ToolCallCounts, ToolInfo, VerdictReason } from "./queries";

const agent = {
  name: "clerk",
  version: 3,
  stored: ["model", "tool_approvals"],
  model: "demo:scripted",
  instructions: "from the file",
  tool_approvals: { a: true, b: false },
} as unknown as AgentInfo;

const tool = (more: Partial<ToolInfo>): ToolInfo =>
  ({
    name: "a",
    asks_by_default: true,
    always_asks: "",
    switch: null,
    reasons: [],
    effect: "write",
    ...more,
  }) as ToolInfo;

const reason = (more: Partial<VerdictReason>): VerdictReason => ({
  verdict: "ask",
  by: "default",
  rule: "",
  conditional: false,
  needs: null,
  answers: [],
  expires_in: null,
  ...more,
});

it("where an agent comes from is a sentence", () => {
  expect(describeOrigin({ ...agent, source: "calls" })).toBe("This agent runs elsewhere");
  expect(describeOrigin({ ...agent, source: "stored" })).toBe("This agent was changed here");
});

describe("a change of an agent", () => {
  it("takes along what was changed here before, and nothing of the file", () => {
    expect(makeAgentChange(agent, { instructions: "new" }, "why")).toEqual({
      body: { model: "demo:scripted", tool_approvals: { a: true, b: false }, instructions: "new" },
      version: 3,
      reason: "why",
    });
  });

  it("says off only where the tool asks by itself", () => {
    expect(makeGateChange(agent, tool({}), false, "").body.tool_approvals).toEqual({ a: false, b: false });
    expect(makeGateChange(agent, tool({ asks_by_default: false }), false, "").body.tool_approvals).toEqual({
      b: false,
    });
    expect(makeGateChange(agent, tool({ name: "c" }), true, "").body.tool_approvals).toEqual({
      a: true,
      b: false,
      c: true,
    });
  });
});

describe("a tool", () => {
  it("is gated by its switch, by its default, or for good", () => {
    expect(isGated(tool({}))).toBe(true);
    expect(isGated(tool({ switch: false }))).toBe(false);
    expect(isGated(tool({ asks_by_default: false }))).toBe(false);
    expect(isGated(tool({ asks_by_default: false, switch: true }))).toBe(true);
    expect(isGated(tool({ switch: false, always_asks: "a question is always for a person" }))).toBe(true);
  });

  it("names the rules that hold whatever the switch says", () => {
    const asking = reason({ by: "rule", rule: "legal" });
    const passing = reason({ by: "rule", rule: "small", verdict: "allow", conditional: true });
    expect(remainingRules(tool({ reasons: [passing, asking] }))).toEqual([asking]);
    expect(liftsGate(tool({ reasons: [asking] }))).toBe(false);
    expect(liftsGate(tool({ reasons: [{ ...asking, conditional: true }, reason({})] }))).toBe(true);
  });

  it("says why it asks", () => {
    expect(explainReason(reason({ by: "rule", rule: "legal", conditional: true }), tool({}))).toBe(
      "It asks by the rule “legal”, depending on the arguments.",
    );
    expect(explainReason(reason({ by: "switch", rule: "all" }), tool({}))).toBe(
      "It asks by the switch, although the rule “all” allows it.",
    );
    expect(explainReason(reason({}), tool({}))).toBe("It asks by default: its effect is write.");
    expect(explainReason(reason({}), tool({ always_asks: "nobody knows" }))).toBe("It asks: nobody knows.");
    expect(explainReason(reason({ verdict: "allow", by: "switch" }), tool({}))).toBe(
      "It runs without asking by the switch.",
    );
  });
});

describe("how often", () => {
  const calls = (by_status: Record<string, number>, more: Partial<ToolCallCounts> = {}): ToolCallCounts => ({
    tool: "a",
    agent: "clerk",
    since: "",
    by_status,
    reads: 0,
    complete: true,
    ...more,
  });

  it("counts by outcome", () => {
    expect(
      describeCallCounts(calls({ succeeded: 1200, rejected: 1, failed: 1, unknown: 1 }), "clerk", 30),
    ).toBe(
      "In the last 30 days clerk called it 1,203 times: 1,200 ran well, 2 did not end well, 1 was rejected.",
    );
  });

  it("says when there is nothing, and when there is more", () => {
    expect(describeCallCounts(calls({}), "clerk", 30)).toContain("did not call it");
    expect(describeCallCounts(calls({ pending: 1 }, { complete: false, reads: 7 }), "clerk", 30)).toBe(
      "In the last 30 days clerk called it once: 1 waits. It ran unasked 7 times, for all agents. " +
        "Only the newest 100,000 calls were looked at.",
    );
  });
});
