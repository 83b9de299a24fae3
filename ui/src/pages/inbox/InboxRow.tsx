import { VisuallyHidden } from "@mantine/core";
import { memo, type MouseEvent } from "react";
import { splitAtoms } from "../../card/VisibleText";
import { escapeInvisible } from "../../components/escapeInvisible";
import { IconAnswered, IconCheck, IconClock, IconClose, IconWarning } from "../../components/icons";
import { beginsWithToolName } from "../../components/beginsWithToolName";
import { RiskMark, riskLevelOf, type RiskLevel } from "../../components/RiskMark";
import { formatSpan } from "../../components/TimeAgo";
import type { FeedRow } from "./feed";
import css from "./InboxRow.module.css";
import * as messages from "./messages";
import { TimeRing } from "./TimeRing";

export const ROW_HEIGHT = 60;

export interface InboxRowProps {
  row: FeedRow;
  /** The user, who is called "you". */
  me: string;
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
export const InboxRow = memo(function Row(props: InboxRowProps) {
  const { row, me, now, top, position, current, isSelected, onToggle, onOpen } = props;
  const isPending = row.status === "pending";
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
      data-over={isPending ? undefined : true}
      data-leaving={row.leaving}
      data-news={row.news}
      aria-setsize={-1}
      aria-posinset={position}
    >
      <Mark row={row} isSelected={isSelected} onToggle={onToggle} />
      <a
        className={css.what}
        href={`/a/${row.id}`}
        onClick={open}
        aria-current={current ? "true" : undefined}
      >
        <span className={css.words}>
          <span className={css.sentence}>{oneLine(row.sentence)}</span>
          <RowOrigin row={row} />
        </span>
        <span className={css.state}>
          {isPending ? <PendingState row={row} me={me} now={now} /> : <EndState row={row} me={me} />}
        </span>
      </a>
    </li>
  );
});

/** Line breaks, which the server escapes, would only be in the way: the card shows each as it is. */
export function oneLine(sentence: string): string {
  if (!sentence.includes("\\n")) return sentence;
  return splitAtoms(sentence)
    .map((atom) => (atom === "\\n" ? " " : atom))
    .join("");
}

const QUESTION_TOOL = "request_human_input"; // the server's tool for questions; nobody else can have its name

/** The shape for the row: questions have no risk. */
export function riskMark({ tool, effect, risk }: Pick<FeedRow, "tool" | "effect" | "risk">): RiskLevel {
  return tool === QUESTION_TOOL ? "question" : riskLevelOf(risk, effect);
}

function Mark({ row, isSelected, onToggle }: Pick<InboxRowProps, "row" | "isSelected" | "onToggle">) {
  const mark = <RiskMark risk={riskMark(row)} />;
  if (!onToggle) return <span className={css.mark}>{mark}</span>;
  return (
    <label className={css.mark}>
      <input
        type="checkbox"
        aria-label={messages.selectRequest(row.sentence)}
        checked={isSelected}
        disabled={row.status !== "pending"}
        onChange={(event) => onToggle(row.id, (event.nativeEvent as unknown as MouseEvent).shiftKey)}
      />
      {mark}
    </label>
  );
}

/** That it is a question, or the tool if the sentence does not begin with it; agent, requester and age. */
function RowOrigin({ row }: { row: FeedRow }) {
  const isQuestion = riskMark(row) === "question"; // its sentence is the agent's: that may begin with anything
  return (
    <span className={css.origin}>
      {(isQuestion || !beginsWithToolName(row.sentence, row.tool)) && (
        <bdi className={css.tool}>{isQuestion ? messages.question : row.tool}</bdi>
      )}
      <bdi className={css.name}>{escapeInvisible(row.agent)}</bdi>
      {row.requester && (
        <bdi className={css.name} data-requester>
          <VisuallyHidden>{messages.forLabel} </VisuallyHidden>
          {escapeInvisible(row.requester)}
        </bdi>
      )}
      <RequestAge at={row.created_at} />
    </span>
  );
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

function RequestAge({ at }: { at: string }) {
  // eslint-disable-next-line react-hooks/purity -- rendered again every second, to say how late it is
  const seconds = (Date.now() - Date.parse(at)) / 1_000;
  return (
    <time className={css.age} dateTime={at} title={EXACT.format(new Date(at))}>
      {messages.timeAgo(seconds, formatSpan(seconds))}
    </time>
  );
}

/** The time left, and below it what else matters: findings, votes, who works on it. */
function PendingState({ row, me, now }: Pick<InboxRowProps, "row" | "me" | "now">) {
  const left = (row.seconds_left ?? 0) - (now - row.read_at) / 1_000;
  const lifetime = (Date.parse(row.expires_at) - Date.parse(row.created_at)) / 1_000;
  return (
    <>
      <TimeRing
        left={left}
        lifetime={lifetime}
        title={messages.expiresAt(EXACT.format(new Date(row.expires_at)))}
      />
      <RowNote row={row} me={me} />
    </>
  );
}

function RowNote({ row, me }: Pick<InboxRowProps, "row" | "me">) {
  const { have, need } = row.quorum;
  const alarms = row.alarms.length;
  return (
    <span className={css.notes}>
      {need > 1 && <span className={css.note}>{messages.votesOf(have, need)}</span>}
      {alarms > 0 && (
        <span className={css.alarm}>
          <IconWarning size={13} stroke={2.2} aria-hidden /> {messages.findingsToCheck(alarms)}
        </span>
      )}
      {!alarms && row.claimed_by && <span className={css.note}>{claimLabel(row.claimed_by, me)}</span>}
    </span>
  );
}

const claimLabel = (by: string, me: string) => (by === me ? messages.claimedByYou : messages.claimedBy(by));

/** Who decided and when; approved and rejected differ by sign and color. */
function EndState({ row, me }: Pick<InboxRowProps, "row" | "me">) {
  const { decision } = row;
  const end = endOf(row);
  const Sign = SIGNS[end];
  return (
    <>
      <span className={css.end} data-end={end} title={endLabel(row, me)}>
        <Sign size={14} stroke={2.4} aria-hidden />
        <VisuallyHidden>{decidedBy(row, me)} </VisuallyHidden>
        <bdi aria-hidden={Boolean(decision) || undefined}>{personOf(row, me) || row.status}</bdi>
      </span>
      <span className={css.notes}>
        <span className={css.note}>{afterApproval(row)}</span>
        {decision && <time dateTime={decision.at}>{CLOCK.format(new Date(decision.at))}</time>}
      </span>
    </>
  );
}

type End = "approved" | "rejected" | "answered" | "none";

const SIGNS = { approved: IconCheck, rejected: IconClose, answered: IconAnswered, none: IconClock };

type Decided = Pick<FeedRow, "decision" | "status">;

function endOf({ decision, status }: Decided): End {
  if (decision && APPROVALS.has(decision.kind)) return "approved";
  if (status === "rejected") return "rejected";
  return status === "responded" ? "answered" : "none";
}

/** "approved by bob"; nobody is named for what Interlock did itself. */
function decidedBy(row: Decided, me: string): string {
  if (!row.decision) return row.status;
  const person = personOf(row, me);
  const by = person ? messages.byPerson(person) : "";
  return `${endOf(row) === "approved" ? "approved" : row.status}${by}`;
}

function personOf({ decision }: Decided, me: string): string {
  if (!decision || decision.by === "interlock" || decision.by === "policy") return "";
  return decision.by === me ? "you" : decision.by;
}

/** What became of an approved call. */
function afterApproval(row: Decided): string {
  if (endOf(row) !== "approved" || row.status === "approved") return "";
  return messages.AFTER_APPROVAL[row.status] ?? row.status;
}

/** Who decided and what became of it: "approved by bob, failed, 05:53 PM", the time of the decision. */
export function endLabel(row: Decided, me = ""): string {
  const after = afterApproval(row);
  const at = row.decision && CLOCK.format(new Date(row.decision.at));
  return [decidedBy(row, me), after, at].filter(Boolean).join(", ");
}

const APPROVALS = new Set(["approve", "edit", "approved", "edited"]); // as read, and as told by events
