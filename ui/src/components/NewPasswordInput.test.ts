import { expect, it } from "vitest";
import { shortPasswordText } from "./NewPasswordInput";

it("says how many characters a password lacks", () => {
  expect([0, 1, 11, 12, 40].map(shortPasswordText)).toEqual([
    "",
    "Too short: 11 more characters.",
    "Too short: 1 more character.",
    "",
    "",
  ]);
});
