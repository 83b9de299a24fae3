import { expect, it } from "vitest";
import { storeDraft } from "../../components/draftStorage";
import { loadPolicyDraft, makePolicyDraft } from "./usePolicyDraft";

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

it("keeps the reason while the text is changed", () => {
  const draft = { text: "a2", base: first, reason: "More time." };
  expect(makePolicyDraft(draft, first, "a3")).toEqual({ ...draft, text: "a3" });
});

it("is stored until it is discarded, and read only in its own shape", () => {
  const draft = { text: "a2", base: first, reason: "More time." };
  storeDraft("place", draft, "localStorage");
  expect(loadPolicyDraft("place")).toEqual(draft);
  expect(loadPolicyDraft("elsewhere")).toBeNull();
  storeDraft("place", null, "localStorage");
  expect(loadPolicyDraft("place")).toBeNull();
  for (const text of ["{", "1", '{"text": "a"}', '{"text": 1, "base": {"text": "a", "version": 1}}']) {
    localStorage.setItem("place", text);
    expect(loadPolicyDraft("place")).toBeNull();
  }
});
