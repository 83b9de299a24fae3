import { describe, expect, it } from "vitest";
import type { ApprovalSnapshot } from "../../api/approvals";
import { describeDecided, summarizeResult } from "./cardLine";

type Change = Partial<Pick<ApprovalSnapshot, "status" | "decision">> & { timeline?: unknown[] };

const BY_BOB = {
  kind: "approve",
  by: "bob",
  at: "2027-01-15T14:21:00Z",
  via: "web",
  reason: "",
  comment: "",
};
const STARTED = { kind: "started", at: "2027-01-15T14:21:01.000Z" };

function decided({ status = "succeeded", decision = BY_BOB, timeline = [] }: Change) {
  return describeDecided({ status, decision, timeline } as unknown as ApprovalSnapshot);
}

describe("the line of a decided request", () => {
  it("does not exist while it is open", () => {
    expect(decided({ status: "pending", decision: null })).toBeNull();
  });

  it("says who decided, and how long the call took", () => {
    const timeline = [STARTED, { kind: "succeeded", at: "2027-01-15T14:21:02.234Z" }];
    expect(decided({ timeline })).toEqual({
      tone: "good",
      decision: "Approved",
      by: "bob",
      at: "2027-01-15T14:21:00Z",
      outcome: "Done in 1.2 s",
    });
  });

  it("does not say that a call took no time", () => {
    const timeline = [STARTED, { kind: "succeeded", at: "2027-01-15T14:21:01.049Z" }];
    expect(decided({ timeline })?.outcome).toBe("Done");
  });

  it("counts the changes", () => {
    const edited = { kind: "edited", seq: 1, actor: "bob", content: { changed: 2, changes: [] } };
    expect(decided({ timeline: [edited] })?.decision).toBe("Approved with 2 changes");
  });

  it.each([
    ["approved", "Approved", "Starting", "working"],
    ["running", "Approved", "Running", "working"],
    ["failed", "Approved", "Failed after 2 min", "bad"],
    ["unknown", "Approved", "Check the outcome", "unknown"],
    ["rejected", "Rejected", "", "bad"],
    ["responded", "Answered", "", "good"],
    ["cancelled", "Withdrawn", "", "over"],
    ["expired", "Approved, not started in time", "", "over"],
  ] as const)("of a request that is %s", (status, decision, outcome, tone) => {
    const timeline = [STARTED, { kind: "failed", at: "2027-01-15T14:23:01.000Z" }];
    expect(decided({ status, timeline })).toMatchObject({ decision, outcome, tone });
  });

  it("says that nobody answered", () => {
    expect(decided({ status: "expired", decision: null })).toMatchObject({
      decision: "Expired",
      by: "",
      at: "",
    });
  });
});

it.each([
  [{ pages: [1, 2, 3] }, "pages: 3"],
  [{ open_issues: [], next: null }, "open issues: 0"],
  [[1, 2], "2 found"],
  [{ a: [], b: [] }, ""],
  ["text", ""],
  [null, ""],
])("summarizes the result %j", (result, words) => {
  expect(summarizeResult(result)).toBe(words);
});
