import type { Argument } from "../api/approvals";
import { memberOrder, repeatsName, SchemaLabels, titleOf } from "./schema";

/** An argument with its position; `end` is the index after its last member. */
export interface PlacedArgument {
  field: Argument;
  depth: number;
  index: number;
  end: number;
  /** From the tool's schema; empty if it says no more than the name, or nothing. */
  title: string;
  /** How a list is shown, if not as one line for each item. */
  layout: "table" | "line" | "";
  /** The index of the table row that it belongs to, which is shown as a whole. */
  tableRow: number;
}

/** A visible argument, or a number of arguments left out at that position. */
export type ArgumentLine = { row: PlacedArgument } | { hiddenCount: number; from: number };

const MAX_COLUMNS = 12;
const MAX_LINE_ITEMS = 30;
const MAX_LINE_TEXT = 240; // characters of all items together
const MAX_ITEM_TEXT = 60;

/** In the order and with the titles of a trusted schema, else as they are stored and called. */
export function listRows(fields: readonly Argument[], schema?: unknown): PlacedArgument[] {
  const { ordered, titles } = isRecord(schema)
    ? sortBySchema(fields, schema)
    : { ordered: fields, titles: NO_TITLES };
  const rows = ordered.map((field, index): PlacedArgument => {
    const title = titles.get(field.pointer) ?? "";
    const place = { index, depth: depthOf(field.pointer), end: index + 1 };
    return { field, ...place, title, layout: "", tableRow: -1 };
  });
  const ancestors: PlacedArgument[] = [];
  for (const row of rows) {
    while ((ancestors.at(-1)?.depth ?? -1) >= row.depth) ancestors.pop();
    for (const ancestor of ancestors) ancestor.end = row.end;
    ancestors.push(row);
  }
  for (const row of rows) chooseLayout(row, rows);
  return rows;
}

const NO_TITLES: ReadonlyMap<string, string> = new Map();

/** Lists of plain objects are tables, short lists of plain values one line. */
function chooseLayout(list: PlacedArgument, rows: readonly PlacedArgument[]): void {
  if (list.field.type !== "array" || list.tableRow >= 0 || list.end === list.index + 1) return;
  const inside = rows.slice(list.index + 1, list.end);
  const items = inside.filter(({ depth }) => depth === list.depth + 1);
  if (inside.length === items.length) {
    if (isShortLine(items.map(({ field }) => field))) list.layout = "line";
    return;
  }
  const isFlat = inside.every(
    ({ depth, field }) => depth <= list.depth + 2 && !isLongCell(field, depth - list.depth),
  );
  const columns = new Set(
    inside.flatMap(({ depth, field }) => (depth === list.depth + 2 ? [field.name] : [])),
  );
  if (!isFlat || columns.size > MAX_COLUMNS || !items.every(({ field }) => field.type === "object")) return;
  list.layout = "table";
  for (const item of items)
    for (let at = item.index; at < item.end; at++) (rows[at] as PlacedArgument).tableRow = item.index;
}

function isLongCell({ type, text, length, sha256 }: Argument, level: number): boolean {
  if (level < 2) return false;
  return (
    Boolean(sha256) ||
    text.includes("\\n") ||
    text.length > 400 ||
    ((type === "array" || type === "object") && length > 0)
  );
}

function isShortLine(items: readonly Argument[]): boolean {
  const total = items.reduce((sum, { text }) => sum + text.length, 0);
  return (
    items.length <= MAX_LINE_ITEMS &&
    total <= MAX_LINE_TEXT &&
    items.every(
      ({ text, findings }) => text.length <= MAX_ITEM_TEXT && !findings.length && !text.includes("\\n"),
    )
  );
}

/**
 * Up to `limit` arguments; after that only those with an alarm and their parents. Folded arguments hide their
 * members; rows of tables are never cut.
 */
export function layoutLines(
  rows: readonly PlacedArgument[],
  folded: ReadonlySet<string>,
  limit: number,
  alarmed: ReadonlySet<string>,
): ArgumentLine[] {
  const lines: ArgumentLine[] = [];
  const alarmedIndexes = findAlarmed(rows, alarmed);
  let openRow = -1; // the table row that is shown last
  for (let index = 0, shown = 0; index < rows.length;) {
    const row = rows[index] as PlacedArgument;
    const isInOpenRow = row.tableRow >= 0 && row.tableRow === openRow;
    if (shown < limit || alarmedIndexes.has(index) || isInOpenRow) {
      lines.push({ row });
      shown += 1;
      openRow = row.tableRow;
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

/** A list with the lines of its items, or any other argument alone. */
export type ArgumentBlock = { line: ArgumentLine; inside: ArgumentLine[] };

/** Puts the lines of tables and of one-line lists into their list. */
export function groupLines(lines: readonly ArgumentLine[]): ArgumentBlock[] {
  const blocks: ArgumentBlock[] = [];
  let end = 0; // of the list that is being filled
  for (const line of lines) {
    const at = "row" in line ? line.row.index : line.from;
    const last = blocks.at(-1);
    if (last && at < end) last.inside.push(line);
    else {
      blocks.push({ line, inside: [] });
      end = "row" in line && line.row.layout ? line.row.end : 0;
    }
  }
  return blocks;
}

export function isContainer({ type, length }: Pick<Argument, "type" | "length">): boolean {
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

interface Branch {
  field: Argument;
  name: string;
  members: Branch[];
}

/** The same fields in the order of the schema, with its titles by pointer. */
function sortBySchema(fields: readonly Argument[], root: Record<string, unknown>) {
  const labels = new SchemaLabels(root);
  const titles = new Map<string, string>();
  const ordered: Argument[] = [];
  const visit = (branches: Branch[], schema: Record<string, unknown>, isList: boolean) => {
    for (const branch of isList ? branches : sortMembers(branches, memberOrder(schema))) {
      const names = branch.field.type === "object" ? branch.members.map(({ name }) => name) : [];
      const own = labels.member(schema, branch.name, isList, names);
      const title = isList ? "" : titleOf(own);
      if (title) titles.set(branch.field.pointer, title);
      ordered.push(branch.field);
      if (branch.members.length) visit(branch.members, own, branch.field.type === "array");
    }
  };
  visit(toTree(fields), labels.resolve(root), false);
  return { ordered, titles };
}

function sortMembers(branches: Branch[], order: readonly string[]): Branch[] {
  const places = new Map(order.map((name, place) => [name, place]));
  const place = ({ name }: Branch) => places.get(name) ?? order.length;
  return [...branches].sort((one, other) => place(one) - place(other));
}

function toTree(fields: readonly Argument[]): Branch[] {
  const top: Branch[] = [];
  const path: { depth: number; members: Branch[] }[] = [{ depth: -1, members: top }];
  for (const field of fields) {
    const depth = depthOf(field.pointer);
    while ((path.at(-1)?.depth ?? -1) >= depth) path.pop();
    const branch: Branch = { field, name: lastName(field.pointer), members: [] };
    path.at(-1)?.members.push(branch);
    path.push({ depth, members: branch.members });
  }
  return top;
}

function lastName(pointer: string): string {
  return pointer
    .slice(pointer.lastIndexOf("/") + 1)
    .replaceAll("~1", "/")
    .replaceAll("~0", "~");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The title of an argument, and its name where the title says something else. */
export function labelsOf({ title, field }: Pick<PlacedArgument, "title" | "field">): {
  title: string;
  name: string;
} {
  if (!title) return { title: "", name: field.name };
  const isRepeated = repeatsName(title, lastName(field.pointer)) && !field.findings.length;
  return { title, name: isRepeated ? "" : field.name };
}
