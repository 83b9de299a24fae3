import { ActionIcon, Badge, Code, Group, Paper, Text, Title } from "@mantine/core";
import { describeMatch, describeVerdict, listTerms, VERDICT_STYLES } from "./describePolicy";
import { describeExpiry } from "../../components/expiry";
import * as messages from "./messages";
import css from "./Policy.module.css";
import type { RuleActivity, RuleInfo } from "./queries";

type RuleCounts = RuleActivity["rules"][number] | undefined;

interface RuleCardProps {
  rule: RuleInfo;
  position: number;
  counts: RuleCounts;
  isBusy: boolean;
  onUp?: () => void;
  onDown?: () => void;
  onRemove?: () => void;
}

/** One rule: the calls that it matches, its condition, and its verdict. */
export function RuleCard({ rule, position, counts, isBusy, onUp, onDown, onRemove }: RuleCardProps) {
  return (
    <Paper withBorder p="md" component="li" className={css.rule} data-rule={rule.name}>
      <Group gap="xs" className={css.head}>
        <Text component="span" c="dimmed" aria-hidden>
          {position}
        </Text>
        <Title order={2} size="h5">
          {rule.name}
        </Title>
        <VerdictBadge verdict={rule.then} />
        {rule.shadow && (
          <Badge variant="default" title={messages.onlyRecorded}>
            {messages.shadowBadge}
          </Badge>
        )}
      </Group>
      <Group gap={4} className={css.moves}>
        <IconButton name={`Move “${rule.name}” up`} symbol="↑" isBusy={isBusy} onClick={onUp} />
        <IconButton name={`Move “${rule.name}” down`} symbol="↓" isBusy={isBusy} onClick={onDown} />
        <IconButton name={`Remove “${rule.name}”`} symbol="×" isBusy={isBusy} onClick={onRemove} />
      </Group>
      <div className={css.body}>
        <Text size="sm">
          {describeMatch(rule)} {describeVerdict(rule)}
          {rule.says.when ? messages.when : "."}
        </Text>
        {rule.says.when && (
          <Code block className={css.when}>
            {rule.says.when}
          </Code>
        )}
        <Terms rule={rule} />
        <Text size="sm" c="dimmed">
          {rule.shadow ? messages.verdictsAreUnderShadowRules : countsLabel(counts)}
        </Text>
      </div>
    </Paper>
  );
}

/** The defaults without a matching rule. */
export function DefaultsCard({ defaults, counts }: { defaults: Record<string, string>; counts: RuleCounts }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="otherwise">
      <Title order={2} size="h5" id="otherwise">
        {messages.defaults}
      </Title>
      <Text size="sm">{messages.withoutMatchingRule(defaults.unknown_tools)}</Text>
      <Text size="sm">
        {messages.unlessRuleSaysOtherwiseRequest(
          describeExpiry(defaults.expires_in ?? ""),
          describeExpiry(defaults.undo_window ?? ""),
        )}
      </Text>
      <Text size="sm" c="dimmed">
        {countsLabel(counts)}
      </Text>
    </Paper>
  );
}

export function VerdictBadge({ verdict }: { verdict: RuleInfo["then"] }) {
  const { name, color } = VERDICT_STYLES[verdict];
  return (
    <Badge color={color} variant="outline" className={css.then} data-then={verdict}>
      {name}
    </Badge>
  );
}

function Terms({ rule }: { rule: RuleInfo }) {
  const terms = listTerms(rule);
  if (!terms.length) return null;
  return <Text size="sm">{terms.map(([name, value]) => `${name}: ${value}`).join(" · ")}</Text>;
}

function IconButton({
  name,
  symbol,
  isBusy,
  onClick,
}: {
  name: string;
  symbol: string;
  isBusy: boolean;
  onClick?: () => void;
}) {
  return (
    <ActionIcon
      variant="default"
      size={36}
      aria-label={name}
      title={name}
      disabled={!onClick || isBusy}
      onClick={onClick}
    >
      {symbol}
    </ActionIcon>
  );
}

function countsLabel(counts: RuleCounts): string {
  if (!counts) return messages.itDecidedNoRecentCalls;
  const total = counts.allow + counts.ask + counts.deny;
  const parts = (["ask", "allow", "deny"] as const)
    .filter((verdict) => counts[verdict])
    .map((verdict) => `${counts[verdict].toLocaleString("en")} ${VERDICT_STYLES[verdict].done}`);
  return messages.decidedCalls(total, parts.join(", "));
}
