import { expect, it } from "vitest";
import { areaPath, axisTicks, linePath, pickLabels, pickMarks } from "./TimeChart";

it.each([
  [0, [0, 1]],
  [1, [0, 1]],
  [6, [0, 2, 4, 6]],
  [19, [0, 5, 10, 15, 20]],
  [1234, [0, 500, 1000, 1500]],
])("axis ticks are few and round: up to %i", (highest, marks) => {
  expect(axisTicks(highest)).toEqual(marks);
});

it("fractional values have ticks too", () => {
  const marks = axisTicks(0.9, "any");
  expect(marks.at(-1)).toBeGreaterThanOrEqual(0.9);
  expect(marks.length).toBeLessThan(7);
});

it("picks the first, the last and some of the labels between", () => {
  expect(pickLabels([..."abcdefghij"]).map(({ label }) => label)).toEqual(["a", "d", "g", "j"]);
  expect(pickLabels([..."abcd"].map((day) => `Nov ${day}, 06:00 AM`))).toEqual([
    { label: "Nov a, 06:00 AM", at: 0 },
    { label: "Nov d, 06:00 AM", at: 1 },
  ]);
  expect(pickLabels(["a"])).toEqual([{ label: "a", at: 0.5 }]);
});

it("a line skips missing values", () => {
  expect(linePath([0, null, 10], 10)).toBe("M0 100L100 0");
  expect(linePath([null], 10)).toBe("");
});

it("marks the peak and the last value unless their words would cover each other", () => {
  const textOf = (place: number, isLast: boolean) => `${place}${isLast ? " now" : ""}`;
  expect(pickMarks([0, 9, 1, 2, 3], textOf)).toEqual([
    { place: 1, text: "1" },
    { place: 4, text: "4 now" },
  ]);
  expect(pickMarks([0, 1, 2, 9, 8], textOf)).toEqual([{ place: 3, text: "3" }]);
  expect(pickMarks([1, 9], textOf)).toEqual([{ place: 1, text: "1 now" }]);
  expect(pickMarks([0, 0], textOf)).toEqual([]);
});

it("an area ends on the axis", () => {
  expect(areaPath([0, 10], 10)).toBe("M0 100L100 0L100 100L0 100Z");
  expect(areaPath([], 10)).toBe("");
});
