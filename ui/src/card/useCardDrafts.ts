import { useStoredTexts } from "../components/storedDraft";

/** Text that the user typed at a card and did not send. */
export interface CardDrafts {
  reason: string;
  message: string;
  comment: string;
  /** For the agent. */
  question: string;
  /** For other people. */
  note: string;
}

const EMPTY: CardDrafts = { reason: "", message: "", comment: "", question: "", note: "" };

/** Survives a closed form, another card and a reload: it is stored in this tab until it is sent. */
export function useCardDrafts(id: string) {
  return useStoredTexts(`draft:${id}:words`, EMPTY); // named like the drafts of edits: old ones are cleared with them
}
