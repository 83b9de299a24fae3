import type { ApprovalSnapshot } from "../api/approvals";
import { useMe } from "../api/currentUser";
import { TimeAgo } from "../components/TimeAgo";
import { listActivity, type ActivityItem } from "./activity";
import css from "./CardAside.module.css";
import { MultilineText } from "./VisibleText";

interface ActivityProps {
  approval: ApprovalSnapshot;
  /** With the questions to the agent and the notes of people. */
  hasTalk: boolean;
}

/** What happened so far, newest first. */
export function Activity({ approval, hasTalk }: ActivityProps) {
  const me = useMe().data?.name ?? "";
  const isPending = approval.status === "pending";
  const items = listActivity(approval, me).filter(({ kind }) => hasTalk || kind === "event");
  return (
    <ol className={css.activity} aria-label="Activity">
      {isPending && (
        <li data-now>
          <strong>Waiting for a decision</strong>
          {approval.needed && <span className={css.when}>{approval.needed}</span>}
        </li>
      )}
      {items.map((item) => (
        <Item key={item.seq} item={item} isPending={isPending} />
      ))}
    </ol>
  );
}

function Item({ item, isPending }: { item: ActivityItem; isPending: boolean }) {
  const { actor, at, kind, text, quote, reply } = item;
  return (
    <li data-question={kind === "question" || undefined} data-remark={kind === "remark" || undefined}>
      <strong>{actor}</strong> {text}
      {quote !== undefined && (
        <div className={css.quote}>
          <MultilineText text={quote} />
        </div>
      )}
      {kind === "question" && (
        <div className={css.reply}>
          {reply === undefined ? (
            noReply(isPending)
          ) : (
            <>
              Agent says (unverified): <MultilineText text={reply} />
            </>
          )}
        </div>
      )}
      <span className={css.when}>
        <TimeAgo at={at} />
      </span>
    </li>
  );
}

function noReply(isPending: boolean): string {
  return isPending ? "The agent has not answered yet." : "The agent did not answer.";
}
