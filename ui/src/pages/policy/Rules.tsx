import { Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { keepsRules, listProblems } from "./describePolicy";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { ProblemList } from "./ProblemList";
import { checkPolicy, usePolicyCheck, useRuleActivity, type PolicyCheck } from "./queries";
import { DefaultsCard, RuleCard } from "./RuleCard";

/** The rules in their order; the first that matches decides. */
export function Rules({ desk, go }: TabProps) {
  const checked = usePolicyCheck(desk.text);
  if (checked.isPending) return <Loading />;
  if (!checked.data) return <ErrorMessage error={checked.error} again={() => void checked.refetch()} />;
  if (!checked.data.valid)
    return (
      <ProblemList
        complaints={listProblems(checked.data)}
        onGo={() => go("text")}
        words="Fix it in the text."
      />
    );
  return (
    <List checked={checked.data} settled={!checked.isPlaceholderData} text={desk.text} change={desk.change} />
  );
}

interface ListProps {
  checked: PolicyCheck;
  /** Whether this is about the text as it is now: lines are only good for the text that they were counted in. */
  settled: boolean;
  text: string;
  change: (text: string) => void;
}

function List({ checked, settled, text, change }: ListProps) {
  const activity = useRuleActivity().data;
  const rules = checked.details ?? [];
  const ranges = findRuleRanges(
    text,
    rules.map((rule) => rule.line),
  );
  const rewrite = useRewrite(rules, change);
  const order = rules.map((_, at) => at);
  const swap = (at: number, to: number) => {
    const next = order.map((was) => (was === at ? to : was === to ? at : was));
    if (ranges) rewrite.mutate({ text: moveRule(text, ranges, at, to), order: next });
  };
  const takeOut = (at: number) => {
    if (ranges)
      rewrite.mutate({ text: removeRule(text, ranges, at), order: order.filter((was) => was !== at) });
  };
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        The first rule that matches a call decides.{" "}
        {activity && `Counts cover the last 30 days${activity.complete ? "" : ", newest calls only"}.`}
      </Text>
      {rewrite.error && <ErrorMessage error={rewrite.error} />}
      {rules.length === 0 && (
        <EmptyState title="No rules yet">
          Each tool's default decides. The Text tab has templates to start from.
        </EmptyState>
      )}
      <ol className={css.plain} aria-label="Rules">
        {rules.map((rule, at) => (
          <RuleCard
            key={rule.name}
            rule={rule}
            place={at + 1}
            matched={activity?.rules.find((each) => each.rule === rule.name)}
            busy={rewrite.isPending || !settled}
            onUp={ranges && at > 0 ? () => swap(at, at - 1) : undefined}
            onDown={ranges && at < rules.length - 1 ? () => swap(at, at + 1) : undefined}
            onRemove={ranges && rules.length > 1 ? () => takeOut(at) : undefined}
          />
        ))}
      </ol>
      <DefaultsCard
        defaults={checked.defaults ?? {}}
        matched={activity?.rules.find((each) => each.rule === "")}
      />
      {!ranges && rules.length > 1 && (
        <Text size="sm" c="dimmed">
          These rules share lines. Reorder them in the text.
        </Text>
      )}
    </Stack>
  );
}

/** The text is changed only if the server reads the same rules in it, in the order that was meant. */
function useRewrite(rules: NonNullable<PolicyCheck["details"]>, change: (text: string) => void) {
  return useMutation({
    mutationFn: async ({ text, order }: { text: string; order: number[] }) => {
      const checked = await checkPolicy(text);
      if (!checked.valid || !keepsRules(rules, order, checked.details ?? []))
        throw new Error("The layout of the text makes this change unsafe here. Edit the text instead.");
      return text;
    },
    onSuccess: change,
  });
}

/** Lines of a rule in the text, counted from 0: `first` is where its own comments begin, `end` is behind its last. */
interface RuleRange {
  first: number;
  end: number;
}

/**
 * Where each rule stands, by the lines on which the server says that they begin (counted from 1). Null where rules do
 * not have lines of their own: then only the text itself can be changed.
 */
export function findRuleRanges(text: string, begins: (number | null)[]): RuleRange[] | null {
  const lines = text.split("\n");
  const dashes = begins.map((line) => /^( *)- /.exec(lines[(line ?? 0) - 1] ?? "")?.[1]?.length ?? -1);
  const indent = dashes[0] ?? -1;
  if (indent < 0 || dashes.some((each) => each !== indent)) return null;
  const starts = begins.map((line) => (line ?? 0) - 1);
  if (starts.some((start, at) => at > 0 && start <= (starts[at - 1] ?? 0))) return null;
  const firsts = starts.map((start, at) => withComments(lines, start, at ? (starts[at - 1] ?? 0) + 1 : 0));
  return firsts.map((first, at) => {
    const limit = firsts[at + 1] ?? sectionEnd(lines, (starts[at] ?? 0) + 1, indent);
    return { first, end: contentEnd(lines, starts[at] ?? 0, limit) };
  });
}

/** The rule changes places with the one before or behind it; what stands between them stays. */
export function moveRule(text: string, ranges: RuleRange[], from: number, to: number): string {
  const lines = text.split("\n");
  const [upper, lower] = from < to ? [ranges[from], ranges[to]] : [ranges[to], ranges[from]];
  if (!upper || !lower) return text;
  return [
    ...lines.slice(0, upper.first),
    ...lines.slice(lower.first, lower.end),
    ...lines.slice(upper.end, lower.first),
    ...lines.slice(upper.first, upper.end),
    ...lines.slice(lower.end),
  ].join("\n");
}

/** Without the rule, its comments, and the empty lines behind it. */
export function removeRule(text: string, ranges: RuleRange[], at: number): string {
  const lines = text.split("\n");
  const range = ranges[at];
  if (!range) return text;
  const next = ranges[at + 1];
  const first = next ? range.first : (ranges[at - 1]?.end ?? range.first);
  return [...lines.slice(0, first), ...lines.slice(next ? next.first : range.end)].join("\n");
}

const isComment = (line: string | undefined) => /^\s*#/.test(line ?? "");
const isBlank = (line: string | undefined) => /^\s*$/.test(line ?? "");

/** Comments right above a rule are about it. */
function withComments(lines: string[], start: number, floor: number): number {
  let first = start;
  while (first > floor && isComment(lines[first - 1])) first -= 1;
  return first;
}

/** The first line that belongs to no rule any more. */
function sectionEnd(lines: string[], from: number, indent: number): number {
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at];
    if (!isBlank(line) && !isComment(line) && (/^ */.exec(line ?? "")?.[0].length ?? 0) <= indent) return at;
  }
  return lines.length;
}

function contentEnd(lines: string[], start: number, limit: number): number {
  let end = limit;
  while (end > start + 1 && (isBlank(lines[end - 1]) || isComment(lines[end - 1]))) end -= 1;
  return end;
}
