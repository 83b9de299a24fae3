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

it("says what was checked, up to where, and how long it took", () => {
  expect(describeVerification(FOUND).text).toBe(
    "The chain, its laws and the rows fit: 1,200 entries and 1 approval, up to entry 1,200, in 1.2 s. Verified",
  );
  expect(describeVerification({ ...FOUND, erased: 2 }).text).toContain("The content of 2 entries was erased");
});

it("counts faults, and says when not all of them are shown", () => {
  const broken = {
    ...FOUND,
    state: "invalid" as const,
    fault_count: 3,
    faults: [{ seq: 1, message: "Altered.", table: "", row: "", field: "" }],
  };
  expect(describeVerification(broken).title).toBe("The ledger is not whole: 3 faults");
  expect(describeVerification(broken).text).toContain("The first 1 faults are shown.");
});

it("does not call a check that broke off a good one", () => {
  expect(describeVerification({ ...FOUND, state: "failed", problem: "It broke off." })).toEqual({
    title: "Nothing was found out",
    color: "orange",
    text: "It broke off. Tried",
  });
});
