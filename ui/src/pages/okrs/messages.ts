/** The texts of the OKRs page, by the file that shows them. */

// In more than one file
export const keyResults = "Key results";
export const cancel = "Cancel";
export const title = "Title";
export const description = "Description";
export const quarter = "Quarter";
export const status = "Status";

// KeyResults
export const noKeyResultsYet = "No key results yet.";
export const newKeyResult = "New key result";
export const editKeyResult = (id: string) => `Edit ${id}`;
export const edit = "Edit";
export const deleteKeyResult = "Delete key result";
export const keyResultIsDeleted = (id: string) => `${id} and its history are deleted for ever.`;
export const addKeyResult = "Add key result";
export const enterNumber = "Enter a number.";
export const current = "Current";
export const target = "Target";
export const unit = "Unit";

// NewObjective
export const quarterHint = "Such as 2027-Q1; empty for the current quarter";
export const createObjective = "Create objective";

// ObjectivePage
export const history = "History";
export const historyHint = "The last 100 changes of the objective and its key results.";
export const editObjective = "Edit objective";
export const alsoItsKeyResults = (count: number) =>
  `, its ${count === 1 ? "key result" : `${count} key results`}`;
export const deleteThisObjective = "Delete this objective";
export const deleteObjective = "Delete objective";
export const objectiveIsDeleted = (also: string) =>
  `The objective${also} and its history are deleted for ever.`;

// Okrs
export const objectiveNumber = (id: string) => `Objective ${id}`;
export const allObjectives = "All objectives";
export const okrs = "OKRs";
export const searchObjectives = "Search objectives";
export const anyQuarter = "any quarter";
export const anyStatus = "any status";
export const noObjectivesMatch = "No objectives match";
export const noObjectivesYet = "No objectives yet";
export const changeSearchOrFilters = "Change the search or the filters.";
export const createOne = "Create one here, or ask an agent to.";
export const objectives = "Objectives";
export const showMore = "Show more";
export const newObjective = "New objective";
export const keyResultsCounted = (id: string, count: number) =>
  `${id} · ${count === 1 ? "1 key result" : `${count} key results`}`;
export const keyResultsOf = (id: string) => `Key results of ${id}`;

// Progress
export const progressOf = (label: string) => `Progress of ${label}`;

// queries
export const onTrack = "on track";
export const atRisk = "at risk";
export const offTrack = "off track";
export const achieved = "achieved";
export const dropped = "dropped";
export const progressOfTarget = (current: string, target: string, unit: string) =>
  `${current} of ${target}${unit}`;
export const enterNumbers = "Enter numbers for the current value and the target.";
