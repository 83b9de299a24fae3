import * as messages from "./messages";
import type { PolicyCheck, PolicyDiff, RuleInfo, Verdict } from "./queries";

/** A problem and its line; line 0 means the whole policy. */
export interface PolicyProblem {
  line: number;
  message: string;
}

/** Parses "line 12: unknown key …". */
export function parseProblem(text: string): PolicyProblem {
  const found = /^line (\d+): (.*)$/s.exec(text);
  return found ? { line: Number(found[1]), message: found[2] ?? "" } : { line: 0, message: text };
}

export const listProblems = (checked: PolicyCheck | undefined) => checked?.problems.map(parseProblem) ?? [];

/** The calls that a rule matches. */
export function describeMatch({ says }: RuleInfo): string {
  const parts = [
    says.tools && messages.callsOfTools(says.tools),
    says.effect &&
      messages.thatDo(
        says.effect
          .split(", ")
          .map((effect) => messages.EFFECT_LABELS[effect] ?? effect)
          .join(messages.orSeparator),
      ),
    says.agents && messages.callsBy(says.agents),
    says.users && messages.callsFor(says.users),
    says.teams && messages.forPeopleOf(says.teams),
    says.priorities && messages.withPriority(says.priorities),
  ].filter(Boolean);
  return parts.length ? messages.callsMatching(parts.join(", ")) : messages.everyCall;
}

/** Their verdict. */
export function describeVerdict({ says, then }: RuleInfo): string {
  if (then === "allow") return messages.runAtOnce;
  if (then === "deny") return messages.areDenied;
  return messages.waitFor(says.approvers);
}

/** The other terms of a rule. */
export function listTerms({ says }: RuleInfo): [name: string, value: string][] {
  return messages.TERMS.flatMap(([key, name]) => (says[key] ? [[name, says[key]] as [string, string]] : []));
}

export const VERDICT_STYLES: Record<Verdict, { name: string; done: string; color: string }> = {
  allow: { name: messages.allowVerdict, done: messages.allowed, color: "teal" },
  ask: { name: messages.askVerdict, done: messages.asked, color: "indigo" },
  deny: { name: messages.denyVerdict, done: messages.denied, color: "red" },
};

/** "1 rule added, 2 changed; defaults changed", or "" without changes. */
export function summarizeDiff(diff: PolicyDiff | null | undefined): string {
  if (!diff) return "";
  const count = (kind: string) => diff.rules.filter((rule) => rule.kind === kind).length;
  const rules = ["added", "removed", "changed", "renamed", "moved"]
    .map((kind) => [count(kind), kind] as const)
    .filter(([number]) => number)
    .map(([number, kind], at) =>
      at ? `${number} ${kind}` : `${number} ${number === 1 ? "rule" : "rules"} ${kind}`,
    );
  const parts = [
    rules.join(", "),
    diff.defaults.length && messages.defaultsChanged,
    diff.agents.length && messages.agentSwitchesChanged,
  ];
  return parts.filter(Boolean).join("; ");
}

/** Whether a text has the same rules in this order: otherwise a move or removal changed too much. */
export function keepsRules(before: RuleInfo[], order: number[], after: RuleInfo[]): boolean {
  const ruleKey = (rule: RuleInfo | undefined) =>
    JSON.stringify([rule?.name, rule?.then, rule?.shadow, rule?.says]);
  return (
    after.length === order.length && order.every((was, at) => ruleKey(before[was]) === ruleKey(after[at]))
  );
}
