import { afterEach, expect, it, vi } from "vitest";
import { loadDraft, storeDraft } from "./draftStorage";

afterEach(() => {
  vi.unstubAllGlobals();
  sessionStorage.clear();
  localStorage.clear();
});

const fill = (count: number) =>
  Array.from({ length: count }, (_, at) => sessionStorage.setItem(`draft:before ${at}`, "1"));

it("makes room for a draft of this tab, the oldest first", () => {
  storeDraft("draft:first", "a");
  storeDraft("draft:second", "b");
  storeDraft("draft:first", "c");
  fill(18);
  storeDraft("draft:third", "d");
  expect(sessionStorage.length).toBe(20);
  expect(["draft:first", "draft:second", "draft:third"].map((place) => loadDraft(place))).toEqual([
    "c",
    "b",
    "d",
  ]);
  for (let at = 0; at < 18; at++) storeDraft(`draft:after ${at}`, at);
  expect([loadDraft("draft:second"), loadDraft("draft:first"), loadDraft("draft:third")]).toEqual([
    null,
    "c",
    "d",
  ]);
});

it("removes no draft of a form for one that is stored elsewhere", () => {
  fill(25);
  storeDraft("policy", "text", "localStorage");
  expect(sessionStorage.length).toBe(25);
  expect(loadDraft("policy", "localStorage")).toBe("text");
});

it("keeps no older version where there is no room for the new one", () => {
  for (const storage of ["sessionStorage", "localStorage"] as const) {
    storeDraft("draft:a", "old", storage);
    const full = window[storage];
    vi.stubGlobal(storage, {
      setItem: () => {
        throw new Error("full");
      },
      removeItem: (name: string) => full.removeItem(name),
    });
    storeDraft("draft:a", "new", storage);
    vi.unstubAllGlobals();
    expect(loadDraft("draft:a", storage)).toBeNull();
  }
});
