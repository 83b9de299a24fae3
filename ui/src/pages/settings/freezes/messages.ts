/** The texts of the settings of freezes, by the file that shows them. */

// FreezesTab
export const wholeWorkspace = "The whole workspace";
export const oneAgent = "One agent";
export const nameOfAgent = "Name of the agent";
export const oneKey = "One key";
export const key = "Key";
export const tool = "A tool";
export const toolNameHint = "Name of the tool; * matches any characters";
export const freeze = "Freeze";
export const freezeHelp =
  "Stops calls at once: calls in its scope cannot start, and new calls are refused, including reads. Running calls continue, people can still decide, and deadlines are paused until you unfreeze.";
export const scope = "Scope";
export const reasonField = "Reason (shown to everybody affected)";
export const enterReason = "Enter a reason: it is shown to everybody affected.";
export const agentsAreStopped = "Agents in the scope are stopped until an admin unfreezes it.";
export const chooseKey = "Choose a key";
export const noKeyHasThisName = "No key has this name.";
