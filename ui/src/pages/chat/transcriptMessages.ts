/** The texts of the transcript of a chat, by the file that shows them. */

// In more than one file
export const done = "Done";
export const answered = "Answered";
export const rejected = "Rejected";
export const expired = "Expired";
export const withdrawn = "Withdrawn";
export const failed = "Failed";
export const running = "Running";

// CallLine
export const answeredNotRun = "Answered, not run";
export const needsConfirmation = "Needs confirmation";
export const denied = "Denied";
export const notRunInvalidArguments = "Not run: invalid arguments";
export const outcomeUnknown = "Outcome unknown";
export const argumentsLabel = "Arguments";
export const result = "Result";
export const textWithMoreCharacters = (text: string, omitted: number) =>
  `${text}\n… ${omitted.toLocaleString("en")} more characters`;

// cardLine
export const starting = "Starting";
export const checkOutcome = "Check the outcome";
export const approvedNotStartedInTime = "Approved, not started in time";
export const approvedWith = (changes: string) => `Approved with ${changes}`;
export const approved = "Approved";
export const outcomeInDuration = (outcome: string, status: string, duration: string) =>
  `${outcome} ${status === "failed" ? "after" : "in"} ${duration}`;
export const minutes = (count: number) => `${count} min`;
export const foundCount = (count: number) => `${count} found`;

// Confirmation
export const confirmation = "Confirmation";
export const yesDoIt = "Yes, do it";
export const no = "No";
export const needsYourConfirmation = "needs your confirmation";
export const whatWouldHappen = "What would happen";
export const personAnswered = (person: string, answer: string) => `${person} answered ${answer}.`;
export const thisQuestionIsClosed = "This question is closed.";

// Markdown
export const copyCode = "Copy code";
export const doneTask = "Done:";
export const openTask = "Open:";
export const table = "Table";
export const imageAddress = (text: string, address: string) => `[image: ${text} (${address})]`;

// Message
export const youSaid = "You:";
export const agentSays = "Agent:";
export const copyAnswer = "Copy answer";
export const agentsExplanation = "Agent’s explanation";
export const notVerifiedCharacters = (count: number) =>
  `not verified · ${count.toLocaleString("en")} characters`;
export const showAllCharacters = (count: number) => `Show all ${count.toLocaleString("en")} characters`;

// RequestItem
export const aDecidedRequest = "A decided request";
export const aRequest = "A request";
export const requestedBy = (path: string) => `Requested by ${path}`;
export const byPerson = "· by";
export const youInSentence = "you";
export const interlock = "Interlock";
export const undoWithin = (left: number) => `Undo (${left} s)`;

// Transcript
export const messages = "Messages";
export const you = "You";
export const oneMoment = "One moment";
export const newMessages = "New messages";
export const suggestions = "Suggestions";
export const requestsNeedDecision = (open: number) =>
  open === 1 ? "1 request needs a decision." : `${open} requests need a decision.`;
export const rejectionIsToldLater = "The agent is told about the rejection once it cannot be undone.";
export const working = "Working";
export const showEarlierMessages = "Show earlier messages";
export const stopped = "Stopped.";
export const limitReached = "Limit reached";
export const agentCouldNotContinue = "The agent could not continue";
export const retry = "Retry";
