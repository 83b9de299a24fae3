import { Link } from "wouter";
import type { ApprovalSnapshot } from "../api/approvals";
import { mayDecide, useMe } from "../api/currentUser";
import { IconCheck, IconHistory } from "../components/icons";
import { Activity } from "./Activity";
import css from "./CardAside.module.css";
import { ClaimButton, CopyLink, DelegateForm, MessageForm } from "./CardForms";
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
          label="Ask the agent"
          placeholder="Why, or for a detail"
          button="Ask"
        />
      )}
      <section>
        <h3 className={css.label}>Activity</h3>
        <Activity approval={approval} hasTalk={hasTalk} />
      </section>
      {mayDecide(me) && (
        <MessageForm state={state} action="comment" label="Note for other people" button="Add" />
      )}
      {isPending && approval.may_decide.length > 0 && <DelegateForm state={state} />}
      <div>
        {isPending && mayDecide(me) && <ClaimButton state={state} me={me?.name ?? ""} />}
        {mayDecide(me) && !isPlainQuestion(approval) && (
          <Link
            className={css.action}
            href={newGrantUrl(approval)}
            title="So that calls like this one need no approval"
          >
            <IconCheck {...ICON} />
            Create a grant
          </Link>
        )}
        <Link className={css.action} href={`/history?id=${approval.id}`}>
          <IconHistory {...ICON} />
          Open in the history
        </Link>
        <CopyLink id={approval.id} />
      </div>
    </div>
  );
}

function newGrantUrl({ tool, agent }: ApprovalSnapshot): string {
  return `/settings/grants?new&${new URLSearchParams({ tool, agent })}`;
}
