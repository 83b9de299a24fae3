import { Alert, Anchor, Button, Group, NativeSelect, Paper, Stack, Table, Text, Title } from "@mantine/core";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { ErrorMessage } from "../../components/States";
import { formatDateTime, TimeAgo } from "../../components/TimeAgo";
import { VERDICT_STYLES } from "./describePolicy";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { useRehearse, type ChangedCall, type Rehearsal, type Verdict } from "./queries";
import * as messages from "./tabMessages";

const MAX_LISTED = 50;

const VERDICTS: Verdict[] = ["ask", "allow", "deny"];

/** Evaluates recorded calls with the draft and with the policy in force. */
export default function Rehearse({ draftState, go }: TabProps) {
  const [since, setSince] = useState("30d");
  const rehearse = useRehearse();
  const seconds = useSeconds(rehearse.isPending);
  const stale = rehearse.variables && rehearse.variables.text !== draftState.text;
  return (
    <Stack gap="md">
      <Paper withBorder p="md">
        <Stack gap="sm">
          <Text size="sm">{messages.rehearseHelp}</Text>
          {!draftState.draft && (
            <Text size="sm">
              {messages.noDraftYet}{" "}
              <Button variant="default" size="compact-sm" onClick={() => go("text")}>
                {messages.writeOne}
              </Button>
            </Text>
          )}
          <Group align="end" gap="sm">
            <NativeSelect
              label={messages.callsFrom}
              data={messages.PERIODS}
              value={since}
              onChange={(event) => setSince(event.currentTarget.value)}
            />
            <Button
              loading={rehearse.isPending}
              disabled={!draftState.draft}
              onClick={() => rehearse.mutate({ text: draftState.text, since, limit: MAX_LISTED })}
            >
              {messages.rehearse}
            </Button>
          </Group>
          <Text size="sm" c="dimmed" role="status">
            {rehearse.isPending && messages.rehearsing(seconds)}
            {rehearse.data && stale && messages.draftHasChanged}
          </Text>
          {rehearse.error && <ErrorMessage error={rehearse.error} />}
        </Stack>
      </Paper>
      {rehearse.data && <RehearsalResult found={rehearse.data} />}
    </Stack>
  );
}

function useSeconds(isRunning: boolean): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setSeconds((before) => before + 1), 1_000);
    return () => {
      clearInterval(timer);
      setSeconds(0);
    };
  }, [isRunning]);
  return seconds;
}

/** The changes: how many, by which rules, by which approvers, and the calls themselves. */
function RehearsalResult({ found }: { found: Rehearsal }) {
  return (
    <Stack gap="md">
      <Paper withBorder p="md" component="section" aria-labelledby="result">
        <Title order={2} size="h4" id="result">
          {headline(found)}
        </Title>
        {found.loosened > 0 && (
          <Alert
            color="red"
            variant="outline"
            my="sm"
            role="note"
            classNames={{ title: css.wrong }}
            title={messages.loosened}
          >
            {messages.couldRunWithoutApprovals(found.loosened)}
          </Alert>
        )}
        <Counts found={found} />
        <Notes found={found} />
      </Paper>
      {found.causes.length > 0 && <Causes found={found} />}
      {found.changed.length > 0 && <ChangedCalls found={found} />}
    </Stack>
  );
}

function Counts({ found }: { found: Rehearsal }) {
  const now = (kind: Verdict) => VERDICTS.reduce((sum, other) => sum + found.verdicts[kind][other], 0);
  const then = (kind: Verdict) => VERDICTS.reduce((sum, other) => sum + found.verdicts[other][kind], 0);
  return (
    <Table withRowBorders={false} w="auto" aria-label={messages.callsByVerdict}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">{messages.calls}</Table.Th>
          <Table.Th scope="col">{messages.now}</Table.Th>
          <Table.Th scope="col">{messages.draft}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {VERDICTS.map((kind) => (
          <Table.Tr key={kind} data-kind={kind}>
            <Table.Th scope="row">{VERDICT_STYLES[kind].done}</Table.Th>
            <Table.Td>{now(kind).toLocaleString("en")}</Table.Td>
            <Table.Td>{then(kind).toLocaleString("en")}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Causes({ found }: { found: Rehearsal }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="causes">
      <Title order={2} size="h5" id="causes">
        {messages.changesByRule}
      </Title>
      <ul className={css.list}>
        {found.causes.map((cause, at) => (
          <li key={at}>
            <Text size="sm">
              {cause.calls.toLocaleString("en")} × {verdictChange(cause.from, cause.to)}:{" "}
              {ruleLabel(cause.old_rule)} → {ruleLabel(cause.new_rule)}
              {cause.loosened && <b> {messages.loosenedInBrackets}</b>}
            </Text>
          </li>
        ))}
      </ul>
      {found.answers_per_day.map(({ who, now, draft }) => (
        <Text size="sm" key={who}>
          {messages.decisionsPerDayBy(who, now, draft)}
        </Text>
      ))}
    </Paper>
  );
}

function ChangedCalls({ found }: { found: Rehearsal }) {
  const total = found.turned + found.other_terms;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="changed">
      <Title order={2} size="h5" id="changed">
        {messages.callsThatWouldChange}
      </Title>
      <ul className={css.list} aria-labelledby="changed">
        {found.changed.map((call, at) => (
          <li key={call.approval_id ?? at}>
            <ChangedLine call={call} />
          </li>
        ))}
      </ul>
      {total > found.changed.length && (
        <Text size="sm" c="dimmed">
          {messages.andMoreCalls(total - found.changed.length)}
        </Text>
      )}
    </Paper>
  );
}

function ChangedLine({ call }: { call: ChangedCall }) {
  return (
    <>
      <Text size="sm">
        {call.approval_id ? (
          <Anchor component={Link} href={`/a/${call.approval_id}`} inherit underline="always">
            {call.sentence}
          </Anchor>
        ) : (
          call.sentence
        )}
      </Text>
      <Text size="sm" c="dimmed">
        {messages.changeByRule(verdictChange(call.from, call.to), ruleLabel(call.new_rule))}
        {call.needs && messages.needsSuffix(call.needs)} · {call.tool}
        {call.agent && ` · ${call.agent}`} · <TimeAgo at={call.at} />
      </Text>
    </>
  );
}

function Notes({ found }: { found: Rehearsal }) {
  const notes = [
    found.left_out && messages.newerCallsLeftOut(found.left_out),
    found.outdated && messages.verdictsDiffered(found.outdated),
    found.erased && messages.argumentsWereErased(found.erased),
    found.first && retentionNote(found.first, found.retention),
    found.allowed_reads && messages.readsAreOnlyCounted(found.allowed_reads),
  ].filter(Boolean) as string[];
  return notes.map((note) => (
    <Text size="sm" c="dimmed" key={note}>
      {note}
    </Text>
  ));
}

function headline({ calls, turned, other_terms }: Rehearsal): string {
  if (!calls) return messages.noCallsWereRecorded;
  const all = messages.callCount(calls);
  if (!turned && !other_terms) return messages.ofNoneWouldChange(all);
  const other = other_terms ? messages.onDifferentTermsSuffix(other_terms) : "";
  return messages.ofWouldGetDifferentVerdict(all, turned, other);
}

const ruleLabel = (name: string) => (name ? `“${name}”` : messages.theDefaults);
const verdictChange = (from: Verdict, to: Verdict) =>
  from === to
    ? messages.verdictOnOtherTerms(VERDICT_STYLES[to].done)
    : `${VERDICT_STYLES[from].done} → ${VERDICT_STYLES[to].done}`;

function retentionNote(first: string, retention: string): string {
  const since = formatDateTime(first);
  const kept = retention === "forever" ? messages.forever : messages.keptFor(retention);
  return messages.contentIsAvailableFrom(since, kept);
}
