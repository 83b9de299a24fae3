import { Code, Text } from "@mantine/core";
import { stringifyJson } from "../../api/json";
import { TimeAgo } from "../../components/TimeAgo";
import { escapeInvisible, visibleLines } from "../../components/escapeInvisible";
import css from "./History.module.css";
import * as messages from "./messages";
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
    <ol className={css.timeline} aria-label={messages.timeline}>
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
      <ul className={css.told} aria-label={messages.messages}>
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
        <TimeAgo at={entry.at} /> {messages.entrySuffix(entry.seq)}
        {listFacts(entry).map((fact) => (
          <FactText key={fact.label} fact={fact} />
        ))}
      </Text>
      {wasErased(entry) && (
        <Text size="xs" fs="italic">
          {messages.contentErased}
        </Text>
      )}
      {listChanges(entry).map((change) => (
        <ChangeLines key={change.name} change={change} />
      ))}
      <RawData name={messages.entryAsStored} text={escapeInvisible(stringifyJson(entry))} />
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
          ? messages.textWithMoreCharacters(text.slice(0, MAX_LENGTH), text.length - MAX_LENGTH)
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
    ...contentFact("via", messages.viaFact),
    ...contentFact("seat", messages.onBehalfOf),
    ...contentFact("args_sha256", messages.DIGEST_LABELS[entry.kind] ?? messages.sawArguments).map(asCode),
    ...contentFact("result_sha256", messages.resultFact).map(asCode),
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

const asCode = (fact: EntryFact): EntryFact => ({ ...fact, style: "code" });

function quorumFacts(entry: TimelineEntry): EntryFact[] {
  const quorum = entryData(entry, "quorum");
  if (!Array.isArray(quorum) || (quorum.length === 1 && quorum[0] === 1)) return [];
  return [
    {
      label: messages.needs,
      text: messages.peopleNeeded(quorum.join(messages.thenSeparator), quorum.at(-1)),
    },
  ];
}

function acknowledgedFacts(entry: TimelineEntry): EntryFact[] {
  const found = entryContent(entry, "acknowledged");
  if (!Array.isArray(found) || !found.length) return [];
  return [{ label: messages.acknowledged, text: found.map((id) => escapeInvisible(String(id))).join(", ") }];
}

const QUOTED_FIELDS = ["text", "reason", "comment", "note", "error", "sentence"];

function quotes(entry: TimelineEntry): EntryFact[] {
  return QUOTED_FIELDS.flatMap((name) => {
    const found = entryContent(entry, name);
    return typeof found === "string" && found ? [{ label: name, text: found, style: "quote" as const }] : [];
  });
}
