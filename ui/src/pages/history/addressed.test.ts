import { expect, it } from "vitest";
import { dayBegins, dayEnds } from "./addressed";

it("takes a day from its first to its last moment, whatever the clocks do", () => {
  expect(Date.parse(dayEnds("2027-01-15")) - Date.parse(dayBegins("2027-01-15"))).toBe(86_400_000);
  expect(dayEnds("2027-12-31")).toBe(dayBegins("2028-01-01"));
  expect([dayBegins(""), dayEnds("soon")]).toEqual(["", ""]);
});
