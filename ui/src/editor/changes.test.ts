import { describe, expect, it } from "vitest";
import { changes, counted } from "./changes";

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
    expect(changes(before, after).map(({ pointer, before, after }) => [pointer, before, after])).toEqual(
      wanted,
    );
  });

  it("are counted in words", () => {
    const [one] = changes({ a: 1 }, { a: 2 });
    expect(counted(one ? [one] : [])).toBe("1 change");
    expect(counted(changes({ a: 1, b: 1 }, { a: 2, b: 2 }))).toBe("2 changes");
  });
});
