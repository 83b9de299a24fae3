import { describe, expect, it } from "vitest";
import { at, count, put, same, step, steps } from "./values";

describe("places in values", () => {
  it("are named by pointers, whatever the names hold", () => {
    expect(steps(step(step("", "a/b"), "~1"))).toEqual(["a/b", "~1"]);
    expect(at({ "a/b": [{ x: 1 }] }, "/a~1b/0/x")).toBe(1);
    expect(at({ a: 1 }, "/a/b")).toBeUndefined();
    expect(at({}, "/constructor")).toBeUndefined();
    expect(at([1], "/length")).toBeUndefined();
  });

  it("can be put another value, or none", () => {
    const value = { a: [{ b: 1 }, 2], c: 3 };
    expect(put(value, "/a/0/b", 9)).toEqual({ a: [{ b: 9 }, 2], c: 3 });
    expect(put(value, "/d", 4)).toEqual({ ...value, d: 4 });
    expect(put(value, "/c", undefined)).toEqual({ a: value.a });
    expect(Object.keys(put(value, "/a", []) as object)).toEqual(["a", "c"]);
    expect(JSON.stringify(put(JSON.parse('{"__proto__":1}'), "/__proto__", 2))).toBe('{"__proto__":2}');
  });
});

describe("values", () => {
  it("are the same by what they hold", () => {
    expect(
      same({ a: [1, { b: null }], c: 9007199254740993n }, { c: 9007199254740993n, a: [1, { b: null }] }),
    ).toBe(true);
    expect(same(9007199254740993n, 9007199254740992n)).toBe(false);
    expect(same({ a: undefined }, {})).toBe(false);
    expect(same([], {})).toBe(false);
    expect(same(1, "1")).toBe(false);
  });

  it("are counted with all that is in them", () => {
    expect(count({ a: [1, 2], b: {} })).toBe(5);
  });
});
