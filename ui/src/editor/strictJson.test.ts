import { describe, expect, it } from "vitest";
import { findSpan, locateValues, readStrictJson } from "./strictJson";

const flawOf = (text: string) => readStrictJson(text).flaw?.message ?? "";

describe("strict JSON", () => {
  it.each([
    ['{"a": [1, 2.5, -0.1e3, true, false, null, "x"]}', { a: [1, 2.5, -100, true, false, null, "x"] }],
    ['  {"id": 12345678901234567890} ', { id: 12345678901234567890n }],
    ['"\\u0041\\n\\"\\\\"', 'A\n"\\'],
    ["[]", []],
    ["{}", {}],
  ])("reads %s", (text, value) => {
    expect(readStrictJson(text)).toEqual({ value });
  });

  it("keeps a member that is called __proto__", () => {
    expect(JSON.stringify((readStrictJson('{"__proto__": 1}') as { value: unknown }).value)).toBe(
      '{"__proto__":1}',
    );
  });

  it.each([
    ['{"a": 1, "a": 2}', 'The name "a" appears twice'],
    ['{"a": NaN}', "NaN and Infinity"],
    ['{"a": -Infinity}', "not a number"],
    ["{'a': 1}", "a name in quotation marks"],
    ['{"a": 1,}', "a name in quotation marks"],
    ["[1 2]", "a comma or ]"],
    ['{"a" 1}', "a colon"],
    ['{"a": yes}', "quotation marks around it"],
    ['{"a": 01}', "not a number"],
    ['{"a": 1e999}', "too large"],
    [`{"a": ${"9".repeat(41)}}`, "more than 40 digits"],
    ['"a\nb"', "\\n and \\t"],
    ['"a', "no closing quotation mark"],
    ['"\\x"', "After \\ comes"],
    ['"\\u0000"', "NUL"],
    ['"\\ud800"', "half a character"],
    ["{} {}", "after the end"],
    ["", "but the text ends"],
    [`${"[".repeat(64)}${"]".repeat(64)}`, "deeper than 63"],
  ])("refuses %s", (text, message) => {
    expect(flawOf(text)).toContain(message);
  });

  it("accepts the depth that the server accepts", () => {
    expect(readStrictJson(`${"[".repeat(63)}${"]".repeat(63)}`).flaw).toBeUndefined();
  });

  it("locates a value, or its nearest parent", () => {
    const text = '{"a": {"b/c": [10, 20]}}';
    expect(text.slice(...findSpan(locateValues(text), "/a/b~1c/1"))).toBe("20");
    expect(text.slice(...findSpan(locateValues(text), "/a/missing"))).toBe('{"b/c": [10, 20]}');
    expect(findSpan(locateValues("{"), "/a")).toEqual([0, 0]);
  });

  it("reads a mebibyte", () => {
    const value = { text: 'x"\\'.repeat(340_000) };
    expect(readStrictJson(JSON.stringify(value))).toEqual({ value });
  });
});
