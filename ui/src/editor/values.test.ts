import { describe, expect, it } from "vitest";
import {
  countValues,
  diffValues,
  joinPointer,
  labelCount,
  putValue,
  sameValue,
  splitPointer,
  valueAt,
} from "./values";

describe("JSON pointers", () => {
  it("escape special characters in names", () => {
    expect(splitPointer(joinPointer(joinPointer("", "a/b"), "~1"))).toEqual(["a/b", "~1"]);
    expect(valueAt({ "a/b": [{ x: 1 }] }, "/a~1b/0/x")).toBe(1);
    expect(valueAt({ a: 1 }, "/a/b")).toBeUndefined();
    expect(valueAt({}, "/constructor")).toBeUndefined();
    expect(valueAt([1], "/length")).toBeUndefined();
  });

  it("set and remove values", () => {
    const value = { a: [{ b: 1 }, 2], c: 3 };
    expect(putValue(value, "/a/0/b", 9)).toEqual({ a: [{ b: 9 }, 2], c: 3 });
    expect(putValue(value, "/d", 4)).toEqual({ ...value, d: 4 });
    expect(putValue(value, "/c", undefined)).toEqual({ a: value.a });
    expect(Object.keys(putValue(value, "/a", []) as object)).toEqual(["a", "c"]);
    expect(JSON.stringify(putValue(JSON.parse('{"__proto__":1}'), "/__proto__", 2))).toBe('{"__proto__":2}');
  });
});

describe("values", () => {
  it("are compared by content", () => {
    expect(
      sameValue({ a: [1, { b: null }], c: 9007199254740993n }, { c: 9007199254740993n, a: [1, { b: null }] }),
    ).toBe(true);
    expect(sameValue(9007199254740993n, 9007199254740992n)).toBe(false);
    expect(sameValue({ a: undefined }, {})).toBe(false);
    expect(sameValue([], {})).toBe(false);
    expect(sameValue(1, "1")).toBe(false);
  });

  it("are counted including nested values", () => {
    expect(countValues({ a: [1, 2], b: {} })).toBe(5);
  });
});

describe("changes", () => {
  it.each([
    [{ a: 1, b: "x" }, { b: "x", a: 1 }, []],
    [{ a: 1 }, { a: "1" }, [["/a", 1, "1"]]],
    [{ a: 1 }, {}, [["/a", 1, undefined]]],
    [{}, { a: null }, [["/a", undefined, null]]],
    [{ a: { "b/c": [1, 2] } }, { a: { "b/c": [1, 3] } }, [["/a/b~1c/1", 2, 3]]],
    [{ a: [2, 3] }, { a: [1, 2, 3] }, [["/a/0", undefined, 1]]],
    [{ a: [1, 2, 3] }, { a: [1, 3] }, [["/a/1", 2, undefined]]],
    [{ a: { b: 1 } }, { a: [1] }, [["/a", { b: 1 }, [1]]]],
    [{ id: 9007199254740993n }, { id: 9007199254740992n }, [["/id", 9007199254740993n, 9007199254740992n]]],
    [
      { a: "x", b: 1 },
      { a: "y", b: 2 },
      [
        ["/a", "x", "y"],
        ["/b", 1, 2],
      ],
    ],
  ])("from %o to %o", (before, after, wanted) => {
    expect(diffValues(before, after).map(({ pointer, before, after }) => [pointer, before, after])).toEqual(
      wanted,
    );
  });

  it("are counted in a label", () => {
    const [one] = diffValues({ a: 1 }, { a: 2 });
    expect(labelCount(one ? [one] : [])).toBe("1 change");
    expect(labelCount(diffValues({ a: 1, b: 1 }, { a: 2, b: 2 }))).toBe("2 changes");
  });
});
