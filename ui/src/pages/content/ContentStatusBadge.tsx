import { Badge } from "@mantine/core";
import type { ContentStatus } from "./queries";

const COLORS: Record<ContentStatus, string> = { draft: "gray", published: "green", archived: "orange" };

/** The status in words; the color only repeats it. */
export function ContentStatusBadge({ status }: { status: ContentStatus }) {
  return (
    <Badge size="sm" variant="outline" color={COLORS[status]} c="var(--mantine-color-text)" tt="none">
      {status}
    </Badge>
  );
}
