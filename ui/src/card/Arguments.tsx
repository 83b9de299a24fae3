import { Button, Text, Title } from "@mantine/core";
import { useMemo, useState, type CSSProperties } from "react";
import type { Argument, Finding, Read } from "../api/approvals";
import css from "./Arguments.module.css";
import { FindingLine, type Looks } from "./Findings";
import { AT_FIRST, isContainer, linesOf, rowsOf, type Row } from "./rows";
import { Visible } from "./Text";
import { Value } from "./Value";

const DEEPEST = 8; // levels that are moved in: deeper ones would leave no room on a phone

/** All arguments from the stored bytes, in their order; very many in steps, those with an alarm at once. */
export function Arguments({ now, looks }: { now: Read; looks: Looks }) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [limit, setLimit] = useState(AT_FIRST);
  const fields = now.card.fields;
  const rows = useMemo(() => rowsOf(fields), [fields]);
  const alarmed = useMemo(() => new Set(now.alarms), [now.alarms]);
  const lines = useMemo(() => linesOf(rows, folded, limit, alarmed), [rows, folded, limit, alarmed]);
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
                {line.left.toLocaleString("en")} more arguments are not shown here.
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
  row: Row;
  findings: Finding[];
  looks: Looks;
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
        {!holds && <Value field={field} marked={marked} />}
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
      <Visible text={field.name} marked={marked} />
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
