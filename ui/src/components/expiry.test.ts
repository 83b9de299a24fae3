import { expect, it } from "vitest";
import { describeExpiry } from "./expiry";

it.each([
  ["chat 10m, paused 1d, queue 1d", "10 minutes in a chat, 1 day while a run is paused, 1 day in a queue"],
  ["1h30m", "1 hour 30 minutes"],
  ["never", "never"],
])("%s is said in words", (windows, words) => {
  expect(describeExpiry(windows)).toBe(words);
});
