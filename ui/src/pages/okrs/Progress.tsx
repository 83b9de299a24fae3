import { Badge } from "@mantine/core";
import * as messages from "./messages";
import css from "./Okrs.module.css";
import { STATUS_NAMES, type ObjectiveStatus } from "./queries";

const COLORS: Record<ObjectiveStatus, string> = {
  on_track: "green",
  at_risk: "orange",
  off_track: "red",
  achieved: "teal",
  dropped: "gray",
};

/** The status in words; the color only repeats it. */
export function ObjectiveStatusBadge({ status }: { status: ObjectiveStatus }) {
  return (
    <Badge size="sm" variant="outline" color={COLORS[status]} c="var(--mantine-color-text)" tt="none">
      {STATUS_NAMES[status]}
    </Badge>
  );
}

/** A bar and its percentage; without a target there is no progress to show. */
export function ProgressBar({ label, percent }: { label: string; percent: number | null }) {
  return (
    <>
      <progress className={css.bar} value={percent ?? 0} max={100} aria-label={messages.progressOf(label)} />
      <span className={css.percent}>{percent === null ? "–" : `${percent} %`}</span>
    </>
  );
}
