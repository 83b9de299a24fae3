import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useId, useRef, type FormEvent, type KeyboardEvent } from "react";
import { useApprovalAction } from "../../api/approvals";
import { callApi } from "../../api/client";
import { SETTLE_MS } from "../../card/clock";
import css from "./Composer.module.css";
import * as messages from "./messages";
import type { ThreadReader } from "./threadReader";
import type { OpenRequest } from "./transcriptItems";
import { useMessageDraft } from "./useMessageDraft";
import { useRecipient, type Recipient } from "./useRecipient";
import type { MessageSender } from "./useSendMessage";

const MAX_LENGTH = 100_000;
const MAX_QUESTION = 2_000;

/**
 * The message input. Unsent text survives a reload and a failed request. While a request is open, what is written is a
 * question about it: a message would withdraw it.
 */
export function Composer({
  thread,
  sender,
  openApprovals,
  workingReader,
  agent = "the agent",
}: {
  thread: string;
  sender: MessageSender;
  /** The open requests of the thread; the newest is the last. */
  openApprovals: OpenRequest[];
  /** The thread's reader while the agent is working. */
  workingReader: ThreadReader | null;
  agent?: string;
}) {
  const [draft, setDraft] = useMessageDraft(thread);
  const recipient = useRecipient(openApprovals);
  const question = useAskAgent(recipient.approval);
  const field = useRef<HTMLTextAreaElement>(null);
  const note = useId();
  const tabToCard = useTabToCard(openApprovals.at(-1)?.approval ?? "");
  const isEmpty = !draft.text.trim();
  const isSending = sender.isSending || question.isSending;
  const refused = recipient.approval ? question.refused : sender.refused;
  const send = () => {
    if (isEmpty || isSending) return;
    const to = recipient.approval;
    const idempotencyKey = (draft.to === to && draft.idempotencyKey) || crypto.randomUUID();
    setDraft({ text: draft.text, idempotencyKey, to });
    (to ? question : sender).send(draft.text, idempotencyKey, () => {
      setDraft({ text: "", idempotencyKey: "", to: "" });
      field.current?.focus();
    });
  };
  const handleKey = (event: KeyboardEvent) => {
    if (isEmpty) tabToCard.handleKey(event);
    const isComposing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || isComposing) return;
    event.preventDefault();
    if (!event.repeat) send();
  };
  return (
    <form
      className={css.form}
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        send();
      }}
    >
      {openApprovals.length > 0 && (
        <RecipientChoice
          recipient={recipient}
          requests={openApprovals}
          onChosen={() => field.current?.focus()}
        />
      )}
      <div className={css.note} id={note} role="status">
        {refused ? (
          <span>
            <strong>{messages.notSent}</strong> {refused.message}
          </span>
        ) : (
          question.isSent && recipient.approval && isEmpty && messages.questionSent
        )}
      </div>
      <div className={css.input}>
        <textarea
          ref={field}
          className={css.text}
          data-message
          aria-label={messages.message}
          aria-describedby={note}
          placeholder={placeholderOf(recipient, agent)}
          rows={1}
          maxLength={recipient.approval ? MAX_QUESTION : MAX_LENGTH}
          value={draft.text}
          readOnly={isSending}
          onChange={(event) => {
            setDraft({ text: event.currentTarget.value, idempotencyKey: "", to: "" });
            tabToCard.reset();
            if (sender.refused) sender.clearError();
            question.clear();
          }}
          onKeyDown={handleKey}
          onPointerDown={tabToCard.reset}
          autoFocus={matchMedia("(min-width: 48em)").matches}
        />
        {!(workingReader && isEmpty) && (
          <Button type="submit" mih={40} disabled={isEmpty} loading={isSending}>
            {refused && !isEmpty ? messages.tryAgain : recipient.approval ? messages.ask : messages.send}
          </Button>
        )}
        {workingReader && <StopButton reader={workingReader} />}
      </div>
    </form>
  );
}

function placeholderOf({ kind, tool }: Recipient, agent: string): string {
  if (kind === "message") return messages.writeMessage;
  return kind === "question" ? messages.askAbout(agent, tool) : messages.writeNewInstruction;
}

/** Whether to ask about an open request or to withdraw all of them, before anything is sent. */
function RecipientChoice({
  recipient,
  requests,
  onChosen,
}: {
  recipient: Recipient;
  requests: OpenRequest[];
  onChosen: () => void;
}) {
  const name = useId();
  const isOne = requests.length === 1;
  return (
    <div className={css.recipient}>
      <div className={css.choice} role="radiogroup" aria-label={messages.whatToSend}>
        <label>
          <input
            type="radio"
            name={name}
            checked={recipient.kind === "question"}
            onChange={() => recipient.choose("question")}
          />
          <span>{isOne ? messages.askAboutThisRequest : messages.askAboutRequest}</span>
        </label>
        <label>
          <input
            type="radio"
            name={name}
            checked={recipient.kind === "instruction"}
            onChange={({ currentTarget }) => {
              recipient.choose("instruction");
              if (!currentTarget.matches(":focus-visible")) setTimeout(onChosen); // the arrow keys go on choosing
            }}
          />
          <span>{messages.newInstruction}</span>
        </label>
      </div>
      {recipient.kind === "question" && !isOne && (
        <select
          className={css.select}
          aria-label={messages.request}
          value={recipient.approval}
          onChange={(event) => recipient.chooseRequest(event.currentTarget.value)}
        >
          {requests.map(({ approval, tool }, number) => (
            <option key={approval} value={approval}>
              {messages.requestOfRequests(number + 1, requests.length, tool)}
            </option>
          ))}
        </select>
      )}
      <span
        className={css.effect}
        role="status"
        data-withdraws={recipient.kind === "instruction" || undefined}
      >
        {recipient.kind === "question"
          ? messages.requestsStayOpen(isOne)
          : messages.withdrawsOpenRequests(requests.length, isOne)}
      </span>
    </div>
  );
}

/** Asks the agent about an open request, which decides nothing. */
function useAskAgent(approval: string) {
  const ask = useApprovalAction(approval);
  return {
    send: (question: string, idempotencyKey: string, onSent: () => void) =>
      ask.mutate(
        { action: "ask", body: { question: question.trim() }, idempotencyKey },
        {
          onSuccess: () => {
            onSent();
            setTimeout(() => scrollToQuestion(approval), 0); // once it is shown
          },
        },
      ),
    isSending: ask.isPending,
    isSent: ask.isSuccess,
    refused: ask.error,
    clear: () => !ask.isIdle && !ask.isPending && ask.reset(),
  };
}

function scrollToQuestion(approval: string): void {
  const questions = document.querySelectorAll(`[data-approval="${CSS.escape(approval)}"] [data-question]`);
  questions[questions.length - 1]?.scrollIntoView({ block: "nearest" });
}

/**
 * Tab in the empty input focuses the newest open card. It does so once: the next Tab goes on to the Stop button, until
 * there is a newer card or the input is used again.
 */
function useTabToCard(newest: string) {
  const visited = useRef("");
  const handleKey = (event: KeyboardEvent) => {
    const isPlain = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
    if (event.key !== "Tab" || !isPlain || !newest || visited.current === newest) return;
    const card = document.querySelector<HTMLElement>(`article[data-approval="${CSS.escape(newest)}"]`);
    if (!card) return;
    event.preventDefault();
    visited.current = newest;
    focusCard(card);
  };
  return { handleKey, reset: () => void (visited.current = "") };
}

/** Enter right after the Tab was meant for the button that used to be there: it must not approve. */
function focusCard(card: HTMLElement): void {
  const ignoreEnter = (event: Event) => {
    if ((event as unknown as KeyboardEvent).key === "Enter") event.stopPropagation();
  };
  card.addEventListener("keydown", ignoreEnter, { capture: true });
  setTimeout(() => card.removeEventListener("keydown", ignoreEnter, { capture: true }), SETTLE_MS);
  card.focus();
  card.scrollIntoView({ block: "nearest" });
}

/** Does not undo calls that have already started. */
function StopButton({ reader }: { reader: ThreadReader }) {
  const stop = useMutation({
    mutationFn: () =>
      callApi("post", "/api/threads/{thread_id}/stop", { path: { thread_id: reader.id }, body: {} }),
    onSettled: () => reader.wake(),
  });
  return (
    <Button
      variant="default"
      mih={40}
      loading={stop.isPending}
      onClick={() => stop.mutate()}
      title={stop.error?.message}
    >
      {stop.error ? messages.stopTryAgain : messages.stop}
    </Button>
  );
}
