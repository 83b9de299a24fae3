import { expect, it } from "vitest";
import { endOfDay, startOfDay } from "./useAddressFilters";

it("covers a day from its first to its last moment in the local time zone", () => {
  expect(Date.parse(endOfDay("2027-01-15")) - Date.parse(startOfDay("2027-01-15"))).toBe(86_400_000);
  expect(endOfDay("2027-12-31")).toBe(startOfDay("2028-01-01"));
  expect([startOfDay(""), endOfDay("soon")]).toEqual(["", ""]);
});
