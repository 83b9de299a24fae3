import { describe, expect, it } from "vitest";
import { parseNumber } from "./Fields";

describe("numbers", () => {
  it.each([
    ["1", 1],
    [" 1.0 ", 1],
    ["1e3", 1000],
    ["-.5", -0.5],
    ["5.", 5],
    ["+7", 7],
    ["007", 7],
    ["0", 0],
    ["0.10", 0.1],
    ["9007199254740993", 9007199254740993n],
    ["-12345678901234567890", -12345678901234567890n],
    ["1e400", undefined],
    ["9".repeat(41), undefined],
    ["1,5", undefined],
    ["12abc", undefined],
    ["0x10", undefined],
    ["-", undefined],
    ["", undefined],
    ["NaN", undefined],
  ])("%s", (typed, wanted) => {
    expect(parseNumber(typed)).toBe(wanted);
  });
});
