import { Code, Text } from "@mantine/core";
import { write } from "../../api/json";
import { Ago } from "../../components/Time";
import { changes, facts, type Change, type Fact } from "./facts";
import css from "./History.module.css";
import { Raw } from "./Raw";
import { sentence, wasErased, type Entry } from "./sentences";
import { dot } from "./statuses";
import { folded, summary } from "./told";
import { lines, visible } from "../../components/visible";

/** What happened, in order; each step as a sentence, with what is kept about it. */
export function Timeline({ entries }: { entries: Entry[] }) {
  return (
    <ol className={css.timeline} aria-label="Timeline">
      {folded(entries).map((step) => {
        const [entry, ...rest] = Array.isArray(step) ? step : [step];
        return (
          <li
            key={entry?.seq}
            className={css.step}
            data-kind={entry?.kind}
            style={{ "--dot": dot(entry?.kind ?? "") } as object}
          >
            {entry && !rest.length ? <Step entry={entry} /> : <Told entries={step as Entry[]} />}
          </li>
        );
      })}
    </ol>
  );
}

/** Many messages are one line, so that they do not bury what happened. */
function Told({ entries }: { entries: Entry[] }) {
  return (
    <details className={css.fold}>
      <summary>
        <Text span fw={500} size="sm">
          {summary(entries)}
        </Text>
      </summary>
      <ul className={css.told} aria-label="Messages">
        {entries.map((entry) => (
          <li key={entry.seq}>
            <Step entry={entry} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** One entry of the ledger as people read it; the same in the timeline and in the ledger. */
export function Step({ entry }: { entry: Entry }) {
  return (
    <>
      <Text fw={500} size="sm">
        {sentence(entry)}
      </Text>
      <Text size="xs" component="div">
        <Ago at={entry.at} /> · entry {entry.seq}
        {facts(entry).map((fact) => (
          <Said key={fact.label} fact={fact} />
        ))}
      </Text>
      {wasErased(entry) && (
        <Text size="xs" fs="italic">
          What was kept with it was erased; its digest stays.
        </Text>
      )}
      {changes(entry).map((change) => (
        <Changed key={change.name} change={change} />
      ))}
      <Raw name="Entry as stored" text={visible(write(entry))} />
    </>
  );
}

function Said({ fact }: { fact: Fact }) {
  if (fact.look === "quote")
    return (
      <blockquote className={css.quote}>
        <span>{fact.label}: </span>
        {lines(fact.text).join("\n")}
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

function Changed({ change }: { change: Change }) {
  return (
    <div className={css.change}>
      {change.name.replace(/^\//, "")}
      {change.before !== null && <del>− {change.before}</del>}
      {change.after !== null && <ins>+ {change.after}</ins>}
    </div>
  );
}
