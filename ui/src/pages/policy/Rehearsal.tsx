import { Alert, Anchor, Paper, Stack, Table, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import { Ago } from "../../components/Time";
import type { ChangedCall, Rehearsal, Verdict } from "./data";
import css from "./Policy.module.css";
import { VERDICTS } from "./words";

const KINDS: Verdict[] = ["ask", "allow", "deny"];

/** What would change: how much, by which rules, for whom, and the calls themselves. */
export function RehearsalResult({ found }: { found: Rehearsal }) {
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
            without the people who have to agree now.
          </Alert>
        )}
        <Counts found={found} />
        <Notes found={found} />
      </Paper>
      {found.causes.length > 0 && <Causes found={found} />}
      {found.changed.length > 0 && <Changed found={found} />}
    </Stack>
  );
}

function Counts({ found }: { found: Rehearsal }) {
  const now = (kind: Verdict) => KINDS.reduce((sum, other) => sum + found.verdicts[kind][other], 0);
  const then = (kind: Verdict) => KINDS.reduce((sum, other) => sum + found.verdicts[other][kind], 0);
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
        {KINDS.map((kind) => (
          <Table.Tr key={kind} data-kind={kind}>
            <Table.Th scope="row">{VERDICTS[kind].done}</Table.Th>
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
        By which rules
      </Title>
      <ul className={css.list}>
        {found.causes.map((cause, at) => (
          <li key={at}>
            <Text size="sm">
              {cause.calls.toLocaleString("en")} × {turn(cause.from, cause.to)}: {rule(cause.old_rule)} →{" "}
              {rule(cause.new_rule)}
              {cause.loosened && <b> (loosened)</b>}
            </Text>
          </li>
        ))}
      </ul>
      {found.answers_per_day.map(({ who, now, draft }) => (
        <Text size="sm" key={who}>
          Answers a day of {who}: {now} → {draft}
        </Text>
      ))}
    </Paper>
  );
}

function Changed({ found }: { found: Rehearsal }) {
  const total = found.turned + found.other_terms;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="changed">
      <Title order={2} size="h5" id="changed">
        Calls that would change
      </Title>
      <ul className={css.list} aria-labelledby="changed">
        {found.changed.map((each, at) => (
          <li key={each.approval_id ?? at}>
            <ChangedLine each={each} />
          </li>
        ))}
      </ul>
      {total > found.changed.length && (
        <Text size="sm" c="dimmed">
          … and {(total - found.changed.length).toLocaleString("en")} more. The gravest and newest are listed.
        </Text>
      )}
    </Paper>
  );
}

function ChangedLine({ each }: { each: ChangedCall }) {
  return (
    <>
      <Text size="sm">
        {each.approval_id ? (
          <Anchor component={Link} href={`/a/${each.approval_id}`} inherit underline="always">
            {each.sentence}
          </Anchor>
        ) : (
          each.sentence
        )}
      </Text>
      <Text size="sm" c="dimmed">
        {turn(each.from, each.to)} by {rule(each.new_rule)}
        {each.needs && `, needs ${each.needs}`} · {each.tool}
        {each.agent && ` · ${each.agent}`} · <Ago at={each.at} />
      </Text>
    </>
  );
}

function Notes({ found }: { found: Rehearsal }) {
  const notes = [
    found.left_out &&
      `${found.left_out.toLocaleString("en")} newer calls were left out: the time or the number was up.`,
    found.outdated &&
      `${found.outdated.toLocaleString("en")} calls got another verdict when they were made, by the policy of that time.`,
    found.erased &&
      `The arguments of ${found.erased.toLocaleString("en")} calls were erased, so those cannot be judged.`,
    found.first && reach(found.first, found.retention),
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
  if (!calls) return "No calls were recorded in this time";
  const all = calls === 1 ? "1 call" : `${calls.toLocaleString("en")} calls`;
  if (!turned && !other_terms) return `Of ${all}, none would change`;
  const other = other_terms ? `, ${other_terms.toLocaleString("en")} would be asked on other terms` : "";
  return `Of ${all}, ${turned.toLocaleString("en")} would get another verdict${other}`;
}

const rule = (name: string) => (name ? `“${name}”` : "the defaults");
const turn = (from: Verdict, to: Verdict) =>
  from === to ? `${VERDICTS[to].done} on other terms` : `${VERDICTS[from].done} → ${VERDICTS[to].done}`;

function reach(first: string, retention: string): string {
  const since = new Date(first).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
  const kept = retention === "forever" ? "for ever" : `for ${retention} after the end of a call`;
  return `Content reaches back to ${since}; it is kept ${kept}.`;
}
