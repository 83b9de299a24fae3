import { describe, expect, it } from "vitest";
import { diffLines, makeHunks } from "./LineDiff";

const marks = (before: string, after: string) =>
  diffLines(before, after).map(({ kind, text }) => ({ same: " ", added: "+", removed: "-" })[kind] + text);

describe("a line diff", () => {
  it("marks removed and added lines", () => {
    expect(marks("a\nb\nc\n", "a\nx\nc\nd\n")).toEqual([" a", "-b", "+x", " c", "+d"]);
    expect(marks("", "a\n")).toEqual(["+a"]);
    expect(marks("a\n", "")).toEqual(["-a"]);
    expect(marks("a\nb", "a\nb")).toEqual([" a", " b"]);
  });

  it("contains both texts completely", () => {
    const some = ["a", "b", "a\nb", "b\na\nb\nc", "a\n\nb\n\na", "c\nb\na", "a\nb\nc\nb\na"];
    for (const before of some)
      for (const after of some) {
        const lines = diffLines(before, after);
        expect(
          lines
            .filter(({ kind }) => kind !== "added")
            .map(({ text }) => text)
            .join("\n"),
        ).toBe(before);
        expect(
          lines
            .filter(({ kind }) => kind !== "removed")
            .map(({ text }) => text)
            .join("\n"),
        ).toBe(after);
      }
  });

  it("numbers lines from 1", () => {
    expect(diffLines("a\nb", "b\nc").map(({ old, new: now }) => [old, now])).toEqual([
      [1, null],
      [2, 1],
      [null, 2],
    ]);
  });

  it("stays fast when every line differs", () => {
    const many = (word: string) => Array.from({ length: 5_000 }, (_, n) => `${word}${n}`).join("\n");
    expect(diffLines(many("a"), many("b"))).toHaveLength(10_000);
  });
});

it("leaves out unchanged lines far from a change", () => {
  const text = Array.from({ length: 30 }, (_, n) => `line ${n}`);
  const after = text.map((line, n) => (n === 10 || n === 25 ? `${line}!` : line));
  const found = makeHunks(diffLines(text.join("\n"), after.join("\n")), 2);
  expect(found.map(({ skipped, lines }) => [skipped, lines.length])).toEqual([
    [8, 6],
    [10, 6],
  ]);
});
