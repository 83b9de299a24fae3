import { Badge } from "@mantine/core";
import type { ApprovalStatus } from "../../api/approvals";

export function StatusBadge({ status }: { status: ApprovalStatus }) {
  return (
    <Badge size="sm" variant="outline" color={STATUS_COLORS[status]} c="var(--mantine-color-text)" tt="none">
      {status}
    </Badge>
  );
}

/** A colored status; the text alone is sufficient. */
const STATUS_COLORS: Record<ApprovalStatus, string> = {
  pending: "indigo",
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

export const STATUSES = Object.keys(STATUS_COLORS) as ApprovalStatus[];

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
  proposed: "indigo",
};

export const dotColor = (kind: string): string => `var(--mantine-color-${DOTS[kind] ?? "gray"}-6)`;
