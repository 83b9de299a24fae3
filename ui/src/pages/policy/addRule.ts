import * as messages from "./messages";
import type { RuleInfo } from "./queries";
import type { RuleRange } from "./Rules";

/** A text with one more rule, its place among the rules, and its line, from 1. */
interface AddedRule {
  text: string;
  at: number;
  line: number;
}

/**
 * Adds a rule that asks about one tool, which has yet to be named: before the first rule that matches every call, after
 * which it would never count. Null if the text has to be edited by hand.
 */
export function addRule(text: string, rules: RuleInfo[], ranges: RuleRange[] | null): AddedRule | null {
  const lines = text.split("\n");
  if (!rules.length) return addFirstRule(lines);
  const dash = /^ *(?=- )/.exec(lines[(rules[0]?.line ?? 0) - 1] ?? "");
  if (!ranges || !dash) return null;
  const catchAll = rules.findIndex(matchesEveryCall);
  const place = catchAll < 0 ? rules.length : catchAll;
  const first = ranges[place]?.first ?? ranges.at(-1)?.end ?? 0;
  return insert(lines, first, 0, ruleLines(dash[0], freeName(rules)), place);
}

function addFirstRule(lines: string[]): AddedRule | null {
  const at = lines.findIndex((line) => line.startsWith("rules:"));
  const added = ["rules:", ...ruleLines("  ", freeName([]))];
  if (at >= 0)
    return /^rules:\s*(\[\s*\])?\s*$/.test(lines[at] ?? "") ? insert(lines, at, 1, added, 0) : null;
  const end = lines.findLastIndex((line) => line.trim() !== "") + 1;
  return insert(lines, end, 0, end ? added : ["version: 1", ...added], 0);
}

function insert(lines: string[], first: number, removed: number, added: string[], at: number): AddedRule {
  const line = first + added.findIndex((each) => each.trimStart().startsWith("- ")) + 1;
  return { text: lines.toSpliced(first, removed, ...added).join("\n"), at, line };
}

const ruleLines = (indent: string, name: string) => [
  `${indent}- name: ${name}`,
  `${indent}  tools: [tool_name]`,
  `${indent}  then: ask`,
];

function freeName(rules: RuleInfo[]): string {
  const names = new Set(rules.map(({ name }) => name));
  for (let number = 1; ; number++) {
    const name = number === 1 ? messages.newRule : `${messages.newRule} ${number}`;
    if (!names.has(name)) return name;
  }
}

const CONDITIONS = ["effect", "agents", "users", "teams", "priorities", "when"];

/** A rule in shadow mode decides nothing, so others count after it. */
const matchesEveryCall = ({ says, shadow }: RuleInfo) =>
  !shadow && matchesEveryTool(says.tools ?? "") && !CONDITIONS.some((name) => says[name]);

const matchesEveryTool = (tools: string) => !tools || tools.split(", ").some((each) => /^\*+$/.test(each));
