import { Alert, Anchor, Button, Group, NativeSelect, Paper, Stack, Table, Text, Title } from "@mantine/core";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { ErrorMessage } from "../../components/States";
import { formatDateTime, TimeAgo } from "../../components/TimeAgo";
import { VERDICT_STYLES } from "./describePolicy";
import type { TabProps } from "./Policy";
import css from "./Policy.module.css";
import { useRehearse, type ChangedCall, type Rehearsal, type Verdict } from "./queries";

const MAX_LISTED = 50;
const PERIODS = [
  { value: "1d", label: "the last day" },
  { value: "7d", label: "the last 7 days" },
  { value: "30d", label: "the last 30 days" },
  { value: "90d", label: "the last 90 days" },
];
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
          <Text size="sm">
            Every recorded call is evaluated twice: by the policy in force and by your draft. Nothing is put
            in force, recorded or run.
          </Text>
          {!draftState.draft && (
            <Text size="sm">
              There is no draft yet, so nothing would change.{" "}
              <Button variant="default" size="compact-sm" onClick={() => go("text")}>
                Write one
              </Button>
            </Text>
          )}
          <Group align="end" gap="sm">
            <NativeSelect
              label="Calls from"
              data={PERIODS}
              value={since}
              onChange={(event) => setSince(event.currentTarget.value)}
            />
            <Button
              loading={rehearse.isPending}
              disabled={!draftState.draft}
              onClick={() => rehearse.mutate({ text: draftState.text, since, limit: MAX_LISTED })}
            >
              Rehearse
            </Button>
          </Group>
          <Text size="sm" c="dimmed" role="status">
            {rehearse.isPending && `Rehearsing for ${seconds} s; at most 20 s and 100,000 calls.`}
            {rehearse.data && stale && "The draft has changed since. These results are for the previous one."}
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
            title="Loosened"
          >
            {found.loosened === 1 ? "1 call" : `${found.loosened.toLocaleString("en")} calls`} could run
            without the approvals that are required now.
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
    <Table withRowBorders={false} w="auto" aria-label="Calls by verdict">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Calls</Table.Th>
          <Table.Th scope="col">Now</Table.Th>
          <Table.Th scope="col">Draft</Table.Th>
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
        Changes by rule
      </Title>
      <ul className={css.list}>
        {found.causes.map((cause, at) => (
          <li key={at}>
            <Text size="sm">
              {cause.calls.toLocaleString("en")} × {verdictChange(cause.from, cause.to)}:{" "}
              {ruleLabel(cause.old_rule)} → {ruleLabel(cause.new_rule)}
              {cause.loosened && <b> (loosened)</b>}
            </Text>
          </li>
        ))}
      </ul>
      {found.answers_per_day.map(({ who, now, draft }) => (
        <Text size="sm" key={who}>
          Decisions per day by {who}: {now} → {draft}
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
        Calls that would change
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
          … and {(total - found.changed.length).toLocaleString("en")} more. The most serious and newest are
          listed.
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
        {verdictChange(call.from, call.to)} by {ruleLabel(call.new_rule)}
        {call.needs && `, needs ${call.needs}`} · {call.tool}
        {call.agent && ` · ${call.agent}`} · <TimeAgo at={call.at} />
      </Text>
    </>
  );
}

function Notes({ found }: { found: Rehearsal }) {
  const notes = [
    found.left_out &&
      `${found.left_out.toLocaleString("en")} newer calls were left out: the time or call limit was reached.`,
    found.outdated &&
      `${found.outdated.toLocaleString("en")} calls got a different verdict when they were made, under the policy at that time.`,
    found.erased &&
      `The arguments of ${found.erased.toLocaleString("en")} calls were erased, so they cannot be evaluated.`,
    found.first && retentionNote(found.first, found.retention),
    found.allowed_reads &&
      `Allowed reads are only counted (${found.allowed_reads.toLocaleString("en")} so far) and cannot be rehearsed.`,
  ].filter(Boolean) as string[];
  return notes.map((note) => (
    <Text size="sm" c="dimmed" key={note}>
      {note}
    </Text>
  ));
}

function headline({ calls, turned, other_terms }: Rehearsal): string {
  if (!calls) return "No calls were recorded in this period";
  const all = calls === 1 ? "1 call" : `${calls.toLocaleString("en")} calls`;
  if (!turned && !other_terms) return `Of ${all}, none would change`;
  const other = other_terms ? `, ${other_terms.toLocaleString("en")} would be asked on different terms` : "";
  return `Of ${all}, ${turned.toLocaleString("en")} would get a different verdict${other}`;
}

const ruleLabel = (name: string) => (name ? `“${name}”` : "the defaults");
const verdictChange = (from: Verdict, to: Verdict) =>
  from === to
    ? `${VERDICT_STYLES[to].done} on different terms`
    : `${VERDICT_STYLES[from].done} → ${VERDICT_STYLES[to].done}`;

function retentionNote(first: string, retention: string): string {
  const since = formatDateTime(first);
  const kept = retention === "forever" ? "forever" : `for ${retention} after the end of a call`;
  return `Content is available from ${since}; it is kept ${kept}.`;
}
