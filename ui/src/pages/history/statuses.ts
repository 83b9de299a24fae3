import type { Status } from "../../api/approvals";

/** A word in a colour; the word alone is enough. */
export const COLORS: Record<Status, string> = {
  pending: "steel",
  approved: "teal",
  running: "teal",
  succeeded: "green",
  responded: "violet",
  rejected: "red",
  failed: "red",
  unknown: "orange",
  expired: "gray",
  cancelled: "gray",
};

export const STATUSES = Object.keys(COLORS) as Status[];

const DOTS: Record<string, string> = {
  approved: "teal",
  voted: "teal",
  allowed: "teal",
  succeeded: "green",
  resolved: "green",
  rejected: "red",
  failed: "red",
  denied: "red",
  decision_refused: "red",
  lost: "orange",
  finished_late: "orange",
  edited: "violet",
  responded: "violet",
  proposed: "steel",
};

export const dot = (kind: string): string => `var(--mantine-color-${DOTS[kind] ?? "gray"}-6)`;
