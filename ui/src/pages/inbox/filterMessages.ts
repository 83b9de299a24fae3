/** The texts of the further filters of the inbox, by the file that shows them. */

// MoreFilters
export const PRIORITIES = [
  { value: "", label: "Any" },
  { value: "high", label: "High" },
  { value: "medium", label: "Medium" },
  { value: "low", label: "Low" },
];
export const STATUSES = [
  { value: "pending", label: "Open" },
  { value: "all", label: "All" },
  { value: "decided", label: "Decided by you" },
];
export const tool = "Tool";
export const agent = "Agent";
export const person = "Person";
export const team = "Team";
export const thread = "Thread";
export const status = "Status";
export const priority = "Priority";
