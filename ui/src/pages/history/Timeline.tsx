import { Code, Text } from "@mantine/core";
import { stringifyJson } from "../../api/json";
import { TimeAgo } from "../../components/TimeAgo";
import { visible, visibleLines } from "../../components/visible";
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

const MOST = 20_000;

/** What happened, in order; each step as a sentence, with what is kept about it. */
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
              <Told entries={step as TimelineEntry[]} />
            )}
          </li>
        );
      })}
    </ol>
  );
}

/** Many messages are one line, so that they do not bury what happened. */
function Told({ entries }: { entries: TimelineEntry[] }) {
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

/** One entry of the ledger as people read it; the same in the timeline and in the ledger. */
export function TimelineStep({ entry }: { entry: TimelineEntry }) {
  return (
    <>
      <Text fw={500} size="sm">
        {describeEntry(entry)}
      </Text>
      <Text size="xs" component="div">
        <TimeAgo at={entry.at} /> · entry {entry.seq}
        {listFacts(entry).map((fact) => (
          <Said key={fact.label} fact={fact} />
        ))}
      </Text>
      {wasErased(entry) && (
        <Text size="xs" fs="italic">
          Its content was erased; its digest is kept.
        </Text>
      )}
      {listChanges(entry).map((change) => (
        <Changed key={change.name} change={change} />
      ))}
      <RawData name="Entry as stored" text={visible(stringifyJson(entry))} />
    </>
  );
}

function Said({ fact }: { fact: EntryFact }) {
  if (fact.look === "quote")
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
      {fact.look === "code" ? <Code title={fact.text}>{fact.text.slice(0, 12)}</Code> : fact.text}
    </>
  );
}

function Changed({ change }: { change: EntryChange }) {
  return (
    <div className={css.change}>
      {change.name.replace(/^\//, "")}
      {change.before !== null && <del>− {change.before}</del>}
      {change.after !== null && <ins>+ {change.after}</ins>}
    </div>
  );
}

/** As it is stored, folded; what is very long is cut, and says so. */
export function RawData({ name, text }: { name: string; text: string }) {
  return (
    <details className={css.fold}>
      <summary>{name}</summary>
      <pre className={css.raw} tabIndex={0} aria-label={name}>
        {text.length > MOST ? `${text.slice(0, MOST)} … and ${text.length - MOST} more characters` : text}
      </pre>
    </details>
  );
}

interface EntryFact {
  label: string;
  text: string;
  /** What people wrote is quoted, digests are set like code. */
  look?: "quote" | "code";
}

interface EntryChange {
  name: string;
  before: string | null;
  after: string | null;
}

/** How the actor came, what they saw, and what they wrote: as far as it is kept. */
export function listFacts(entry: TimelineEntry): EntryFact[] {
  const said = (name: string, label: string): EntryFact[] => {
    const found = entryContent(entry, name);
    return typeof found === "string" && found ? [{ label, text: visible(found) }] : [];
  };
  return [
    ...said("via", "via"),
    ...said("seat", "on behalf of"),
    ...said("args_sha256", SEEN[entry.kind] ?? "saw arguments").map(coded),
    ...said("result_sha256", "result").map(coded),
    ...needed(entry),
    ...acknowledged(entry),
    ...quotes(entry),
  ];
}

/** Of an edit; kept with it until it is erased. */
export function listChanges(entry: TimelineEntry): EntryChange[] {
  const found = entryContent(entry, "changes");
  return entry.kind === "edited" && Array.isArray(found) ? (found as EntryChange[]) : [];
}

// An agent brings arguments, an editor leaves others behind; everybody else saw them.
const SEEN: Record<string, string> = {
  proposed: "arguments",
  allowed: "arguments",
  denied: "arguments",
  edited: "new arguments",
};

const coded = (fact: EntryFact): EntryFact => ({ ...fact, look: "code" });

function needed(entry: TimelineEntry): EntryFact[] {
  const quorum = entryData(entry, "quorum");
  if (!Array.isArray(quorum) || (quorum.length === 1 && quorum[0] === 1)) return [];
  return [{ label: "needs", text: `${quorum.join(", then ")} ${quorum.at(-1) === 1 ? "person" : "people"}` }];
}

function acknowledged(entry: TimelineEntry): EntryFact[] {
  const found = entryContent(entry, "acknowledged");
  if (!Array.isArray(found) || !found.length) return [];
  return [{ label: "acknowledged", text: found.map((id) => visible(String(id))).join(", ") }];
}

const WRITTEN = ["text", "reason", "comment", "note", "error", "sentence"];

function quotes(entry: TimelineEntry): EntryFact[] {
  return WRITTEN.flatMap((name) => {
    const found = entryContent(entry, name);
    return typeof found === "string" && found ? [{ label: name, text: found, look: "quote" as const }] : [];
  });
}
