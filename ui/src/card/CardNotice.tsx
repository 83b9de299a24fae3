import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useLiveState } from "../live/live";
import css from "./ApprovalCard.module.css";
import type { ApprovalCardState } from "./useApprovalCard";
import { MultilineText } from "./VisibleText";

/** What this person should know before anything else: that it may be old, that others were faster, what went wrong. */
export function CardNotice({ held, isOld }: { held: ApprovalCardState; isOld: boolean }) {
  const live = useLiveState();
  return (
    <>
      {(isOld || live === "offline" || live === "signed out") && (
        <Told>Offline. This card may be outdated.</Told>
      )}
      <Undone held={held} />
      <Failure held={held} />
    </>
  );
}

/** A race that was lost is no error: the card shows what stands. */
function Failure({ held: { refused, now, opened } }: { held: ApprovalCardState }) {
  if (!refused) return null;
  switch (refused.code) {
    case "already_decided":
      return <Told>Somebody else decided first. Their decision is below; yours was not recorded.</Told>;
    case "expired":
      return (
        <Told>
          {now.status === "rejected" ? refused.message : "This request expired before you answered."}
        </Told>
      );
    case "digest_mismatch":
      return null;
    default:
      return opened === "edit" ? null : <Refusal message={refused.message} />;
  }
}

function Undone({ held: { now } }: { held: ApprovalCardState }) {
  const last = now.timeline.at(-1);
  if (now.status !== "pending" || last?.kind !== "undone") return null;
  return <Told>{last.actor} undid the rejection. The request is open again.</Told>;
}

function Told({ children }: { children: ReactNode }) {
  return (
    <div className={css.block} data-tone="look" role="status">
      <Text size="sm">{children}</Text>
    </div>
  );
}

/** The server's words may name arguments, and names may deceive. */
function Refusal({ message }: { message: string }) {
  return (
    <div className={css.block} data-tone="bad" role="alert">
      <Text fw={700}>This did not work</Text>
      <Text size="sm">
        <MultilineText text={message} />
      </Text>
    </div>
  );
}
