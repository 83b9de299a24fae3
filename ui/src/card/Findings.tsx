import { Text } from "@mantine/core";
import { useId, type ReactNode } from "react";
import type { ApprovalSnapshot, Finding } from "../api/approvals";
import * as messages from "./argumentMessages";
import css from "./Arguments.module.css";
import { VisibleText } from "./VisibleText";

/** The acknowledged findings for the current arguments. */
export interface Acknowledgements {
  acknowledged: ReadonlySet<string>;
  /** Findings that must be acknowledged before approval; empty if the user cannot approve. */
  required: ReadonlySet<string>;
  toggle: (id: string) => void;
}

/** All findings to check before approval, in one place, before the arguments. */
export function FindingsBox({
  now,
  acknowledgements,
}: {
  now: ApprovalSnapshot;
  acknowledgements: Acknowledgements;
}) {
  const alarms = now.findings.filter(({ level }) => level === "alarm");
  if (!alarms.length) return null;
  const names = new Map(now.card.fields.map(({ pointer, name }) => [pointer, name]));
  const uncheckedCount = [...acknowledgements.required].filter(
    (id) => !acknowledgements.acknowledged.has(id),
  ).length;
  return (
    <div className={css.box} role="note" data-findings={uncheckedCount}>
      <Text className={css.boxTitle}>{titleFindings(alarms)}</Text>
      <Text size="sm">
        {uncheckedCount > 0
          ? messages.approveIsDisabledUntilChecked(markedHint(now), uncheckedCount)
          : acknowledgements.required.size > 0
            ? messages.allFindingsAreChecked
            : markedHint(now)}
      </Text>
      <ul className={css.findings}>
        {listedFindings(now).map((finding) => (
          <FindingLine key={finding.id} finding={finding} acknowledgements={acknowledgements}>
            <ArgumentLink names={names} finding={finding} />
          </FindingLine>
        ))}
      </ul>
    </div>
  );
}

/** The name of an argument, which leads to it; nothing for the whole call. */
function ArgumentLink({ names, finding }: { names: ReadonlyMap<string, string>; finding: Finding }) {
  const { pointer, kind } = finding;
  const steps = pointer.split("/");
  const path = steps.flatMap((_, at) => names.get(steps.slice(0, at + 1).join("/")) ?? []);
  if (!names.has(pointer)) return null;
  const place = `[data-pointer="${CSS.escape(pointer)}"]`;
  return (
    <button
      type="button"
      className={css.where}
      onClick={({ currentTarget }) =>
        currentTarget.closest("article")?.querySelector(place)?.scrollIntoView({ block: "center" })
      }
    >
      <VisibleText text={path.join(" › ")} marked={kind === "lookalike"} />
    </button>
  );
}

/** At its argument, a finding to check is only named: its text and its box stand above. */
export function FindingMark({ finding }: { finding: Finding }) {
  if (finding.level !== "alarm") return <FindingLine finding={finding} />;
  return (
    <li className={css.finding} data-level="alarm">
      <span className={css.kind}>{nameFindingKind(finding.kind)}</span>
    </li>
  );
}

function FindingLine({
  finding,
  acknowledgements,
  children,
}: {
  finding: Finding;
  acknowledgements?: Acknowledgements;
  children?: ReactNode;
}) {
  const descriptionId = useId();
  return (
    <li className={css.finding} data-level={finding.level} data-finding={finding.id}>
      {children} <span className={css.kind}>{nameFindingKind(finding.kind)}</span>{" "}
      <span id={descriptionId}>{finding.message}</span>
      {acknowledgements?.required.has(finding.id) && (
        <div>
          <label className={css.look}>
            <input
              type="checkbox"
              checked={acknowledgements.acknowledged.has(finding.id)}
              onChange={() => acknowledgements.toggle(finding.id)}
              aria-describedby={descriptionId}
            />
            {messages.checked}
          </label>
        </div>
      )}
    </li>
  );
}

/** The label of a kind of finding. */
export function nameFindingKind(kind: string): string {
  return messages.KIND_LABELS[kind] ?? kind;
}

/** Hidden arguments are listed separately from misleading text. */
export function titleFindings(alarms: readonly Pick<Finding, "kind" | "pointer">[]): string {
  const others = alarms.filter(({ kind }) => kind !== "agent_secret");
  const hiddenText = others.length < alarms.length ? messages.agentHidesArgumentsFromYou : "";
  if (!others.length) return capitalize(hiddenText);
  const argumentCount = new Set(others.map(({ pointer }) => pointer)).size;
  const areAllMisfits = others.every(({ kind }) => kind === "misfit");
  const verbs = areAllMisfits
    ? [messages.doesNotMatchToolsSchema, messages.doNotMatchToolsSchema]
    : messages.MISLEADING;
  const found = messages.argumentsWithProblem(argumentCount, argumentCount === 1 ? verbs[0] : verbs[1]);
  return hiddenText ? messages.foundAndHidden(found, hiddenText) : found;
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Those to check, and those that are about no argument. */
function listedFindings(now: ApprovalSnapshot): Finding[] {
  const unplaced = new Set(findUnplaced(now));
  return now.findings.filter((finding) => finding.level === "alarm" || unplaced.has(finding));
}

function markedHint(now: ApprovalSnapshot): string {
  const placed = now.findings.length > findUnplaced(now).length;
  return placed ? messages.markedBelow : "";
}

/** Findings about the whole call, or about an argument that does not exist. */
function findUnplaced(now: ApprovalSnapshot): Finding[] {
  const placed = new Set(now.card.fields.flatMap(({ findings }) => findings));
  return now.findings.filter(({ id }) => !placed.has(id));
}
