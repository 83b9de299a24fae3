/** The texts of the chat, by the file that shows them. */

// In more than one file
export const newChat = "New chat";
export const agent = "Agent";

// Announcer
export const agentSaid = (text: string) => `Agent: ${text}`;
export const requestNeedsDecision = "A request needs a decision.";
export const questionAsked = (message: string) => `Question: ${message}`;
export const stopped = "Stopped.";
export const errorWithReason = (reason: string) => `Error: ${reason}`;

// Chat
export const chatIsForReviewers = "Chat is available to reviewers and admins";
export const askAdminForAccess = "Ask an admin for access.";
export const chat = "Chat";
export const allCallsInThisChat = "All calls in this chat";
export const chatBelongsTo = (user: string) => `This chat belongs to ${user}. You can read it and stop it.`;
export const agentIsGone = (agent: string) =>
  `The agent ${agent} does not exist any more. You can read this chat, but not continue it.`;

// Composer
export const notSent = "Not sent.";
export const questionSent = "Question sent. The answer appears in the request.";
export const message = "Message";
export const tryAgain = "Try again";
export const ask = "Ask";
export const send = "Send";
export const writeMessage = "Write a message";
export const askAbout = (agent: string, tool: string) => `Ask ${agent} about ${tool}…`;
export const writeNewInstruction = "Write a new instruction";
export const whatToSend = "What to send";
export const askAboutThisRequest = "Ask about this request";
export const askAboutRequest = "Ask about a request";
export const newInstruction = "New instruction";
export const request = "Request";
export const requestOfRequests = (position: number, total: number, tool: string) =>
  `${position} of ${total}: ${tool}`;
export const requestsStayOpen = (isOne: boolean) => `The request${isOne ? " stays" : "s stay"} open.`;
export const withdrawsOpenRequests = (count: number, isOne: boolean) =>
  `Withdraws ${count} open ${isOne ? "request" : "requests"}.`;
export const stopTryAgain = "Stop (try again)";
export const stop = "Stop";

// CopyIconButton
export const pressCtrlC = "Press Ctrl+C";
export const copied = "Copied";

// ModelNotice
export const cannotAnswerYet = (agent: string) => `${agent} cannot answer yet`;
export const noModelSoCannotAnswer = (agent: string) => `No model is set, so ${agent} cannot answer`;
export const setKeyAndRestart = "Set a key on the server, and start it again:";
export const copyThisLine = "Copy this line";
export const otherKeysWork = "ANTHROPIC_API_KEY and GOOGLE_API_KEY work too.";
export const needsNoKey = "needs no key.";

// NewConversation
export const suggestions = "Suggestions";
export const whatShouldAgentDo = "What should the agent do?";
export const newChatIntroduction = (isScripted: boolean, agent: string, tools: string) =>
  `${isScripted ? "This is the demo: a script answers, which understands sentences such as these. Write help to see them all. " : `${agent} answers, looks things up, and acts with ${tools}. `}Calls that change something wait here for your approval.`;
export const starters = "Starters";
export const noTools = "no tools";
export const allConfiguredTools = "all configured tools";

// ThreadList
export const STATUS_LABELS: Record<string, string> = {
  waiting: "Waiting",
  running: "Running",
  ready: "Running",
};
export const searchChats = "Search chats";
export const erased = "Erased";
export const noChatFound = "No chat has these words in its title.";
export const noChatsYetWriteMessage = "No chats yet. Write a message to start one.";

// ThreadPanel
export const chats = "Chats";
export const close = "Close";

// transcriptItems
export const retryingAfter = (reason: string) => `${reason} Retrying.`;
export const theseMessagesWereErased = "These messages were erased.";
