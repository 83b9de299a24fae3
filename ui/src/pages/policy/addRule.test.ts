import { expect, it } from "vitest";
import { addRule } from "./addRule";
import type { RuleInfo } from "./queries";
import { findRuleRanges } from "./Rules";

const NEW = ["- name: new rule", "  tools: [tool_name]", "  then: ask"];

function rule(name: string, line: number, says: Record<string, string> = { tools: "pay" }): RuleInfo {
  return { name, line, says, then: "ask", shadow: false } as unknown as RuleInfo;
}

function added(text: string, rules: RuleInfo[]) {
  const ranges = findRuleRanges(
    text,
    rules.map(({ line }) => line),
  );
  return addRule(text, rules, ranges);
}

it("comes after the last rule, in the same layout", () => {
  const text = "rules:\n- name: a\n  tools: [pay]\n\n# about agents\nagents: {}\n";
  expect(added(text, [rule("a", 2)])).toEqual({
    text: ["rules:", "- name: a", "  tools: [pay]", ...NEW, "", "# about agents", "agents: {}", ""].join(
      "\n",
    ),
    at: 1,
    line: 4,
  });
});

it.each(["", "*", "pay, *", "**"])(
  "comes before the first rule that matches every call: tools %j",
  (tools) => {
    const text = "rules:\n- {name: a}\n- {name: all}\n- {name: b}\n- {name: last}";
    const rules = [rule("a", 2), rule("all", 3, { tools }), rule("b", 4), rule("last", 5, {})];
    expect(added(text, rules)).toMatchObject({ at: 1, line: 3 });
    expect(added("rules:\n- {name: all}", [rule("all", 2, { tools })])).toMatchObject({ at: 0, line: 2 });
  },
);

it("comes after rules that match some calls only, or decide nothing", () => {
  const text = "rules:\n- {name: a}\n- {name: b}\n- {name: c}\n- {name: d}";
  const shadow = { ...rule("d", 5, {}), shadow: true };
  const rules = [rule("a", 2, { tools: "*", effect: "read" }), rule("b", 3, { when: "x" }), rule("c", 4)];
  expect(added(text, [...rules, shadow])).toMatchObject({ at: 4, line: 6 });
  expect(added(text, [...rules, rule("d", 5, { tools: "*_page" })])).toMatchObject({ at: 4, line: 6 });
});

it("comes before the rules at the end that match every call, and their comments", () => {
  const text = "rules:\n  - {name: a, tools: [pay]}\n  # the others\n  - {name: new rule}\n  - {name: last}";
  const found = added(text, [rule("a", 2), rule("new rule", 4, {}), rule("last", 5, { approvers: "ann" })]);
  expect(found).toMatchObject({ at: 1, line: 3 });
  expect(found?.text.split("\n").slice(2, 6)).toEqual([
    "  - name: new rule 2",
    "    tools: [tool_name]",
    "    then: ask",
    "  # the others",
  ]);
});

it.each([
  ["", "version: 1\nrules:\n"],
  ["version: 1\n", "version: 1\nrules:\n"],
  ["version: 1\nrules: []\n", "version: 1\nrules:\n"],
  ["rules:\ndefaults: {}", "rules:\n"],
])("is the first one of %j", (text, start) => {
  const found = added(text, []);
  expect(found?.text.startsWith(`${start}  ${NEW.join("\n  ")}\n`)).toBe(true);
  expect(found?.text.split("\n")[(found.line ?? 0) - 1]).toBe("  - name: new rule");
});

it("is left to the person where rules share lines, or there are none in an unknown layout", () => {
  expect(added("rules: [{name: a}, {name: b}]", [rule("a", 1), rule("b", 1)])).toBeNull();
  expect(added("rules: # none\n  []\n", [])).toBeNull();
});
