import { Button, Group, Text, Textarea, TextInput } from "@mantine/core";
import { lazy, Suspense, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import type { DecisionKind } from "../api/approvals";
import { Loading } from "../components/States";
import css from "./ApprovalCard.module.css";
import { HighRiskApproval } from "./HighRiskApproval";
import type { ApprovalCardState } from "./useApprovalCard";
import { MultilineText } from "./VisibleText";

const AnswerForm = lazy(() => import("../editor/AnswerForm"));

/** The answers that this person may give, and why not the others. */
export function DecisionPanel({ held, isSticky }: { held: ApprovalCardState; isSticky: boolean }) {
  const { now, opened, may } = held;
  if (now.status !== "pending") return null;
  if (!now.may_decide.length) return <WhyNot held={held} />;
  if (isQuestion(held)) return <AnswerTo held={held} />;
  if (opened === "reject" && may("reject")) return <RejectForm held={held} />;
  if (opened === "respond" && may("respond")) return <RespondForm held={held} />;
  return (
    <>
      {may("approve") && <Comment held={held} />}
      <div className={css.answers} data-sticky={isSticky || undefined}>
        <Hint held={held} />
        <div className={css.buttons}>
          {may("approve") && <Approve held={held} />}
          {may("edit") && <Opens held={held} kind="edit" label="Edit" />}
          {may("respond") && <Opens held={held} kind="respond" label="Respond" />}
          {may("reject") && <Opens held={held} kind="reject" label="Reject" />}
        </div>
        <WhyNot held={held} />
      </div>
    </>
  );
}

/** An agent asks and people answer: nothing would run. */
export function isQuestion({ now }: Pick<ApprovalCardState, "now">): boolean {
  return now.decisions.length === 1 && now.decisions[0] === "respond";
}

function Approve({ held }: { held: ApprovalCardState }) {
  const { now, ready, settled, sending, decide } = held;
  if (now.card.risk === "high") return <HighRiskApproval held={held} />;
  return (
    <Button
      data-answer="approve"
      disabled={!ready && !sending}
      aria-disabled={!settled || undefined}
      loading={sending === "approve"}
      onClick={() => ready && settled && decide("approve")}
    >
      Approve
    </Button>
  );
}

function Opens({
  held,
  kind,
  label,
}: {
  held: ApprovalCardState;
  kind: Exclude<DecisionKind, "approve">;
  label: string;
}) {
  return (
    <Button
      data-answer={kind}
      variant={kind === "reject" ? "outline" : "default"}
      color={kind === "reject" ? "red" : undefined}
      className={kind === "reject" ? css.reject : undefined}
      disabled={Boolean(held.change) || Boolean(held.sending)}
      title={kind === "edit" ? "Ctrl+E or Cmd+E" : undefined}
      onClick={() => held.open(kind)}
    >
      {label}
    </Button>
  );
}

/** Why Approve is off, in words. */
function Hint({ held: { now, looks, change, may } }: { held: ApprovalCardState }) {
  const left = now.alarms.filter((id) => !looks.looked.has(id)).length;
  if (!may("approve") || (!left && !change)) return null;
  return (
    <Text size="sm" role="status">
      {change
        ? "Review the changes first."
        : `Approve is disabled: ${left} of ${now.alarms.length} findings not checked.`}
    </Text>
  );
}

function Comment({ held: { drafts, draft } }: { held: ApprovalCardState }) {
  return (
    <details className={css.fold}>
      <summary>Add a comment</summary>
      <TextInput
        aria-label="Comment"
        placeholder="Recorded with your decision, for other people"
        maxLength={500}
        value={drafts.comment}
        onChange={(event) => draft({ comment: event.currentTarget.value })}
      />
    </details>
  );
}

/** Of the kinds that the rule allows; each reason once. */
function WhyNot({ held: { now } }: { held: ApprovalCardState }) {
  const reasons = new Set(now.decisions.flatMap((kind) => now.may_not[kind] ?? []));
  if (!reasons.size) return null;
  return (
    <Group gap={4} data-why-not>
      {[...reasons].map((reason) => (
        <Text key={reason} size="sm">
          <MultilineText text={reason} />
        </Text>
      ))}
    </Group>
  );
}

function AnswerTo({ held }: { held: ApprovalCardState }) {
  return (
    <Suspense fallback={<Loading what="Loading form" />}>
      <AnswerForm
        approval={held.now}
        sending={held.sending === "respond"}
        refused={held.refused}
        onSend={(given) => held.decide("respond", { ...given })}
      />
    </Suspense>
  );
}

/** No, with a reason if one likes; the agent hears of it when the time to undo has passed. */
function RejectForm({ held }: { held: ApprovalCardState }) {
  const { drafts, draft, sending, decide } = held;
  const reason = drafts.reason.trim();
  return (
    <Form held={held} onSend={() => decide("reject", reason ? { reason } : {})}>
      <TextInput
        label="Reason (optional)"
        description="Sent to the agent."
        maxLength={500}
        autoFocus
        value={drafts.reason}
        onChange={(event) => draft({ reason: event.currentTarget.value })}
      />
      <Group gap="xs">
        <Button type="submit" color="red" className={css.wide} loading={sending === "reject"}>
          Reject
        </Button>
        <Back held={held} />
      </Group>
    </Form>
  );
}

/** Words to the agent instead of running the call. */
function RespondForm({ held }: { held: ApprovalCardState }) {
  const { drafts, draft, sending, decide } = held;
  const message = drafts.message.trim();
  return (
    <Form held={held} onSend={() => message && decide("respond", { message })}>
      <Textarea
        label="Message to the agent"
        description="The agent gets your message instead of a result. The call does not run."
        maxLength={20_000}
        autosize={false}
        rows={4}
        autoFocus
        value={drafts.message}
        onChange={(event) => draft({ message: event.currentTarget.value })}
      />
      <Group gap="xs">
        <Button type="submit" className={css.wide} disabled={!message} loading={sending === "respond"}>
          Send
        </Button>
        <Back held={held} />
      </Group>
    </Form>
  );
}

/** Esc closes it and sends nothing; what was written stays for when it is opened again. */
function Form({
  held,
  onSend,
  children,
}: {
  held: ApprovalCardState;
  onSend: () => void;
  children: ReactNode;
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!held.sending) onSend();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !event.nativeEvent.isComposing) {
      event.preventDefault();
      event.stopPropagation();
      held.open("");
    }
  };
  return (
    <form className={css.answers} onSubmit={submit} onKeyDown={onKeyDown}>
      {children}
    </form>
  );
}

function Back({ held }: { held: ApprovalCardState }) {
  return (
    <Button variant="default" className={css.wide} onClick={() => held.open("")}>
      Back
    </Button>
  );
}
