import { ActionIcon, Badge, Code, Group, Paper, Text, Title } from "@mantine/core";
import { describeMatch, describeVerdict, listTerms, VERDICT_STYLES } from "./describePolicy";
import css from "./Policy.module.css";
import type { RuleActivity, RuleInfo } from "./queries";

type Matched = RuleActivity["rules"][number] | undefined;

interface RuleCardProps {
  rule: RuleInfo;
  place: number;
  matched: Matched;
  busy: boolean;
  onUp?: () => void;
  onDown?: () => void;
  onRemove?: () => void;
}

/** One rule in words: which calls, under which condition, and what becomes of them. */
export function RuleCard({ rule, place, matched, busy, onUp, onDown, onRemove }: RuleCardProps) {
  return (
    <Paper withBorder p="md" component="li" className={css.rule} data-rule={rule.name}>
      <Group gap="xs" className={css.head}>
        <Text component="span" c="dimmed" aria-hidden>
          {place}
        </Text>
        <Title order={2} size="h5">
          {rule.name}
        </Title>
        <VerdictBadge verdict={rule.then} />
        {rule.shadow && (
          <Badge variant="default" title="It decides nothing; its verdict is only recorded.">
            shadow
          </Badge>
        )}
      </Group>
      <Group gap={4} className={css.moves}>
        <Move name={`Move “${rule.name}” up`} sign="↑" busy={busy} onClick={onUp} />
        <Move name={`Move “${rule.name}” down`} sign="↓" busy={busy} onClick={onDown} />
        <Move name={`Remove “${rule.name}”`} sign="×" busy={busy} onClick={onRemove} />
      </Group>
      <div className={css.body}>
        <Text size="sm">
          {describeMatch(rule)} {describeVerdict(rule)}
          {rule.says.when ? ", when:" : "."}
        </Text>
        {rule.says.when && (
          <Code block className={css.when}>
            {rule.says.when}
          </Code>
        )}
        <Terms rule={rule} />
        <Text size="sm" c="dimmed">
          {rule.shadow ? "Its verdicts are under Shadow rules." : matchedWords(matched)}
        </Text>
      </div>
    </Paper>
  );
}

/** What counts where no rule matches. */
export function DefaultsCard({ defaults, matched }: { defaults: Record<string, string>; matched: Matched }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="otherwise">
      <Title order={2} size="h5" id="otherwise">
        {" "}
        Defaults{" "}
      </Title>
      <Text size="sm">
        Without a matching rule, the agent's switches decide, then the tool's effect: reads run at once, all
        other calls need one approval, and a tool that is not registered{" "}
        {defaults.unknown_tools === "deny" ? "is denied" : "needs approval"}.
      </Text>
      <Text size="sm">
        Unless a rule says otherwise, a request expires after {defaults.expires_in}, and a rejection can be
        undone for {defaults.undo_window}.
      </Text>
      <Text size="sm" c="dimmed">
        {matchedWords(matched)}
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

function Move({
  name,
  sign,
  busy,
  onClick,
}: {
  name: string;
  sign: string;
  busy: boolean;
  onClick?: () => void;
}) {
  return (
    <ActionIcon
      variant="default"
      size={36}
      aria-label={name}
      title={name}
      disabled={!onClick || busy}
      onClick={onClick}
    >
      {sign}
    </ActionIcon>
  );
}

function matchedWords(matched: Matched): string {
  if (!matched) return "It decided no recent calls.";
  const total = matched.allow + matched.ask + matched.deny;
  const parts = (["ask", "allow", "deny"] as const)
    .filter((verdict) => matched[verdict])
    .map((verdict) => `${matched[verdict].toLocaleString("en")} ${VERDICT_STYLES[verdict].done}`);
  return `It decided ${total.toLocaleString("en")} ${total === 1 ? "call" : "calls"}: ${parts.join(", ")}.`;
}
