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

describe("what can be decided together", () => {
  it("is of one tool, waits, deceives nobody and is no high risk", () => {
    expect(blockedReason(row("a"), [row("b")])).toBe("");
    expect(blockedReason(row("a"), [row("b", { tool: "send" })])).toContain("you selected send");
    expect(blockedReason(row("a", { risk: "high" }), [])).toContain("one by one");
    expect(blockedReason(row("a", { alarms: ["bidi:/to"] }), [])).toContain("deceive");
    expect(blockedReason(row("a", { status: "approved" }), [])).toContain("decided already");
  });

  it("is what one may decide by a yes or a no", () => {
    expect(blockedReason(row("a", { may_decide: [] }), [])).toContain("may not");
    expect(blockedReason(row("a", { may_decide: ["respond"] }), [])).toContain("question");
  });

  it("is no more than a person can compare", () => {
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

  it("takes what it can in both directions, and says what it left out", () => {
    const found = selectRange(ids, rows, "d", "a", []);
    expect(found).toEqual({ added: ["a", "c"], refused: 2, why: "High risk is decided one by one." });
  });

  it("adds to what is there", () => {
    expect(selectRange(ids, rows, "a", "c", [row("a")]).added).toEqual(["c"]);
  });
});
