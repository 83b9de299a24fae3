import { lazy, Suspense, useEffect, useImperativeHandle, useRef, useState, type Ref } from "react";
import { useApproval, type ApprovalAction, type ApprovalSnapshot } from "../api/approvals";
import { ApiError } from "../api/client";
import { EmptyState, ErrorMessage, Loading } from "../components/States";
import { AgentStatements } from "./AgentStatements";
import css from "./ApprovalCard.module.css";
import { EditsNotice } from "./ArgumentEdits";
import { Arguments } from "./Arguments";
import { CardAside, MoreSection, useHasAside } from "./CardAside";
import { CardHead, type CardLocation } from "./CardHead";
import { handleCardKey, mayEdit, startHold } from "./cardKeys";
import { CardNotice } from "./CardNotice";
import { undoSecondsLeft } from "./clock";
import { DecisionPanel } from "./DecisionPanel";
import { Discussion } from "./Discussion";
import { FindingsBox } from "./Findings";
import * as messages from "./messages";
import { Quorum } from "./Quorum";
import { isQuestion } from "./Risk";
import { ToolPreview } from "./ToolPreview";
import { useApprovalCard, type ApprovalCardState } from "./useApprovalCard";
import { useArgumentsSeen } from "./useArgumentsSeen";

const Outcome = lazy(async () => ({ default: (await import("./Outcome")).Outcome })); // not needed to decide
const CardEditor = lazy(async () => ({ default: (await import("./CardEditor")).CardEditor }));

/** Card actions for a page's keyboard shortcuts; each does no more than the card's own buttons. */
export interface CardHandle {
  /** False just after the card appeared or changed: then a key was meant for what was there before. */
  readonly settled: boolean;
  readonly sending: boolean;
  /** The number of findings to check before Approve. */
  readonly unchecked: number;
  focus(): void;
  /** High risk: begins the hold, which ends when the key is released. */
  approve(): void;
  /** At once, without a reason. */
  reject(): void;
  /** Opens the form. */
  rejectWithReason(): void;
  respond(): void;
  edit(): void;
  /** Goes to the question for the agent. */
  ask(): void;
  undo(): void;
}

export interface CardProps {
  id: string;
  location: CardLocation;
  /** Data that is already loaded, to avoid flicker. */
  initial?: ApprovalSnapshot;
  /** Called after a decision or an undo on this card. */
  onChanged?: (approval: ApprovalSnapshot, action: ApprovalAction) => void;
  /** Called for a key or click in the moment after the card appeared or changed: nothing was done. */
  onTooEarly?: () => void;
  ref?: Ref<CardHandle>;
}

/**
 * An approval card, the same on every page: the call with all of its arguments, and the decisions that the user may
 * make.
 */
export function ApprovalCard({ id, initial, ...props }: CardProps) {
  const approval = useApproval(id, initial);
  if (approval.data)
    return <Card key={id} approval={approval.data} isOutdated={approval.isError} {...props} />;
  if (approval.error instanceof ApiError && approval.error.status === 404)
    return <EmptyState title={messages.approvalNotFound}>{messages.itDoesNotExist}</EmptyState>;
  if (approval.error) return <ErrorMessage error={approval.error} onRetry={() => void approval.refetch()} />;
  return <Loading label={messages.loadingApproval} />;
}

interface LoadedProps extends Omit<CardProps, "id" | "initial"> {
  approval: ApprovalSnapshot;
  isOutdated: boolean;
}

function Card({ approval, isOutdated, location, onChanged, onTooEarly, ref }: LoadedProps) {
  const state = useApprovalCard(approval, onChanged, onTooEarly);
  const article = useRef<HTMLElement>(null);
  const [top, isTopVisible] = useVisible<HTMLDivElement>();
  useImperativeHandle(ref, () => makeHandle(state, article.current));
  const isEditing = state.opened === "edit";
  const hasAside = useHasAside(location);
  const [changesPlace, setChangesPlace] = useState<HTMLElement | null>(null);
  const isSeen = useArgumentsSeen(article, location === "chat");
  return (
    <article
      ref={article}
      className={css.card}
      tabIndex={0}
      aria-label={approval.card.sentence}
      data-approval={approval.id}
      data-place={location}
      data-status={approval.status}
      data-settled={state.settled || undefined}
      data-beside={hasAside || undefined}
      data-unseen={(location === "chat" && !isSeen) || undefined}
      aria-busy={Boolean(state.sending)}
      onKeyDown={(event) => handleCardKey(event, state)}
    >
      <div className={css.main}>
        <CardHead approval={approval} location={location} topRef={top} />
        <CardNotice state={state} isOutdated={isOutdated} />
        {state.newEdits && approval.status === "pending" && (
          <EditsNotice edits={state.newEdits} onReviewed={state.acceptChanges} />
        )}
        {approval.status !== "pending" && (
          <Suspense fallback={<Loading />}>
            <Outcome state={state} />
          </Suspense>
        )}
        <Quorum approval={approval} />
        {isEditing ? (
          <Suspense fallback={<Loading label={messages.loadingEditor} />}>
            <CardEditor state={state} showsTool={!isTopVisible} changesPlace={changesPlace} />
          </Suspense>
        ) : (
          <ArgumentsSection state={state} />
        )}
        {!isEditing && <ToolPreview text={approval.card.preview} />}
        <AgentStatements card={approval.card} />
        {!hasAside && <Discussion approval={approval} />}
        {!hasAside && !isEditing && <MoreSection state={state} />}
        {!isEditing && <DecisionPanel state={state} showsTool={!isTopVisible} />}
      </div>
      {hasAside && <CardAside state={state} isEditing={isEditing} changesRef={setChangesPlace} />}
    </article>
  );
}

/** Whether an element can be seen, also where something else than the page scrolls. */
function useVisible<Found extends HTMLElement>(): [Ref<Found>, boolean] {
  const [element, setElement] = useState<Found | null>(null);
  const [isVisible, setVisible] = useState(true);
  useEffect(() => {
    if (!element) return;
    const observer = new IntersectionObserver(
      (entries) => setVisible(entries.at(-1)?.isIntersecting ?? true),
      { rootMargin: `-${HEAD_OF_PAGE}px 0px 0px` },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [setElement, isVisible];
}

const HEAD_OF_PAGE = 56; // pixels that the head of the page may cover

function ArgumentsSection({ state }: { state: ApprovalCardState }) {
  const shown = (
    <>
      <FindingsBox now={state.approval} acknowledgements={state.acknowledgements} />
      <Arguments approval={state.approval} />
    </>
  );
  if (!isQuestion(state.approval) || state.approval.alarms.length) return shown;
  return (
    <details className={css.fold}>
      <summary>{messages.originalQuestion}</summary>
      {shown}
    </details>
  );
}

/**
 * High-risk calls and unchecked findings are never approved by a page shortcut: it focuses the first incomplete
 * control.
 */
function makeHandle(state: ApprovalCardState, article: HTMLElement | null): CardHandle {
  const isFree = (kind: "respond" | "reject") => state.may(kind) && !state.newEdits && !state.sending;
  return {
    settled: state.settled,
    sending: Boolean(state.sending),
    unchecked: state.approval.alarms.filter((id) => !state.acknowledgements.acknowledged.has(id)).length,
    focus: () => article?.focus({ preventScroll: true }),
    approve: () => {
      if (state.sending) return;
      const isReady = state.ready && !state.opened && state.settled;
      if (isReady && state.approval.card.risk === "high") startHold(article);
      else if (isReady) state.decide("approve");
      else if (state.may("approve")) firstIncomplete(article)?.focus();
    },
    reject: () => {
      if (isFree("reject") && !state.opened && state.settled) state.decide("reject");
    },
    rejectWithReason: () => void (isFree("reject") && state.open("reject")),
    respond: () => {
      if (!isFree("respond")) return;
      if (isQuestion(state.approval))
        article?.firstElementChild?.querySelector<HTMLElement>(ANSWER_FIELD)?.focus();
      else state.open("respond");
    },
    edit: () => mayEdit(state) && state.open("edit"),
    ask: () => {
      article?.querySelector("details[data-more]")?.setAttribute("open", "");
      focusWhenThere(() => article?.querySelector<HTMLElement>("[data-form=ask] input"), MAX_FRAMES);
    },
    undo: () => undoSecondsLeft(state.approval, performance.now()) > 0 && state.perform("undo"),
  };
}

const MAX_FRAMES = 120; // in which a part that is loaded on demand is waited for

function focusWhenThere(find: () => HTMLElement | null | undefined, frames: number): void {
  const found = find();
  if (found) found.focus();
  else if (frames > 0) requestAnimationFrame(() => focusWhenThere(find, frames - 1));
}

const ANSWER_FIELD = "input:not([type=hidden]), textarea, select"; // a question has no other fields

function firstIncomplete(article: HTMLElement | null): HTMLElement | null | undefined {
  return (
    article?.querySelector<HTMLElement>("[data-finding] input:not(:checked)") ??
    article?.querySelector<HTMLElement>("[data-answer=approve]")
  );
}
