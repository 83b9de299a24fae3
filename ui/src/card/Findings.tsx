import { Text } from "@mantine/core";
import { useId } from "react";
import type { ApprovalSnapshot, Finding } from "../api/approvals";
import css from "./Arguments.module.css";

/** Which alarms this person looked at, for the arguments as they stand. */
export interface Acknowledgements {
  looked: ReadonlySet<string>;
  /** Those that have to be looked at before one can approve; empty where nobody can. */
  wanted: ReadonlySet<string>;
  look: (id: string) => void;
}

const KINDS: Record<string, string> = {
  bidi: "Text direction",
  invisible: "Invisible characters",
  control: "Control characters",
  space: "Unusual spaces",
  lookalike: "Look-alike letters",
  host: "Host",
  emoji: "Emoji",
  right_to_left: "Right-to-left text",
  long: "Long value",
  unknown_argument: "Unknown argument",
  misfit: "Schema mismatch",
  agent_secret: "Hidden by the agent",
};

/** What there is to look at before anything else, and what it stops. */
export function FindingsBox({ now, looks }: { now: ApprovalSnapshot; looks: Acknowledgements }) {
  const alarms = now.findings.filter(({ level }) => level === "alarm");
  if (!alarms.length) return null;
  const left = [...looks.wanted].filter((id) => !looks.looked.has(id)).length;
  return (
    <div className={css.box} role="note" data-findings={left}>
      <Text className={css.boxTitle}>{titleFindings(alarms)}</Text>
      <Text size="sm">
        {left > 0
          ? `${marked(now)}Approve is disabled until you check ${left === 1 ? "it" : `all ${left} findings`}.`
          : looks.wanted.size > 0
            ? "All findings are checked."
            : marked(now)}
      </Text>
      <ul className={css.findings}>
        {withoutPlace(now).map((finding) => (
          <FindingLine key={finding.id} finding={finding} looks={looks} />
        ))}
      </ul>
    </div>
  );
}

export function FindingLine({ finding, looks }: { finding: Finding; looks: Acknowledgements }) {
  const described = useId();
  return (
    <li className={css.finding} data-level={finding.level} data-finding={finding.id}>
      <span className={css.kind}>{nameFindingKind(finding.kind)}</span>{" "}
      <span id={described}>{finding.message}</span>
      {looks.wanted.has(finding.id) && (
        <div>
          <label className={css.look}>
            <input
              type="checkbox"
              checked={looks.looked.has(finding.id)}
              onChange={() => looks.look(finding.id)}
              aria-describedby={described}
            />
            Checked
          </label>
        </div>
      )}
    </li>
  );
}

/** What a kind of finding is called. */
export function nameFindingKind(kind: string): string {
  return KINDS[kind] ?? kind;
}

/** What is hidden is no text that may deceive, and is told apart from it. */
export function titleFindings(alarms: readonly Pick<Finding, "kind" | "pointer">[]): string {
  const others = alarms.filter(({ kind }) => kind !== "agent_secret");
  const hides = others.length < alarms.length ? "the agent hides arguments from you" : "";
  if (!others.length) return sentence(hides);
  const places = new Set(others.map(({ pointer }) => pointer)).size;
  const misfits = others.every(({ kind }) => kind === "misfit");
  const what = misfits ? ["does not match the tool's schema", "do not match the tool's schema"] : DECEIVES;
  const found = `${places === 1 ? "1 argument" : `${places} arguments`} ${places === 1 ? what[0] : what[1]}`;
  return hides ? `${found}, and ${hides}` : found;
}

const DECEIVES = ["contains text that may mislead you", "contain text that may mislead you"];

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function marked(now: ApprovalSnapshot): string {
  const placed = now.findings.length > withoutPlace(now).length;
  return placed ? "Marked below. " : "";
}

/** What is about the call as a whole, or about an argument that is not there. */
function withoutPlace(now: ApprovalSnapshot): Finding[] {
  const placed = new Set(now.card.fields.flatMap(({ findings }) => findings));
  return now.findings.filter(({ id }) => !placed.has(id));
}
