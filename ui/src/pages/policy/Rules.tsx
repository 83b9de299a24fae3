import { Button, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { addRule } from "./addRule";
import { keepsRules, listProblems } from "./describePolicy";
import * as messages from "./messages";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { ProblemList } from "./ProblemList";
import { checkPolicy, usePolicyCheck, useRuleActivity, type PolicyCheck } from "./queries";
import { DefaultsCard, RuleCard } from "./RuleCard";

/** The rules in order; the first match decides. */
export function Rules({ draftState, go }: TabProps) {
  const checked = usePolicyCheck(draftState.text);
  if (checked.isPending) return <Loading />;
  if (!checked.data) return <ErrorMessage error={checked.error} onRetry={() => void checked.refetch()} />;
  if (!checked.data.valid)
    return (
      <ProblemList
        problems={listProblems(checked.data)}
        onGo={() => go("text")}
        advice={messages.fixItInText}
      />
    );
  return (
    <RuleList
      checked={checked.data}
      isCurrent={!checked.isPlaceholderData}
      text={draftState.text}
      change={draftState.change}
      onWrite={(message, line) => go("text", message, line)}
    />
  );
}

interface RuleListProps {
  checked: PolicyCheck;
  /** Whether the check is of the current text: line numbers apply only to the text that was checked. */
  isCurrent: boolean;
  text: string;
  change: (text: string) => void;
  /** Opens the text, with a message, at a line. */
  onWrite: (message?: string, line?: number) => void;
}

function RuleList({ checked, isCurrent, text, change, onWrite }: RuleListProps) {
  const activity = useRuleActivity().data;
  const rules = checked.details ?? [];
  const ranges = findRuleRanges(
    text,
    rules.map((rule) => rule.line),
  );
  const rewrite = useRewrite(rules, change);
  const order = rules.map((_, at) => at);
  const swap = (at: number, to: number) => {
    const next = order.map((previous) => (previous === at ? to : previous === to ? at : previous));
    if (ranges) rewrite.mutate({ text: moveRule(text, ranges, at, to), order: next });
  };
  const remove = (at: number) => {
    if (ranges)
      rewrite.mutate({
        text: removeRule(text, ranges, at),
        order: order.filter((previous) => previous !== at),
      });
  };
  const add = () => {
    const added = addRule(text, rules, ranges);
    if (!added) return onWrite(messages.addItInText);
    rewrite.mutate(
      { text: added.text, order, added: added.at },
      { onSuccess: () => onWrite(messages.ruleAdded, added.line) },
    );
  };
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        {messages.firstMatchDecides} {activity && messages.countsCover(activity.complete)}
      </Text>
      {rewrite.error && <ErrorMessage error={rewrite.error} />}
      {rules.length === 0 && (
        <EmptyState
          title={messages.noRulesYet}
          action={
            <Button variant="default" onClick={() => onWrite()}>
              {messages.startFromTemplate}
            </Button>
          }
        >
          {messages.eachToolsDefaultDecides}
        </EmptyState>
      )}
      <ol className={css.plain} aria-label={messages.rules}>
        {rules.map((rule, at) => (
          <RuleCard
            key={rule.name}
            rule={rule}
            position={at + 1}
            counts={activity?.rules.find((each) => each.rule === rule.name)}
            isBusy={rewrite.isPending || !isCurrent}
            onUp={ranges && at > 0 ? () => swap(at, at - 1) : undefined}
            onDown={ranges && at < rules.length - 1 ? () => swap(at, at + 1) : undefined}
            onRemove={ranges && rules.length > 1 ? () => remove(at) : undefined}
          />
        ))}
      </ol>
      <Button variant="default" w="fit-content" disabled={rewrite.isPending || !isCurrent} onClick={add}>
        {messages.addRule}
      </Button>
      <DefaultsCard
        defaults={checked.defaults ?? {}}
        counts={activity?.rules.find((each) => each.rule === "")}
      />
      {!ranges && rules.length > 1 && (
        <Text size="sm" c="dimmed">
          {messages.rulesShareLines}
        </Text>
      )}
    </Stack>
  );
}

interface Rewrite {
  text: string;
  /** The places that the rules had before. */
  order: number[];
  /** The place of a new rule. */
  added?: number;
}

/** The text is changed only if the server reads the same rules from it in the intended order. */
function useRewrite(rules: NonNullable<PolicyCheck["details"]>, change: (text: string) => void) {
  return useMutation({
    mutationFn: async ({ text, order, added }: Rewrite) => {
      const checked = await checkPolicy(text);
      const kept = checked.details?.filter((_, at) => at !== added) ?? [];
      if (!checked.valid || !keepsRules(rules, order, kept)) throw new Error(messages.layoutIsUnsafe);
      return text;
    },
    onSuccess: change,
  });
}

/** Line numbers of a rule, from 0: `first` includes its comments, `end` is after its last line. */
export interface RuleRange {
  first: number;
  end: number;
}

/**
 * The lines of each rule, from the server's line numbers (from 1). Null if rules share lines: then only the text
 * itself can be edited.
 */
export function findRuleRanges(text: string, startLines: (number | null)[]): RuleRange[] | null {
  const lines = text.split("\n");
  const dashes = startLines.map((line) => /^( *)- /.exec(lines[(line ?? 0) - 1] ?? "")?.[1]?.length ?? -1);
  const indent = dashes[0] ?? -1;
  if (indent < 0 || dashes.some((each) => each !== indent)) return null;
  const starts = startLines.map((line) => (line ?? 0) - 1);
  if (starts.some((start, at) => at > 0 && start <= (starts[at - 1] ?? 0))) return null;
  const firsts = starts.map((start, at) => withComments(lines, start, at ? (starts[at - 1] ?? 0) + 1 : 0));
  return firsts.map((first, at) => {
    const limit = firsts[at + 1] ?? sectionEnd(lines, (starts[at] ?? 0) + 1, indent);
    return { first, end: contentEnd(lines, starts[at] ?? 0, limit) };
  });
}

/** Swaps two neighboring rules; the text between them stays. */
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

/** Removes the rule, its comments, and the empty lines after it. */
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

/** Comments directly above a rule belong to it. */
function withComments(lines: string[], start: number, floor: number): number {
  let first = start;
  while (first > floor && isComment(lines[first - 1])) first -= 1;
  return first;
}

/** The first line after the rules. */
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
