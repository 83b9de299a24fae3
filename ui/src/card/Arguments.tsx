import { Button, Text, Title } from "@mantine/core";
import { useMemo, useState, type CSSProperties } from "react";
import type { ApprovalSnapshot, Argument, Finding } from "../api/approvals";
import css from "./Arguments.module.css";
import { ArgumentValue } from "./ArgumentValue";
import { FindingLine, type Acknowledgements } from "./Findings";
import { VisibleText } from "./VisibleText";

const MAX_INDENT = 8; // indented levels; more would leave no room on a phone

/** All arguments from the stored bytes, in order; long lists in steps, arguments with an alarm always. */
export function Arguments({
  approval,
  acknowledgements,
}: {
  approval: ApprovalSnapshot;
  acknowledgements: Acknowledgements;
}) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [limit, setLimit] = useState(INITIAL_LIMIT);
  const fields = approval.card.fields;
  const rows = useMemo(() => listRows(fields), [fields]);
  const alarmed = useMemo(() => new Set(approval.alarms), [approval.alarms]);
  const lines = useMemo(() => layoutLines(rows, folded, limit, alarmed), [rows, folded, limit, alarmed]);
  const findings = useMemo(
    () => new Map(approval.findings.map((each) => [each.id, each])),
    [approval.findings],
  );
  return (
    <div role="group" className={css.arguments} aria-label="Arguments">
      <Title order={3} size="sm" mb={4}>
        {fields.length === 0 ? "No arguments" : "Arguments"}
      </Title>
      <ul className={css.list} data-nested={fields.some(isContainer) || undefined}>
        {lines.map((line) =>
          "row" in line ? (
            <ArgumentRow
              key={line.row.field.pointer}
              row={line.row}
              findings={line.row.field.findings.flatMap((id) => findings.get(id) ?? [])}
              acknowledgements={acknowledgements}
              folded={folded.has(line.row.field.pointer)}
              onFold={() => setFolded(toggle(folded, line.row.field.pointer))}
            />
          ) : (
            <li key={`behind ${line.from}`} className={css.left}>
              <Text size="sm" fw={600}>
                {line.hiddenCount.toLocaleString("en")} more arguments are not shown.
              </Text>
              <Button variant="default" size="compact-sm" onClick={() => setLimit(limit + 500)}>
                Show {Math.min(500, line.hiddenCount).toLocaleString("en")} more
              </Button>
            </li>
          ),
        )}
      </ul>
    </div>
  );
}

interface RowProps {
  row: PlacedArgument;
  findings: Finding[];
  acknowledgements: Acknowledgements;
  folded: boolean;
  onFold: () => void;
}

function ArgumentRow({ row: { field, depth }, findings, acknowledgements, folded, onFold }: RowProps) {
  const isParent = isContainer(field);
  const marked = findings.some(({ kind }) => kind === "lookalike");
  const isAlarm = findings.some(({ level }) => level === "alarm");
  return (
    <li
      className={css.row}
      data-alarm={isAlarm || undefined}
      style={{ "--depth": Math.min(depth, MAX_INDENT) } as CSSProperties}
    >
      <div className={css.pair} data-container={isParent || undefined}>
        <div className={css.name}>
          {isParent ? (
            <button type="button" className={css.fold} aria-expanded={!folded} onClick={onFold}>
              <ArgumentName field={field} marked={marked} />
            </button>
          ) : (
            <ArgumentName field={field} marked={marked} />
          )}
          <span className={css.type}>{typeLabel(field)}</span>
        </div>
        {!isParent && <ArgumentValue field={field} marked={marked} />}
      </div>
      {findings.length > 0 && (
        <ul className={css.findings}>
          {findings.map((finding) => (
            <FindingLine key={finding.id} finding={finding} acknowledgements={acknowledgements} />
          ))}
        </ul>
      )}
    </li>
  );
}

function ArgumentName({ field, marked }: { field: Argument; marked: boolean }) {
  return (
    <span className={css.key} data-name>
      <VisibleText text={field.name} marked={marked} />
    </span>
  );
}

function typeLabel({ type, length }: Argument): string {
  if (type === "object")
    return `object, ${length.toLocaleString("en")} ${length === 1 ? "member" : "members"}`;
  return type === "array" ? `list, ${length.toLocaleString("en")} ${length === 1 ? "item" : "items"}` : type;
}

function toggle(folded: ReadonlySet<string>, pointer: string): ReadonlySet<string> {
  const next = new Set(folded);
  if (!next.delete(pointer)) next.add(pointer);
  return next;
}

/** An argument with its position; `end` is the index after its last member. */
interface PlacedArgument {
  field: Argument;
  depth: number;
  index: number;
  end: number;
}

/** A visible argument, or a number of arguments left out at that position. */
type ArgumentLine = { row: PlacedArgument } | { hiddenCount: number; from: number };

const INITIAL_LIMIT = 200;

export function listRows(fields: readonly Argument[]): PlacedArgument[] {
  const rows = fields.map((field, index): PlacedArgument => {
    return { field, index, depth: depthOf(field.pointer), end: index + 1 };
  });
  const ancestors: PlacedArgument[] = [];
  for (const row of rows) {
    while ((ancestors.at(-1)?.depth ?? -1) >= row.depth) ancestors.pop();
    for (const ancestor of ancestors) ancestor.end = row.end;
    ancestors.push(row);
  }
  return rows;
}

/**
 * Up to `limit` arguments; after that only those with an alarm and their parents. Folded arguments hide their
 * members.
 */
export function layoutLines(
  rows: readonly PlacedArgument[],
  folded: ReadonlySet<string>,
  limit: number,
  alarmed: ReadonlySet<string>,
): ArgumentLine[] {
  const lines: ArgumentLine[] = [];
  const alarmedIndexes = findAlarmed(rows, alarmed);
  for (let index = 0, shown = 0; index < rows.length;) {
    const row = rows[index] as PlacedArgument;
    if (shown < limit || alarmedIndexes.has(index)) {
      lines.push({ row });
      shown += 1;
      index = folded.has(row.field.pointer) ? row.end : index + 1;
    } else {
      const last = lines.at(-1);
      if (last && "hiddenCount" in last) last.hiddenCount += 1;
      else lines.push({ hiddenCount: 1, from: index });
      index += 1;
    }
  }
  return lines;
}

function isContainer({ type, length }: Argument): boolean {
  return (type === "object" || type === "array") && length > 0;
}

function depthOf(pointer: string): number {
  let depth = -1;
  for (let at = pointer.indexOf("/"); at >= 0; at = pointer.indexOf("/", at + 1)) depth += 1;
  return depth;
}

/** Indexes of arguments with an alarm, and of their parents. */
function findAlarmed(rows: readonly PlacedArgument[], alarmed: ReadonlySet<string>): Set<number> {
  const indexes = new Set<number>();
  const ancestors: PlacedArgument[] = [];
  for (const row of rows) {
    while ((ancestors.at(-1)?.end ?? Infinity) <= row.index) ancestors.pop();
    if (row.field.findings.some((id) => alarmed.has(id)))
      for (const each of [...ancestors, row]) indexes.add(each.index);
    if (isContainer(row.field)) ancestors.push(row);
  }
  return indexes;
}
