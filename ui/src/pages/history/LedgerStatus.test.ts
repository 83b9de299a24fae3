import { expect, it } from "vitest";
import { describeVerification } from "./LedgerStatus";

const FOUND = {
  state: "valid" as const,
  by: "ann",
  began: "2027-01-15T08:00:00.000Z",
  seconds: 1.234,
  done: 0,
  of: 0,
  entries: 1200,
  approvals: 1,
  erased: 0,
  head: { seq: 1200, link: "ab", at: "2027-01-15T08:00:00.000Z" },
  fault_count: 0,
  faults: [],
  problem: "",
};

it("states what was verified, up to which entry, and how long it took", () => {
  expect(describeVerification(FOUND).text).toBe(
    "The hash chain, the invariants and the stored rows are consistent: 1,200 entries and 1 approval, up to entry 1,200, in 1.2 s. Verified",
  );
  expect(describeVerification({ ...FOUND, erased: 2 }).text).toContain("The content of 2 entries was erased");
});

it("counts violations, and states when not all of them are shown", () => {
  const broken = {
    ...FOUND,
    state: "invalid" as const,
    fault_count: 3,
    faults: [{ seq: 1, message: "Altered.", table: "", row: "", field: "" }],
  };
  expect(describeVerification(broken).title).toBe("The ledger is not intact: 3 violations");
  expect(describeVerification(broken).text).toContain("The first 1 violations are shown.");
});

it("does not report an interrupted verification as valid", () => {
  expect(describeVerification({ ...FOUND, state: "failed", problem: "It broke off." })).toEqual({
    title: "The verification did not complete",
    color: "orange",
    text: "It broke off. Tried",
  });
});
