import type { Argument } from "../api/approvals";

/** One argument where it stands; `end` is the place behind the last of its members. */
export interface Row {
  field: Argument;
  depth: number;
  place: number;
  end: number;
}

/** What is shown: an argument, or how many are left out there. */
export type Line = { row: Row } | { left: number; from: number };

export const AT_FIRST = 200;

export function rowsOf(fields: readonly Argument[]): Row[] {
  const rows = fields.map((field, place): Row => {
    return { field, place, depth: depthOf(field.pointer), end: place + 1 };
  });
  const open: Row[] = [];
  for (const row of rows) {
    while ((open.at(-1)?.depth ?? -1) >= row.depth) open.pop();
    for (const above of open) above.end = row.end;
    open.push(row);
  }
  return rows;
}

/** Up to `limit` arguments; behind that only those with an alarm, and what they are in. Folded ones hide their members. */
export function linesOf(
  rows: readonly Row[],
  folded: ReadonlySet<string>,
  limit: number,
  alarmed: ReadonlySet<string>,
): Line[] {
  const lines: Line[] = [];
  const isWanted = wanted(rows, alarmed);
  for (let place = 0, shown = 0; place < rows.length;) {
    const row = rows[place] as Row;
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

export function isContainer({ type, length }: Argument): boolean {
  return (type === "object" || type === "array") && length > 0;
}

function depthOf(pointer: string): number {
  let depth = -1;
  for (let at = pointer.indexOf("/"); at >= 0; at = pointer.indexOf("/", at + 1)) depth += 1;
  return depth;
}

/** The places of arguments with an alarm, and of those that they are in. */
function wanted(rows: readonly Row[], alarmed: ReadonlySet<string>): Set<number> {
  const places = new Set<number>();
  const open: Row[] = [];
  for (const row of rows) {
    while ((open.at(-1)?.end ?? Infinity) <= row.place) open.pop();
    if (row.field.findings.some((id) => alarmed.has(id)))
      for (const each of [...open, row]) places.add(each.place);
    if (isContainer(row.field)) open.push(row);
  }
  return places;
}
