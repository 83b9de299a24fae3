import { Button, Group, Text, TextInput } from "@mantine/core";
import { useState, type ReactNode } from "react";
import type { ApprovalSnapshot } from "../api/approvals";
import { mayDecide, useMe } from "../api/currentUser";
import { stringifyJson } from "../api/json";
import { TimeAgo, useTick } from "../components/TimeAgo";
import css from "./ApprovalCard.module.css";
import { countChanges, EditList, readEdits, type ArgumentEdit } from "./ArgumentEdits";
import { undoSecondsLeft } from "./clock";
import type { ApprovalCardState } from "./useApprovalCard";
import { MultilineText } from "./VisibleText";

const SHORT = 1_500;
const MOST = 50_000;

/** What became of it: who decided, when and how, and what the tool gave. */
export function Outcome({ held }: { held: ApprovalCardState }) {
  const { now } = held;
  const edits = readEdits(now.timeline);
  if (now.status === "pending") return null;
  return (
    <div className={css.block} data-tone={TONES[now.status]} role="status" data-outcome={now.status}>
      <Text fw={700}>{titleOf(now, edits)}</Text>
      <By now={now} />
      <Ending now={now} />
      <EditList edits={edits} />
      <Said label="Reason" text={now.decision?.reason} />
      <Said label="Comment" text={now.decision?.comment} />
      <After now={now} />
      <UndoButton held={held} />
      <ResolveUnknown held={held} />
    </div>
  );
}

/** "Approved with 2 changes, and done". */
function titleOf({ status, decision }: ApprovalSnapshot, edits: readonly ArgumentEdit[]): string {
  const isLapsed = status === "expired" && decision !== null && decision.kind !== "expire";
  const after = isLapsed ? "not started in time" : AFTER[status];
  if (after === undefined) return ENDS[status] ?? status;
  return `Approved${edits.length ? ` with ${countChanges(edits)}` : ""}, ${after}`;
}

const AFTER: Partial<Record<ApprovalSnapshot["status"], string>> = {
  approved: "not started yet",
  running: "running",
  succeeded: "done",
  failed: "failed",
  unknown: "outcome unknown",
};

const ENDS: Partial<Record<ApprovalSnapshot["status"], string>> = {
  rejected: "Rejected",
  responded: "Answered, not run",
  expired: "Expired: nobody decided in time",
  cancelled: "Withdrawn",
};

const TONES: Partial<Record<ApprovalSnapshot["status"], string>> = {
  approved: "good",
  running: "good",
  succeeded: "good",
  responded: "good",
  failed: "bad",
  rejected: "bad",
  unknown: "look",
};

function By({ now: { decision } }: { now: ApprovalSnapshot }) {
  if (!decision) return null;
  return (
    <Text size="sm" data-decided-by={decision.by}>
      By <strong>{decision.by}</strong>
      {decision.via && ` (${decision.via})`}, <TimeAgo at={decision.at} />
    </Text>
  );
}

/** Who withdrew it, or looked how it ended. */
function Ending({ now }: { now: ApprovalSnapshot }) {
  const last = now.timeline.findLast(({ kind }) => kind === "cancelled" || kind === "resolved");
  if (!last) return null;
  const { note, reason } = last.content ?? {};
  return (
    <>
      <Text size="sm" data-ended-by={last.actor}>
        <strong>{last.actor}</strong> {last.kind === "cancelled" ? "withdrew it" : "recorded the outcome"},{" "}
        <TimeAgo at={last.at} />
      </Text>
      <Said label="Note" text={String(note ?? reason ?? "")} />
    </>
  );
}

function Said({ label, text }: { label: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <Text size="sm">
      {label}: <MultilineText text={text} />
    </Text>
  );
}

function After({ now }: { now: ApprovalSnapshot }): ReactNode {
  if (now.status === "failed") return <LongText label="Error" text={now.error_message ?? "No message."} />;
  if (now.status === "responded") return <LongText label="Answer" text={textOf(now.result)} />;
  if (now.status === "succeeded" && now.result !== null)
    return <LongText label="Result" text={textOf(now.result)} />;
  return null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : stringifyJson(value, 2);
}

/** What a tool or a person gave: its beginning, and on request as much of it as a page can take. */
function LongText({ label, text }: { label: string; text: string }) {
  const [whole, setWhole] = useState(false);
  const shown = text.slice(0, whole ? MOST : SHORT);
  return (
    <div>
      <Text size="sm" fw={600} mt={6}>
        {label}
      </Text>
      <div className={css.raw}>
        <MultilineText text={shown} />
        {shown.length < text.length && " …"}
      </div>
      {!whole && shown.length < text.length && (
        <Button variant="default" size="compact-sm" mt={6} onClick={() => setWhole(true)}>
          Show {Math.min(MOST, text.length).toLocaleString("en")} of {text.length.toLocaleString("en")}{" "}
          characters
        </Button>
      )}
    </div>
  );
}

/** For a moment a rejection can be taken back; the agent has not heard of it yet. */
function UndoButton({ held }: { held: ApprovalCardState }) {
  const me = useMe().data;
  const isMine = me?.role === "admin" || me?.name === held.now.decision?.by;
  const left = Math.ceil(undoSecondsLeft(held.now, useTick(held.now.status === "rejected")));
  if (!left || !isMine) return null;
  return (
    <Button
      variant="default"
      mt={8}
      mih={44}
      data-answer="undo"
      loading={held.sending === "undo"}
      onClick={() => held.move("undo")}
    >
      Undo ({left} s)
    </Button>
  );
}

/** The agent was lost while the call ran. Only somebody who looks can say how it ended. */
function ResolveUnknown({ held }: { held: ApprovalCardState }) {
  const [note, setNote] = useState("");
  const me = useMe().data;
  if (held.now.status !== "unknown") return null;
  const say = (ok: boolean) => held.move("resolve-unknown", { ok, note: note.trim() });
  const isSending = held.sending === "resolve-unknown";
  return (
    <div className={css.answers}>
      <Text size="sm">
        Contact with the agent was lost while this call ran. Check in the target system whether it took
        effect. The call is not repeated.
      </Text>
      {mayDecide(me) && (
        <>
          <TextInput
            label="What did you find?"
            maxLength={500}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
          />
          <Group gap="xs">
            <Button variant="default" className={css.wide} loading={isSending} onClick={() => say(true)}>
              Mark as succeeded
            </Button>
            <Button variant="default" className={css.wide} loading={isSending} onClick={() => say(false)}>
              Mark as failed
            </Button>
          </Group>
        </>
      )}
    </div>
  );
}
