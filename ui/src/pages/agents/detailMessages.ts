/** The texts of the page of one agent, by the file that shows them. */

// In more than one file
export const calls = "Calls";
export const tryIt = "Try it";
export const tools = "Tools";
export const reason = "Reason";
export const recordedInLedger = "Recorded in the ledger with your name and the time.";

// Activity
export const noCallsYet = "No calls yet";
export const firstSeen = "First seen";
export const lastSeen = "last seen";
export const pendingHeading = "Pending";
export const callsInDays = (days: number) => `Calls, ${days} days`;
export const withoutReads = "without reads";
export const askedAPerson = "Asked a person";
export const call = "call";
export const refused = "Refused";
export const byPeopleByPolicy = (rejected: number, denied: number) =>
  `${rejected.toLocaleString("en")} by people, ${denied.toLocaleString("en")} by the policy`;
export const mostOn = (date: string, most: number) => `Most on ${date}: ${most.toLocaleString("en")}.`;
export const callsAndAsked = (calls: string, asked: number, busiest: string) =>
  `${calls}, ${asked.toLocaleString("en")} of them asked a person. ${busiest}`;
export const callsPerDay = "Calls per day";
export const dayCallsAndAsked = (date: string, calls: string, asked: number) =>
  `${date}: ${calls}, ${asked} asked`;
export const askedAPersonInLegend = "asked a person";
export const ranWithoutAsking = "ran without asking";
export const showAsTable = "Show as table";
export const dayUtc = "Day (UTC)";
export const toolsItHasUsed = "Tools it has used";
export const toolsByFirstUseNewest = (countedDays: number) =>
  `Tools by first use, newest first. Outcomes of the last ${countedDays} days.`;
export const firstUsed = "first used";
export const firstUseNotRecorded = "first use not recorded";
export const showAllTools = (count: number) => `Show all ${count.toLocaleString("en")} tools`;

// AgentActions
export const copy = "Copy";
export const loadingConversation = "Loading the conversation";

// AgentDescription
export const youCanSetApprovals = "You can set here which of its tools require approval.";
export const about = "About";
export const edit = "Edit";
export const loadingForm = "Loading the form";
export const model = "Model";
export const theDefaultModel = "the default model";
export const instructions = "Instructions";
export const none = "none";
export const agentsItMayCall = "Agents it may call";
export const limitsPerMessage = "Limits per message";
export const defaultLimits = "default: 30 turns, 500,000 tokens, 15 minutes";

// AgentDetails
export const allAgents = "All agents";
export const thereIsNoAgent = (name: string) => `There is no agent ${name}.`;
export const seeAllAgents = "See all agents";
export const versionBy = (version: number, changedBy: string) => `(version ${version}, by ${changedBy},`;
export const ledgerRecordsEvery = ". The ledger records every";
export const change = "change";
export const andWord = "and";
export const deletion = "deletion";
export const ofAgent = "of an agent.";
export const settingsThatAreOverridden = "Settings that are overridden";

// DeleteAgent
export const lookingForWhatDependsOnIt = "Looking for what depends on it";
export const itCannotBeDeletedNow = "It cannot be deleted now";
export const keepIt = "Keep it";
export const whatHappensList = "What happens:";
export const whatHappens = "What happens";
export const changedMeanwhileLookAgain =
  "Somebody else changed this agent in the meantime. Close this, look at it, then try again.";

// FreezeAgent
export const freezeAgent = "Freeze agent";

// FreezeDialog
export const freezeQuestion = (agent: string) => `Freeze ${agent}?`;
export const shownToEverybody = "Shown to everybody, and recorded in the ledger.";
export const freeze = "Freeze";
export const cancel = "Cancel";

// GateOffForm
export const turnOffApprovalFor = (name: string) => `Turn off approval for ${name}?`;
export const turnOffApproval = "Turn off approval";
export const keepApproval = "Keep approval";
export const runsWithoutApprovalFromThenOn = (name: string, toolName: string, count: number) =>
  `From then on ${name} runs ${toolName} without approval${count ? ", except where a rule says otherwise" : ""}.`;
export const ruleDecidesEveryCall = "Nothing will run without approval: a rule decides every call.";
export const ruleStillDecides = (verdict: string, rule: string) =>
  `A rule still ${verdict === "ask" ? "asks" : "denies"}: “${rule}”`;
export const dependingOnArguments = ", depending on the arguments";
export const countingCalls = "Counting calls…";
export const callsCouldNotBeCounted = (message: string) => `The calls could not be counted: ${message}`;
export const changedMeanwhileReasonKept =
  "Somebody else changed this agent in the meantime. The current state is shown now, and your reason is kept. Try again.";

// ToolList
export const searchTools = "Search tools";
export const show = "Show";
export const toolsItHasCalled = "tools it has called";
export const thisAgentsTools = "this agent's tools";
export const allKnownTools = "all known tools";
export const loadingTools = "Loading tools";
export const noTools = "No tools";
export const noToolNameMatches = "No tool name matches.";
export const thisAgentHasNoTools = "This agent has no tools.";
export const showMoreTools = "Show more tools";
export const toolCount = (count: number) => (count === 1 ? "1 tool" : `${count} tools`);
export const shownThereAreMore = (tools: string) => `${tools} shown; there are more.`;

// ToolRow
export const NOT_ALLOWED =
  "Only admins, and people who may approve every call of this tool, can turn approval off.";
export const effectUnknown = "effect unknown";
export const asksPerson = "Asks a person";
export const otherwise = (reason: string) => `Otherwise: ${reason} `;
export const sourceOfTool = (source: string) => `Source: ${source}`;
export const confirmedInChatFirst = "; confirmed in the chat first";
export const definitionsWereSeen = (definitions: number) => `; ${definitions} definitions were seen`;
export const schemaOf = (name: string) => `Schema of ${name}`;
export const expiresAfter = (expiry: string) => ` Expires after ${expiry}.`;
export const needsAnswers = (needs: string | null, answers: string, end: string) =>
  `Needs ${needs}. Answers: ${answers}.${end}`;
export const thePack = (pack: string | null) => `the pack ${pack}`;
export const recordedCalls = "recorded calls";
export const aPin = "a pin";
export const mcpServer = (source: string) => `the MCP server ${source}`;
export const anotherAgent = "another agent";
export const documents = "the documents";
export const configuration = "the configuration";
export const itAlwaysNeedsApproval = (reason: string) => `It always needs approval: ${reason}.`;
export const viewersCannotChangeSettings = "Viewers cannot change settings.";

// TryAgent
export const openInChat = "Open in the chat";
export const startOver = "Start over";
export const close = "Close";
export const conversationIsReal = (name: string) =>
  `A conversation with ${name} as it is saved. Its calls are real: they run, or wait for approval, as in the chat.`;
export const cannotAnswerYet = (name: string, problem: string) => `${name} cannot answer yet. ${problem}`;
