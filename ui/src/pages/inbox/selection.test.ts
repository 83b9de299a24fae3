import { describe, expect, it } from "vitest";
import type { Row } from "./feed";
import { hindrance, MOST, range } from "./selection";

function row(id: string, more: Partial<Row> = {}): Row {
  const usual = {
    status: "pending",
    risk: "medium",
    alarms: [],
    tool: "pay",
    may_decide: ["approve", "reject"],
  };
  return { id, ...usual, ...more } as unknown as Row;
}

describe("what can be decided together", () => {
  it("is of one tool, waits, deceives nobody and is no high risk", () => {
    expect(hindrance(row("a"), [row("b")])).toBe("");
    expect(hindrance(row("a"), [row("b", { tool: "send" })])).toContain("you selected send");
    expect(hindrance(row("a", { risk: "high" }), [])).toContain("one by one");
    expect(hindrance(row("a", { alarms: ["bidi:/to"] }), [])).toContain("deceive");
    expect(hindrance(row("a", { status: "approved" }), [])).toContain("decided already");
  });

  it("is what one may decide by a yes or a no", () => {
    expect(hindrance(row("a", { may_decide: [] }), [])).toContain("may not");
    expect(hindrance(row("a", { may_decide: ["respond"] }), [])).toContain("question");
  });

  it("is no more than a person can compare", () => {
    const many = Array.from({ length: MOST }, (_, number) => row(`r${number}`));
    expect(hindrance(row("a"), many)).toContain("At most");
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
    const found = range(ids, rows, "d", "a", []);
    expect(found).toEqual({ added: ["a", "c"], refused: 2, why: "High risk is decided one by one." });
  });

  it("adds to what is there", () => {
    expect(range(ids, rows, "a", "c", [row("a")]).added).toEqual(["c"]);
  });
});
