/** The texts of the tabs of the policy page that are loaded on demand, by the file that shows them. */

// In more than one file
export const openText = "Open the text";
export const changes = "Changes";

// Explain
export const EFFECTS = [
  { value: "", label: "not declared" },
  { value: "read", label: "read" },
  { value: "write", label: "write" },
  { value: "destructive", label: "destructive" },
];
export const CALLERS = [
  { value: "key", label: "an unbound key" },
  { value: "bound", label: "a key bound to this agent and person" },
  { value: "embedded", label: "an embedded program (opens the database)" },
];
export const tool = "Tool";
export const effect = "Effect";
export const asRegistered = "as registered";
export const agent = "Agent";
export const requester = "Requester";
export const personAgentWorksFor = "The person the agent works for";
export const caller = "Caller";
export const argumentsLabel = "Arguments";
export const json = "JSON";
export const policy = "Policy";
export const yourDraftInSentence = "your draft";
export const policyInForce = "the policy in force";
export const explain = "Explain";
export const noCallIsMadeOrRecorded = "No call is made or recorded.";
export const argumentsExample = 'Arguments must be an object, such as {"amount": 5}.';
export const thisIsNotValidJson = "This is not valid JSON.";
export const verdict = "Verdict";
export const judgedAsCaller = (judgedAs: string) => `Judged ${judgedAs}.`;
export const accordingTo = (origin: string, why: string) => `According to ${origin}, ${why}`;
export const shadowSuffix = ", shadow";
export const lineSuffix = (line: number) => `, line ${line}`;
export const decides = "— decides";

// LineDiff
export const noDifferences = "No differences.";
export const unchangedLines = (skipped: number) =>
  skipped === 1 ? "1 unchanged line" : `${skipped} unchanged lines`;

// PolicyText
export const loadingEditor = "Loading editor";
export const validWithWarnings = "Valid, with warnings";
export const linePrefix = (line: number) => `Line ${line}: `;
export const checking = "Checking…";
export const validWithRules = (count: number) => `Valid, with ${count === 1 ? "1 rule" : `${count} rules`}.`;
export const itCannotBeChecked = (message: string) => `It cannot be checked: ${message}`;
export const startFromTemplate = "Start from a template";
export const useTemplate = (name: string) => `Use the template ${name}`;
export const templateReplacesDraft = "It replaces your draft; Ctrl+Z in the text restores it.";
export const templateBecomesDraft = "It becomes a draft. Nothing is in force until you confirm it.";

// Rehearse
export const PERIODS = [
  { value: "1d", label: "the last day" },
  { value: "7d", label: "the last 7 days" },
  { value: "30d", label: "the last 30 days" },
  { value: "90d", label: "the last 90 days" },
];
export const rehearseHelp =
  "Every recorded call is evaluated twice: by the policy in force and by your draft. Nothing is put in force, recorded or run.";
export const noDraftYet = "There is no draft yet, so nothing would change.";
export const writeOne = "Write one";
export const callsFrom = "Calls from";
export const rehearse = "Rehearse";
export const rehearsing = (seconds: number) => `Rehearsing for ${seconds} s; at most 20 s and 100,000 calls.`;
export const draftHasChanged = "The draft has changed since. These results are for the previous one.";
export const loosened = "Loosened";
export const couldRunWithoutApprovals = (loosened: number) =>
  `${loosened === 1 ? "1 call" : `${loosened.toLocaleString("en")} calls`} could run without the approvals that are required now.`;
export const callsByVerdict = "Calls by verdict";
export const calls = "Calls";
export const now = "Now";
export const draft = "Draft";
export const changesByRule = "Changes by rule";
export const loosenedInBrackets = "(loosened)";
export const decisionsPerDayBy = (who: string, now: number, draft: number) =>
  `Decisions per day by ${who}: ${now} → ${draft}`;
export const callsThatWouldChange = "Calls that would change";
export const andMoreCalls = (count: number) =>
  `… and ${count.toLocaleString("en")} more. The most serious and newest are listed.`;
export const changeByRule = (change: string, rule: string) => `${change} by ${rule}`;
export const needsSuffix = (needs: string) => `, needs ${needs}`;
export const newerCallsLeftOut = (leftOut: number) =>
  `${leftOut.toLocaleString("en")} newer calls were left out: the time or call limit was reached.`;
export const verdictsDiffered = (outdated: number) =>
  `${outdated.toLocaleString("en")} calls got a different verdict when they were made, under the policy at that time.`;
export const argumentsWereErased = (erased: number) =>
  `The arguments of ${erased.toLocaleString("en")} calls were erased, so they cannot be evaluated.`;
export const readsAreOnlyCounted = (allowedReads: number) =>
  `Allowed reads are only counted (${allowedReads.toLocaleString("en")} so far) and cannot be rehearsed.`;
export const noCallsWereRecorded = "No calls were recorded in this period";
export const callCount = (count: number) => (count === 1 ? "1 call" : `${count.toLocaleString("en")} calls`);
export const ofNoneWouldChange = (all: string) => `Of ${all}, none would change`;
export const onDifferentTermsSuffix = (otherTerms: number) =>
  `, ${otherTerms.toLocaleString("en")} would be asked on different terms`;
export const ofWouldGetDifferentVerdict = (all: string, turned: number, other: string) =>
  `Of ${all}, ${turned.toLocaleString("en")} would get a different verdict${other}`;
export const theDefaults = "the defaults";
export const verdictOnOtherTerms = (done: string) => `${done} on different terms`;
export const forever = "forever";
export const keptFor = (retention: string) => `for ${retention} after the end of a call`;
export const contentIsAvailableFrom = (since: string, kept: string) =>
  `Content is available from ${since}; it is kept ${kept}.`;

// Review
export const versionIsInForce = (version: number) => `Version ${version} is in force.`;
export const wasAlreadyInForce = "This policy was already in force.";
export const noDraft = "No draft";
export const noDraftHelp = "Change a rule or the text to review it here.";
export const reason = "Reason";
export const storedWithVersion = "Stored with the version, your name and the time.";
export const putInForce = "Put in force";
export const rehearseItFirst = "Rehearse it first";
export const backToText = "Back to the text";
export const fixItInText = "Fix it in the text.";
export const warningPrefix = (warning: string) => `Warning: ${warning}`;
export const lineByLineDiff = "Line-by-line diff";
export const policyHasChanged = "The policy has changed";
export const draftIsBasedOn = (version: number, inForceVersion: number) =>
  `Your draft is based on version ${version}. Version ${inForceVersion} is now in force`;
export const byAuthorSuffix = (author: string, reason: string) => `, by ${author}${reason}`;
export const itChanged = ". It changed:";
export const changesMadeInMeantime = "Changes made in the meantime";
export const draftIsKept =
  "Your draft is kept. Compared with the policy in force, lines that your draft does not have appear as removed: add them to your text, or leave them out on purpose.";
export const compareMyDraftWithVersion = (version: number) => `Compare my draft with version ${version}`;
export const discardMyDraft = "Discard my draft";
export const onlyCommentsDiffer = "The rules are the same; only comments or formatting differ.";
export const defaults = "Defaults";
export const agentSwitches = "Agent switches";
export const settingChange = (key: string, old: string | null, now: string | null) =>
  `${key}: ${old ?? "not set"} → ${now ?? "not set"}`;
export const wasCalled = (oldName: string | null) => `was called “${oldName}”`;
export const atPosition = (newPlace: number | null) => `at position ${newPlace}`;
export const fromPositionTo = (oldPlace: number | null, newPlace: number | null) =>
  `from position ${oldPlace} to ${newPlace}`;

// ShadowRules
export const ruleWith = "A rule with";
export const shadowRuleHelp = (calls: number, complete: boolean) =>
  `decides nothing. Its verdict is recorded with each call, except for allowed reads. ${calls.toLocaleString("en")} calls in the last 30 days${complete ? "" : ", newest calls only"}.`;
export const verdictsOfCallsWereErased = (erased: number) =>
  `The verdicts of ${erased.toLocaleString("en")} calls were erased.`;
export const noRuleIsInShadowMode = "No rule is in shadow mode";
export const add = "Add";
export const addToRule = "to a new rule to see its verdicts before you enforce it.";
export const shadowRules = "Shadow rules";
export const removedOrEnforced = "removed or enforced";
export const wouldHaveDecidedNothing = "It would have decided nothing so far.";
export const wouldHaveDecided = (calls: number) =>
  `It would have decided ${calls.toLocaleString("en")} calls: `;
export const lastOne = ". The last one";
export const verdictEitherWay = (done: string) => `${done} either way`;
export const verdictInsteadOf = (was: string, would: string) => `${was} that would have been ${would}`;

// Versions
export const noVersionsYet = "No versions yet";
export const writePolicy = "Write a policy";
export const noVersionsHelp = "Until a policy is put in force, each tool's default decides.";
export const versions = "Versions";
export const versionNumber = (version: number) => `Version ${version}`;
export const inForce = "in force";
export const noReasonWasGiven = "No reason was given.";
export const changesInVersion = (number: number) => `Changes in version ${number}`;
export const restoreThisVersion = "Restore this version…";

// YamlEditor
export const policyAsYaml = "Policy as YAML";
