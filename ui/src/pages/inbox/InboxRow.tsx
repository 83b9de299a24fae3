import { memo, type MouseEvent } from "react";
import { formatSpan } from "../../components/TimeAgo";
import type { FeedRow } from "./feed";
import css from "./InboxRow.module.css";

export const ROW_HEIGHT = 92;

export interface InboxRowProps {
  row: FeedRow;
  /** This browser's clock, which moves all rows on together. */
  now: number;
  top: number;
  place: number;
  current: boolean;
  chosen: boolean;
  /** Null where nobody decides anything: then there is nothing to select. */
  onToggle: ((id: string, withRange: boolean) => void) | null;
  onOpen: (id: string) => void;
}

/** One request in the list; the sentence is the server's, and everything is text. */
export const InboxRow = memo(function Row({
  row,
  now,
  top,
  place,
  current,
  chosen,
  onToggle,
  onOpen,
}: InboxRowProps) {
  const open = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return; // a tab or window of its own
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
      aria-posinset={place}
    >
      {onToggle && <Check row={row} chosen={chosen} onToggle={onToggle} />}
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
          <span className={css.last}>
            <Standing row={row} now={now} />
          </span>
        </span>
        <span className={css.sentence}>{row.sentence}</span>
        <span className={css.line}>
          <bdi className={css.short}>{row.agent}</bdi>
          {row.thread_id && <bdi className={css.short}>{row.thread_id}</bdi>}
          <Age at={row.created_at} />
          <span className={css.last}>
            <Marks row={row} />
          </span>
        </span>
      </a>
    </li>
  );
});

const RISK: Record<string, string> = { high: "High risk", medium: "Medium", low: "Low" };

function Check({
  row,
  chosen,
  onToggle,
}: Required<Pick<InboxRowProps, "row" | "chosen">> & { onToggle: Toggle }) {
  return (
    <label className={css.check}>
      <input
        type="checkbox"
        aria-label={`Select: ${row.sentence}`}
        checked={chosen}
        disabled={row.status !== "pending"}
        onChange={(event) => onToggle(row.id, (event.nativeEvent as unknown as MouseEvent).shiftKey)}
      />
    </label>
  );
}

type Toggle = NonNullable<InboxRowProps["onToggle"]>;

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

function Age({ at }: { at: string }) {
  // eslint-disable-next-line react-hooks/purity -- rendered again every second, to say how late it is
  const seconds = (Date.now() - Date.parse(at)) / 1_000;
  return (
    <time dateTime={at} title={EXACT.format(new Date(at))}>
      {seconds < 1 ? "now" : `${formatSpan(seconds)} ago`}
    </time>
  );
}

/** How much time is left, or what became of it. */
function Standing({ row, now }: Pick<InboxRowProps, "row" | "now">) {
  if (row.status !== "pending") return <span className={css.note}>{endOf(row)}</span>;
  return <Left row={row} now={now} />;
}

function Left({ row, now }: Pick<InboxRowProps, "row" | "now">) {
  const left = (row.seconds_left ?? 0) - (now - row.read_at) / 1_000;
  const whole = (Date.parse(row.expires_at) - Date.parse(row.created_at)) / 1_000;
  const isSoon = left < whole / 5;
  return (
    <span
      className={isSoon ? css.soon : undefined}
      title={`Expires ${EXACT.format(new Date(row.expires_at))}`}
    >
      {left > 0 ? `${formatSpan(left)} left` : "time is up"}
    </span>
  );
}

function endOf(row: FeedRow): string {
  const { decision, status } = row;
  if (!decision) return status;
  const by = decision.by === "interlock" || decision.by === "policy" ? "" : ` by ${decision.by}`;
  return `${status}${by}, ${CLOCK.format(new Date(decision.at))}`;
}

/** What is worth knowing before one opens it. */
function Marks({ row }: { row: FeedRow }) {
  if (row.status !== "pending") return null;
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
