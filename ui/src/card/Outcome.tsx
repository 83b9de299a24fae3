import { Button, Group, Text, TextInput } from "@mantine/core";
import { useState, type ReactNode } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import { mayDecide, useMe } from "../api/currentUser";
import { stringifyJson } from "../api/json";
import { TimeAgo, useTick } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import { countChanges, EditList, readEdits } from "./ArgumentEdits";
import { undoSecondsLeft } from "./clock";
import * as messages from "./messages";
import type { ApprovalCardState } from "./useApprovalCard";
import { usePersonName } from "./usePersonName";
import { MultilineText } from "./VisibleText";

const PREVIEW_LENGTH = 1_500;
const MAX_LENGTH = 50_000;

/** The outcome: who decided, when and how, and the result. */
export function Outcome({ state }: { state: ApprovalCardState }) {
  const { approval } = state;
  const edits = readEdits(approval.timeline);
  return (
    <div
      className={css.block}
      data-tone={TONES[approval.status]}
      role="status"
      data-outcome={approval.status}
    >
      <Text fw={650}>{outcomeTitle(approval)}</Text>
      <DecidedBy approval={approval} />
      <EndedBy approval={approval} />
      <EditList edits={edits} />
      <LabeledText label={messages.reason} text={approval.decision?.reason} />
      <LabeledText label={messages.comment} text={approval.decision?.comment} />
      <ResultText approval={approval} />
      <UndoButton state={state} />
      <ResolveUnknown state={state} />
    </div>
  );
}

/** "Approved with 2 changes, done". */
export function outcomeTitle({ status, decision, timeline }: ApprovalSnapshot): string {
  const edits = readEdits(timeline);
  const isLapsed = status === "expired" && decision !== null && decision.kind !== "expire";
  const after = isLapsed ? messages.notStartedInTime : messages.APPROVED_LABELS[status];
  if (after === undefined) return messages.END_LABELS[status] ?? status;
  return messages.approvedAnd(edits.length, countChanges(edits), after);
}

const TONES: Partial<Record<ApprovalSnapshot["status"], string>> = {
  approved: "good",
  running: "good",
  succeeded: "good",
  responded: "good",
  failed: "bad",
  rejected: "bad",
  unknown: "look",
};

function DecidedBy({ approval: { decision } }: { approval: ApprovalSnapshot }) {
  const nameOf = usePersonName();
  if (!decision) return null;
  return (
    <Text size="sm" data-decided-by={decision.by}>
      {messages.byLabel} <strong>{nameOf(decision.by)}</strong>
      {decision.via && ` (${decision.via})`}, <TimeAgo at={decision.at} />
    </Text>
  );
}

/** Who cancelled the call or recorded its outcome. */
function EndedBy({ approval }: { approval: ApprovalSnapshot }) {
  const nameOf = usePersonName();
  const last = approval.timeline.findLast(({ kind }) => kind === "cancelled" || kind === "resolved");
  if (!last) return null;
  const { note, reason } = last.content ?? {};
  return (
    <>
      <Text size="sm" data-ended-by={last.actor}>
        <strong>{nameOf(last.actor, true)}</strong> {messages.cancelledOrRecorded(last.kind)}{" "}
        <TimeAgo at={last.at} />
      </Text>
      <LabeledText label={messages.note} text={String(note ?? reason ?? "")} />
    </>
  );
}

function LabeledText({ label, text }: { label: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <Text size="sm">
      {label}: <MultilineText text={text} />
    </Text>
  );
}

function ResultText({ approval }: { approval: ApprovalSnapshot }): ReactNode {
  if (approval.status === "failed")
    return <LongText label={messages.error} text={approval.error_message ?? messages.noMessage} />;
  if (approval.status === "responded")
    return <LongText label={messages.answer} text={toText(approval.result)} />;
  if (approval.status === "succeeded" && approval.result !== null)
    return <LongText label={messages.result} text={toText(approval.result)} />;
  return null;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : stringifyJson(value, 2);
}

/** A long text, shortened until it is expanded. */
function LongText({ label, text }: { label: string; text: string }) {
  const [isExpanded, setExpanded] = useState(false);
  const shown = text.slice(0, isExpanded ? MAX_LENGTH : PREVIEW_LENGTH);
  return (
    <div>
      <Text size="sm" fw={600} mt={6}>
        {label}
      </Text>
      <div className={css.raw}>
        <MultilineText text={shown} />
        {shown.length < text.length && " …"}
      </div>
      {!isExpanded && shown.length < text.length && (
        <Button variant="default" size="compact-sm" mt={6} onClick={() => setExpanded(true)}>
          {messages.showOfCharacters(Math.min(MAX_LENGTH, text.length), text.length)}
        </Button>
      )}
    </div>
  );
}

/** Undoes a rejection before the agent is told. */
function UndoButton({ state }: { state: ApprovalCardState }) {
  const me = useMe().data;
  const isMine = me?.role === "admin" || me?.name === state.approval.decision?.by;
  const left = Math.ceil(undoSecondsLeft(state.approval, useTick(state.approval.status === "rejected")));
  if (!left || !isMine) return null;
  return (
    <Button
      variant="default"
      mt={8}
      mih={44}
      data-answer="undo"
      loading={state.sending === "undo"}
      onClick={() => state.perform("undo")}
    >
      {messages.undoWithin(left)}
    </Button>
  );
}

/** The agent was lost while the call ran; a person records the outcome. */
function ResolveUnknown({ state }: { state: ApprovalCardState }) {
  const [note, setNote] = useState("");
  const me = useMe().data;
  if (state.approval.status !== "unknown") return null;
  const resolve = (ok: boolean) => state.perform("resolve-unknown", { ok, note: note.trim() });
  const isSending = state.sending === "resolve-unknown";
  return (
    <div className={css.answers}>
      <Text size="sm">{messages.contactWasLost}</Text>
      {mayDecide(me) && (
        <>
          <TextInput
            label={messages.whatDidYouFind}
            maxLength={500}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
          />
          <Group gap="xs">
            <Button variant="default" className={css.wide} loading={isSending} onClick={() => resolve(true)}>
              {messages.markAsSucceeded}
            </Button>
            <Button variant="default" className={css.wide} loading={isSending} onClick={() => resolve(false)}>
              {messages.markAsFailed}
            </Button>
          </Group>
        </>
      )}
    </div>
  );
}
