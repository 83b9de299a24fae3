/** The texts of the form of an agent, by the file that shows them. */

// In more than one file
export const newAgent = "New agent";

// AgentEditor
export const editAgentNamed = (name: string) => `Edit ${name}`;
export const name = "Name";
export const nameRule = (length: number) =>
  `Letters, digits, _ and -, at most ${length}. It cannot be changed later; copy the agent instead.`;
export const instructions = "Instructions";
export const instructionsHint = "The system prompt, in your words. How approvals work is added to it.";
export const reason = "Reason";
export const recordedInLedger = "Recorded in the ledger with your name and the time.";
export const applyMyChanges = "Apply my changes to the current version";
export const changedWhileEditing = (changedBy: string | null, version: number) =>
  `${changedBy ? `Version ${version} is by ${changedBy}. ` : "It has its original settings again. "}Your changes are kept. Apply them to the current version, check the result, then save.`;
export const takesEffectFromNextCall =
  "Takes effect from the next call. The change is recorded with your name.";
export const youHaveUnsavedChanges = " You have unsaved changes.";
export const save = "Save";
export const createAgent = "Create agent";
export const discardChanges = "Discard changes";
export const cancel = "Cancel";
export const approvalWillBeOff = (count: number) =>
  `Approval will be turned off for ${count === 1 ? "1 tool" : `${count} tools`}`;
export const toolsRunWithoutApproval = (name: string, tools: string) =>
  `${name || "The agent"} runs ${tools} without approval, unless a policy rule or the tool’s default asks. Enter a reason below.`;

// LimitFields
export const limitsForEachMessage = "Limits for each message";
export const limitWithDefault = (unit: string, placeholder: string) => `${unit}. Default: ${placeholder}`;

// ModelField
export const defaultModelNamed = (model: string) => `Default model (${model})`;
export const defaultModelNoneSet = "Default model (none set)";
export const model = "Model";
export const anotherModel = "Another model…";
export const modelName = "Model name";
export const modelNameHint = "provider:name, such as openai:gpt-5";
export const thisModelCannotBeUsedYet = (problem: string) => `This model cannot be used yet: ${problem}`;

// NewAgent
export const copyAgent = (name: string) => `Copy ${name}`;
export const allAgents = "All agents";
export const thereIsNoAgent = (name: string) => `There is no agent ${name}.`;
export const loadingForm = "Loading the form";

// SubagentPicker
export const agentsItMayCall = "Agents it may call";
export const subAgentHelp =
  "A sub-agent works in its own conversation, with its own tools. It can tighten an approval of this agent, never loosen it.";
export const thereAreNoOtherAgents = "There are no other agents.";
export const subAgents = "Sub-agents";
export const thisAgentDoesNotExist = "This agent does not exist.";

// ToolPicker
export const tools = "Tools";
export const searchTools = "Search tools";
export const ofToolsSelected = (selectedCount: number, total: number) =>
  `${selectedCount} of ${total} tools selected`;
export const foundSuffix = (count: number) => `, ${count} found`;
export const moreToolsThanListed = ". There are more tools than this list can show";
export const loadingTools = "Loading tools";
export const showMoreTools = "Show more tools";
export const toolsOfSource = (label: string) => `Tools of ${label}`;
export const allOfSource = (label: string) => `All of ${label}`;
export const selectedOf = (count: number, total: number) => `${count} of ${total}`;
export const includingToolsAddedLater = ", including tools added later";
export const itAlwaysNeedsApproval = (reason: string) => `It always needs approval: ${reason}.`;
export const effectUnknown = "effect unknown";
export const packsAndPatterns = "Packs and patterns";
export const noToolHere = (count: number) =>
  count === 0 ? "no tool here" : count === 1 ? "1 tool" : `${count} tools`;
export const removeEntry = (entry: string) => `Remove ${entry}`;
export const addPattern = "Add a pattern";
export const patternHint = "Such as cms_list_*, mcp:files, or * for every tool";
export const add = "Add";
