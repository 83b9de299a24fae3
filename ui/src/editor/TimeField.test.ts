import { expect, it } from "vitest";
import { joinTime, splitTime } from "./TimeField";

it.each([
  ["date", "2026-12-01", "2026-12-01", ""],
  ["time", "13:45:00Z", "13:45:00", "Z"],
  ["date-time", "2026-12-01T09:30:00+01:00", "2026-12-01T09:30:00", "+01:00"],
  ["date-time", "2026-12-01t09:30:00z", "2026-12-01T09:30:00", "z"],
])("the browser's field shows %s %s, and keeps the time zone", (format, text, shown, zone) => {
  expect(splitTime(format, text)).toEqual({ shown, zone });
  expect(joinTime(format, shown, zone).toUpperCase()).toBe(text.toUpperCase());
});

it.each([
  ["date", "2026-02-30"],
  ["date", "tomorrow"],
  ["date-time", "2026-12-01T09:30:00.123Z"],
  ["time", "25:00:00Z"],
])("%s %s stays a text, because the field would empty it", (format, text) => {
  expect(splitTime(format, text)).toBeNull();
});

it("a time without seconds gets them", () => {
  expect(joinTime("date-time", "2026-12-01T09:30", "Z")).toBe("2026-12-01T09:30:00Z");
  expect(joinTime("time", "09:30", "Z")).toBe("09:30:00Z");
  expect(joinTime("date", "2026-12-01", "")).toBe("2026-12-01");
});
