import type { Row } from "./feed";

export const MOST = 100; // more than a person compares, and each is read whole

/** Why this row cannot be decided together with the others; "" if it can. */
export function hindrance(row: Row, chosen: readonly Row[]): string {
  const first = chosen[0];
  if (row.status !== "pending") return "This is decided already.";
  if (row.risk === "high") return "High risk is decided one by one.";
  if (row.alarms.length) return "Its arguments may deceive. Look at it alone.";
  if (!row.may_decide.length) return "You may not decide this one.";
  if (!row.may_decide.some((kind) => kind === "approve" || kind === "reject"))
    return "This is a question. Answer it by itself.";
  if (first && first.tool !== row.tool) return `One tool at a time: you selected ${first.tool}.`;
  if (chosen.length >= MOST) return `At most ${MOST} at once.`;
  return "";
}

/** Everything from one row to another, as far as it can be selected; with the first reason why something cannot. */
export function range(
  ids: readonly string[],
  rows: ReadonlyMap<string, Row>,
  from: string,
  to: string,
  chosen: readonly Row[],
): { added: string[]; refused: number; why: string } {
  const [start, end] = [ids.indexOf(from), ids.indexOf(to)].sort((one, other) => one - other) as [
    number,
    number,
  ];
  const all = [...chosen];
  let [refused, why] = [0, ""];
  for (const id of ids.slice(Math.max(start, 0), end + 1)) {
    const row = rows.get(id);
    if (!row || all.some((each) => each.id === id)) continue;
    const hindered = hindrance(row, all);
    if (!hindered) all.push(row);
    else {
      refused += 1;
      why ||= hindered;
    }
  }
  return { added: all.slice(chosen.length).map((row) => row.id), refused, why };
}
