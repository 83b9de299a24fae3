import { expect, it } from "vitest";
import { makePolicyDraft } from "./usePolicyDraft";

const first = { text: "a", version: 1 };
const second = { text: "b", version: 2 };

it("is a draft while it differs from its base", () => {
  const draft = makePolicyDraft(null, first, "a2");
  expect(draft).toEqual({ text: "a2", base: first });
  expect(makePolicyDraft(draft, first, "a")).toBeNull();
});

it("stays a draft when another version is put in force", () => {
  const draft = { text: "a2", base: first };
  expect(makePolicyDraft(draft, second, "a3")).toEqual({ text: "a3", base: first });
  expect(makePolicyDraft(draft, second, "a")).toEqual({ text: "a", base: first });
});
