import { expect, it } from "vitest";
import { describeProgress, parseTypedNumber } from "./queries";

it("describes progress with its unit", () => {
  const result = { id: "KR-1", title: "x", percent: 80, updated_at: "", etag: "" };
  expect(describeProgress({ ...result, current: 1296, target: 1620.5, unit: "workshops" })).toBe(
    "1,296 of 1,620.5 workshops",
  );
  expect(describeProgress({ ...result, current: 0, target: 20, unit: "" })).toBe("0 of 20");
});

it("reads numbers as people type them", () => {
  expect(parseTypedNumber(" 99,95 ")).toBe(99.95);
  expect(parseTypedNumber("-3")).toBe(-3);
  expect(parseTypedNumber("")).toBeUndefined();
  expect(parseTypedNumber("ten")).toBeUndefined();
  expect(parseTypedNumber("1e999")).toBeUndefined();
});
