import { formatSpan } from "../../components/TimeAgo";
import css from "./InboxRow.module.css";
import * as messages from "./messages";

const RADIUS = 5.5;
const LENGTH = 2 * Math.PI * RADIUS;

/** The share of the time that is left, as a ring, and the time in one unit; amber in the last fifth. */
export function TimeRing({ left, lifetime, title }: { left: number; lifetime: number; title: string }) {
  const share = Math.min(1, Math.max(0, left / lifetime));
  return (
    <span className={css.left} data-late={share < 0.2 || undefined} title={title}>
      <svg
        width="14"
        height="14"
        viewBox="0 0 14 14"
        role="img"
        aria-label={left > 0 ? spokenSpan(left) : messages.timeIsUp}
      >
        <circle className={css.track} cx="7" cy="7" r={RADIUS} />
        <circle
          className={css.arc}
          cx="7"
          cy="7"
          r={RADIUS}
          strokeDasharray={`${(share * LENGTH).toFixed(1)} ${LENGTH.toFixed(1)}`}
          transform="rotate(-90 7 7)"
        />
      </svg>
      <span aria-hidden>{left > 0 ? formatSpan(left) : messages.timeIsUp}</span>
    </span>
  );
}

/** "38 minutes left". */
export function spokenSpan(seconds: number): string {
  const [count = "", unit = ""] = formatSpan(seconds).split(" ");
  const [one = unit, many = unit] = messages.LONG_UNITS[unit] ?? [];
  return messages.spanLeft(count, count === "1" ? one : many);
}
