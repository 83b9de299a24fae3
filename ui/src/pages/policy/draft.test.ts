import { expect, it } from "vitest";
import { changed } from "./draft";

const first = { text: "a", version: 1 };
const second = { text: "b", version: 2 };

it("is a draft while it differs from what it was made from", () => {
  const draft = changed(null, first, "a2");
  expect(draft).toEqual({ text: "a2", base: first });
  expect(changed(draft, first, "a")).toBeNull();
});

it("stays one when something else came into force", () => {
  const draft = { text: "a2", base: first };
  expect(changed(draft, second, "a3")).toEqual({ text: "a3", base: first });
  expect(changed(draft, second, "a")).toEqual({ text: "a", base: first });
});
