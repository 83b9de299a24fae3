/** The texts of the shared components that are loaded on demand, by the file that shows them. */

// In more than one file
export const cancel = "Cancel";

// EditForm
export const loadCurrentVersion = "Load the current version";
export const nothingWasOverwritten =
  "Nothing was overwritten. Copy what you want to keep, then load the current version and make your change again.";
export const saveChanges = "Save changes";
export const discardChanges = "Discard changes";

// FreezeAlert
export const frozenAffectedCallsCannotStart = "Frozen: affected calls cannot start";
export const frozenScopeBy = (scope: string, createdBy: string) => `${scope}, by ${createdBy},`;
export const unfreeze = "Unfreeze";
export const keyName = (name: string) => `The key ${name}`;
export const callsCanStartAgain =
  "Calls can start again. Deadlines are extended by the duration of the freeze.";
export const reasonRecordedInLedger = "Reason (recorded in the ledger)";

// ItemHistory
export const noChangesRecorded = "No changes recorded.";
export const history = "History";
export const changedItem = (action: string, item: string | undefined) => `${action} ${item ?? "it"},`;
export const whatChanged = "What changed";
export const interlock = "Interlock";
export const anAgent = "An agent";
export const byApprovedCall = "by an approved call";

// PasswordDialog
export const signInAgain = "Sign in again";
export const signInNeeded =
  "Changes to keys, grants, policies, agents and people require a sign-in within the last 5 minutes.";
export const passwordFor = (name: string) => `Password for ${name}`;
export const continueLabel = "Continue";
export const noPassword = "No password?";
export const signInWithLinkInNewTab = "Sign in again with a link or your organisation (opens in a new tab)";
export const thenSeparator = ", then";
export const continueHere = "continue here";

// UserMenu
export const roleInWorkspace = (role: string, workspace: string) => `${role} in ${workspace}`;
export const mySettings = "My settings";
export const appearance = "Appearance";
export const light = "Light";
export const dark = "Dark";
export const system = "System";
export const signOut = "Sign out";
export const youAreStillSignedIn = (message: string) => `You are still signed in. ${message}`;
