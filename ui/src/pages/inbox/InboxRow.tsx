import { memo, type MouseEvent } from "react";
import { formatSpan } from "../../components/TimeAgo";
import type { FeedRow } from "./feed";
import css from "./InboxRow.module.css";

export const ROW_HEIGHT = 92;

export interface InboxRowProps {
  row: FeedRow;
  /** This browser's clock, shared by all rows. */
  now: number;
  top: number;
  position: number;
  current: boolean;
  isSelected: boolean;
  /** Null if the user cannot decide: then nothing can be selected. */
  onToggle: ((id: string, withRange: boolean) => void) | null;
  onOpen: (id: string) => void;
}

/** One request in the list; all content is text. */
export const InboxRow = memo(function Row({
  row,
  now,
  top,
  position,
  current,
  isSelected,
  onToggle,
  onOpen,
}: InboxRowProps) {
  const open = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return; // opens a new tab or window
    event.preventDefault();
    onOpen(row.id);
  };
  return (
    <li
      className={css.row}
      style={{ height: ROW_HEIGHT, transform: `translateY(${top}px)` }}
      data-row={row.id}
      data-status={row.status}
      data-current={current || undefined}
      data-over={row.status === "pending" ? undefined : true}
      data-news={row.news}
      aria-setsize={-1}
      aria-posinset={position}
    >
      {onToggle && <Check row={row} isSelected={isSelected} onToggle={onToggle} />}
      <a
        className={css.what}
        href={`/a/${row.id}`}
        onClick={open}
        aria-current={current ? "true" : undefined}
      >
        <span className={css.line}>
          <span className={css.risk} data-risk={row.risk}>
            {RISK[row.risk] ?? row.risk}
          </span>
          <bdi className={`${css.tool} ${css.short}`}>{row.tool}</bdi>
          {row.status === "pending" && (
            <span className={css.last}>
              <TimeLeft row={row} now={now} />
            </span>
          )}
        </span>
        <span className={css.sentence}>{row.sentence}</span>
        <span className={css.line}>
          <bdi className={css.short}>{row.agent}</bdi>
          {row.thread_id && <bdi className={css.short}>{row.thread_id}</bdi>}
          <RequestAge at={row.created_at} />
          {row.status === "pending" ? (
            <span className={css.last}>
              <RowMarks row={row} />
            </span>
          ) : (
            <span className={`${css.last} ${css.note} ${css.end}`} title={endLabel(row)}>
              {endLabel(row)}
            </span>
          )}
        </span>
      </a>
    </li>
  );
});

const RISK: Record<string, string> = { high: "High risk", medium: "Medium", low: "Low" };

function Check({
  row,
  isSelected,
  onToggle,
}: Required<Pick<InboxRowProps, "row" | "isSelected">> & { onToggle: Toggle }) {
  return (
    <label className={css.check}>
      <input
        type="checkbox"
        aria-label={`Select: ${row.sentence}`}
        checked={isSelected}
        disabled={row.status !== "pending"}
        onChange={(event) => onToggle(row.id, (event.nativeEvent as unknown as MouseEvent).shiftKey)}
      />
    </label>
  );
}

type Toggle = NonNullable<InboxRowProps["onToggle"]>;

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

function RequestAge({ at }: { at: string }) {
  // eslint-disable-next-line react-hooks/purity -- rendered again every second, to say how late it is
  const seconds = (Date.now() - Date.parse(at)) / 1_000;
  return (
    <time dateTime={at} title={EXACT.format(new Date(at))}>
      {seconds < 1 ? "now" : `${formatSpan(seconds)} ago`}
    </time>
  );
}

function TimeLeft({ row, now }: Pick<InboxRowProps, "row" | "now">) {
  const left = (row.seconds_left ?? 0) - (now - row.read_at) / 1_000;
  const lifetime = (Date.parse(row.expires_at) - Date.parse(row.created_at)) / 1_000;
  const isSoon = left < lifetime / 5;
  return (
    <span
      className={isSoon ? css.soon : undefined}
      title={`Expires ${EXACT.format(new Date(row.expires_at))}`}
    >
      {left > 0 ? `${formatSpan(left)} left` : "time is up"}
    </span>
  );
}

/** Who decided and what became of it: "approved by bob, failed, 05:53 PM", the time of the decision. */
export function endLabel({ decision, status }: Pick<FeedRow, "decision" | "status">): string {
  if (!decision) return status;
  const isApproval = APPROVALS.has(decision.kind);
  const by = decision.by === "interlock" || decision.by === "policy" ? "" : ` by ${decision.by}`;
  const after = isApproval && status !== "approved" ? `, ${AFTER_APPROVAL[status] ?? status}` : "";
  return `${isApproval ? "approved" : status}${by}${after}, ${CLOCK.format(new Date(decision.at))}`;
}

const APPROVALS = new Set(["approve", "edit", "approved", "edited"]); // as read, and as told by events
const AFTER_APPROVAL: Partial<Record<FeedRow["status"], string>> = {
  unknown: "outcome unknown",
  expired: "not started in time",
};

/** Findings, votes and claims. */
function RowMarks({ row }: { row: FeedRow }) {
  const votes = row.quorum.need > 1 ? `${row.quorum.have} of ${row.quorum.need}` : "";
  const alarms = row.alarms.length;
  return (
    <>
      {alarms > 0 && <span className={css.alarm}>⚠ check findings </span>}
      {votes && <span className={css.note}>{votes} </span>}
      {row.claimed_by && <span className={css.note}>claimed by {row.claimed_by}</span>}
    </>
  );
}
