/** The texts of the decision on several approvals, by the file that shows them. */

// BulkDecision
export const bulkDecision = "Bulk decision";
export const results = "Results";
export const decideApprovalsAtOnce = (count: number) =>
  `Decide ${count} ${count === 1 ? "approval" : "approvals"} at once`;
export const close = "Close";
export const back = "Back";
export const nothingSelected = "Nothing selected";
export const selectRequestsInListFirst = "Select requests in the list first.";
export const allApprovalsCall = "All approvals call";
export const loadingProgressOf = (count: number, total: number) => `Loading ${count} of ${total}.`;
export const loadingProgress = "Loading progress";
export const leftOutCount = (count: number) => `${count} left out`;
export const notAllAllow = (kind: string) => `Not all of these approvals allow ${kind}.`;
export const reasonOptionalSentToAgent = "Reason (optional, sent to the agent)";
export const typeToConfirmAll = (count: number) => `Type ${count} to confirm all ${count}`;
export const approveCount = (count: number) => `Approve ${count}`;
export const rejectCount = (count: number) => `Reject ${count}`;
export const typeNumberFirst = "Type the number first.";

// BulkResults
export const fieldValue = (name: string, text: string | undefined) => `${name}: ${text ?? "not set"}`;
export const reviewFailed = (failed: number) =>
  failed === 1 ? "Review the failed approval" : `Review the ${failed} failed approvals`;
export const undoRejections = (succeeded: number, count: number) =>
  `Undo ${succeeded === 1 ? "the rejection" : `all ${succeeded} rejections`} (${count} s)`;
export const resultCount = (succeeded: number, kind: string) =>
  `${succeeded} ${kind === "approve" ? "approved" : "rejected"}.`;
export const failedAreUnchanged = (done: string, failed: number) =>
  `${done} ${failed} failed and ${failed === 1 ? "is" : "are"} unchanged.`;
export const approvedMoreApprovalsAreNeeded = "Approved. More approvals are needed.";

// Comparison
/** Texts of a call besides its arguments, with their source; not pointers: those start with a slash. */
export const EXTRA_TEXTS = [
  ["preview", "preview"],
  ["agent_description", "agent's description (unverified)"],
  ["agent_preview", "agent's preview (unverified)"],
] as const;
export const identicalInAllApprovals = "Identical in all approvals";
export const differences = "Differences";
export const noDifferences = "No differences except the sentence";
export const approval = "Approval";
export const noteToReviewer = (message: string) => `Note: ${message}`;
export const notSet = "not set";
export const showLess = "Show less";
export const showMore = "Show more";
