/** The texts of the edits of arguments, by the file that shows them. */

// ArgumentEdits
export const argumentsChanged = "The arguments changed while you were reviewing them";
export const currentArgumentsBelow =
  "The arguments below are the current ones. Your earlier checks no longer apply.";
export const iHaveReviewedChanges = "I have reviewed the changes";
export const madeChanges = (changes: string) => `made ${changes}:`;
export const andMoreChanges = (count: number) => `and ${count.toLocaleString("en")} more`;
export const addedPrefix = "added ";
export const removedWord = "removed";
export const changeCount = (count: number) =>
  `${count.toLocaleString("en")} ${count === 1 ? "change" : "changes"}`;
export const changes = "changes";
