import { expect, it } from "vitest";
import type { Read } from "../api/approvals";
import { countOf, editsOf, editsSince } from "./changes";

type Entry = Read["timeline"][number];

const entry = (seq: number, kind: string, content: Entry["content"] = null): Entry => {
  return { seq, kind, content, at: "", actor: "eve", approval_id: "a", data: {}, digest: null };
};
const AMOUNT = { name: "/amount", before: "5", after: "6" };
const EDITED = entry(7, "edited", { changes: [AMOUNT], changed: 3 });
const at = (args_sha256: string, timeline: Entry[]) => ({ args_sha256, timeline }) as Read;

it("reads what the ledger says of an edit", () => {
  expect(editsOf([entry(6, "proposed"), EDITED, entry(8, "voted")])).toEqual([
    { seq: 7, by: "eve", changed: [AMOUNT], count: 3 },
  ]);
});

it("bears what was erased", () => {
  expect(editsOf([entry(7, "edited")])).toEqual([{ seq: 7, by: "eve", changed: [], count: 0 }]);
});

it("knows which edits came since somebody looked", () => {
  const seen = at("old", [entry(6, "proposed"), EDITED]);
  expect(editsSince(seen, at("old", [...seen.timeline, entry(8, "voted")]))).toBeNull();
  expect(editsSince(seen, at("new", [...seen.timeline, entry(9, "edited")]))).toEqual([
    { seq: 9, by: "eve", changed: [], count: 0 },
  ]);
});

it("counts in words", () => {
  expect(countOf(editsOf([EDITED]))).toBe("3 changes");
  expect(countOf([{ seq: 1, by: "eve", changed: [AMOUNT], count: 1 }])).toBe("1 change");
  expect(countOf(editsOf([entry(7, "edited")]))).toBe("changes");
});
