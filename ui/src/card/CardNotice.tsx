import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useLiveState } from "../live/live";
import css from "./ApprovalCard.module.css";
import * as messages from "./messages";
import type { ApprovalCardState } from "./useApprovalCard";
import { usePersonName } from "./usePersonName";
import { MultilineText } from "./VisibleText";

/** Notices above the card: outdated data, a decision by somebody else, errors. */
export function CardNotice({ state, isOutdated }: { state: ApprovalCardState; isOutdated: boolean }) {
  const live = useLiveState();
  return (
    <>
      {(isOutdated || live === "offline" || live === "signed out") && (
        <Notice>{messages.offlineMayBeOutdated}</Notice>
      )}
      <UndoneNotice state={state} />
      <DecisionError state={state} />
    </>
  );
}

/** A lost race is not an error: the card shows the current state. */
function DecisionError({ state: { refusal, approval, opened } }: { state: ApprovalCardState }) {
  if (!refusal) return null;
  switch (refusal.code) {
    case "already_decided":
      return <Notice>{messages.somebodyElseDecidedFirst}</Notice>;
    case "expired":
      return (
        <Notice>
          {approval.status === "rejected" ? refusal.message : messages.expiredBeforeYouAnswered}
        </Notice>
      );
    case "digest_mismatch":
      return null;
    default:
      return opened === "edit" ? null : <ErrorBlock message={refusal.message} />;
  }
}

function UndoneNotice({ state: { approval } }: { state: ApprovalCardState }) {
  const nameOf = usePersonName();
  const last = approval.timeline.at(-1);
  if (approval.status !== "pending" || last?.kind !== "undone") return null;
  return <Notice>{messages.rejectionUndone(nameOf(last.actor, true))}</Notice>;
}

function Notice({ children }: { children: ReactNode }) {
  return (
    <div className={css.block} data-tone="look" role="status">
      <Text size="sm">{children}</Text>
    </div>
  );
}

/** Server messages can contain argument names, which can be misleading. */
function ErrorBlock({ message }: { message: string }) {
  return (
    <div className={css.block} data-tone="bad" role="alert">
      <Text fw={700}>{messages.requestFailed}</Text>
      <Text size="sm">
        <MultilineText text={message} />
      </Text>
    </div>
  );
}
