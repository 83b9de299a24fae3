import type { Argument, Read } from "../../api/approvals";

/** `name` leads there through visible names; `pointer` is exact and is never shown. */
export interface Column {
  pointer: string;
  name: string;
}

/** One argument of one call, as the server made it safe to show. */
export interface Leaf extends Column {
  field: Argument;
}

/** What all calls share is said once; what differs has a column. A cell is missing where a call has no such argument. */
export interface Columns {
  same: Leaf[];
  different: Column[];
  cells: ReadonlyMap<string, ReadonlyMap<string, Leaf>>;
}

export function columnsOf(calls: readonly Read[]): Columns {
  const cells = new Map(
    calls.map((call) => [call.id, new Map(leaves(call).map((leaf) => [leaf.pointer, leaf]))]),
  );
  const columns = new Map(calls.flatMap(leaves).map(({ pointer, name }) => [pointer, { pointer, name }]));
  const same: Leaf[] = [];
  const different: Column[] = [];
  for (const column of columns.values()) {
    const [first, ...rest] = calls.map((call) => cells.get(call.id)?.get(column.pointer));
    if (first && rest.every((cell) => cell && equal(cell, first))) same.push(first);
    else different.push(column);
  }
  return { same, different, cells };
}

/** What is said of a call besides its arguments, and whose words it is; no pointers: those begin with a slash. */
const SAID = [
  ["preview", "preview"],
  ["agent_description", "agent's description (unverified)"],
  ["agent_preview", "agent's preview (unverified)"],
] as const;
const CONTAINERS = new Set(["object", "array"]);
const equal = ({ field: one }: Leaf, { field: other }: Leaf) =>
  one.text === other.text && one.type === other.type && one.sha256 === other.sha256;

/** An object or a list is compared by what is in it; an empty one has nothing but itself. */
function leaves(call: Read): Leaf[] {
  const names = new Map<string, string>();
  const found: Leaf[] = [];
  for (const field of call.card.fields) {
    const { pointer, name, type, length } = field;
    const above = names.get(pointer.slice(0, pointer.lastIndexOf("/")));
    const whole = above === undefined ? name : `${above} › ${name}`;
    names.set(pointer, whole);
    if (!(CONTAINERS.has(type) && length > 0)) found.push({ pointer, name: whole, field });
  }
  const said = SAID.filter(([part]) => call.card[part]).map(([part, name]): Leaf => {
    const field = {
      pointer: part,
      name,
      type: "text",
      text: call.card[part],
      length: 0,
      sha256: "",
      findings: [],
    };
    return { pointer: part, name, field };
  });
  return [...found, ...said];
}
