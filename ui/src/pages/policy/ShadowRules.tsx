import { Badge, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { VERDICT_STYLES } from "./describePolicy";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { useRuleActivity, type RuleActivity } from "./queries";

/** The recorded verdicts of rules with `mode: shadow`. */
export default function ShadowRules({ go }: TabProps) {
  const activity = useRuleActivity();
  if (activity.isPending) return <Loading />;
  if (activity.error) return <ErrorMessage error={activity.error} onRetry={() => void activity.refetch()} />;
  const { shadows, calls, erased, complete } = activity.data;
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        A rule with <code>mode: shadow</code> decides nothing. Its verdict is recorded with each call, except
        for allowed reads. {calls.toLocaleString("en")} calls in the last 30 days
        {complete ? "" : ", newest calls only"}.{" "}
        {erased > 0 && `The verdicts of ${erased.toLocaleString("en")} calls were erased.`}
      </Text>
      {shadows.length === 0 && (
        <EmptyState
          title="No rule is in shadow mode"
          action={
            <Button variant="default" onClick={() => go("text")}>
              Open the text
            </Button>
          }
        >
          Add <code>mode: shadow</code> to a new rule to see its verdicts before you enforce it.
        </EmptyState>
      )}
      <ul className={css.plain} aria-label="Shadow rules">
        {shadows.map((shadow) => (
          <ShadowRule key={shadow.rule} shadow={shadow} />
        ))}
      </ul>
    </Stack>
  );
}

function ShadowRule({ shadow }: { shadow: RuleActivity["shadows"][number] }) {
  return (
    <Paper withBorder p="md" component="li" mb="sm" data-shadow={shadow.rule}>
      <Group gap="xs">
        <Title order={2} size="h5">
          {shadow.rule}
        </Title>
        {!shadow.in_force && <Badge variant="default">removed or enforced</Badge>}
      </Group>
      <Text size="sm">
        {shadow.calls === 0 && "It would have decided nothing so far."}
        {shadow.calls > 0 && `It would have decided ${shadow.calls.toLocaleString("en")} calls: `}
        {shadow.turns
          .map(({ was, would, calls }) => `${calls.toLocaleString("en")} ${verdictChange(was, would)}`)
          .join(", ")}
        {shadow.last && (
          <>
            . The last one <TimeAgo at={shadow.last} />
          </>
        )}
      </Text>
    </Paper>
  );
}

function verdictChange(was: keyof typeof VERDICT_STYLES, would: keyof typeof VERDICT_STYLES): string {
  if (was === would) return `${VERDICT_STYLES[was].done} either way`;
  return `${VERDICT_STYLES[was].done} that would have been ${VERDICT_STYLES[would].done}`;
}
