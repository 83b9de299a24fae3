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
    says.tools && `of ${says.tools}`,
    says.effect &&
      `that ${says.effect
        .split(", ")
        .map((effect) => EFFECT_LABELS[effect] ?? effect)
        .join(" or ")}`,
    says.agents && `by ${says.agents}`,
    says.users && `for ${says.users}`,
    says.teams && `for people of ${says.teams}`,
    says.priorities && `with priority ${says.priorities}`,
  ].filter(Boolean);
  return parts.length ? `Calls ${parts.join(", ")}` : "Every call";
}

const EFFECT_LABELS: Record<string, string> = {
  read: "only read",
  write: "write",
  destructive: "are destructive",
};

/** Their verdict. */
export function describeVerdict({ says, then }: RuleInfo): string {
  if (then === "allow") return "run at once";
  if (then === "deny") return "are denied";
  return `wait for ${says.approvers ?? "one person: the requester, a reviewer or an admin"}`;
}

const TERMS: [key: string, name: string][] = [
  ["reason", "Message to the agent"],
  ["exclude", "May not decide"],
  ["decisions", "Decisions"],
  ["priority", "Priority"],
  ["channels", "Channels"],
  ["expires_in", "Expires after"],
  ["on_expiry", "On expiry"],
  ["escalate", "Escalates"],
  ["remind", "Reminds after"],
  ["undo_window", "Undo within"],
  ["start_within", "Start within"],
];

/** The other terms of a rule. */
export function listTerms({ says }: RuleInfo): [name: string, value: string][] {
  return TERMS.flatMap(([key, name]) => (says[key] ? [[name, says[key]] as [string, string]] : []));
}

export const VERDICT_STYLES: Record<Verdict, { name: string; done: string; color: string }> = {
  allow: { name: "allow", done: "allowed", color: "teal" },
  ask: { name: "ask", done: "asked", color: "indigo" },
  deny: { name: "deny", done: "denied", color: "red" },
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
    diff.defaults.length && "defaults changed",
    diff.agents.length && "agent switches changed",
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
