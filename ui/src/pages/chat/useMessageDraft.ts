import { useStoredDraft } from "../../components/storedDraft";

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
  const [draft, change] = useStoredDraft(storageKey(thread), readDraft, ({ text }) => text !== "");
  return [draft, (now: MessageDraft) => change(() => now)] as const;
}

const readDraft = (stored: unknown): MessageDraft => ({
  ...EMPTY,
  ...(stored as Partial<MessageDraft> | null),
});

const storageKey = (thread: string) => `interlock-draft-${thread || "new"}`;
