import { Text } from "@mantine/core";
import { lazy, Suspense, useImperativeHandle, useRef, useState, type KeyboardEvent, type Ref } from "react";
import { useApproval, type ApprovalSnapshot } from "../api/approvals";
import { ApiError } from "../api/client";
import { EmptyState, ErrorMessage, Loading } from "../components/States";
import css from "./ApprovalCard.module.css";
import { EditsNotice } from "./ArgumentEdits";
import { Arguments } from "./Arguments";
import { CardEditor } from "./CardEditor";
import { CardHead, type CardLocation } from "./CardHead";
import { CardNotice } from "./CardNotice";
import { undoSecondsLeft } from "./clock";
import { DecisionPanel, isQuestion } from "./DecisionPanel";
import { Discussion } from "./Discussion";
import { FindingsBox } from "./Findings";
import { isApproveKey, isEditKey } from "./keys";
import { Outcome } from "./Outcome";
import { Quorum } from "./Quorum";
import { useApprovalCard, type ApprovalCardState } from "./useApprovalCard";
import { VisibleText } from "./VisibleText";

const MoreActions = lazy(() => import("./MoreActions"));

/** What a page may do to the card by its keys; each does no more than the card's own button would. */
export interface CardHandle {
  approve(): void;
  reject(): void;
  respond(): void;
  edit(): void;
  undo(): void;
}

export interface CardProps {
  id: string;
  place: CardLocation;
  /** What is known already, so that nothing flickers. */
  initial?: ApprovalSnapshot;
  /** Somebody decided here, or took it back. */
  onMoved?: (now: ApprovalSnapshot) => void;
  ref?: Ref<CardHandle>;
}

/** One approval, the same wherever it is shown: what is wanted, all of it, and the answers that one may give. */
export function ApprovalCard({ id, initial, ...props }: CardProps) {
  const approval = useApproval(id, initial);
  if (approval.data) return <Card key={id} now={approval.data} isOld={approval.isError} {...props} />;
  if (approval.error instanceof ApiError && approval.error.status === 404)
    return (
      <EmptyState title="Approval not found">It does not exist, or it is not in your workspace.</EmptyState>
    );
  if (approval.error) return <ErrorMessage error={approval.error} again={() => void approval.refetch()} />;
  return <Loading what="Loading approval" />;
}

interface LoadedProps extends Omit<CardProps, "id" | "initial"> {
  now: ApprovalSnapshot;
  isOld: boolean;
}

function Card({ now, isOld, place, onMoved, ref }: LoadedProps) {
  const held = useApprovalCard(now, onMoved);
  const article = useRef<HTMLElement>(null);
  useImperativeHandle(ref, () => handleOf(held, article.current));
  return (
    <article
      ref={article}
      className={css.card}
      tabIndex={0}
      aria-label={now.card.sentence}
      data-approval={now.id}
      data-place={place}
      data-status={now.status}
      data-settled={held.settled || undefined}
      aria-busy={Boolean(held.sending)}
      onKeyDown={(event) => press(event, held)}
    >
      <CardHead now={now} place={place} />
      <CardNotice held={held} isOld={isOld} />
      {held.change && now.status === "pending" && (
        <EditsNotice edits={held.change} onLooked={held.lookAgain} />
      )}
      <Wanted held={held} />
      <Quorum now={now} />
      <Outcome held={held} />
      <Discussion now={now} />
      {held.opened !== "edit" && <DecisionPanel held={held} isSticky={place !== "chat"} />}
      <Besides held={held} />
    </article>
  );
}

/** The arguments, or the editor over them; a preview; and below what is certain, what the agent says. */
function Wanted({ held }: { held: ApprovalCardState }) {
  const { preview } = held.now.card;
  return (
    <>
      {held.opened === "edit" ? <CardEditor held={held} /> : <Shown held={held} />}
      {preview && (
        <div role="group" aria-label="Preview">
          <Text size="sm" fw={600}>
            Preview
          </Text>
          <div className={css.raw} data-preview>
            <VisibleText text={preview} />
          </div>
        </div>
      )}
      <AgentStatements card={held.now.card} />
    </>
  );
}

function Shown({ held }: { held: ApprovalCardState }) {
  const shown = (
    <>
      <FindingsBox now={held.now} looks={held.looks} />
      <Arguments now={held.now} looks={held.looks} />
    </>
  );
  if (!isQuestion(held) || held.now.alarms.length) return shown;
  return (
    <details className={css.fold}>
      <summary>Original question</summary>
      {shown}
    </details>
  );
}

function Besides({ held }: { held: ApprovalCardState }) {
  const [wanted, setWanted] = useState(false);
  return (
    <details className={css.fold} onToggle={(event) => event.currentTarget.open && setWanted(true)}>
      <summary>More</summary>
      {wanted && (
        <Suspense fallback={<Loading />}>
          <MoreActions held={held} />
        </Suspense>
      )}
    </details>
  );
}

function press(event: KeyboardEvent<HTMLElement>, held: ApprovalCardState): void {
  const focused = event.target === event.currentTarget;
  const stroke = { ...strokeOf(event), isComposing: event.nativeEvent.isComposing };
  if (
    isApproveKey(stroke, {
      focused,
      settled: held.settled,
      ready: held.ready && !held.opened,
      risk: held.now.card.risk,
    })
  ) {
    event.preventDefault();
    held.decide("approve");
  } else if (isEditKey(stroke) && mayEdit(held)) {
    event.preventDefault();
    held.open("edit");
  }
}

function strokeOf({ key, repeat, keyCode, altKey, ctrlKey, metaKey, shiftKey }: KeyboardEvent) {
  return { key, repeat, keyCode, altKey, ctrlKey, metaKey, shiftKey };
}

function mayEdit(held: ApprovalCardState): boolean {
  return held.may("edit") && !held.opened && !held.change && !held.sending;
}

/** High risk and what was not looked at are never approved from afar: the focus goes where the way on is. */
function handleOf(held: ApprovalCardState, article: HTMLElement | null): CardHandle {
  const open = (kind: "respond" | "reject") =>
    held.may(kind) && !held.change && !held.sending && held.open(kind);
  return {
    approve: () => {
      if (held.ready && !held.opened && held.settled && held.now.card.risk !== "high") held.decide("approve");
      else if (held.may("approve")) wayOn(article)?.focus();
    },
    reject: () => void open("reject"),
    respond: () => void open("respond"),
    edit: () => mayEdit(held) && held.open("edit"),
    undo: () => undoSecondsLeft(held.now, performance.now()) > 0 && held.move("undo"),
  };
}

function wayOn(article: HTMLElement | null): HTMLElement | null | undefined {
  return (
    article?.querySelector<HTMLElement>("[data-finding] input:not(:checked)") ??
    article?.querySelector<HTMLElement>("[data-answer=approve]")
  );
}

/** What nobody but the agent's program says, each part under a name that says so. */
export function AgentStatements({ card }: { card: ApprovalSnapshot["card"] }) {
  return (
    <>
      <Quoted title="Agent's description (unverified)" text={card.agent_description} />
      <Quoted title="Agent's preview (unverified)" text={card.agent_preview} />
      {card.agent_says && (
        <details className={css.fold}>
          <summary>Agent says (unverified)</summary>
          <blockquote className={css.quotation}>
            <VisibleText text={card.agent_says} />
          </blockquote>
        </details>
      )}
    </>
  );
}

function Quoted({ title, text }: { title: string; text: string }) {
  if (!text) return null;
  return (
    <div role="group" aria-label={title}>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      <blockquote className={css.quotation} data-claim>
        <VisibleText text={text} />
      </blockquote>
    </div>
  );
}
