import { Button, Group, Text, Textarea, TextInput } from "@mantine/core";
import { lazy, Suspense, useState, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import type { DecisionKind } from "../api/approvals";
import { useMe } from "../api/currentUser";
import { Loading } from "../components/States";
import css from "./ApprovalCard.module.css";
import { ApproveButton } from "./ApproveButton";
import { EarlySign } from "./EarlySign";
import { isSendKey, toKeyStroke } from "./keys";
import * as messages from "./messages";
import { isQuestion, RiskAndTool } from "./Risk";
import type { ApprovalCardState } from "./useApprovalCard";
import { MultilineText } from "./VisibleText";

const AnswerForm = lazy(() => import("../editor/AnswerForm"));

interface PanelProps {
  state: ApprovalCardState;
  /** The head of the card is out of sight: risk and tool stand here too. */
  showsTool: boolean;
}

/** The decisions that the user may make, and the reasons why others are blocked. */
export function DecisionPanel({ state, showsTool }: PanelProps) {
  const { approval, opened, may } = state;
  if (approval.status !== "pending") return null;
  if (!approval.may_decide.length) return <BlockedReasons state={state} />;
  if (isQuestion(approval)) return <QuestionForm state={state} />;
  if (opened === "reject" && may("reject")) return <RejectForm state={state} />;
  if (opened === "respond" && may("respond")) return <RespondForm state={state} />;
  return (
    <>
      {may("approve") && <CommentField state={state} />}
      <div className={css.answers} data-sticky>
        <EarlySign isShown={state.isEarly} />
        {showsTool && (
          <div className={css.top} data-repeated>
            <RiskAndTool approval={approval} />
          </div>
        )}
        <div className={css.buttons}>
          {may("approve") && (
            <ApproveButton
              approval={approval}
              ready={state.ready}
              settled={state.settled}
              sending={state.sending === "approve"}
              onTooEarly={state.tooEarly}
              onApprove={() => state.decide("approve")}
            />
          )}
          {may("edit") && <DecisionButton state={state} kind="edit" label={messages.edit} />}
          {may("respond") && <DecisionButton state={state} kind="respond" label={messages.respond} />}
          {may("reject") && <DecisionButton state={state} kind="reject" label={messages.reject} />}
          <ApproveHint state={state} />
        </div>
        <BlockedReasons state={state} />
      </div>
    </>
  );
}

function DecisionButton({
  state,
  kind,
  label,
}: {
  state: ApprovalCardState;
  kind: Exclude<DecisionKind, "approve">;
  label: string;
}) {
  return (
    <Button
      data-answer={kind}
      variant="default"
      className={kind === "reject" ? css.reject : undefined}
      data-key={KEYS[kind]}
      disabled={Boolean(state.newEdits) || Boolean(state.sending)}
      title={kind === "edit" ? messages.ctrlEOrCmdE : undefined}
      onClick={() => state.open(kind)}
    >
      {label}
    </Button>
  );
}

const KEYS = { edit: "E", respond: "C", reject: "R" };

/** Why Approve is disabled, or what it takes. */
function ApproveHint({ state: { approval, acknowledgements, newEdits, may } }: { state: ApprovalCardState }) {
  if (!may("approve")) return null;
  const uncheckedCount = approval.alarms.filter((id) => !acknowledgements.acknowledged.has(id)).length;
  const isBlocked = Boolean(newEdits) || uncheckedCount > 0;
  if (!isBlocked && approval.card.risk !== "high") return null;
  return (
    <p className={css.hint} role="status" data-blocked={isBlocked || undefined}>
      {newEdits
        ? messages.reviewChangesFirst
        : uncheckedCount > 0
          ? checkHint(uncheckedCount)
          : messages.highRiskHold}
    </p>
  );
}

function checkHint(count: number): string {
  return messages.checkMarkedPlaces(count);
}

/** Open if there is a comment from before: nothing is sent that cannot be seen. */
function CommentField({ state: { drafts, draft } }: { state: ApprovalCardState }) {
  const [isOpen] = useState(drafts.comment !== "");
  return (
    <details className={css.fold} open={isOpen}>
      <summary>{messages.addComment}</summary>
      <TextInput
        aria-label={messages.comment}
        placeholder={messages.recordedWithYourDecision}
        maxLength={500}
        value={drafts.comment}
        onChange={(event) => draft({ comment: event.currentTarget.value })}
      />
    </details>
  );
}

/** The reasons for the decisions that the rule allows, without duplicates. */
function BlockedReasons({ state: { approval } }: { state: ApprovalCardState }) {
  const me = useMe().data?.name ?? "";
  const reasons = new Set(approval.decisions.flatMap((kind) => approval.may_not[kind] ?? []));
  if (!reasons.size) return null;
  return (
    <Group gap={4} data-why-not>
      {[...reasons].map((reason) => (
        <Text key={reason} size="sm">
          <MultilineText
            text={reason.startsWith(`${me} may `) ? messages.youWithReason(reason.slice(me.length)) : reason}
          />
        </Text>
      ))}
    </Group>
  );
}

function QuestionForm({ state }: { state: ApprovalCardState }) {
  return (
    <Suspense fallback={<Loading label={messages.loadingForm} />}>
      <AnswerForm
        approval={state.approval}
        sending={state.sending === "respond"}
        refused={state.refusal}
        onSend={(given) => state.decide("respond", { ...given })}
      />
    </Suspense>
  );
}

/** Rejects with an optional reason; the agent is told after the undo window. */
function RejectForm({ state }: { state: ApprovalCardState }) {
  const { drafts, draft, sending, decide } = state;
  const reason = drafts.reason.trim();
  return (
    <DecisionForm state={state} onSend={() => decide("reject", reason ? { reason } : {})}>
      <TextInput
        label={messages.reasonOptional}
        description={messages.sentToAgent}
        maxLength={500}
        autoFocus
        value={drafts.reason}
        onChange={(event) => draft({ reason: event.currentTarget.value })}
      />
      <Group gap="xs">
        <Button type="submit" color="red" className={css.wide} loading={sending === "reject"}>
          {messages.reject}
        </Button>
        <BackButton state={state} />
      </Group>
    </DecisionForm>
  );
}

/** Sends a message to the agent instead of running the call. */
function RespondForm({ state }: { state: ApprovalCardState }) {
  const { drafts, draft, sending, decide } = state;
  const message = drafts.message.trim();
  return (
    <DecisionForm state={state} onSend={() => message && decide("respond", { message })}>
      <Textarea
        label={messages.messageToAgent}
        description={messages.agentGetsYourMessageInstead}
        maxLength={20_000}
        autosize={false}
        rows={4}
        autoFocus
        value={drafts.message}
        onChange={(event) => draft({ message: event.currentTarget.value })}
      />
      <Group gap="xs">
        <Button type="submit" className={css.wide} disabled={!message} loading={sending === "respond"}>
          {messages.send}
        </Button>
        <BackButton state={state} />
        <SendHint />
      </Group>
    </DecisionForm>
  );
}

/** Esc closes the form without sending, and the draft is kept; Ctrl+Enter sends, also from a text of many lines. */
function DecisionForm({
  state,
  onSend,
  children,
}: {
  state: ApprovalCardState;
  onSend: () => void;
  children: ReactNode;
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!state.sending) onSend();
  };
  const onKeyDown = (event: KeyboardEvent<HTMLFormElement>) => {
    if (isSendKey(toKeyStroke(event))) event.currentTarget.requestSubmit();
    else if (event.key === "Escape" && !event.nativeEvent.isComposing) closeForm(state, event.currentTarget);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <form className={css.answers} data-sticky onSubmit={submit} onKeyDown={onKeyDown}>
      {children}
    </form>
  );
}

/** The card gets the focus that the form had. */
function closeForm(state: ApprovalCardState, form: Element): void {
  form.closest("article")?.focus({ preventScroll: true });
  state.open("");
}

/** For those who have a keyboard. */
export function SendHint() {
  return <span className={css.sendHint}>{messages.ctrlEnterSends}</span>;
}

function BackButton({ state }: { state: ApprovalCardState }) {
  return (
    <Button
      variant="default"
      className={css.wide}
      onClick={({ currentTarget }) => closeForm(state, currentTarget)}
    >
      {messages.back}
    </Button>
  );
}
