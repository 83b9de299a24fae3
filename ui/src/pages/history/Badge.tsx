import { Badge } from "@mantine/core";
import type { Status } from "../../api/approvals";
import { COLORS } from "./statuses";

export function StatusBadge({ status }: { status: Status }) {
  return (
    <Badge size="sm" variant="outline" color={COLORS[status]} c="var(--mantine-color-text)" tt="none">
      {status}
    </Badge>
  );
}
