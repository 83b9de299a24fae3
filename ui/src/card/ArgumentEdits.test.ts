import { expect, it } from "vitest";
import type { ApprovalSnapshot } from "../api/approvals";
import { countChanges, findEditsSince, readEdits } from "./ArgumentEdits";

type Entry = ApprovalSnapshot["timeline"][number];

const entry = (seq: number, kind: string, content: Entry["content"] = null): Entry => {
  return { seq, kind, content, at: "", actor: "eve", approval_id: "a", data: {}, digest: null };
};
const AMOUNT = { name: "/amount", before: "5", after: "6" };
const EDITED = entry(7, "edited", { changes: [AMOUNT], changed: 3 });
const at = (args_sha256: string, timeline: Entry[]) => ({ args_sha256, timeline }) as ApprovalSnapshot;

it("reads an edit from the ledger", () => {
  expect(readEdits([entry(6, "proposed"), EDITED, entry(8, "voted")])).toEqual([
    { seq: 7, by: "eve", changed: [AMOUNT], count: 3 },
  ]);
});

it("accepts an edit whose content was erased", () => {
  expect(readEdits([entry(7, "edited")])).toEqual([{ seq: 7, by: "eve", changed: [], count: 0 }]);
});

it("finds the edits since an earlier snapshot", () => {
  const seen = at("old", [entry(6, "proposed"), EDITED]);
  expect(findEditsSince(seen, at("old", [...seen.timeline, entry(8, "voted")]))).toBeNull();
  expect(findEditsSince(seen, at("new", [...seen.timeline, entry(9, "edited")]))).toEqual([
    { seq: 9, by: "eve", changed: [], count: 0 },
  ]);
});

it("labels the number of changes", () => {
  expect(countChanges(readEdits([EDITED]))).toBe("3 changes");
  expect(countChanges([{ seq: 1, by: "eve", changed: [AMOUNT], count: 1 }])).toBe("1 change");
  expect(countChanges(readEdits([entry(7, "edited")]))).toBe("changes");
});
