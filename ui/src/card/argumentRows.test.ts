import { expect, it } from "vitest";
import type { Argument } from "../api/approvals";
import { groupLines, labelsOf, layoutLines, listRows } from "./argumentRows";

const field = (pointer: string, type = "string", findings: string[] = []): Argument => {
  return { pointer, name: pointer, type, text: "", length: 1, sha256: "", findings };
};
const NESTED = [
  field("/a", "object"),
  field("/a/b", "array"),
  field("/a/b/0"),
  field("/a~1c"),
  field("/d", "string", ["bidi:/d"]),
];
const told = (fields: Argument[], folded: string[] = [], limit = 100, alarmed: string[] = []) =>
  layoutLines(listRows(fields), new Set(folded), limit, new Set(alarmed)).map((line) =>
    "row" in line ? line.row.field.pointer : line.hiddenCount,
  );

it("nests by the depth of pointers", () => {
  expect(listRows(NESTED).map(({ depth, end }) => [depth, end])).toEqual([
    [0, 3],
    [1, 3],
    [2, 3],
    [0, 4],
    [0, 5],
  ]);
});

it("hides only the members of a folded argument", () => {
  expect(told(NESTED, ["/a"])).toEqual(["/a", "/a~1c", "/d"]);
  expect(told(NESTED, ["/a/b"])).toEqual(["/a", "/a/b", "/a~1c", "/d"]);
});

it("counts the arguments it leaves out, and never leaves out one with an alarm", () => {
  expect(told(NESTED, [], 1)).toEqual(["/a", 4]);
  expect(told(NESTED, [], 1, ["bidi:/d"])).toEqual(["/a", 3, "/d"]);
});

it("handles tens of thousands of arguments quickly", () => {
  const many = Array.from({ length: 50_000 }, (_, place) => field(`/items/${place}`));
  expect(told([field("/items", "array"), ...many], [], 200).at(-1)).toBe(50_001 - 200);
});

/** Fields as the server lists them. */
function fieldsOf(value: unknown, pointer = ""): Argument[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]): Argument[] => {
    const at = `${pointer}/${name}`;
    const type = Array.isArray(inner) ? "array" : inner === null ? "null" : typeof inner;
    const isList = typeof inner === "object" && inner !== null;
    const length = isList ? Object.keys(inner).length : String(inner).length;
    const text = isList ? (length ? "" : type === "array" ? "[]" : "{}") : JSON.stringify(inner);
    return [{ pointer: at, name, type, text, length, sha256: "", findings: [] }, ...fieldsOf(inner, at)];
  });
}

const CALL = { lines: [{ item: "a", price: 1 }, { item: "b" }], to: { city: "Brno", name: "Ann" } };
const SCHEMA = {
  properties: {
    to: { title: "Recipient", properties: { name: { title: "Name" }, city: { title: "Town" } } },
    lines: { title: "Lines", items: { $ref: "#/$defs/line" } },
  },
  $defs: { line: { properties: { item: { title: "Item" }, price: { title: "Unit price" } } } },
};

it("follows the order and the titles of the schema, and names what a title does not", () => {
  const rows = listRows(fieldsOf(CALL), SCHEMA);
  expect(rows.map(({ field }) => field.pointer)).toEqual([
    ...["/to", "/to/name", "/to/city"],
    ...["/lines", "/lines/0", "/lines/0/item", "/lines/0/price", "/lines/1", "/lines/1/item"],
  ]);
  expect(rows.slice(0, 4).map(labelsOf)).toEqual([
    { title: "Recipient", name: "to" },
    { title: "Name", name: "" },
    { title: "Town", name: "city" },
    { title: "Lines", name: "" },
  ]);
});

it("puts required members first where the order of the schema was lost", () => {
  const schema = { properties: { a: {}, b: {}, c: {} }, required: ["c", "b"] };
  const rows = listRows(fieldsOf({ a: 1, b: 2, c: 3 }), schema);
  expect(rows.map(({ field }) => field.name)).toEqual(["c", "b", "a"]);
});

it("shows lists of objects as tables and short lists in one line", () => {
  const layoutOf = (value: unknown) => listRows(fieldsOf({ list: value }))[0]?.layout;
  expect(layoutOf([{ a: 1 }, { b: null, c: [] }])).toBe("table");
  expect(layoutOf([{ a: { b: 1 } }])).toBe("");
  expect(layoutOf([{ a: "one\ntwo" }])).toBe("");
  expect(layoutOf([{ a: 1 }, 2])).toBe("");
  expect(layoutOf([Object.fromEntries(Array.from({ length: 13 }, (_, n) => [`c${n}`, n]))])).toBe("");
  expect(layoutOf(["a", 1, {}])).toBe("line");
  expect(layoutOf(["x".repeat(61)])).toBe("");
  expect(layoutOf([])).toBe("");
});

it("never cuts a row of a table, and keeps its gaps inside", () => {
  const items = Array.from({ length: 4 }, (_, n) => ({ a: n, b: n }));
  const rows = listRows(fieldsOf({ items }));
  const lines = layoutLines(rows, new Set(), 3, new Set());
  expect(lines.map((line) => ("row" in line ? line.row.field.pointer : line.hiddenCount))).toEqual([
    ...["/items", "/items/0", "/items/0/a", "/items/0/b"],
    9,
  ]);
  expect(groupLines(lines).map(({ inside }) => inside.length)).toEqual([4]);
});
