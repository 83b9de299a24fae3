import { expect, it } from "vitest";
import { few, path, ticks } from "./drawing";

it.each([
  [0, [0, 1]],
  [1, [0, 1]],
  [6, [0, 2, 4, 6]],
  [19, [0, 5, 10, 15, 20]],
  [1234, [0, 500, 1000, 1500]],
])("marks of an axis are few and round: up to %i", (highest, marks) => {
  expect(ticks(highest)).toEqual(marks);
});

it("small values that are not whole have marks too", () => {
  const marks = ticks(0.9, "any");
  expect(marks.at(-1)).toBeGreaterThanOrEqual(0.9);
  expect(marks.length).toBeLessThan(7);
});

it("of many labels the first, the last and some between are shown", () => {
  expect(few([..."abcdefghij"]).map(({ label }) => label)).toEqual(["a", "d", "g", "j"]);
  expect(few(["a"])).toEqual([{ label: "a", at: 0.5 }]);
});

it("a line leaves out what has no value, and steps keep a value until the next", () => {
  expect(path([0, null, 10], 10, "straight")).toBe("M0 100L100 0");
  expect(path([5, 10], 10, "steps")).toBe("M0 50H100V0");
  expect(path([null], 10, "straight")).toBe("");
});
