/** The texts of the policy page, by the file that shows them. */

// In more than one file
export const rules = "Rules";

// describePolicy
export const EFFECT_LABELS: Record<string, string> = {
  read: "only read",
  write: "write",
  destructive: "are destructive",
};
export const TERMS: [key: string, name: string][] = [
  ["reason", "Message to the agent"],
  ["exclude", "May not decide"],
  ["decisions", "Decisions"],
  ["priority", "Priority"],
  ["channels", "Channels"],
  ["expires_in", "Expires after"],
  ["on_expiry", "On expiry"],
  ["escalate", "Escalates"],
  ["remind", "Reminds after"],
  ["undo_window", "Undo within"],
  ["start_within", "Start within"],
];
export const callsOfTools = (tools: string) => `of ${tools}`;
export const orSeparator = " or ";
export const thatDo = (effects: string) => `that ${effects}`;
export const callsBy = (agents: string) => `by ${agents}`;
export const callsFor = (users: string) => `for ${users}`;
export const forPeopleOf = (teams: string) => `for people of ${teams}`;
export const withPriority = (priorities: string) => `with priority ${priorities}`;
export const callsMatching = (parts: string) => `Calls ${parts}`;
export const everyCall = "Every call";
export const runAtOnce = "run at once";
export const areDenied = "are denied";
export const waitFor = (approvers: string | undefined) =>
  `wait for ${approvers ?? "one person: the requester, a reviewer or an admin"}`;
export const allowVerdict = "allow";
export const allowed = "allowed";
export const askVerdict = "ask";
export const asked = "asked";
export const denyVerdict = "deny";
export const denied = "denied";
export const defaultsChanged = "defaults changed";
export const agentSwitchesChanged = "agent switches changed";

// Policy
export const text = "Text";
export const explain = "Explain";
export const rehearse = "Rehearse";
export const shadowRules = "Shadow rules";
export const versions = "Versions";
export const review = "Review";
export const policy = "Policy";
export const policyIsAvailableToAdmins = "The policy is available to admins";
export const cardsShowTheRule =
  "Each card shows the rule that asked for approval. To change a rule, ask an admin.";
export const policySections = "Policy sections";
export const fileIsNotInForce = "The server's policy file is not in force";
export const toPutItBack = (message: string) => `${message} To put it back:`;
export const yourDraft = "Your draft";
export const yourDraftIsNotInForce = "Your draft is not in force.";
export const reviewAndPutInForce = "Review and put in force";
export const confirmDiscard = "Confirm discard";
export const discard = "Discard";
export const itHasErrors = (count: number) => `It has ${count} errors.`;
export const oneErrorInDraft = "It has an error.";
export const lineWithMessage = (count: string, line: number, message: string) =>
  `${count} ${line > 0 ? `Line ${line}: ` : ""}${message}`;
export const sameRules = "Its rules are the same as those in force.";

// ProblemList
export const policyIsInvalid = "The policy is invalid";
export const lineNumber = (line: number) => `Line ${line}`;
export const policyStaysInForce = "The policy in force stays in force.";

// RuleCard
export const onlyRecorded = "It decides nothing; its verdict is only recorded.";
export const shadowBadge = "shadow";
export const when = ", when:";
export const verdictsAreUnderShadowRules = "Its verdicts are under Shadow rules.";
export const defaults = "Defaults";
export const withoutMatchingRule = (unknownTools: string | undefined) =>
  `Without a matching rule, the agent's switches decide, then the tool's effect: reads run at once, all other calls need one approval, and a tool that is not registered ${unknownTools === "deny" ? "is denied" : "needs approval"}.`;
export const unlessRuleSaysOtherwiseRequest = (expiry: string, expiry2: string) =>
  `Unless a rule says otherwise, a request expires after ${expiry}, and a rejection can be undone for ${expiry2}.`;
export const itDecidedNoRecentCalls = "It decided no recent calls.";
export const decidedCalls = (total: number, parts: string) =>
  `It decided ${total.toLocaleString("en")} ${total === 1 ? "call" : "calls"}: ${parts}.`;

// Rules
export const fixItInText = "Fix it in the text.";
export const firstMatchDecides = "The first rule that matches a call decides.";
export const countsCover = (complete: boolean) =>
  `Counts cover the last 30 days${complete ? "" : ", newest calls only"}.`;
export const noRulesYet = "No rules yet";
export const startFromTemplate = "Start from a template";
export const eachToolsDefaultDecides = "Each tool's default decides.";
export const addRule = "Add rule";
export const newRule = "new rule";
export const ruleAdded = "Rule added. Name its tools, and choose what happens.";
export const addItInText = "Add the rule in the text.";
export const rulesShareLines = "These rules share lines. Reorder them in the text.";
export const layoutIsUnsafe = "The layout of the text makes this change unsafe here. Edit the text instead.";
