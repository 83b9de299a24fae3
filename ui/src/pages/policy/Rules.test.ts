import { describe, expect, it } from "vitest";
import { findRuleRanges, moveRule, removeRule } from "./Rules";

const TEXT = `# All of it
version: 1
rules:
  # reads first
  # because they are many
  - name: a
    effect: read
    then: allow

  # a section

  - name: b
    when: >-
      args.x
      > 5
    then: ask # here
  - {name: c, then: deny}

# about agents
agents: {}
`;
const LINES = [6, 12, 17];

describe("ranges of rules", () => {
  it("include only the comments directly above the rule", () => {
    expect(findRuleRanges(TEXT, LINES)).toEqual([
      { first: 3, end: 8 },
      { first: 11, end: 16 },
      { first: 16, end: 17 },
    ]);
  });

  it("are null when rules share lines", () => {
    expect(findRuleRanges("rules: [{name: a, then: deny}, {name: b, then: ask}]", [1, 1])).toBeNull();
    expect(findRuleRanges("rules:\n  - name: a\n  -\n    name: b\n", [2, 4])).toBeNull();
    expect(findRuleRanges("", [])).toBeNull();
  });

  it("end at the end of the file for the last rule", () => {
    expect(findRuleRanges("rules:\n- name: a\n  then: deny\n- name: b\n  then: ask", [2, 4])).toEqual([
      { first: 1, end: 3 },
      { first: 3, end: 5 },
    ]);
  });
});

describe("moving and removing", () => {
  const ranges = findRuleRanges(TEXT, LINES) ?? [];

  it("swaps two rules and keeps every line", () => {
    const down = moveRule(TEXT, ranges, 0, 1);
    expect(down.split("\n").sort()).toEqual(TEXT.split("\n").sort());
    expect(down.indexOf("name: b")).toBeLessThan(down.indexOf("# reads first"));
    expect(down.indexOf("# reads first")).toBeLessThan(down.indexOf("name: a"));
    expect(moveRule(TEXT, ranges, 1, 0)).toBe(down);
  });

  it("restores the same text when moved back", () => {
    const once = moveRule(TEXT, ranges, 1, 2);
    const again = findRuleRanges(once, [6, 12, 13]) ?? [];
    expect(moveRule(once, again, 2, 1)).toBe(TEXT);
  });

  it("removes a rule with its comments", () => {
    const first = removeRule(TEXT, ranges, 0);
    expect(first).not.toContain("because they are many");
    expect(first).toContain("# All of it");
    const last = removeRule(TEXT, ranges, 2);
    expect(last).toContain("then: ask # here\n\n# about agents");
    expect(last).not.toContain("name: c");
  });
});
