/** The texts of the settings of grants, by the file that shows them. */

// In more than one file
export const tool = "Tool";
export const reason = "Reason";

// GrantDetails
export const allowedCalls = "Allowed calls";
export const onlyCreatorRevokes = "Only its creator and admins can revoke a grant.";
export const covers = "Covers";
export const state = "State";
export const used = "Used";
export const until = "Until";
export const createdBy = "Created by";
export const revokedHeading = "Revoked";
export const revokedBy = (person: string, dateTime: string, revokedReason: string | null) =>
  `${person}, ${dateTime}: ${revokedReason || "no reason given"}`;
export const noCallsYet = "No calls yet.";
export const revokeGrant = "Revoke the grant";
export const callsNeedApprovalAgain =
  "Calls need approval again, starting with the next one. Calls that were already allowed stay allowed.";
export const reasonRecordedInLedger = "Reason (recorded in the ledger)";
export const everyAgent = "Every agent";
export const mayCallItIf = (who: string, when: string) => `${who} may call it if ${when}`;
export const mayCallItWithAnyArguments = (who: string) => `${who} may call it with any arguments`;
export const useCount = (uses: number) => `${uses} uses`;
export const usesOf = (uses: number, maxUses: number) => `${uses} of ${maxUses} uses`;
export const budgetUsed = (spent: string, budget: string, budgetOf: string | null) =>
  `${spent} of ${budget} of ${budgetOf}`;
export const revokedState = "revoked";
export const endedAgo = (span: string) => `ended ${span} ago`;
export const usedUp = "used up";
export const endsIn = (span: string) => `ends in ${span}`;

// GrantsTab
export const grants = "Grants";
export const grantsHelp =
  "A grant allows calls of one tool without asking, within limits, as if its creator had approved each of them. Calls that the policy denies stay denied.";
export const showEndedGrants = "Show ended grants";
export const newGrant = "New grant";
export const whoCreatesGrants = "Reviewers and admins can create grants.";
export const noGrants = "No grants";
export const gatedCallsNeedApproval =
  "Every call that the policy gates needs approval. For a kind of call that you always approve, create a grant.";
export const grant = "Grant";
export const detailsOfGrantFor = (tool: string) => `Details of the grant for ${tool}`;
export const details = "Details";

// NewGrant
export const DURATIONS = [
  { value: "1h", label: "an hour" },
  { value: "8h", label: "8 hours" },
  { value: "1d", label: "a day" },
  { value: "7d", label: "a week" },
  { value: "30d", label: "30 days" },
  { value: "365d", label: "a year" },
];
export const createGrant = "Create grant";
export const cancel = "Cancel";
export const boundToDefinition = "Bound to its current definition; a changed tool needs approval again.";
export const agent = "Agent";
export const matchesAnyCharacters = "* matches any characters.";
export const conditionCelOptional = "Condition (CEL, optional)";
export const conditionExample = 'For example: args.to == "bob" && args.amount < 100';
export const duration = "Duration";
export const maximumNumberOfCalls = "Maximum number of calls (optional)";
export const totalBudgetOptional = "Total budget (optional)";
export const argumentToSum = "Argument to sum";
export const grantSummary = (tool: string, terms: string, dateTime: string) =>
  `${tool}: ${terms}, until ${dateTime}.`;
export const warnings = "Warnings";
export const done = "Done";
