import { Text } from "@mantine/core";
import { useId } from "react";
import type { ApprovalSnapshot, Finding } from "../api/approvals";
import * as messages from "./argumentMessages";
import css from "./Arguments.module.css";

/** The acknowledged findings for the current arguments. */
export interface Acknowledgements {
  acknowledged: ReadonlySet<string>;
  /** Findings that must be acknowledged before approval; empty if the user cannot approve. */
  required: ReadonlySet<string>;
  toggle: (id: string) => void;
}

/** The findings to check before approval. */
export function FindingsBox({
  now,
  acknowledgements,
}: {
  now: ApprovalSnapshot;
  acknowledgements: Acknowledgements;
}) {
  const alarms = now.findings.filter(({ level }) => level === "alarm");
  if (!alarms.length) return null;
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
        {findUnplaced(now).map((finding) => (
          <FindingLine key={finding.id} finding={finding} acknowledgements={acknowledgements} />
        ))}
      </ul>
    </div>
  );
}

export function FindingLine({
  finding,
  acknowledgements,
}: {
  finding: Finding;
  acknowledgements: Acknowledgements;
}) {
  const descriptionId = useId();
  return (
    <li className={css.finding} data-level={finding.level} data-finding={finding.id}>
      <span className={css.kind}>{nameFindingKind(finding.kind)}</span>{" "}
      <span id={descriptionId}>{finding.message}</span>
      {acknowledgements.required.has(finding.id) && (
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

function markedHint(now: ApprovalSnapshot): string {
  const placed = now.findings.length > findUnplaced(now).length;
  return placed ? messages.markedBelow : "";
}

/** Findings about the whole call, or about an argument that does not exist. */
function findUnplaced(now: ApprovalSnapshot): Finding[] {
  const placed = new Set(now.card.fields.flatMap(({ findings }) => findings));
  return now.findings.filter(({ id }) => !placed.has(id));
}
