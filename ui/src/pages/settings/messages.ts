/** The texts of the settings, by the file that shows them. */

// In more than one file
export const about = "About";
export const grants = "Grants";
export const keys = "Keys";

// AboutTab
export const version = "Version";
export const workspace = "Workspace";
export const workspaceSince = (workspace: string, dateTime: string) => `${workspace}, since ${dateTime}`;
export const you = "You";
export const database = "Database";
export const retention = "Retention";
export const forever = "forever";
export const afterEndOfCall = (retention: string) => `${retention} after the end of a call`;
export const signIn = "Sign-in";
export const signInWithProvider = "password, link, or your organisation's provider";
export const passwordOrLink = "password or link";
export const ledger = "Ledger";
export const entriesAndNewest = (seq: number, dateTime: string) =>
  `${seq.toLocaleString("en")} entries; newest: ${seq ? dateTime : "none"}`;
export const ledgerHead = "Ledger head";
export const ledgerHeadHint =
  "Store the ledger head elsewhere to show later that no entries were removed from the end.";
export const httpApiReference = "HTTP API reference";

// AwayForm
export const awayUntil = (dateTime: string, deputies: string) => `Away until ${dateTime}. ${deputies}`;
export const iAmBack = "I am back";
export const personIsBack = (name: string) => `${name} is back`;
export const awayUntilField = "Away until";
export const delegatesPeople = "Delegates (people)";
export const delegatesTeams = "Delegates (teams)";
export const noDelegatesHint = "No delegates: approvals that only this person may decide stay pending.";
export const changeAbsence = "Change absence";
export const setAway = "Set away";
export const theTeam = (team: string) => `the team ${team}`;
export const noDelegates = "No delegates.";
export const namesAndLast = (names: string, last: string | undefined) => `${names} and ${last}`;
export const delegatesAre = (listed: string | undefined) => `Delegates: ${listed}.`;
export const delegateIs = (listed: string | undefined) => `Delegate: ${listed}.`;
export const findIn = (legend: string) => `Find: ${legend}`;
export const find = "Find";

// data
export const actsAs = (user: string) => `as ${user}`;
export const boundToAgents = (agents: string) => `bound to ${agents}`;
export const notBoundToAgent = "not bound to an agent";
export const toolNames = (tools: string) => `tools ${tools}`;
export const forAnyRequester = "for any requester";
export const forNobody = "for nobody";
export const requesterName = (requester: string) => `for ${requester}`;
export const anyNumberOf = "any number of";
export const callsPerMinute = (limit: string) => `${limit} calls a minute`;
export const pendingCalls = (limit: string) => `${limit} pending calls`;
export const votesInPendingApprovals = "Votes in pending approvals";
export const delegationsInPendingApprovals = "Delegations in pending approvals";
export const delegateOf = "Delegate of";
export const sessions = "Sessions";
export const signInLinks = "Sign-in links";
export const linkedAccounts = "Linked accounts";

// Identities
export const noLinkedAccounts = "No linked accounts.";
export const accountInChannel = (channel: string) => `in ${channel}`;
export const accountIsUser = (user: string) => ` is ${user}`;
export const since = "Since";
export const remove = "Remove";
export const decisionsWillBeRefused = "Decisions made with this account will be refused.";

// Settings
export const meTab = "Me";
export const people = "People";
export const teams = "Teams";
export const freeze = "Freeze";
export const channels = "Channels";
export const settings = "Settings";

// ShownOnce
export const shownOnlyOnce = (about: string) => `${about} It is shown only once.`;
export const done = "Done";
