import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useId, useRef, useState, type KeyboardEvent } from "react";
import { callApi } from "../../api/client";
import { SETTLE_MS } from "../../card/clock";
import css from "./Composer.module.css";
import type { ThreadReader } from "./threadReader";
import type { MessageSender } from "./useSendMessage";

const MAX_LENGTH = 100_000;

/** The message input. Unsent text survives a reload and a failed request. */
export function Composer({
  thread,
  sender,
  openApprovals,
  workingReader,
}: {
  thread: string;
  sender: MessageSender;
  /** The pending approvals of the thread, which a message would cancel; the newest is the last. */
  openApprovals: string[];
  /** The thread's reader while the agent is working. */
  workingReader: ThreadReader | null;
}) {
  const [draft, setDraft] = useMessageDraft(thread);
  const field = useRef<HTMLTextAreaElement>(null);
  const note = useId();
  const tabToCard = useTabToCard(openApprovals.at(-1) ?? "");
  const isEmpty = !draft.text.trim();
  const send = () => {
    if (isEmpty || sender.isSending) return;
    const idempotencyKey = draft.idempotencyKey || crypto.randomUUID();
    setDraft({ text: draft.text, idempotencyKey });
    sender.send(draft.text, idempotencyKey, () => {
      setDraft({ text: "", idempotencyKey: "" });
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
    <>
      <div className={css.note} id={note} role="status">
        {sender.refused ? (
          <span>
            <strong>Not sent.</strong> {sender.refused.message}
          </span>
        ) : (
          openApprovals.length > 0 && !isEmpty && <span>{withdrawNotice(openApprovals.length)}</span>
        )}
      </div>
      <form
        className={css.form}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <textarea
          ref={field}
          className={css.text}
          aria-label="Message"
          aria-describedby={note}
          placeholder="Write a message"
          rows={1}
          maxLength={MAX_LENGTH}
          value={draft.text}
          readOnly={sender.isSending}
          onChange={(event) => {
            setDraft({ text: event.currentTarget.value, idempotencyKey: "" });
            tabToCard.reset();
            if (sender.refused) sender.clearError();
          }}
          onKeyDown={handleKey}
          onPointerDown={tabToCard.reset}
          autoFocus={matchMedia("(min-width: 48em)").matches}
        />
        {workingReader && isEmpty ? (
          <StopButton reader={workingReader} />
        ) : (
          <Button type="submit" mih={44} disabled={isEmpty} loading={sender.isSending}>
            {sender.refused && !isEmpty ? "Try again" : "Send"}
          </Button>
        )}
      </form>
    </>
  );
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

function withdrawNotice(count: number): string {
  return count === 1
    ? "Sending this cancels the pending approval."
    : `Sending this cancels ${count} pending approvals.`;
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
      mih={44}
      loading={stop.isPending}
      onClick={() => stop.mutate()}
      title={stop.error?.message}
    >
      {stop.error ? "Stop (try again)" : "Stop"}
    </Button>
  );
}

function useMessageDraft(thread: string) {
  const [stored, setStored] = useState(() => ({ thread, draft: readDraft(thread) }));
  if (stored.thread !== thread) setStored({ thread, draft: readDraft(thread) }); // rerenders before anything is displayed
  const change = (now: typeof stored.draft) => {
    storeDraft(thread, now);
    setStored({ thread, draft: now });
  };
  return [stored.draft, change] as const;
}

/** The unsent message of each thread, stored in this tab. */
interface MessageDraft {
  text: string;
  /** The idempotency key of the failed attempt; empty if there was none or the text has changed. */
  idempotencyKey: string;
}

const EMPTY: MessageDraft = { text: "", idempotencyKey: "" };

function readDraft(thread: string): MessageDraft {
  try {
    return {
      ...EMPTY,
      ...(JSON.parse(sessionStorage.getItem(storageKey(thread)) ?? "{}") as Partial<MessageDraft>),
    };
  } catch {
    return EMPTY;
  }
}

function storeDraft(thread: string, draft: MessageDraft): void {
  try {
    if (draft.text) sessionStorage.setItem(storageKey(thread), JSON.stringify(draft));
    else sessionStorage.removeItem(storageKey(thread));
  } catch {
    // without storage the draft lives as long as the page
  }
}

const storageKey = (thread: string) => `interlock-draft-${thread || "new"}`;
