import { describe, expect, it } from "vitest";
import {
  describeMatch,
  describeVerdict,
  keepsRules,
  listTerms,
  parseProblem,
  summarizeDiff,
} from "./describePolicy";
import type { PolicyDiff, RuleChange, RuleInfo } from "./queries";

const rule = (then: RuleInfo["then"], says: Record<string, string> = {}, name = "r"): RuleInfo => ({
  name,
  line: 1,
  then,
  shadow: false,
  says: { then, ...says },
});

describe("the description of a rule", () => {
  it("names the calls that it matches", () => {
    expect(describeMatch(rule("deny"))).toBe("Every call");
    expect(
      describeMatch(rule("ask", { tools: "pay, refund_*", effect: "destructive, write", agents: "bot" })),
    ).toBe("Calls of pay, refund_*, that are destructive or write, by bot");
  });

  it("names the verdict and its terms", () => {
    expect(describeVerdict(rule("allow"))).toBe("run at once");
    expect(describeVerdict(rule("deny"))).toBe("are denied");
    expect(listTerms(rule("deny", { reason: "Not here." }))).toEqual([["Message to the agent", "Not here."]]);
    expect(describeVerdict(rule("ask", { approvers: "2 of team finance" }))).toBe(
      "wait for 2 of team finance",
    );
    expect(describeVerdict(rule("ask"))).toContain("a reviewer or an admin");
    expect(listTerms(rule("ask", { expires_in: "30m", exclude: "requester" }))).toEqual([
      ["May not decide", "requester"],
      ["Expires after", "30m"],
    ]);
  });
});

it("parses the line number of a problem", () => {
  expect(parseProblem('line 12: unknown key "qourum"')).toEqual({
    line: 12,
    message: 'unknown key "qourum"',
  });
  expect(parseProblem("The policy is not UTF-8.")).toEqual({ line: 0, message: "The policy is not UTF-8." });
});

it("summarizes a diff", () => {
  const kinds = (...all: RuleChange["kind"][]) =>
    ({ rules: all.map((kind) => ({ kind })), defaults: [], agents: [] }) as unknown as PolicyDiff;
  expect(summarizeDiff(kinds("added", "changed", "changed"))).toBe("1 rule added, 2 changed");
  expect(
    summarizeDiff({ ...kinds("removed", "removed"), defaults: [{ key: "x", old: null, new: "1" }] }),
  ).toBe("2 rules removed; defaults changed");
  expect(summarizeDiff(kinds())).toBe("");
  expect(summarizeDiff(null)).toBe("");
});

it("detects a move that changed more than intended", () => {
  const [a, b] = [rule("ask", {}, "a"), rule("deny", {}, "b")];
  expect(keepsRules([a, b], [1, 0], [b, a])).toBe(true);
  expect(keepsRules([a, b], [1, 0], [b, { ...a, says: { then: "ask", quorum: "2" } }])).toBe(false);
  expect(keepsRules([a, b], [0], [b])).toBe(false);
  expect(keepsRules([a, b], [1], [{ ...b, line: 9 }])).toBe(true);
});
