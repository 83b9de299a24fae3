import { Text } from "@mantine/core";
import { useId } from "react";
import type { Finding, Read } from "../api/approvals";
import css from "./arguments.module.css";

/** Which alarms this person looked at, for the arguments as they stand. */
export interface Looks {
  looked: ReadonlySet<string>;
  /** Those that have to be looked at before one can approve; empty where nobody can. */
  wanted: ReadonlySet<string>;
  look: (id: string) => void;
}

const KINDS: Record<string, string> = {
  bidi: "Turned text",
  invisible: "Invisible characters",
  control: "Control codes",
  space: "Odd blanks",
  lookalike: "Look-alike letters",
  host: "Host",
  emoji: "Emoji",
  right_to_left: "Right to left",
  long: "Long",
  unknown_argument: "Unknown argument",
  misfit: "Does not fit",
};

/** What there is to look at before anything else, and what it stops. */
export function FindingsBox({ now, looks }: { now: Read; looks: Looks }) {
  const alarms = now.findings.filter(({ level }) => level === "alarm");
  if (!alarms.length) return null;
  const places = new Set(alarms.map(({ pointer }) => pointer)).size;
  const left = [...looks.wanted].filter((id) => !looks.looked.has(id)).length;
  return (
    <div className={css.box} role="note" data-findings={left}>
      <Text className={css.boxTitle}>
        {places === 1 ? "1 argument" : `${places} arguments`} {wordsFor(alarms, places)}
      </Text>
      <Text size="sm">
        {left > 0
          ? `Marked below. Approve is off until you have looked at ${left === 1 ? "it" : `all ${left} findings`}.`
          : looks.wanted.size > 0
            ? "You have looked at all of them."
            : "Marked below."}
      </Text>
      <ul className={css.findings}>
        {withoutPlace(now).map((finding) => (
          <FindingLine key={finding.id} finding={finding} looks={looks} />
        ))}
      </ul>
    </div>
  );
}

export function FindingLine({ finding, looks }: { finding: Finding; looks: Looks }) {
  const described = useId();
  return (
    <li className={css.finding} data-level={finding.level} data-finding={finding.id}>
      <span className={css.kind}>{kindName(finding.kind)}</span> <span id={described}>{finding.message}</span>
      {looks.wanted.has(finding.id) && (
        <div>
          <label className={css.look}>
            <input
              type="checkbox"
              checked={looks.looked.has(finding.id)}
              onChange={() => looks.look(finding.id)}
              aria-describedby={described}
            />
            I have looked at it
          </label>
        </div>
      )}
    </li>
  );
}

/** What a kind of finding is called. */
export function kindName(kind: string): string {
  return KINDS[kind] ?? kind;
}

function wordsFor(alarms: Finding[], places: number): string {
  if (alarms.every(({ kind }) => kind === "misfit"))
    return places === 1 ? "does not fit the tool" : "do not fit the tool";
  return places === 1 ? "contains text that may deceive" : "contain text that may deceive";
}

/** What is about the call as a whole, or about an argument that is not there. */
function withoutPlace(now: Read): Finding[] {
  const placed = new Set(now.card.fields.flatMap(({ findings }) => findings));
  return now.findings.filter(({ id }) => !placed.has(id));
}
