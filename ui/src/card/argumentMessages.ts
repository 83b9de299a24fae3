/** The texts of the head and the arguments of an approval card, by the file that shows them. */

// Arguments
export const argumentsLabel = "Arguments";
export const noArguments = "No arguments";
export const exactlyWhatWillRun = (digest: string) => `exactly what will run · digest ${digest}`;
export const moreArgumentsAreNotShown = (count: number) =>
  `${count.toLocaleString("en")} more arguments are not shown.`;
export const showMore = (count: number) => `Show ${count.toLocaleString("en")} more`;
export const objectWithMembers = (length: number) =>
  `object, ${length.toLocaleString("en")} ${length === 1 ? "member" : "members"}`;
export const listWithItems = (length: number) =>
  `list, ${length.toLocaleString("en")} ${length === 1 ? "item" : "items"}`;

// ArgumentTable
export const notSet = "not set";

// ArgumentValue
export const charactersWithDigest = (length: number, sha256: string) =>
  `${length.toLocaleString("en")} characters, SHA-256 ${sha256}`;
export const showAllCharacters = (length: number) => `Show all ${length.toLocaleString("en")} characters`;
export const showOfHiddenCharacters = (shown: number, hidden: number) =>
  `Show ${shown.toLocaleString("en")} of ${hidden.toLocaleString("en")} hidden characters`;

// CardHead
export const FACT_LABELS: Record<string, string> = {
  requester: "Asked by",
  agent: "Agent",
  thread: "Thread",
  rule: "Rule",
};
export const urgent = "Urgent";
export const whoAskedAndWhichRule = "Who asked, and which rule";
export const open = "Open";
export const claimedBy = "Claimed by";
export const requested = "Requested";
export const timeIsUp = "Time is up";
export const timeLeft = (span: string) => `${span} left`;

// Findings
export const KIND_LABELS: Record<string, string> = {
  bidi: "Text direction",
  invisible: "Invisible characters",
  control: "Control characters",
  space: "Unusual spaces",
  lookalike: "Look-alike letters",
  host: "Host",
  emoji: "Emoji",
  right_to_left: "Right-to-left text",
  long: "Long value",
  unknown_argument: "Unknown argument",
  misfit: "Schema mismatch",
  agent_secret: "Hidden by the agent",
};
export const MISLEADING = ["contains text that may mislead you", "contain text that may mislead you"];
export const approveIsDisabledUntilChecked = (markedHint: string, uncheckedCount: number) =>
  `${markedHint}Approve is disabled until you check ${uncheckedCount === 1 ? "it" : `all ${uncheckedCount} findings`}.`;
export const allFindingsAreChecked = "All findings are checked.";
export const checked = "Checked";
export const agentHidesArgumentsFromYou = "the agent hides arguments from you";
export const doesNotMatchToolsSchema = "does not match the tool's schema";
export const doNotMatchToolsSchema = "do not match the tool's schema";
export const argumentsWithProblem = (argumentCount: number, verb: string | undefined) =>
  `${argumentCount === 1 ? "1 argument" : `${argumentCount} arguments`} ${verb}`;
export const foundAndHidden = (found: string, hiddenText: string) => `${found}, and ${hiddenText}`;
export const markedBelow = "Marked below. ";

// TextDiff
export const lineCount = (count: number) => `${count.toLocaleString("en")} lines`;
export const showLinesThatDiffMarks = (count: number) =>
  `Show ${count.toLocaleString("en")} lines that the diff marks as unchanged`;
export const showOfMoreLines = (shown: number, hiddenCount: number) =>
  `Show ${shown.toLocaleString("en")} of ${hiddenCount.toLocaleString("en")} more lines`;

// ToolPreview
export const preview = "Preview";
export const fromTool = "from the tool";
