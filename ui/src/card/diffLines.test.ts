import { describe, expect, it } from "vitest";
import { compareLines, foldDiff, readDiff, readSignedLines } from "./diffLines";

const place = (lines: string[], old: number, now: number) =>
  ["--- a/x", "+++ b/x", `@@ -1,${old} +1,${now} @@`, ...lines].join("\\n");
const same = (count: number) => Array.from({ length: count }, (_, n) => ` line ${n}`);
const kinds = (text: string) => readDiff(text)?.map(({ kind }) => kind);

describe("a unified diff", () => {
  it("is read with the numbers of its lines", () => {
    const found = readDiff(place([" a", "-b", "+c", "+d"], 2, 3));
    expect(found?.slice(3)).toEqual([
      { kind: "same", text: "a", old: 1, new: 1, ends: true },
      { kind: "removed", text: "b", old: 2, new: null, ends: true },
      { kind: "added", text: "c", old: null, new: 2, ends: true },
      { kind: "added", text: "d", old: null, new: 3, ends: false },
    ]);
  });

  it.each([
    ["more lines than its numbers say", place([" a", "+b", " rm -rf"], 1, 2)],
    ["fewer lines", place([" a"], 2, 2)],
    ["a line without a sign", place(["a"], 1, 1)],
    ["an empty line, which looks like one with a sign", place([""], 1, 1)],
    ["no place", "--- a\\n+++ b"],
    ["words after it", `${place([" a"], 1, 1)}\\nand then`],
  ])("is none with %s", (_, text) => {
    expect(readDiff(text)).toBeNull();
  });

  it("does not break lines at a backslash that is text", () => {
    expect(kinds(place([" a\\\\n-b"], 1, 1))).toEqual(["file", "file", "place", "same"]);
  });

  it("folds unchanged lines only, and none that has something hidden", () => {
    const lines = readDiff(place([...same(9), "-b", "+c", ...same(9)], 19, 19)) ?? [];
    expect(foldDiff(lines).map(({ isFolded, lines }) => [isFolded, lines.length])).toEqual([
      [false, 3],
      [true, 6],
      [false, 8],
      [true, 6],
    ]);
    const odd = readDiff(place([...same(4), " a\\u{202e}b", ...same(4)], 9, 9)) ?? [];
    expect(
      foldDiff(odd)
        .filter(({ isFolded }) => isFolded)
        .map(({ lines }) => lines.length),
    ).toEqual([4, 4]);
  });
});

it("whole words are marked as changed, and nothing where lines have nothing in common", () => {
  expect(compareLines("limit: 10000 EUR", "limit: 50000 EUR")).toEqual([
    ["limit: ", "10000", " EUR"].map((text, at) => ({ text, changed: at === 1 })),
    ["limit: ", "50000", " EUR"].map((text, at) => ({ text, changed: at === 1 })),
  ]);
  expect(compareLines("abc", "xyz")).toEqual([
    [{ text: "abc", changed: false }],
    [{ text: "xyz", changed: false }],
  ]);
});

it("a preview with both signs is colored, a list with dashes is not", () => {
  expect(readSignedLines("Title\\n- a\\n+ b")?.map(({ kind }) => kind)).toEqual(["text", "removed", "added"]);
  expect(readSignedLines("- a\\n- b")).toBeNull();
});
