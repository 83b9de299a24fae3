import type { ApprovalSnapshot } from "../api/approvals";

/** The texts of the approval card, by the file that shows them. */

// In more than one file
export const teamName = (name: string) => `team ${name}`;
export const you = "You";
export const agentSaysUnverified = "Agent says (unverified):";
export const agentHasNotAnsweredYet = "The agent has not answered yet.";
export const agentDidNotAnswer = "The agent did not answer.";
export const comment = "Comment";

// approvalActivity
export const ACTIONS: Record<string, string> = {
  proposed: "asked to run it",
  voted: "approved; more approvals are needed",
  approved: "approved",
  edited: "changed the arguments and approved",
  responded: "answered",
  rejected: "rejected",
  undone: "undid the rejection",
  delegated: "delegated it",
  decision_refused: "tried to decide and was refused",
  cancelled: "cancelled it",
  claimed: "claimed it",
  released: "released it",
  reminded: "reminded the approvers",
  escalated: "escalated it",
  expired: "let it expire",
  lapsed: "let the approval lapse",
  started: "started it",
  succeeded: "ran it: done",
  failed: "ran it: failed",
  lost: "lost contact with the run",
  finished_late: "reported a result too late",
  resolved: "recorded the outcome",
};
export const NOTIFIED = "notified people";
export const noted = "noted";
export const askedFact = "asked";
export const toNames = (names: string) => ` to ${names}`;
export const interlock = "Interlock";
export const thePolicy = "The policy";
export const theAgent = "The agent";

// ApprovalActivity
export const activity = "Activity";
export const waitingForDecision = "Waiting for a decision";

// AgentStatements
export const agentsDescription = "Agent's description";
export const agentsPreview = "Agent's preview";
export const agentsExplanation = "Agent's explanation";
export const notVerified = (size: string) => `not verified · ${size}`;
export const characterCount = (count: number) =>
  count === 1 ? "1 character" : `${count.toLocaleString("en")} characters`;

// ApprovalCard
export const approvalNotFound = "Approval not found";
export const itDoesNotExist = "It does not exist, or it is not in your workspace.";
export const loadingApproval = "Loading approval";
export const loadingEditor = "Loading editor";
export const originalQuestion = "Original question";

// ApproveButton
export const approveWithWhat = (what: string) => `Approve${what}`;

// CardAside
export const activityAndOtherActions = "Activity and other actions";
export const more = "More";

// CardEditor
export const reviewChangesAbove = "Review the changes above before you send this.";
export const inEditedArguments = (findings: string) => `In the edited arguments: ${findings}`;
export const thenSendEditAgain = "Then send the edit again.";
export const checked = "Checked";

// CardForms
export const delegateTo = "Delegate to";
export const delegate = "Delegate";
export const choose = "Choose";
export const othersSeeThatYouClaimed = "Others see that you claimed it. They can still decide.";
export const claim = "Claim";
export const release = "Release";
export const copied = "Copied.";
export const copyLink = "Copy link";

// CardNotice
export const offlineMayBeOutdated = "Offline. This card may be outdated.";
export const somebodyElseDecidedFirst =
  "Somebody else decided first. Their decision is below; yours was not recorded.";
export const expiredBeforeYouAnswered = "This approval expired before you answered.";
export const rejectionUndone = (name: string) => `${name} undid the rejection. The request is open again.`;
export const requestFailed = "Request failed";

// DecisionPanel
export const edit = "Edit";
export const respond = "Respond";
export const reject = "Reject";
export const ctrlEOrCmdE = "Ctrl+E or Cmd+E";
export const reviewChangesFirst = "Review the changes first.";
export const highRiskHold = "High risk: hold for 1 second, or type the tool’s name.";
export const checkMarkedPlaces = (count: number) =>
  count === 1 ? "Check the marked place first." : `Check the ${count} marked places first.`;
export const addComment = "Add a comment";
export const recordedWithYourDecision = "Recorded with your decision, for other people";
export const youWithReason = (reason: string) => `You${reason}`;
export const loadingForm = "Loading form";
export const reasonOptional = "Reason (optional)";
export const sentToAgent = "Sent to the agent.";
export const messageToAgent = "Message to the agent";
export const agentGetsYourMessageInstead =
  "The agent gets your message instead of a result. The call does not run.";
export const send = "Send";
export const ctrlEnterSends = "Ctrl+Enter sends";
export const back = "Back";

// Discussion
export const questionsAndComments = "Questions and comments";
export const askedSuffix = "asked,";
export const erased = "erased";

// EarlySign
export const oneMoment = "One moment";

// HighRiskApproval
export const holdToApprove = (what: string) => `Hold to approve${what}`;
export const keyA = "A";
export const holdOrTypeName = "Hold the button for one second, or type the tool’s name:";
export const typeToApprove = (tool: string) => `Type ${tool} to approve`;
export const approve = "Approve";

// Outcome
export const APPROVED_LABELS: Partial<Record<ApprovalSnapshot["status"], string>> = {
  approved: "not started yet",
  running: "running",
  succeeded: "done",
  failed: "failed",
  unknown: "outcome unknown",
};
export const END_LABELS: Partial<Record<ApprovalSnapshot["status"], string>> = {
  rejected: "Rejected",
  responded: "Answered, not run",
  expired: "Expired: nobody decided in time",
  cancelled: "Cancelled",
};
export const reason = "Reason";
export const notStartedInTime = "not started in time";
export const approvedAnd = (count: number, changes: string, after: string) =>
  `Approved${count ? ` with ${changes}` : ""}, ${after}`;
export const byLabel = "By";
export const cancelledOrRecorded = (kind: string) =>
  `${kind === "cancelled" ? "cancelled it" : "recorded the outcome"},`;
export const note = "Note";
export const error = "Error";
export const noMessage = "No message.";
export const answer = "Answer";
export const result = "Result";
export const showOfCharacters = (shown: number, count: number) =>
  `Show ${shown.toLocaleString("en")} of ${count.toLocaleString("en")} characters`;
export const undoWithin = (left: number) => `Undo (${left} s)`;
export const contactWasLost =
  "Contact with the agent was lost while this call ran. Check in the target system whether it took effect. The call is not repeated.";
export const whatDidYouFind = "What did you find?";
export const markAsSucceeded = "Mark as succeeded";
export const markAsFailed = "Mark as failed";

// Quorum
export const whoDecides = "Who decides";
export const approvalsOf = (have: number, need: number) =>
  `${have} of ${need} ${need === 1 ? "approval" : "approvals"}`;
export const forPerson = (name: string) => ` for ${name}`;
export const stageState = (count: number, have: number, need: number, approvers: string) =>
  `Stage ${count}: ${have} of ${need} from ${approvers}`;
export const doneSuffix = ", done";
export const delegatedTo = (text: string) => `delegated to ${text}`;
export const stillNeeded = (needed: string) => `Still needed: ${needed}`;
export const requesterReviewersAndAdmins = "the requester, reviewers and admins";
export const orSeparator = " or ";

// sentence
export const shownCountOfCharacters = (shown: string, countOf: string) =>
  `"${shown}"… (${countOf} characters)`;

// usePersonName
export const youInSentence = "you";
