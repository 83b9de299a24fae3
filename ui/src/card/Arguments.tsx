import { Button, Text, Title } from "@mantine/core";
import { useMemo, useState, type CSSProperties, type ReactNode } from "react";
import type { ApprovalSnapshot, Argument, Finding } from "../api/approvals";
import { escapeInvisible } from "../components/escapeInvisible";
import * as messages from "./argumentMessages";
import {
  groupLines,
  isContainer,
  labelsOf,
  layoutLines,
  listRows,
  type ArgumentBlock,
  type ArgumentLine,
  type PlacedArgument,
} from "./argumentRows";
import css from "./Arguments.module.css";
import { ArgumentTable } from "./ArgumentTable";
import { ArgumentValue, isWide } from "./ArgumentValue";
import { FindingMark } from "./Findings";
import { VisibleText } from "./VisibleText";

const MAX_INDENT = 8; // indented levels; more would leave no room on a phone
const INITIAL_LIMIT = 200;
const STEP = 500;
const DIGEST_LENGTH = 8;

/** All arguments from the stored bytes; long lists in steps, arguments with an alarm always. */
export function Arguments({ approval }: { approval: ApprovalSnapshot }) {
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set());
  const [limit, setLimit] = useState(INITIAL_LIMIT);
  const fields = approval.card.fields;
  const trustedSchema = approval.declared ? null : approval.schema; // an agent's own titles could say anything
  const rows = useMemo(() => listRows(fields, trustedSchema), [fields, trustedSchema]);
  const alarmed = useMemo(() => new Set(approval.alarms), [approval.alarms]);
  const blocks = useMemo(
    () => groupLines(layoutLines(rows, folded, limit, alarmed)),
    [rows, folded, limit, alarmed],
  );
  const findings = useMemo(
    () => new Map(approval.findings.map((each) => [each.id, each])),
    [approval.findings],
  );
  const findingsOf = (field: Argument) => field.findings.flatMap((id) => findings.get(id) ?? []);
  const showMore = () => setLimit(limit + STEP);
  return (
    <div role="group" className={css.arguments} aria-label={messages.argumentsLabel} data-arguments>
      <div className={css.title}>
        <Title order={3} size="xs">
          {fields.length === 0 ? messages.noArguments : messages.argumentsLabel}
        </Title>
        <span className={css.digest}>
          {messages.exactlyWhatWillRun(approval.args_sha256.slice(0, DIGEST_LENGTH))}
        </span>
      </div>
      <ul className={css.list} data-nested={rows.some((row) => hasFold(row)) || undefined}>
        {blocks.map(({ line, inside }) =>
          "row" in line ? (
            <ArgumentRow
              key={line.row.field.pointer}
              row={line.row}
              findings={[line, ...inside].flatMap((each) =>
                "row" in each ? findingsOf(each.row.field) : [],
              )}
              folded={folded.has(line.row.field.pointer)}
              onFold={() => setFolded(toggle(folded, line.row.field.pointer))}
            >
              <Items row={line.row} inside={inside} findingsOf={findingsOf} onMore={showMore} />
            </ArgumentRow>
          ) : (
            <li key={`behind ${line.from}`} className={css.left}>
              <HiddenArguments count={line.hiddenCount} onMore={showMore} />
            </li>
          ),
        )}
      </ul>
    </div>
  );
}

/** A number of arguments that are left out, and a way to them. */
export function HiddenArguments({ count, onMore }: { count: number; onMore: () => void }) {
  return (
    <>
      <Text size="sm" fw={600}>
        {messages.moreArgumentsAreNotShown(count)}
      </Text>
      <Button variant="default" size="compact-sm" onClick={onMore}>
        {messages.showMore(Math.min(STEP, count))}
      </Button>
    </>
  );
}

interface ItemsProps {
  row: PlacedArgument;
  inside: ArgumentBlock["inside"];
  findingsOf: (field: Argument) => Finding[];
  onMore: () => void;
}

/** The value: text, a table, or the items of a short list. */
function Items({ row, inside, findingsOf, onMore }: ItemsProps): ReactNode {
  const { field } = row;
  if (!isContainer(field)) return <ArgumentValue field={field} marked={isMarked(findingsOf(field))} />;
  if (!row.layout || !inside.length) return null;
  if (row.layout === "table")
    return <ArgumentTable lines={inside} isMarked={(each) => isMarked(findingsOf(each))} onMore={onMore} />;
  return <ShortList lines={inside} onMore={onMore} />;
}

function ShortList({ lines, onMore }: { lines: readonly ArgumentLine[]; onMore: () => void }) {
  return (
    <div className={css.short}>
      [
      {lines.map((line, at) =>
        "row" in line ? (
          <span key={line.row.field.pointer}>
            <ArgumentValue field={line.row.field} marked={false} isInline />
            {at < lines.length - 1 && ", "}
          </span>
        ) : (
          <HiddenArguments key={at} count={line.hiddenCount} onMore={onMore} />
        ),
      )}
      ]
    </div>
  );
}

interface RowProps {
  row: PlacedArgument;
  findings: Finding[];
  folded: boolean;
  onFold: () => void;
  children: ReactNode;
}

function ArgumentRow({ row, findings, folded, onFold, children }: RowProps) {
  const { field, depth } = row;
  const isAlarm = findings.some(({ level }) => level === "alarm");
  const name = <ArgumentName row={row} marked={isMarked(findings)} />;
  return (
    <li
      className={css.row}
      data-alarm={isAlarm || undefined}
      data-depth={depth || undefined}
      style={{ "--depth": Math.min(depth, MAX_INDENT) } as CSSProperties}
    >
      <div
        className={css.pair}
        data-container={hasFold(row) || undefined}
        data-wide={row.layout === "table" || isWide(field) || undefined}
      >
        <div className={css.name}>
          {hasFold(row) ? (
            <button type="button" className={css.fold} aria-expanded={!folded} onClick={onFold}>
              {name}
            </button>
          ) : (
            name
          )}
          {isContainer(field) && <span className={css.type}>{typeLabel(field)}</span>}
        </div>
        {children}
      </div>
      {findings.length > 0 && (
        <ul className={css.findings}>
          {findings.map((finding) => (
            <FindingMark key={finding.id} finding={finding} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** The title of a trusted schema, and the name where the title says something else. */
export function ArgumentName({
  row,
  marked,
}: {
  row: Pick<PlacedArgument, "title" | "field">;
  marked: boolean;
}) {
  const { title, name } = labelsOf(row);
  if (!title)
    return (
      <span className={css.key} data-name>
        <VisibleText text={name} marked={marked} />
      </span>
    );
  return (
    <span className={css.key}>
      <span data-name>
        <VisibleText text={escapeInvisible(title)} />
      </span>
      {name && (
        <span className={css.raw}>
          <VisibleText text={name} marked={marked} />
        </span>
      )}
    </span>
  );
}

function hasFold({ field, layout }: PlacedArgument): boolean {
  return isContainer(field) && layout !== "line";
}

function isMarked(findings: readonly Finding[]): boolean {
  return findings.some(({ kind }) => kind === "lookalike");
}

/** Kinds of what has members; those of values can be seen: a text has quotation marks. */
function typeLabel({ type, length }: Argument): string {
  if (type === "object") return messages.objectWithMembers(length);
  return messages.listWithItems(length);
}

function toggle(folded: ReadonlySet<string>, pointer: string): ReadonlySet<string> {
  const next = new Set(folded);
  if (!next.delete(pointer)) next.add(pointer);
  return next;
}
