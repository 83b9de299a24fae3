import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useId, useRef, useState, type KeyboardEvent } from "react";
import { callApi } from "../../api/client";
import css from "./Composer.module.css";
import type { ThreadReader } from "./threadReader";
import type { MessageSender } from "./useSendMessage";

const MOST = 100_000;

/** Where one writes. Nothing that was typed is lost: not by a reload, nor when it could not be sent. */
export function Composer({
  thread,
  saying,
  replaces,
  works,
}: {
  thread: string;
  saying: MessageSender;
  /** How many open requests a message would withdraw. */
  replaces: number;
  /** The thread's reader while it is at work. */
  works: ThreadReader | null;
}) {
  const [draft, setDraft] = useDraft(thread);
  const field = useRef<HTMLTextAreaElement>(null);
  const note = useId();
  const isEmpty = !draft.text.trim();
  const send = () => {
    if (isEmpty || saying.isSending) return;
    const once = draft.once || crypto.randomUUID();
    setDraft({ text: draft.text, once });
    saying.say(draft.text, once, () => {
      setDraft({ text: "", once: "" });
      field.current?.focus();
    });
  };
  const press = (event: KeyboardEvent) => {
    const isComposing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || isComposing) return;
    event.preventDefault();
    if (!event.repeat) send();
  };
  return (
    <>
      <div className={css.note} id={note} role="status">
        {saying.refused ? (
          <span>
            <strong>Not sent.</strong> {saying.refused.message}
          </span>
        ) : (
          replaces > 0 && !isEmpty && <span>{willReplace(replaces)}</span>
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
          maxLength={MOST}
          value={draft.text}
          readOnly={saying.isSending}
          onChange={(event) => {
            setDraft({ text: event.currentTarget.value, once: "" });
            if (saying.refused) saying.forget();
          }}
          onKeyDown={press}
          autoFocus={matchMedia("(min-width: 48em)").matches}
        />
        {works && isEmpty ? (
          <StopButton reader={works} />
        ) : (
          <Button type="submit" mih={44} disabled={isEmpty} loading={saying.isSending}>
            {saying.refused && !isEmpty ? "Try again" : "Send"}
          </Button>
        )}
      </form>
    </>
  );
}

function willReplace(count: number): string {
  return count === 1
    ? "Sending this withdraws the open request."
    : `Sending this withdraws ${count} open requests.`;
}

/** What has started already is not undone by it. */
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

function useDraft(thread: string) {
  const [held, setHeld] = useState(() => ({ thread, draft: readDraft(thread) }));
  if (held.thread !== thread) setHeld({ thread, draft: readDraft(thread) }); // rendered anew before anything shows
  const change = (now: typeof held.draft) => {
    keepDraft(thread, now);
    setHeld({ thread, draft: now });
  };
  return [held.draft, change] as const;
}

/** What was typed and not sent, for each thread: a reload or a look elsewhere loses nothing. */
interface MessageDraft {
  text: string;
  /** The key under which it was tried to send; empty if it was not, or if it was changed since. */
  once: string;
}

const EMPTY: MessageDraft = { text: "", once: "" };

function readDraft(thread: string): MessageDraft {
  try {
    return {
      ...EMPTY,
      ...(JSON.parse(sessionStorage.getItem(place(thread)) ?? "{}") as Partial<MessageDraft>),
    };
  } catch {
    return EMPTY;
  }
}

function keepDraft(thread: string, draft: MessageDraft): void {
  try {
    if (draft.text) sessionStorage.setItem(place(thread), JSON.stringify(draft));
    else sessionStorage.removeItem(place(thread));
  } catch {
    // full or switched off: then it lives as long as the page
  }
}

const place = (thread: string) => `interlock-draft-${thread || "new"}`;
