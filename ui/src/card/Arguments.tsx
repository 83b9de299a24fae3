import { Button, Text, Title } from "@mantine/core";
import { useMemo, useState, type CSSProperties } from "react";
import type { ApprovalSnapshot, Argument, Finding } from "../api/approvals";
import css from "./Arguments.module.css";
import { ArgumentValue } from "./ArgumentValue";
import { FindingLine, type Acknowledgements } from "./Findings";
import { VisibleText } from "./VisibleText";

const DEEPEST = 8; // levels that are moved in: deeper ones would leave no room on a phone

/** All arguments from the stored bytes, in their order; very many in steps, those with an alarm at once. */
export function Arguments({ now, looks }: { now: ApprovalSnapshot; looks: Acknowledgements }) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [limit, setLimit] = useState(INITIAL_LIMIT);
  const fields = now.card.fields;
  const rows = useMemo(() => listRows(fields), [fields]);
  const alarmed = useMemo(() => new Set(now.alarms), [now.alarms]);
  const lines = useMemo(() => layoutLines(rows, folded, limit, alarmed), [rows, folded, limit, alarmed]);
  const findings = useMemo(() => new Map(now.findings.map((each) => [each.id, each])), [now.findings]);
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
              looks={looks}
              folded={folded.has(line.row.field.pointer)}
              onFold={() => setFolded(toggled(folded, line.row.field.pointer))}
            />
          ) : (
            <li key={`behind ${line.from}`} className={css.left}>
              <Text size="sm" fw={600}>
                {line.left.toLocaleString("en")} more arguments are not shown.
              </Text>
              <Button variant="default" size="compact-sm" onClick={() => setLimit(limit + 500)}>
                Show {Math.min(500, line.left).toLocaleString("en")} more
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
  looks: Acknowledgements;
  folded: boolean;
  onFold: () => void;
}

function ArgumentRow({ row: { field, depth }, findings, looks, folded, onFold }: RowProps) {
  const holds = isContainer(field);
  const marked = findings.some(({ kind }) => kind === "lookalike");
  const isAlarm = findings.some(({ level }) => level === "alarm");
  return (
    <li
      className={css.row}
      data-alarm={isAlarm || undefined}
      style={{ "--depth": Math.min(depth, DEEPEST) } as CSSProperties}
    >
      <div className={css.pair} data-container={holds || undefined}>
        <div className={css.name}>
          {holds ? (
            <button type="button" className={css.fold} aria-expanded={!folded} onClick={onFold}>
              <Key field={field} marked={marked} />
            </button>
          ) : (
            <Key field={field} marked={marked} />
          )}
          <span className={css.type}>{typeOf(field)}</span>
        </div>
        {!holds && <ArgumentValue field={field} marked={marked} />}
      </div>
      {findings.length > 0 && (
        <ul className={css.findings}>
          {findings.map((finding) => (
            <FindingLine key={finding.id} finding={finding} looks={looks} />
          ))}
        </ul>
      )}
    </li>
  );
}

function Key({ field, marked }: { field: Argument; marked: boolean }) {
  return (
    <span className={css.key} data-name>
      <VisibleText text={field.name} marked={marked} />
    </span>
  );
}

function typeOf({ type, length }: Argument): string {
  if (type === "object")
    return `object, ${length.toLocaleString("en")} ${length === 1 ? "member" : "members"}`;
  return type === "array" ? `list, ${length.toLocaleString("en")} ${length === 1 ? "item" : "items"}` : type;
}

function toggled(folded: ReadonlySet<string>, pointer: string): ReadonlySet<string> {
  const next = new Set(folded);
  if (!next.delete(pointer)) next.add(pointer);
  return next;
}

/** One argument where it stands; `end` is the place behind the last of its members. */
interface PlacedArgument {
  field: Argument;
  depth: number;
  place: number;
  end: number;
}

/** What is shown: an argument, or how many are left out there. */
type ArgumentLine = { row: PlacedArgument } | { left: number; from: number };

const INITIAL_LIMIT = 200;

export function listRows(fields: readonly Argument[]): PlacedArgument[] {
  const rows = fields.map((field, place): PlacedArgument => {
    return { field, place, depth: depthOf(field.pointer), end: place + 1 };
  });
  const open: PlacedArgument[] = [];
  for (const row of rows) {
    while ((open.at(-1)?.depth ?? -1) >= row.depth) open.pop();
    for (const above of open) above.end = row.end;
    open.push(row);
  }
  return rows;
}

/** Up to `limit` arguments; behind that only those with an alarm, and what they are in. Folded ones hide their members. */
export function layoutLines(
  rows: readonly PlacedArgument[],
  folded: ReadonlySet<string>,
  limit: number,
  alarmed: ReadonlySet<string>,
): ArgumentLine[] {
  const lines: ArgumentLine[] = [];
  const isWanted = wanted(rows, alarmed);
  for (let place = 0, shown = 0; place < rows.length;) {
    const row = rows[place] as PlacedArgument;
    if (shown < limit || isWanted.has(place)) {
      lines.push({ row });
      shown += 1;
      place = folded.has(row.field.pointer) ? row.end : place + 1;
    } else {
      const last = lines.at(-1);
      if (last && "left" in last) last.left += 1;
      else lines.push({ left: 1, from: place });
      place += 1;
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

/** The places of arguments with an alarm, and of those that they are in. */
function wanted(rows: readonly PlacedArgument[], alarmed: ReadonlySet<string>): Set<number> {
  const places = new Set<number>();
  const open: PlacedArgument[] = [];
  for (const row of rows) {
    while ((open.at(-1)?.end ?? Infinity) <= row.place) open.pop();
    if (row.field.findings.some((id) => alarmed.has(id)))
      for (const each of [...open, row]) places.add(each.place);
    if (isContainer(row.field)) open.push(row);
  }
  return places;
}
