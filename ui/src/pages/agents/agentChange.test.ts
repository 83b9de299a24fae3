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

it("describes the origin of an agent", () => {
  expect(describeOrigin({ ...agent, source: "calls" })).toBe("This agent runs outside Interlock");
  expect(describeOrigin({ ...agent, source: "stored" })).toBe("This agent was changed here");
});

describe("a change of an agent", () => {
  it("includes earlier stored changes, and nothing from the configuration file", () => {
    expect(makeAgentChange(agent, { instructions: "new" }, "why")).toEqual({
      body: { model: "demo:scripted", tool_approvals: { a: true, b: false }, instructions: "new" },
      version: 3,
      reason: "why",
    });
  });

  it("stores off only for a tool that asks by default", () => {
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
  it("is gated by its switch, by its default, or always", () => {
    expect(isGated(tool({}))).toBe(true);
    expect(isGated(tool({ switch: false }))).toBe(false);
    expect(isGated(tool({ asks_by_default: false }))).toBe(false);
    expect(isGated(tool({ asks_by_default: false, switch: true }))).toBe(true);
    expect(isGated(tool({ switch: false, always_asks: "a question is always for a person" }))).toBe(true);
  });

  it("lists the rules that apply regardless of the switch", () => {
    const asking = reason({ by: "rule", rule: "legal" });
    const passing = reason({ by: "rule", rule: "small", verdict: "allow", conditional: true });
    expect(remainingRules(tool({ reasons: [passing, asking] }))).toEqual([asking]);
    expect(liftsGate(tool({ reasons: [asking] }))).toBe(false);
    expect(liftsGate(tool({ reasons: [{ ...asking, conditional: true }, reason({})] }))).toBe(true);
  });

  it("explains its verdict", () => {
    expect(explainReason(reason({ by: "rule", rule: "legal", conditional: true }), tool({}))).toBe(
      "It needs approval because of the rule “legal”, depending on the arguments.",
    );
    expect(explainReason(reason({ by: "switch", rule: "all" }), tool({}))).toBe(
      "It needs approval because of the switch, although the rule “all” allows it.",
    );
    expect(explainReason(reason({}), tool({}))).toBe("It needs approval by default: its effect is write.");
    expect(explainReason(reason({}), tool({ always_asks: "nobody knows" }))).toBe(
      "It needs approval: nobody knows.",
    );
    expect(explainReason(reason({ verdict: "allow", by: "switch" }), tool({}))).toBe(
      "It runs without approval because of the switch.",
    );
  });
});

describe("call counts", () => {
  const calls = (by_status: Record<string, number>, more: Partial<ToolCallCounts> = {}): ToolCallCounts => ({
    tool: "a",
    agent: "clerk",
    since: "",
    by_status,
    reads: 0,
    complete: true,
    ...more,
  });

  it("are listed by outcome", () => {
    expect(
      describeCallCounts(calls({ succeeded: 1200, rejected: 1, failed: 1, unknown: 1 }), "clerk", 30),
    ).toBe(
      "In the last 30 days clerk called it 1,203 times: 1,200 succeeded, 2 failed or have an unknown outcome, 1 was rejected.",
    );
  });

  it("state when there are none, and when not all were counted", () => {
    expect(describeCallCounts(calls({}), "clerk", 30)).toContain("made no recorded calls to it");
    expect(describeCallCounts(calls({ pending: 1 }, { complete: false, reads: 7 }), "clerk", 30)).toBe(
      "In the last 30 days clerk called it once: 1 is pending. It ran without approval 7 times, for all agents. " +
        "Only the newest 100,000 calls were counted.",
    );
  });
});
