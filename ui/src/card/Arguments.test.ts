import { expect, it } from "vitest";
import type { Argument } from "../api/approvals";
import { layoutLines, listRows } from "./Arguments";

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
