import { describe, expect, it } from "vitest";
import type { FeedRow } from "./feed";
import { blockedReason, MAX_SELECTED, selectRange } from "./useSelection";

function row(id: string, more: Partial<FeedRow> = {}): FeedRow {
  const usual = {
    status: "pending",
    risk: "medium",
    alarms: [],
    tool: "pay",
    may_decide: ["approve", "reject"],
  };
  return { id, ...usual, ...more } as unknown as FeedRow;
}

describe("bulk selection", () => {
  it("allows pending approvals of one tool without findings or high risk", () => {
    expect(blockedReason(row("a"), [row("b")])).toBe("");
    expect(blockedReason(row("a"), [row("b", { tool: "send" })])).toContain("you selected send");
    expect(blockedReason(row("a", { risk: "high" }), [])).toContain("one by one");
    expect(blockedReason(row("a", { alarms: ["bidi:/to"] }), [])).toContain("findings");
    expect(blockedReason(row("a", { status: "approved" }), [])).toContain("already decided");
  });

  it("allows only approvals that the user may approve or reject", () => {
    expect(blockedReason(row("a", { may_decide: [] }), [])).toContain("may not");
    expect(blockedReason(row("a", { may_decide: ["respond"] }), [])).toContain("question");
  });

  it("has a maximum size", () => {
    const many = Array.from({ length: MAX_SELECTED }, (_, number) => row(`r${number}`));
    expect(blockedReason(row("a"), many)).toContain("At most");
  });
});

describe("a range", () => {
  const rows = new Map(
    [row("a"), row("b", { risk: "high" }), row("c"), row("d", { tool: "send" })].map((each) => [
      each.id,
      each,
    ]),
  );
  const ids = ["a", "b", "c", "d"];

  it("selects all allowed rows in both directions, and reports the rest", () => {
    const found = selectRange(ids, rows, "d", "a", []);
    expect(found).toEqual({
      added: ["a", "c"],
      refused: 2,
      why: "High-risk approvals are decided one by one.",
    });
  });

  it("adds to the selection", () => {
    expect(selectRange(ids, rows, "a", "c", [row("a")]).added).toEqual(["c"]);
  });
});
