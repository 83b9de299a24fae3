import { expect, it } from "vitest";
import type { Argument } from "../api/approvals";
import { splitSentence } from "./sentence";

const field = (pointer: string, text: string, type = "string"): Argument => {
  const shown = type === "string" ? `"${text.replaceAll('"', '\\"')}"` : text;
  return { pointer, name: pointer.slice(1), type, text: shown, length: 1, sha256: "", findings: [] };
};
const long = "x".repeat(80);
const MAIL = [field("/body", "Hi\\nAnn"), field("/to", long)];

it("a sentence that lists the arguments is a title and one line", () => {
  expect(splitSentence(`Send mail: body = "Hi\\nAnn", to = ${long}`, MAIL)).toEqual({
    title: "Send mail",
    digest: `body = "Hi Ann", to = ${long}`,
  });
});

it("the arguments may be in the order of the tool's schema", () => {
  expect(splitSentence(`Send mail: to = ${long}, body = "Hi\\nAnn"`, MAIL)?.title).toBe("Send mail");
  expect(splitSentence(`Send mail: to = ${long}, to = ${long}`, MAIL)).toBeNull();
});

it("long texts, lists, numbers and hidden values are read as the server writes them", () => {
  const text = `"${"ab c".repeat(500)}`;
  const fields = [
    field("/body", text),
    field("/to", "", "array"),
    field("/to/0", 'a"]b'),
    field("/count", "12", "number"),
    field("/key", "sha256:1", "string"),
  ];
  const head = text.slice(0, 160).replace('"', '""');
  const list = `body = "${head}"… (2,001 characters), to = ["a\\\\\"]b"], count = 12, key = (hidden)`;
  expect(splitSentence(`Send mail: ${list}`, fields)).toEqual({ title: "Send mail", digest: list });
});

it("counts what is not listed", () => {
  const fields = Array.from({ length: 10 }, (_, at) => field(`/a${at}`, "some words"));
  const list = fields.slice(0, 8).map(({ name }) => `${name} = some words`);
  expect(splitSentence(`Do it: ${list.join(", ")}, and 2 more arguments`, fields)).not.toBeNull();
  expect(splitSentence(`Do it: ${list.join(", ")}, and 1 more argument`, fields)).toBeNull();
});

it.each([
  `Delete all of body = ${long}`,
  `Send mail: body = ${long}`,
  "Send mail: body = Hi, to = ann",
  `Send ${long} to: everybody`,
  `Send mail: body = "Hi\\nAnn", to = ${long}. This cannot be undone.`,
])("any other sentence is never cut: %s", (sentence) => {
  expect(splitSentence(sentence, MAIL)).toBeNull();
});

it("an argument cannot make a tool's own sentence look like a list", () => {
  const note = `thanks: amount = 5, note = "${long}", to = ann`;
  const fields = [field("/amount", "900", "number"), field("/note", note), field("/to", "eve")];
  expect(splitSentence(`Pay: amount = 5, note = ${note}, to = eve`, fields)).toBeNull();
  expect(splitSentence(`Pay for ${note} 900 to eve and close the account`, fields)).toBeNull();
});
