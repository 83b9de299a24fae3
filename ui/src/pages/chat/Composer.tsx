import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useId, useRef, useState, type KeyboardEvent } from "react";
import { call } from "../../api/client";
import css from "./Composer.module.css";
import { draftOf, keepDraft } from "./drafts";
import type { Reader } from "./reader";
import type { Saying } from "./useSay";

const MOST = 100_000;

/** Where one writes. Nothing that was typed is lost: not by a reload, nor when it could not be sent. */
export function Composer({
  thread,
  saying,
  replaces,
  works,
}: {
  thread: string;
  saying: Saying;
  /** How many open requests a message would withdraw. */
  replaces: number;
  /** The thread's reader while it is at work. */
  works: Reader | null;
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
          <Stop reader={works} />
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
  return count === 1 ? "This replaces the open request." : `This replaces the ${count} open requests.`;
}

/** What has started already is not undone by it. */
export function Stop({ reader }: { reader: Reader }) {
  const stop = useMutation({
    mutationFn: () =>
      call("post", "/api/threads/{thread_id}/stop", { path: { thread_id: reader.id }, body: {} }),
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
  const [held, setHeld] = useState(() => ({ thread, draft: draftOf(thread) }));
  if (held.thread !== thread) setHeld({ thread, draft: draftOf(thread) }); // rendered anew before anything shows
  const change = (now: typeof held.draft) => {
    keepDraft(thread, now);
    setHeld({ thread, draft: now });
  };
  return [held.draft, change] as const;
}
