import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useApproval, useApprovalAction, type ApprovalSnapshot } from "../../api/approvals";
import { useMe } from "../../api/currentUser";
import { undoSecondsLeft } from "../../card/clock";
import { VisibleText } from "../../card/VisibleText";
import { formatDateTime, useTick } from "../../components/TimeAgo";
import { beginsWithToolName } from "../../components/beginsWithToolName";
import { useNearScreen } from "../../components/useNearScreen";
import {
  IconAnswered,
  IconApproved,
  IconClock,
  IconRejected,
  IconUnfold,
  IconWarning,
} from "../../components/icons";
import css from "./CallLine.module.css";
import { describeDecided, type DecidedLine } from "./cardLine";
import type { TranscriptItem } from "./transcriptItems";
import * as messages from "./transcriptMessages";

const ApprovalCard = lazy(async () => ({ default: (await import("../../card/ApprovalCard")).ApprovalCard }));

interface Props {
  item: TranscriptItem & { kind: "card" };
  onChanged: () => void;
  /** Called when the card has become a line, and others have moved. */
  onShrunk: () => void;
}

/** A request of this thread or of a sub-agent: a card while it is open, then a line. Far away it is only a line. */
export function RequestItem({ item, onChanged, onShrunk }: Props) {
  const { asked, decided, call, result } = item;
  const [container, isNear] = useNearScreen<HTMLDivElement>();
  const waiting = <div className={css.line}>{decided ? messages.aDecidedRequest : messages.aRequest}</div>;
  return (
    <div
      ref={container}
      data-card={asked.approval}
      data-open={decided ? undefined : true}
      data-call={call?.name}
      data-state={call && (result?.status ?? "waits")}
    >
      {asked.path.length > 1 && (
        <div className={css.path}>{messages.requestedBy(asked.path.join(" › "))}</div>
      )}
      {isNear ? (
        <Suspense fallback={waiting}>
          <NearRequest asked={asked} onChanged={onChanged} onShrunk={onShrunk} />
        </Suspense>
      ) : (
        waiting
      )}
    </div>
  );
}

function NearRequest({
  asked,
  onChanged,
  onShrunk,
}: Omit<Props, "item"> & { asked: Props["item"]["asked"] }) {
  const approval = useApproval(asked.approval, asked.shown).data;
  const line = approval ? describeDecided(approval) : null;
  const keepFocus = useKeepFocus(approval !== undefined, line !== null, onShrunk);
  return (
    <div data-status={approval?.status} {...keepFocus}>
      {approval && line ? (
        <DecidedRequest approval={approval} line={line} onChanged={onChanged} />
      ) : (
        <ApprovalCard id={asked.approval} location="chat" initial={asked.shown} onChanged={onChanged} />
      )}
    </div>
  );
}

/** A line that unfolds to the whole card; it stays unfolded where somebody has to find out what happened. */
function DecidedRequest({
  approval,
  line,
  onChanged,
}: {
  approval: ApprovalSnapshot;
  line: DecidedLine;
  onChanged: () => void;
}) {
  const [isOpen, setOpen] = useState(approval.status === "unknown");
  return (
    <div className={css.decided}>
      <details
        className={css.request}
        open={isOpen}
        onToggle={(event) => setOpen(event.currentTarget.open)}
        data-tone={line.tone}
      >
        <summary className={css.line}>
          <ToneIcon tone={line.tone} isAnswer={approval.status === "responded"} />
          <b>{line.decision}</b>
          {!beginsWithToolName(approval.card.sentence, approval.tool) && (
            <span className={css.name}>
              <VisibleText text={approval.card.tool} />
            </span>
          )}
          <span className={css.sentence}>
            <VisibleText text={approval.card.sentence} />
            <Decider line={line} />
          </span>
          <span className={css.outcome}>{line.outcome}</span>
          <IconUnfold className={css.chevron} size={16} />
        </summary>
        {isOpen && <ApprovalCard id={approval.id} location="chat" initial={approval} onChanged={onChanged} />}
      </details>
      {!isOpen && <UndoButton approval={approval} onChanged={onChanged} />}
    </div>
  );
}

function Decider({ line: { by, at } }: { line: DecidedLine }) {
  const me = useMe().data?.name;
  if (!by) return null;
  const time = new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return (
    <>
      {" "}
      {messages.byPerson}{" "}
      {by === me ? (
        messages.youInSentence
      ) : by === "interlock" ? (
        messages.interlock
      ) : (
        <VisibleText text={by} />
      )}
      ,{" "}
      <time dateTime={at} title={formatDateTime(at)}>
        {time}
      </time>
    </>
  );
}

function ToneIcon({ tone, isAnswer }: { tone: DecidedLine["tone"]; isAnswer: boolean }) {
  if (tone === "working") return <span className={css.spinner} />;
  if (isAnswer) return <IconAnswered className={css.icon} size={16} />;
  if (tone === "good") return <IconApproved className={css.icon} size={16} />;
  if (tone === "bad") return <IconRejected className={css.icon} size={16} />;
  return tone === "unknown" ? (
    <IconWarning className={css.icon} size={16} />
  ) : (
    <IconClock className={css.icon} size={16} />
  );
}

/** Takes a rejection back before the agent knows. */
function UndoButton({ approval, onChanged }: { approval: ApprovalSnapshot; onChanged: () => void }) {
  const me = useMe().data;
  const undo = useApprovalAction(approval.id);
  const left = Math.ceil(undoSecondsLeft(approval, useTick(approval.status === "rejected")));
  const isMine = me?.role === "admin" || me?.name === approval.decision?.by;
  if (!isMine || (!left && !undo.error)) return null;
  const takeBack = () =>
    undo.mutate(
      { action: "undo", body: {}, idempotencyKey: crypto.randomUUID() },
      { onSuccess: () => onChanged() },
    );
  return (
    <>
      {left > 0 && (
        <button type="button" className={css.undo} disabled={undo.isPending} onClick={takeBack}>
          {messages.undoWithin(left)}
        </button>
      )}
      {undo.error && <span role="alert">{undo.error.message}</span>}
    </>
  );
}

/**
 * The focus that was in a card when it shrank goes to the next open card, else to the message input; on a phone, where
 * that would open the keyboard, to the line itself.
 */
function useKeepFocus(isLoaded: boolean, isDecided: boolean, onShrunk: () => void) {
  const hasFocus = useRef(false);
  const wasOpen = useRef(false);
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const hasShrunk = wasOpen.current && isDecided;
    wasOpen.current = isLoaded && !isDecided;
    if (!hasShrunk) return;
    onShrunk();
    if (hasFocus.current && document.activeElement === document.body)
      nextFocus(container.current)?.focus({ preventScroll: true });
  }, [isLoaded, isDecided, onShrunk]);
  return {
    ref: container,
    onFocus: () => void (hasFocus.current = true),
    onBlur: () => void (hasFocus.current = false),
  };
}

function nextFocus(from: HTMLElement | null): HTMLElement | null | undefined {
  const card = document.querySelector<HTMLElement>("[data-open] article[data-status=pending]");
  if (card) return card;
  return matchMedia("(min-width: 48em)").matches
    ? document.querySelector<HTMLElement>("textarea[data-message]")
    : from?.querySelector("summary");
}
