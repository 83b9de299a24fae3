import type { FeedRow } from "./feed";
import type { InboxView } from "./filters";

/** The texts of the inbox, by the file that shows them. */

// CardPane
export const backToList = "Back to the list";
export const loadingRequest = "Loading request";

// EmptyInbox
export const loadingRequests = "Loading requests";
export const noResultsYet = "No results yet";
export const searchIsBehind = "Recent changes are not searchable yet. Searching again…";
export const noMatchesSoFar = "No matches so far";
export const noneFoundSoFar = "None of the requests searched so far is in this list.";
export const searchFurther = "Search further";
export const noRequestsMatch = "No requests match these filters";
export const clearAllFilters = "Clear all filters";
export const connectAgent = "Connect an agent";
export const noOpenRequests = "No open requests";
export const openRequestsAppearHere = "New requests from your agents appear here.";
export const nothingNeedsYourApproval = "Nothing needs your approval";
export const requestsForYouAppearHere = "New requests that you can decide appear here.";
export const nothingDecidedYet = "You have not decided anything yet";
export const decidedRequestsAppearHere = "Requests that you decide appear here, newest first.";
export const noRequestsYet = "No requests yet";
export const requestsAppearHere = "Requests from your agents appear here.";
export const noMoreRequestsMatch = "No more requests match";
export const allDone = "All done";
export const othersWait = (pending: number) =>
  `${pending.toLocaleString("en")} ${pending === 1 ? "other waits" : "others wait"}. `;
export const noRequestNeedsYourDecision = "No request needs your decision.";

// FilterBar
export const filterRequests = "Filter requests";
export const search = "Search";
export const searchRequests = "Search requests";
export const filterWithCount = (text: string) => `Filter${text}`;
export const removeFilter = (text: string) => `Remove the filter ${text}`;

// Inbox
export const COMMON_KEYS: [keys: string[], text: string][] = [
  [["J", "K"], "Move"],
  [["X"], "Select"],
  [["Z"], "Undo"],
];
export const noResults = "No results.";
export const list = "List";
export const request = "Request";
export const noRequestSelected = "No request selected";
export const selectARequest = "Select a request in the list, or press J. Press ? for all keys.";
export const selectedCount = (count: number) => `${count} selected`;
export const bulkDecisionButton = "Bulk decision…";
export const clear = "Clear";
export const allKeys = "All keys";

// InboxHead
export const VIEWS: [InboxView, string][] = [
  ["everyone", "Everyone"],
  ["mine", "For me"],
  ["decided", "Decided by you"],
];
export const inbox = "Inbox";
export const foundCount = (count: number, next: string | null) =>
  `${count.toLocaleString()}${next === null ? "" : " or more"} found`;
export const show = "Show";
export const showNewRequests = (count: number) =>
  `Show ${count.toLocaleString()} new ${count === 1 ? "request" : "requests"}`;

// InboxList
export const requests = "Requests";

// InboxRow
export const AFTER_APPROVAL: Partial<Record<FeedRow["status"], string>> = {
  unknown: "outcome unknown",
  expired: "not started in time",
};
export const selectRequest = (sentence: string) => `Select: ${sentence}`;
export const question = "question";
export const forLabel = "for";
export const timeAgo = (seconds: number, span: string) => (seconds < 1 ? "now" : `${span} ago`);
export const expiresAt = (time: string) => `Expires ${time}`;
export const votesOf = (have: number, need: number) => `${have} of ${need}`;
export const findingsToCheck = (alarms: number) => `${alarms} to check`;
export const claimedByYou = "Claimed by you";
export const claimedBy = (person: string) => `Claimed by ${person}`;
export const byPerson = (person: string) => ` by ${person}`;

// KeyHelp
export const keyboardShortcuts = "Keyboard shortcuts";
export const close = "Close";

// keys
export const approveAndNext = "Approve, and go to the next request. High risk: hold for 1 second";
export const rejectAndNext = "Reject, and go to the next request";
export const rejectWithReason = "Reject with a reason";
export const respondToAgent = "Respond to the agent";
export const eOrCtrlE = "E or Ctrl+E";
export const edit = "Edit";
export const askAgentHelp = "Ask the agent a question; the request stays open";
export const undoYourLastRejectionWhile = "Undo your last rejection, while it can be undone";
export const jOrDown = "J or ↓";
export const nextRequest = "Next request";
export const kOrUp = "K or ↑";
export const previousRequest = "Previous request";
export const oOrEnter = "O or Enter";
export const openAndFocus = "Open the request and focus its card";
export const selectForBulkDecision = "Select for a bulk decision";
export const showNewRequestsKey = "Show new requests";
export const searchHelp = "Search; Enter or ↓ goes to the first result, Esc clears, then leaves";
export const ctrlEnterOrCmdEnter = "Ctrl+Enter or Cmd+Enter";
export const sendWhatIsWrittenInForm = "Send what is written in a form";
export const escKey = "Esc";
export const closeOrClearSelection = "Close, or clear the selection";
export const showAllKeys = "Show all keys";

// TimeRing
export const LONG_UNITS: Record<string, [one: string, many: string]> = {
  s: ["second", "seconds"],
  min: ["minute", "minutes"],
  h: ["hour", "hours"],
  d: ["day", "days"],
};
export const timeIsUp = "time is up";
export const spanLeft = (count: string, one: string) => `${count} ${one} left`;

// Toasts
export const undo = "Undo";
export const secondsLeft = (seconds: number) => `${seconds} s`;

// useDecisionFeedback
export const UNDONE = "Undone. The request is open again.";
export const resultsOf = (count: number, total: number, kind: string) =>
  `${count} of ${total} ${kind === "approve" ? "approved" : "rejected"}.`;
export const rejected = "Rejected";
export const answered = "Answered";
export const approvedMoreNeeded = (people: string) => `Approved. ${people} needed.`;
export const approved = "Approved";
export const morePeople = (count: number) => (count === 1 ? "One more person" : `${count} more people`);
export const nothingToUndo = "Nothing to undo.";
export const tooLateToUndo = "Too late to undo. The agent already knows.";
export const undoneRequestsAreOpenAgain = (count: number) => `${count} undone. The requests are open again.`;
export const couldNotBeUndone = (text: string, count: number, problem: string | undefined) =>
  `${text}${count} could not be undone: ${problem}`;

// useInboxActions
export const VIEW_ONLY = "Your role can view requests but not decide them.";
export const noMoreRequests = "No more requests in this direction.";
export const listIsEmpty = "The list is empty.";
export const openARequestFirst = "Open a request first: press J for the next one.";
export const goToARequestFirst = "Go to a request first: press J for the next one.";
export const thisRequestIsClosed = "This request is closed.";
export const noNewRequests = "No new requests.";
export const oneMoment = "One moment";
export const respondTo = "respond to";
export const requestIsAlready = (status: string) => `This request is already ${status}.`;
export const questionPressC = "This is a question: press C to answer it.";
export const cannotDecideThisWay = (verb: string) => `You cannot ${verb} this request.`;
export const checkMarkedPlace = "Check the marked place first.";
export const checkMarkedPlaces = (unchecked: number) => `Check the ${unchecked} marked places first.`;
export const holdA = "High risk: hold A for 1 second.";

// useSelection
export const notSelectedBecause = (why: string) => `Not selected. ${why}`;
export const selectedAndLeftOut = (count: number, refused: number, why: string) =>
  `${count} selected.${refused ? ` ${refused} left out: ${why}` : ""}`;
export const alreadyDecided = "This approval is already decided.";
export const highRiskOneByOne = "High-risk approvals are decided one by one.";
export const hasFindings = "It has findings. Review it individually.";
export const youMayNotDecide = "You may not decide this approval.";
export const questionOneByOne = "This is a question. Answer it individually.";
export const oneToolAtATime = (tool: string) => `One tool at a time: you selected ${tool}.`;
export const atMostAtOnce = (count: number) => `At most ${count} at once.`;
