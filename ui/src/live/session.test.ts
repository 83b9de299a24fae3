import { afterEach, beforeEach, expect, it, vi } from "vitest";

const DRAFTS = ["draft:default:ann:note", "draft:a1", "draft:a1:words", "interlock-draft-new"];
const isGone = () => DRAFTS.every((place) => sessionStorage.getItem(place) === null);

beforeEach(() => {
  vi.resetModules(); // each test is a page of its own in the same tab
  for (const place of DRAFTS) sessionStorage.setItem(place, '"typed"');
  sessionStorage.setItem("other", "1");
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  sessionStorage.clear();
});

it("removes the drafts of the tab on sign-out, and keeps none that a form stores while it closes", async () => {
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(null, { status: 204 })));
  const assign = vi.spyOn(location, "assign").mockImplementation(() => undefined);
  const { storeDraft } = await import("../components/draftStorage");
  const { signOut } = await import("./session");
  await signOut("here");
  storeDraft("draft:a1", "typed");
  expect(assign).toHaveBeenCalledWith("/signin");
  expect(isGone()).toBe(true);
  expect(sessionStorage.getItem("other")).toBe("1");
});

it("keeps the drafts where the sign-out fails", async () => {
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("offline")));
  const { signOut } = await import("./session");
  await expect(signOut("here")).rejects.toThrow();
  expect(isGone()).toBe(false);
});

it("removes the drafts when somebody else signs in, and stores none of the page that still shows them", async () => {
  const { openDrafts, storeDraft } = await import("../components/draftStorage");
  openDrafts("default/ann");
  openDrafts("default/ann");
  storeDraft("draft:a1", "more");
  expect(sessionStorage.getItem("draft:a1")).toBe('"more"');
  openDrafts("default/bob");
  storeDraft("draft:a1", "typed");
  expect(isGone()).toBe(true);
});

it("removes them also if the session ended and the other person opens a new page", async () => {
  (await import("../components/draftStorage")).openDrafts("default/ann");
  vi.resetModules();
  const { openDrafts, storeDraft } = await import("../components/draftStorage");
  openDrafts("default/bob");
  expect(isGone()).toBe(true);
  storeDraft("draft:a1", "of bob");
  expect(sessionStorage.getItem("draft:a1")).toBe('"of bob"');
});
