import { Badge, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { VERDICT_STYLES } from "./describePolicy";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { useRuleActivity, type RuleActivity } from "./queries";
import * as messages from "./tabMessages";

/** The recorded verdicts of rules with `mode: shadow`. */
export default function ShadowRules({ go }: TabProps) {
  const activity = useRuleActivity();
  if (activity.isPending) return <Loading />;
  if (activity.error) return <ErrorMessage error={activity.error} onRetry={() => void activity.refetch()} />;
  const { shadows, calls, erased, complete } = activity.data;
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed">
        {messages.ruleWith} <code>mode: shadow</code> {messages.shadowRuleHelp(calls, complete)}{" "}
        {erased > 0 && messages.verdictsOfCallsWereErased(erased)}
      </Text>
      {shadows.length === 0 && (
        <EmptyState
          title={messages.noRuleIsInShadowMode}
          action={
            <Button variant="default" onClick={() => go("text")}>
              {messages.openText}
            </Button>
          }
        >
          {messages.add} <code>mode: shadow</code> {messages.addToRule}
        </EmptyState>
      )}
      <ul className={css.plain} aria-label={messages.shadowRules}>
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
        {!shadow.in_force && <Badge variant="default">{messages.removedOrEnforced}</Badge>}
      </Group>
      <Text size="sm">
        {shadow.calls === 0 && messages.wouldHaveDecidedNothing}
        {shadow.calls > 0 && messages.wouldHaveDecided(shadow.calls)}
        {shadow.turns
          .map(({ was, would, calls }) => `${calls.toLocaleString("en")} ${verdictChange(was, would)}`)
          .join(", ")}
        {shadow.last && (
          <>
            {messages.lastOne} <TimeAgo at={shadow.last} />
          </>
        )}
      </Text>
    </Paper>
  );
}

function verdictChange(was: keyof typeof VERDICT_STYLES, would: keyof typeof VERDICT_STYLES): string {
  if (was === would) return messages.verdictEitherWay(VERDICT_STYLES[was].done);
  return messages.verdictInsteadOf(VERDICT_STYLES[was].done, VERDICT_STYLES[would].done);
}
