import { Code, Text } from "@mantine/core";
import { stringifyJson } from "../../api/json";
import { TimeAgo } from "../../components/TimeAgo";
import { escapeInvisible, visibleLines } from "../../components/escapeInvisible";
import css from "./History.module.css";
import {
  describeEntry,
  entryContent,
  entryData,
  groupDeliveries,
  summarizeDeliveries,
  wasErased,
  type TimelineEntry,
} from "./sentences";
import { dotColor } from "./StatusBadge";

const MAX_LENGTH = 20_000;

/** The events in order, each as a sentence with its details. */
export function Timeline({ entries }: { entries: TimelineEntry[] }) {
  return (
    <ol className={css.timeline} aria-label="Timeline">
      {groupDeliveries(entries).map((step) => {
        const [entry, ...rest] = Array.isArray(step) ? step : [step];
        return (
          <li
            key={entry?.seq}
            className={css.step}
            data-kind={entry?.kind}
            style={{ "--dot": dotColor(entry?.kind ?? "") } as object}
          >
            {entry && !rest.length ? (
              <TimelineStep entry={entry} />
            ) : (
              <NotificationGroup entries={step as TimelineEntry[]} />
            )}
          </li>
        );
      })}
    </ol>
  );
}

/** Several notifications are folded into one line. */
function NotificationGroup({ entries }: { entries: TimelineEntry[] }) {
  return (
    <details className={css.fold}>
      <summary>
        <Text span fw={500} size="sm">
          {summarizeDeliveries(entries)}
        </Text>
      </summary>
      <ul className={css.told} aria-label="Messages">
        {entries.map((entry) => (
          <li key={entry.seq}>
            <TimelineStep entry={entry} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** One ledger entry as a sentence; used in the timeline and in the ledger. */
export function TimelineStep({ entry }: { entry: TimelineEntry }) {
  return (
    <>
      <Text fw={500} size="sm">
        {describeEntry(entry)}
      </Text>
      <Text size="xs" component="div">
        <TimeAgo at={entry.at} /> · entry {entry.seq}
        {listFacts(entry).map((fact) => (
          <FactText key={fact.label} fact={fact} />
        ))}
      </Text>
      {wasErased(entry) && (
        <Text size="xs" fs="italic">
          Its content was erased; its digest is kept.
        </Text>
      )}
      {listChanges(entry).map((change) => (
        <ChangeLines key={change.name} change={change} />
      ))}
      <RawData name="Entry as stored" text={escapeInvisible(stringifyJson(entry))} />
    </>
  );
}

function FactText({ fact }: { fact: EntryFact }) {
  if (fact.style === "quote")
    return (
      <blockquote className={css.quote}>
        <span>{fact.label}: </span>
        {visibleLines(fact.text).join("\n")}
      </blockquote>
    );
  return (
    <>
      {" · "}
      {fact.label}{" "}
      {fact.style === "code" ? <Code title={fact.text}>{fact.text.slice(0, 12)}</Code> : fact.text}
    </>
  );
}

function ChangeLines({ change }: { change: EntryChange }) {
  return (
    <div className={css.change}>
      {change.name.replace(/^\//, "")}
      {change.before !== null && <del>− {change.before}</del>}
      {change.after !== null && <ins>+ {change.after}</ins>}
    </div>
  );
}

/** Raw JSON, folded, and shortened if it is very long. */
export function RawData({ name, text }: { name: string; text: string }) {
  return (
    <details className={css.fold}>
      <summary>{name}</summary>
      <pre className={css.raw} tabIndex={0} aria-label={name}>
        {text.length > MAX_LENGTH
          ? `${text.slice(0, MAX_LENGTH)} … and ${text.length - MAX_LENGTH} more characters`
          : text}
      </pre>
    </details>
  );
}

interface EntryFact {
  label: string;
  text: string;
  /** Texts by people are quoted, digests are shown as code. */
  style?: "quote" | "code";
}

interface EntryChange {
  name: string;
  before: string | null;
  after: string | null;
}

/** The channel, the digests and the texts of an entry, as far as they are stored. */
export function listFacts(entry: TimelineEntry): EntryFact[] {
  const contentFact = (name: string, label: string): EntryFact[] => {
    const found = entryContent(entry, name);
    return typeof found === "string" && found ? [{ label, text: escapeInvisible(found) }] : [];
  };
  return [
    ...contentFact("via", "via"),
    ...contentFact("seat", "on behalf of"),
    ...contentFact("args_sha256", DIGEST_LABELS[entry.kind] ?? "saw arguments").map(asCode),
    ...contentFact("result_sha256", "result").map(asCode),
    ...quorumFacts(entry),
    ...acknowledgedFacts(entry),
    ...quotes(entry),
  ];
}

/** The changes of an edit, until they are erased. */
export function listChanges(entry: TimelineEntry): EntryChange[] {
  const found = entryContent(entry, "changes");
  return entry.kind === "edited" && Array.isArray(found) ? (found as EntryChange[]) : [];
}

// An agent proposes arguments and an editor replaces them; everybody else saw them.
const DIGEST_LABELS: Record<string, string> = {
  proposed: "arguments",
  allowed: "arguments",
  denied: "arguments",
  edited: "new arguments",
};

const asCode = (fact: EntryFact): EntryFact => ({ ...fact, style: "code" });

function quorumFacts(entry: TimelineEntry): EntryFact[] {
  const quorum = entryData(entry, "quorum");
  if (!Array.isArray(quorum) || (quorum.length === 1 && quorum[0] === 1)) return [];
  return [{ label: "needs", text: `${quorum.join(", then ")} ${quorum.at(-1) === 1 ? "person" : "people"}` }];
}

function acknowledgedFacts(entry: TimelineEntry): EntryFact[] {
  const found = entryContent(entry, "acknowledged");
  if (!Array.isArray(found) || !found.length) return [];
  return [{ label: "acknowledged", text: found.map((id) => escapeInvisible(String(id))).join(", ") }];
}

const QUOTED_FIELDS = ["text", "reason", "comment", "note", "error", "sentence"];

function quotes(entry: TimelineEntry): EntryFact[] {
  return QUOTED_FIELDS.flatMap((name) => {
    const found = entryContent(entry, name);
    return typeof found === "string" && found ? [{ label: name, text: found, style: "quote" as const }] : [];
  });
}
