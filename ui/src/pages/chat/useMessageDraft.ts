import { useState } from "react";

/** The unsent message of each thread, stored in this tab. */
export interface MessageDraft {
  text: string;
  /** The idempotency key of the failed attempt; empty if there was none or the text has changed. */
  idempotencyKey: string;
  /** The request that the failed attempt asked about; empty if it was a message. */
  to: string;
}

const EMPTY: MessageDraft = { text: "", idempotencyKey: "", to: "" };

export function useMessageDraft(thread: string) {
  const [stored, setStored] = useState(() => ({ thread, draft: readDraft(thread) }));
  if (stored.thread !== thread) setStored({ thread, draft: readDraft(thread) }); // rerenders before anything is displayed
  const change = (now: MessageDraft) => {
    storeDraft(thread, now);
    setStored({ thread, draft: now });
  };
  return [stored.draft, change] as const;
}

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
