/** The texts of the dialog of an approval, and of what else can be done with it, by the file that shows them. */

// ApprovalDialog
export const waitingForYou = (total: number, position: number) =>
  total > 1 ? `Waiting for you, ${position} of ${total}` : "Waiting for you";
export const next = "Next";
export const close = "Close";

// MoreActions
export const askAgent = "Ask the agent";
export const whyOrForDetail = "Why, or for a detail";
export const ask = "Ask";
export const activity = "Activity";
export const noteForOtherPeople = "Note for other people";
export const add = "Add";
export const soThatCallsLike = "So that calls like this one need no approval";
export const createGrant = "Create a grant";
export const openInHistory = "Open in the history";
