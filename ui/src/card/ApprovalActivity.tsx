import type { ApprovalSnapshot } from "../api/approvals";
import { useMe } from "../api/currentUser";
import { TimeAgo } from "../components/TimeAgo";
import { listActivity, type ActivityItem } from "./approvalActivity";
import css from "./CardAside.module.css";
import * as messages from "./messages";
import { MultilineText } from "./VisibleText";

interface ActivityProps {
  approval: ApprovalSnapshot;
  /** With the questions to the agent and the notes of people. */
  hasTalk: boolean;
}

/** What happened so far, newest first. */
export function ApprovalActivity({ approval, hasTalk }: ActivityProps) {
  const me = useMe().data?.name ?? "";
  const isPending = approval.status === "pending";
  const items = listActivity(approval, me).filter(({ kind }) => hasTalk || kind === "event");
  return (
    <ol className={css.activity} aria-label={messages.activity}>
      {isPending && (
        <li data-now>
          <strong>{messages.waitingForDecision}</strong>
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
              {messages.agentSaysUnverified} <MultilineText text={reply} />
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
  return isPending ? messages.agentHasNotAnsweredYet : messages.agentDidNotAnswer;
}
