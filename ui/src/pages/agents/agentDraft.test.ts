import { describe, expect, it } from "vitest";
import {
  changedFields,
  copyName,
  draftChange,
  draftOf,
  isChanged,
  nameProblem,
  newDraft,
  rebase,
  relaxedTools,
} from "./agentDraft";
import type { AgentInfo } from "./queries";

const agent = {
  name: "clerk",
  version: 3,
  model: "",
  instructions: "Use few words.",
  tools: ["cms", "okr_list_*"],
  tool_approvals: { cms_delete_page: true, http_get: false },
  agents: [],
  limits: { turns: 20, time: "10m" },
  stored: ["limits"],
} as unknown as AgentInfo;

describe("changes", () => {
  it("sends no unchanged field, and does not mind the order of a list", () => {
    expect(changedFields(draftOf(agent))).toEqual({});
    expect(changedFields({ ...draftOf(agent), tools: ["okr_list_*", "cms"] })).toEqual({});
  });

  it("sends changed fields as the API names them", () => {
    const filled = { ...draftOf(agent), tools: ["cms", "http_get"], turns: "", tokens: " 9000 " };
    expect(changedFields(filled)).toEqual({
      tools: ["cms", "http_get"],
      limits: { tokens: 9000, time: "10m" },
    });
  });

  it("leaves it to the server to refuse a limit that is not a number", () => {
    expect(changedFields({ ...draftOf(agent), turns: "many" }).limits).toEqual({
      turns: "many",
      time: "10m",
    });
  });

  it("keeps what was stored before, and is bound to the version that it began with", () => {
    const change = draftChange({ ...draftOf(agent), model: "demo:scripted", reason: " Faster. " });
    expect(change).toEqual({
      body: { limits: agent.limits, model: "demo:scripted" },
      version: 3,
      reason: "Faster.",
    });
  });

  it("sends all of a new agent, bound to there being none", () => {
    const change = draftChange({ ...newDraft(), name: "new", instructions: "Be kind." });
    expect(change.version).toBeNull();
    expect(change.body).toEqual({
      model: "",
      instructions: "Be kind.",
      tools: [],
      tool_approvals: {},
      agents: [],
      limits: {},
    });
  });

  it("knows whether there is something to lose", () => {
    expect(isChanged(draftOf(agent), draftOf(agent))).toBe(false);
    expect(isChanged({ ...draftOf(agent), reason: "x" }, draftOf(agent))).toBe(true);
  });

  it("applies the same changes to the agent as somebody else left it", () => {
    const mine = { ...draftOf(agent), instructions: "Be brief.", reason: "Shorter." };
    const theirs = { ...agent, version: 4, instructions: "Talk.", limits: { turns: 5 } };
    const merged = rebase(mine, theirs);
    expect(merged.base?.version).toBe(4);
    expect(merged).toMatchObject({ instructions: "Be brief.", turns: "5", time: "", reason: "Shorter." });
  });
});

describe("switches", () => {
  it("finds the tools that would ask less often", () => {
    expect(relaxedTools(draftOf(agent))).toEqual([]);
    expect(relaxedTools({ ...draftOf(agent), tool_approvals: { http_get: false } })).toEqual([
      "cms_delete_page",
    ]);
    expect(relaxedTools(newDraft(agent))).toEqual(["http_get"]);
  });
});

describe("names", () => {
  it("accepts what can be called as a sub-agent", () => {
    expect(nameProblem("night-clerk_2")).toBe("");
    for (const name of ["", "a b", "сlerk", "a/b", "x".repeat(59)]) expect(nameProblem(name)).not.toBe("");
  });

  it("gives a copy a free name", () => {
    expect(copyName("clerk", [])).toBe("clerk-copy");
    expect(copyName("clerk", ["Clerk-Copy", "clerk-copy-2"])).toBe("clerk-copy-3");
    expect(nameProblem(copyName("Büro Nord/2".repeat(20), []))).toBe("");
  });
});
