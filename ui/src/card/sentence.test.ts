import { expect, it } from "vitest";
import type { Argument } from "../api/approvals";
import { splitSentence } from "./sentence";

const field = (pointer: string): Argument => {
  return { pointer, name: pointer.slice(1), type: "string", text: "", length: 1, sha256: "", findings: [] };
};
const FIELDS = [field("/body"), field("/to"), field("/to/0")];
const long = "x".repeat(80);

it("a sentence that lists the arguments is a title and one line", () => {
  expect(splitSentence(`Send mail: body = "Hi\\nAnn", to = ${long}`, FIELDS)).toEqual({
    title: "Send mail",
    digest: `body = "Hi Ann", to = ${long}`,
  });
});

it.each([
  `Delete all of body = ${long}`,
  `Send mail: body = ${long}`,
  "Send mail: body = Hi, to = ann",
  `Send ${long} to: everybody`,
])("any other sentence is never cut: %s", (sentence) => {
  expect(splitSentence(sentence, FIELDS)).toBeNull();
});
