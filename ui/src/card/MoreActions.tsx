import { Link } from "wouter";
import type { ApprovalSnapshot } from "../api/approvals";
import { mayDecide, useMe } from "../api/currentUser";
import { IconCheck, IconHistory } from "../components/icons";
import { ApprovalActivity } from "./ApprovalActivity";
import css from "./CardAside.module.css";
import { ClaimButton, CopyLink, DelegateForm, MessageForm } from "./CardForms";
import * as messages from "./moreMessages";
import { isPlainQuestion } from "./Risk";
import type { ApprovalCardState } from "./useApprovalCard";

const ICON = { size: 16, stroke: 1.75, "aria-hidden": true } as const;

interface MoreActionsProps {
  state: ApprovalCardState;
  /** Questions and notes stand here too, and not in the card. */
  hasTalk: boolean;
}

/** What can be done besides deciding, and what happened so far. */
export default function MoreActions({ state, hasTalk }: MoreActionsProps) {
  const me = useMe().data;
  const { approval } = state;
  const isPending = approval.status === "pending";
  return (
    <div className={css.more}>
      {mayDecide(me) && isPending && (
        <MessageForm
          state={state}
          action="ask"
          label={messages.askAgent}
          placeholder={messages.whyOrForDetail}
          button={messages.ask}
        />
      )}
      <section>
        <h3 className={css.label}>{messages.activity}</h3>
        <ApprovalActivity approval={approval} hasTalk={hasTalk} />
      </section>
      {mayDecide(me) && (
        <MessageForm
          state={state}
          action="comment"
          label={messages.noteForOtherPeople}
          button={messages.add}
        />
      )}
      {isPending && approval.may_decide.length > 0 && <DelegateForm state={state} />}
      <div>
        {isPending && mayDecide(me) && <ClaimButton state={state} me={me?.name ?? ""} />}
        {mayDecide(me) && !isPlainQuestion(approval) && (
          <Link className={css.action} href={newGrantUrl(approval)} title={messages.soThatCallsLike}>
            <IconCheck {...ICON} />
            {messages.createGrant}
          </Link>
        )}
        <Link className={css.action} href={`/history?id=${approval.id}`}>
          <IconHistory {...ICON} />
          {messages.openInHistory}
        </Link>
        <CopyLink id={approval.id} />
      </div>
    </div>
  );
}

function newGrantUrl({ tool, agent }: ApprovalSnapshot): string {
  return `/settings/grants?new&${new URLSearchParams({ tool, agent })}`;
}
