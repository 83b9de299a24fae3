import type { Shapes } from "../../api/client";

type Verification = Shapes["VerificationJson"];

/** What a verification came to, for people: what was checked, up to where, and how long it took. */
export function inWords(last: Verification): { title: string; color: string; text: string } {
  const took = `${last.seconds < 10 ? last.seconds.toFixed(1) : Math.round(last.seconds)} s`;
  const checked = `${counted(last.entries, "entry", "entries")} and ${counted(last.approvals, "approval", "approvals")}`;
  const erased = last.erased
    ? ` The content of ${counted(last.erased, "entry", "entries")} was erased, and the ledger says by whom.`
    : "";
  if (last.state === "valid")
    return {
      title: "The ledger is whole",
      color: "green",
      text: `The chain, its laws and the rows fit: ${checked}, up to entry ${(last.head?.seq ?? 0).toLocaleString()}, in ${took}.${erased} Verified`,
    };
  if (last.state === "invalid")
    return {
      title: `The ledger is not whole: ${counted(last.fault_count, "fault", "faults")}`,
      color: "red",
      text: `Keep a copy of the database as it is. ${checked} were checked in ${took}.${shown(last)} Verified`,
    };
  return { title: "Nothing was found out", color: "orange", text: `${last.problem} Tried` };
}

const shown = (last: Verification): string =>
  last.fault_count > last.faults.length ? ` The first ${last.faults.length} faults are shown.` : "";

const counted = (count: number, one: string, many: string): string =>
  `${count.toLocaleString()} ${count === 1 ? one : many}`;
