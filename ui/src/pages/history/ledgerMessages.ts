/** The texts of the ledger, by the file that shows them. */

// Ledger
export const loadingLedger = "Loading ledger";
export const noEntries = "No entries";
export const noEntriesMatch = "No ledger entries match these filters.";
export const showEarlierEntries = "Show earlier entries";
export const filterEntries = "Filter entries";
export const event = "Event";
export const any = "Any";
export const actor = "Actor";
export const actorExample = "bob";
export const approvalHeading = "Approval";
export const show = "Show";
export const entryHeading = "Entries";
export const showCall = "Show the call";

// LedgerStatus
export const loadingHead = "Loading head";
export const head = "Head";
export const entryNumber = (seq: number) => `Entry ${seq.toLocaleString("en")}`;
export const signedWithKey = "Signed with the key";
export const notSigned = "Not signed: the server has no signing key.";
export const exportLabel = "Export";
export const downloadHead = "Download head";
export const exportLedger = "Export ledger";
export const storedHeadHelp =
  "A head stored elsewhere shows later whether entries were removed from the end.";
export const toVerifyWithoutThisServer = " To verify without this server:";
export const adminsCanExportWholeLedger = "Admins can export the whole ledger.";
export const verification = "Verification";
export const notVerifiedSinceStart = "Not verified since the server was started.";
export const verifyNow = "Verify now";
export const ofEntriesChecked = (done: number, total: number) =>
  `${done.toLocaleString("en")} of ${total.toLocaleString("en")} entries checked.`;
export const starting = "Starting…";
export const verificationProgress = "Verification progress";
export const byPersonSuffix = (by: string) => `, by ${by}.`;
export const violationsHeading = "Violations";
export const entryPrefix = (seq: number) => `Entry ${seq}: `;
export const entry = "entry";
export const entries = "entries";
export const approval = "approval";
export const approvals = "approvals";
export const entriesAndApprovals = (entries: string, approvals: string) => `${entries} and ${approvals}`;
export const contentWasErasedAsRecorded = (entries: string) =>
  ` The content of ${entries} was erased, as recorded in the ledger.`;
export const ledgerIsIntact = "The ledger is intact";
export const everythingIsConsistent = (checked: string, seq: number, took: string, erased: string) =>
  `The hash chain, the invariants and the stored rows are consistent: ${checked}, up to entry ${seq.toLocaleString("en")}, in ${took}.${erased} Verified`;
export const violation = "violation";
export const violations = "violations";
export const ledgerIsNotIntact = (violations: string) => `The ledger is not intact: ${violations}`;
export const keepCopyOfDatabase = (checked: string, took: string, truncationNote: string) =>
  `Keep a copy of the database as it is. ${checked} were checked in ${took}.${truncationNote} Verified`;
export const verificationDidNotComplete = "The verification did not complete";
export const verificationProblem = (problem: string) => `${problem} Tried`;
export const firstViolationsAreShown = (count: number) => ` The first ${count} violations are shown.`;
