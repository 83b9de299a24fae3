import { expect, it } from "vitest";
import { beginsWithToolName } from "./beginsWithToolName";

it.each([
  ["Run send_mail: to = ann", "send_mail", true],
  ["Run send_mail", "send_mail", true],
  ["Run send_mail: to = ann", "send", false],
  ["Run send_mail_now: to = ann", "send_mail", false],
  ["Send mail: to = ann", "send_mail", false], // a title: people who write rules need the name
  ["Send Run send_mail: to = ann", "send_mail", false],
])("%s names %s: %s", (sentence, tool, isNamed) => {
  expect(beginsWithToolName(sentence, tool)).toBe(isNamed);
});
