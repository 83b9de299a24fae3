import { Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Empty, Loading, Problem } from "../../components/States";
import { Complaints } from "./Complaints";
import { checkPolicy, useActivity, useChecked, type Checked } from "./data";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { moved, removed, ruleRanges } from "./ranges";
import { Otherwise, RuleCard } from "./RuleCard";
import { complaintsOf, saysOnly } from "./words";

/** The rules in their order; the first that matches decides. */
export function Rules({ desk, go }: TabProps) {
  const checked = useChecked(desk.text);
  if (checked.isPending) return <Loading />;
  if (!checked.data) return <Problem error={checked.error} again={() => void checked.refetch()} />;
  if (!checked.data.valid)
    return (
      <Complaints
        complaints={complaintsOf(checked.data)}
        onGo={() => go("text")}
        words="Mend it in the text."
      />
    );
  return (
    <List checked={checked.data} settled={!checked.isPlaceholderData} text={desk.text} change={desk.change} />
  );
}

interface ListProps {
  checked: Checked;
  /** Whether this is about the text as it is now: lines are only good for the text that they were counted in. */
  settled: boolean;
  text: string;
  change: (text: string) => void;
}

function List({ checked, settled, text, change }: ListProps) {
  const activity = useActivity().data;
  const rules = checked.details ?? [];
  const ranges = ruleRanges(
    text,
    rules.map((rule) => rule.line),
  );
  const rewrite = useRewrite(rules, change);
  const order = rules.map((_, at) => at);
  const swap = (at: number, to: number) => {
    const next = order.map((was) => (was === at ? to : was === to ? at : was));
    if (ranges) rewrite.mutate({ text: moved(text, ranges, at, to), order: next });
  };
  const takeOut = (at: number) => {
    if (ranges) rewrite.mutate({ text: removed(text, ranges, at), order: order.filter((was) => was !== at) });
  };
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        The first rule that matches a call decides.{" "}
        {activity &&
          `Numbers count the calls of the last 30 days${activity.complete ? "" : ", the newest of them"}.`}
      </Text>
      {rewrite.error && <Problem error={rewrite.error} />}
      {rules.length === 0 && (
        <Empty title="No rules yet">
          Each tool's own default decides. The text tab has templates to start from.
        </Empty>
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
      <Otherwise
        defaults={checked.defaults ?? {}}
        matched={activity?.rules.find((each) => each.rule === "")}
      />
      {!ranges && rules.length > 1 && (
        <Text size="sm" c="dimmed">
          These rules do not have lines of their own, so they are moved in the text.
        </Text>
      )}
    </Stack>
  );
}

/** The text is changed only if the server reads the same rules in it, in the order that was meant. */
function useRewrite(rules: NonNullable<Checked["details"]>, change: (text: string) => void) {
  return useMutation({
    mutationFn: async ({ text, order }: { text: string; order: number[] }) => {
      const checked = await checkPolicy(text);
      if (!checked.valid || !saysOnly(rules, order, checked.details ?? []))
        throw new Error(
          "This cannot be done safely from here, because of how the text is laid out. Change the text.",
        );
      return text;
    },
    onSuccess: change,
  });
}
