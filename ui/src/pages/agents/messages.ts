import type { VerdictReason } from "./queries";

/** The texts of the agents page, by the file that shows them. */

// In more than one file
export const call = "call";

// activity
export const openRequestsStay = (pending: number) =>
  pending === 1
    ? "Its pending request stays open: people can still decide, and its deadline is paused."
    : `Its ${pending.toLocaleString("en")} pending requests stay open: people can still decide, and their deadlines are paused.`;
export const callsAreRefusedUntilUnfrozen = (agent: string) =>
  `Until an admin unfreezes it, every new call of ${agent} is refused, reads included, and nothing that was approved starts.`;
export const callsThatAreRunningFinish = "Calls that are running finish.";
export const itAlsoStops = (agent: string) =>
  `It also stops agents that ${agent} calls, and every key that has used its name.`;
export const withoutAsking = "without asking";
export const approvedResult = "approved";
export const approvedWithChanges = "approved with changes";
export const rejected = "rejected";
export const answered = "answered";
export const expired = "expired";
export const cancelled = "cancelled";
export const pending = "pending";
export const noCallsWithRecord = "No calls with a record";

// agentChange
export const VERDICT_LABELS: Record<VerdictReason["verdict"], string> = {
  allow: "runs without approval",
  ask: "needs approval",
  deny: "is denied",
};
export const STATUS_LABELS: [statuses: string[], one: string, many: string][] = [
  [["succeeded"], "succeeded", "succeeded"],
  [["failed", "unknown"], "failed or has an unknown outcome", "failed or have an unknown outcome"],
  [["approved", "running"], "is in progress", "are in progress"],
  [["rejected"], "was rejected", "were rejected"],
  [["responded"], "was answered", "were answered"],
  [["expired"], "expired", "expired"],
  [["cancelled"], "was cancelled", "were cancelled"],
  [["pending"], "is pending", "are pending"],
];
export const needsApproval = "needs approval";
export const runsWithoutApproval = "runs without approval";
export const denied = "denied";
export const dependsOnArguments = "depends on the arguments";
export const dependingOnArguments = ", depending on the arguments";
export const becauseOfRule = (verdict: string, rule: string, condition: string) =>
  `It ${verdict} because of the rule “${rule}”${condition}.`;
export const becauseOfSwitchAlthough = (verdict: string, rule: string, condition: string) =>
  `It ${verdict} because of the switch, although the rule “${rule}” allows it${condition}.`;
export const becauseOfSwitch = (verdict: string) => `It ${verdict} because of the switch.`;
export const becauseItAlwaysAsks = (verdict: string, reason: string) => `It ${verdict}: ${reason}.`;
export const byDefault = (verdict: string, effect: string | null) =>
  `It ${verdict} by default: ${effect ? `its effect is ${effect}` : "its effect is not declared"}.`;
export const timesCalled = (total: number) => (total === 1 ? "once" : `${total.toLocaleString("en")} times`);
export const calledInDays = (days: number, agent: string, times: string, parts: string) =>
  `In the last ${days} days ${agent} called it ${times}: ${parts}.`;
export const noCallsInDays = (days: number, agent: string) =>
  `In the last ${days} days ${agent} made no recorded calls to it.`;
export const ranWithoutApproval = (reads: number) =>
  ` It ran without approval ${reads.toLocaleString("en")} times, for all agents.`;
export const onlyNewestCounted = (complete: boolean, count: string) =>
  count + (complete ? "" : " Only the newest 100,000 calls were counted.");
export const madeHere = "made here";
export const changedHere = "changed here";
export const fromConfigurationFile = "from the configuration file";
export const builtIn = "built in";
export const restoreFilesSettings = "Restore the file’s settings";
export const restoreBuiltInSettings = "Restore built-in settings";
export const deleteSettings = "Delete settings";
export const deleteAgent = "Delete agent";
export const restoreFilesSettingsOf = (name: string) => `Restore the file’s settings of ${name}?`;
export const restoreBuiltInSettingsOf = (name: string) => `Restore the built-in settings of ${name}?`;
export const deleteSettingsOf = (name: string) => `Delete the settings of ${name}?`;
export const deleteAgentNamed = (name: string) => `Delete ${name}?`;
export const wasMadeHere = "This agent was made here";
export const wasChangedHere = "This agent was changed here";
export const comesFromFile =
  "This agent comes from the configuration file. Changes made here are stored and override the file";
export const isBuiltIn = "This agent is built in. Changes made here are stored and override it";
export const runsOutsideInterlock = "This agent runs outside Interlock";

// agentDraft
export const turns = "Turns";
export const turnsRange = "Model turns, 1 to 1,000";
export const tokens = "Tokens";
export const tokensRange = "At most 100,000,000";
export const time = "Time";
export const timeRange = "Such as 90s, 10m or 1h, at most 1d";
export const enterName = "Enter a name.";
export const useLettersDigitsAndOnly = "Use letters, digits, _ and - only.";
export const useAtMostCharacters = (length: number) => `Use at most ${length} characters.`;

// AgentList
export const agents = "Agents";
export const newAgent = "New agent";
export const connectAgent = "Connect an agent";
export const noAgentsYet = "No agents yet";
export const connectYourFirstAgent = "Connect your first agent";
export const agentAppearsWithFirstCall =
  "An agent appears here with its first call, or once it is configured.";
export const adminsConnectAgents = " Admins connect agents.";
export const searchAgents = "Search agents";
export const noAgentWithThisName = "No agent has this in its name.";
export const frozen = "Frozen";
export const warning = "warning";
export const noCallsYet = "No calls yet";
export const activityNotCounted = "Activity not counted";
export const agentsLeftOut = (left: number) =>
  left === 1
    ? "The activity of one more agent, known only from its calls, is not counted."
    : `The activity of ${left.toLocaleString("en")} more agents, known only from their calls, is not counted.`;
export const orMoreSuffix = " or more";
export const pendingCount = (pending: number) => `${pending.toLocaleString("en")} pending`;
export const lastSeen = "last seen";
export const waitingForFirstCall = "Has a key. Waiting for its first call";
export const callsInLastDays = (calls: string, more: string, days: number) =>
  `${calls}${more} in ${days} days`;
export const refusedByPolicyCount = (denied: number) =>
  `${denied.toLocaleString("en")} refused by the policy`;

// ApprovalSwitch
export const switchHelp =
  "On: this agent needs approval to run the tool, even where a rule would allow it. " +
  "Off: it runs without approval, unless a policy rule asks.";
export const requireApproval = "Require approval?";
export const requireApprovalFor = (tool: string) => `Require approval for ${tool}?`;

// MissingModel
export const noModelIsSet = "No model is set";
export const agentsCannotAnswer =
  "Agents of the chat cannot answer. Run this where the server starts, then restart it:";
export const otherKeysWork =
  "(ANTHROPIC_API_KEY and GOOGLE_API_KEY work too). Agents that you connect bring their own model.";

// toolSelection
export const mcpServerNamed = (name: string) => `MCP server ${name}`;
