import { Text } from "@mantine/core";
import { lazy, Suspense, useImperativeHandle, useRef, useState, type KeyboardEvent, type Ref } from "react";
import { useApproval, type Read } from "../api/approvals";
import { Refused } from "../api/client";
import { Empty, Loading, Problem } from "../components/States";
import { Answers, isQuestion } from "./Answers";
import { Arguments } from "./Arguments";
import css from "./Card.module.css";
import { ChangedMeanwhile } from "./Changed";
import { undoLeft } from "./clock";
import { Editing } from "./Editing";
import { FindingsBox } from "./Findings";
import { Head } from "./Head";
import { useHeld, type Held } from "./held";
import { approvesBy, editsBy } from "./keys";
import { Notice } from "./Notice";
import { Outcome } from "./Outcome";
import type { Place } from "./place";
import { Quorum } from "./Quorum";
import { Talk } from "./Talk";
import { Visible } from "./Text";
import { AgentWords } from "./Words";

const More = lazy(() => import("./More"));

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
  place: Place;
  /** What is known already, so that nothing flickers. */
  initial?: Read;
  /** Somebody decided here, or took it back. */
  onMoved?: (now: Read) => void;
  ref?: Ref<CardHandle>;
}

/** One approval, the same wherever it is shown: what is wanted, all of it, and the answers that one may give. */
export function ApprovalCard({ id, initial, ...props }: CardProps) {
  const approval = useApproval(id, initial);
  if (approval.data) return <Card key={id} now={approval.data} isOld={approval.isError} {...props} />;
  if (approval.error instanceof Refused && approval.error.status === 404)
    return (
      <Empty title="No such approval">There is none of this name, or it is not in your workspace.</Empty>
    );
  if (approval.error) return <Problem error={approval.error} again={() => void approval.refetch()} />;
  return <Loading what="Loading the approval" />;
}

interface LoadedProps extends Omit<CardProps, "id" | "initial"> {
  now: Read;
  isOld: boolean;
}

function Card({ now, isOld, place, onMoved, ref }: LoadedProps) {
  const held = useHeld(now, onMoved);
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
      <Head now={now} place={place} />
      <Notice held={held} isOld={isOld} />
      {held.change && now.status === "pending" && (
        <ChangedMeanwhile edits={held.change} onLooked={held.lookAgain} />
      )}
      <Wanted held={held} />
      <Quorum now={now} />
      <Outcome held={held} />
      <Talk now={now} />
      {held.opened !== "edit" && <Answers held={held} isSticky={place !== "chat"} />}
      <Besides held={held} />
    </article>
  );
}

/** The arguments, or the editor over them; a preview; and below what is certain, what the agent says. */
function Wanted({ held }: { held: Held }) {
  const { preview } = held.now.card;
  return (
    <>
      {held.opened === "edit" ? <Editing held={held} /> : <Shown held={held} />}
      {preview && (
        <div role="group" aria-label="Preview">
          <Text size="sm" fw={600}>
            Preview
          </Text>
          <div className={css.raw} data-preview>
            <Visible text={preview} />
          </div>
        </div>
      )}
      <AgentWords card={held.now.card} />
    </>
  );
}

function Shown({ held }: { held: Held }) {
  const shown = (
    <>
      <FindingsBox now={held.now} looks={held.looks} />
      <Arguments now={held.now} looks={held.looks} />
    </>
  );
  if (!isQuestion(held) || held.now.alarms.length) return shown;
  return (
    <details className={css.fold}>
      <summary>The question as it came</summary>
      {shown}
    </details>
  );
}

function Besides({ held }: { held: Held }) {
  const [wanted, setWanted] = useState(false);
  return (
    <details className={css.fold} onToggle={(event) => event.currentTarget.open && setWanted(true)}>
      <summary>More</summary>
      {wanted && (
        <Suspense fallback={<Loading />}>
          <More held={held} />
        </Suspense>
      )}
    </details>
  );
}

function press(event: KeyboardEvent<HTMLElement>, held: Held): void {
  const focused = event.target === event.currentTarget;
  const stroke = { ...strokeOf(event), isComposing: event.nativeEvent.isComposing };
  if (
    approvesBy(stroke, {
      focused,
      settled: held.settled,
      ready: held.ready && !held.opened,
      risk: held.now.card.risk,
    })
  ) {
    event.preventDefault();
    held.decide("approve");
  } else if (editsBy(stroke) && mayEdit(held)) {
    event.preventDefault();
    held.open("edit");
  }
}

function strokeOf({ key, repeat, keyCode, altKey, ctrlKey, metaKey, shiftKey }: KeyboardEvent) {
  return { key, repeat, keyCode, altKey, ctrlKey, metaKey, shiftKey };
}

function mayEdit(held: Held): boolean {
  return held.may("edit") && !held.opened && !held.change && !held.sending;
}

/** High risk and what was not looked at are never approved from afar: the focus goes where the way on is. */
function handleOf(held: Held, article: HTMLElement | null): CardHandle {
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
    undo: () => undoLeft(held.now, performance.now()) > 0 && held.move("undo"),
  };
}

function wayOn(article: HTMLElement | null): HTMLElement | null | undefined {
  return (
    article?.querySelector<HTMLElement>("[data-finding] input:not(:checked)") ??
    article?.querySelector<HTMLElement>("[data-answer=approve]")
  );
}
