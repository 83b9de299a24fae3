/** The texts of the argument editor, by the file that shows them. */

// In more than one file
export const answer = "Answer";
export const form = "Form";
export const json = "JSON";
export const wasNotSet = "Was not set";
export const resetField = (label: string) => `Reset ${label}`;
export const reset = "Reset";
export const editAsJson = "Edit as JSON";
export const changes = "Changes";
export const isRequired = "is required";
export const isNotKnownHere = "is not known here; remove it";
export const mustBeOneOf = (values: string) => `must be one of ${values}`;
export const empty = "Empty";
export const none = "None";

// AnswerForm
export const yourAnswer = "Your answer";
export const answerAsJson = "Answer as JSON";
export const sendAnswer = "Send answer";
export const ctrlEnterSends = "Ctrl+Enter sends";

// ArgumentsForm
export const addTo = (label: string) => `Add to ${label}`;
export const moveUp = (label: string) => `Move ${label} up`;
export const moveDown = (label: string) => `Move ${label} down`;
export const removeItem = (label: string) => `Remove ${label}`;
export const wasItemCount = (count: number) => `Was ${count} ${count === 1 ? "item" : "items"}`;

// ArgumentsView
export const invalidJson = (flaw: string) =>
  `The JSON is invalid: ${flaw} Fix it to use the form. Your text is kept.`;
export const tooManyValues = "There are too many values for a form, or values that are too long.";
export const loadingForm = "Loading form";
export const loadingJsonEditor = "Loading JSON editor";

// ChangesBeside
export const whatHappens = "What happens";
export const whatHappensToTheEdit = "The call runs with your values. Both versions stay in the history.";

// ChangesView
export const noChanges = "No changes.";
export const andMoreChanges = (count: number) => `and ${count.toLocaleString("en")} more changes.`;
export const resetAll = "Reset all";
export const allArguments = "all arguments";
export const notSet = "not set";
export const removed = "removed";
export const characterCount = (part: number) => `${part.toLocaleString("en")} characters`;

// checkSchema
export const TYPE_NAMES: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  integer: "a whole number",
  null: "null",
  number: "a number",
  object: "an object",
  string: "a text",
};
export const FORMAT_NAMES: Record<string, string> = {
  email: "an e-mail address",
  uri: "a complete web address, like https://example.com",
  date: "a date",
  "date-time": "a date and a time",
  time: "a time",
};
export const mustBeFormats = (formatNames: string | undefined) => `must be ${formatNames}`;
export const isNotAllowedHere = "is not allowed here";
export const mustBeValid = (format: string) => `must be a valid ${format}`;
export const orBetweenForms = "; or ";
export const fitsNoneOfAllowedForms = (text: string) => `fits none of the allowed forms: ${text}`;
export const orSeparator = " or ";
export const mustBeTypes = (types: string) => `must be ${types}`;
export const mustBeConstant = (value: string) => `must be ${value}`;
export const mustBeAtLeast = (limit: string) => `must be at least ${limit}`;
export const mustBeAtMost = (limit: string) => `must be at most ${limit}`;
export const mustBeMoreThan = (limit: string) => `must be more than ${limit}`;
export const mustBeLessThan = (limit: string) => `must be less than ${limit}`;
export const mustHaveAtMostCharacters = (limit: string) => `must have at most ${limit} characters`;
export const mustHaveAtLeastItems = (limit: string) => `must have at least ${limit} items`;
export const mustHaveAtMostItems = (limit: string) => `must have at most ${limit} items`;
export const mustNotBeEmpty = "must not be empty";
export const mustHaveAtLeastCharacters = (limit: string) => `must have at least ${limit} characters`;

// Editor
export const editArguments = "Edit arguments";
export const argumentsAsJson = "Arguments as JSON";
export const withChangeCount = (changes: string) => ` with ${changes}`;
export const withChanges = " with changes";
export const close = "Close";
export const noChangesYet = "No changes yet.";
export const fixMarkedFieldsFirst = "Fix the marked fields first.";
export const draftSavedInThisTab = "Draft saved in this tab.";
export const closeEditor = "Close the editor?";
export const unsentPattern = "$1 unsent ";
export const youHaveChanges = (count: string) => `You have ${count}.`;
export const keepChangesAndClose = "Keep changes and close";
export const discardChanges = "Discard changes";
export const continueEditing = "Continue editing";

// FieldFrame
export const required = "required";
export const wasPrefix = "Was ";
export const kindOf = (label: string) => `Kind of ${label}`;
export const item = "Item";
export const rowNumber = (count: number) => `, row ${count}`;

// Fields
export const cannotBeEdited = "Cannot be edited.";
export const charactersOf = (length: number, maxLength: number) => `${length} of ${maxLength} characters`;

// Notices
export const argumentsHaveChanged = "The arguments have changed";
export const theirEditCameFirst =
  "Somebody else edited them after you started. Your draft is kept and is now compared with the current arguments.";
export const continueWithMyDraft = "Continue with my draft";
export const useTheirs = "Use theirs";
export const yourChangesWereNotSent = "Your changes were not sent. You can still copy them.";
export const copied = "Copied";
export const copyAsJson = "Copy as JSON";
export const thisCannotBeSentYet = "This cannot be sent yet";
export const serverRefusedValues = (count: number) =>
  `The server refused this: ${count === 1 ? "one value needs" : `${count} values need`} a correction. Nothing was decided.`;
export const thisWasNotSent = "This was not sent";
export const theArguments = "The arguments";
export const youCanNoLongerEditThis = "You can no longer edit this";
export const expiredWhileEditing = "This approval expired while you were editing";
export const decidedWhileEditing = (by: string) => `${by} decided this while you were editing`;
export const endedWithStatus = (status: string) => `This approval is now ${status}`;

// schemaForms
export const TYPE_LABELS: Record<string, string> = {
  array: "List",
  boolean: "Yes or no",
  integer: "Whole number",
  null: "None",
  number: "Number",
  object: "Object",
  string: "Text",
};
export const other = "Other";
export const typeWithRequired = (type: string, required: string) => `${type} with ${required}`;

// strictJson
export const jsonHasMore = "There is something after the end of the JSON.";
export const nestedTooDeep = (depth: number) =>
  `This is nested deeper than ${depth} levels, which the server refuses.`;
export const nameInQuotationMarks = "a name in quotation marks";
export const nameAppearsTwice = (name: string) => `The name ${name} appears twice in one object.`;
export const aColon = "a colon";
export const commaOrBrace = "a comma or }";
export const commaOrBracket = "a comma or ]";
export const noClosingQuote = "This text has no closing quotation mark.";
export const escapeLineBreaks = "Write line breaks and tabs inside a text as \\n and \\t.";
export const badEscape = 'After \\ comes one of " \\ / b f n r t u.';
export const textHoldsNul = "A text holds a NUL character, which is refused.";
export const textHoldsLoneSurrogate = "A text holds half a character (a lone surrogate).";
export const notAJsonNumber = "This is not a number as JSON writes it.";
export const tooManyDigits = (digits: number) => `This number has more than ${digits} digits.`;
export const numberTooLarge = "This number is too large.";
export const noJsonNumber = "NaN and Infinity are no JSON numbers.";
export const aValue = "a value";
export const textNeedsQuotes = "A text needs quotation marks around it.";
export const missingHere = (wanted: string, found: string | undefined) =>
  `Here should be ${wanted}${found ? "" : ", but the text ends"}.`;
export const lineWithMessage = (count: number, message: string) => `Line ${count}: ${message}`;

// TimeField
export const utc = "UTC";

// useProblems
export const mustBeObject = "must be an object: { … }";
export const isLocked = "is locked; restore its original value";

// values
export const changeCount = (count: number) =>
  count === 1 ? "1 change" : `${count.toLocaleString("en")} changes`;
