/** The texts of the history, by the file that shows them. */

// In more than one file
export const loadingCall = "Loading call";
export const calls = "Calls";

// CallDetail
export const callDetails = "Call details";
export const backToList = "Back to the list";
export const agentNamed = (agent: string) => `The agent ${agent}`;
export const anAgent = "An agent";
export const forRequester = (requester: string) => `, for ${requester}`;
export const ruleSuffix = (rule: string) => `; rule “${rule}”`;
export const contentWasErased = "The content was erased";
export const recordRemains = (text: string) =>
  `${text}. The record of who did what and when remains, and the ledger still proves it.`;
export const openCard = "Open the card";
export const openChat = "Open the chat";
export const linkCopied = "Link copied";
export const copyLink = "Copy link";
export const argumentsWithCount = (count: number) => `Arguments (${count})`;
export const result = "Result";

// Calls
export const searching = "Searching";
export const noCallSelected = "No call selected";
export const selectACall = "Select a call to see who requested it, who decided, and the result.";
export const noCallsFound = "No calls found";
export const tryFewerKeywordsOrFilters = "Try fewer keywords or filters.";
export const noCallsYet = "No calls yet";
export const connectAgent = "Connect an agent";
export const everyCallOfAgentAppears =
  "Every call of an agent appears here, with who decided and what came of it.";
export const forRequesterPlain = (requester: string) => `for ${requester}`;

// History
export const history = "History";
export const ledger = "Ledger";
export const contentIsErasedAfter = (retention: string) =>
  `Arguments and results are erased ${retention} after the end of a call; the ledger is kept.`;

// HistoryFilters
export const searchCalls = "Search calls";
export const keywords = "Keywords";
export const keywordsExample = "refund carol";
export const status = "Status";
export const any = "Any";
export const search = "Search";
export const moreFilters = "More filters";
export const tool = "Tool";
export const agent = "Agent";
export const person = "Person";
export const from = "From";
export const to = "To";
export const clear = "Clear";
export const conversation = "Conversation";

// Timeline
export const viaFact = "via";
export const resultFact = "result";
// An agent proposes arguments and an editor replaces them; everybody else saw them.
export const DIGEST_LABELS: Record<string, string> = {
  proposed: "arguments",
  allowed: "arguments",
  denied: "arguments",
  edited: "new arguments",
};
export const timeline = "Timeline";
export const messages = "Messages";
export const entrySuffix = (seq: number) => `· entry ${seq}`;
export const contentErased = "Its content was erased; its digest is kept.";
export const entryAsStored = "Entry as stored";
export const textWithMoreCharacters = (text: string, count: number) =>
  `${text} … and ${count} more characters`;
export const onBehalfOf = "on behalf of";
export const sawArguments = "saw arguments";
export const needs = "needs";
export const thenSeparator = ", then ";
export const peopleNeeded = (counts: string, lastCount: number) =>
  `${counts} ${lastCount === 1 ? "person" : "people"}`;
export const acknowledged = "acknowledged";
