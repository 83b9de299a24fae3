import { useRef, useState } from "react";

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
export function useCardDrafts(
  id: string,
): [drafts: CardDrafts, change: (changes: Partial<CardDrafts>) => void] {
  const [drafts, setDrafts] = useState(() => load(id));
  const latest = useRef(drafts);
  const change = (changes: Partial<CardDrafts>) => {
    latest.current = { ...latest.current, ...changes };
    save(id, latest.current); // also if the card is gone when the answer to a decision comes
    setDrafts(latest.current);
  };
  return [drafts, change];
}

/** Named like the drafts of edits, so that old ones are cleared with them. */
const storageKey = (id: string) => `draft:${id}:words`;

function load(id: string): CardDrafts {
  try {
    const stored = JSON.parse(sessionStorage.getItem(storageKey(id)) ?? "{}") as Record<string, unknown>;
    const known = Object.keys(EMPTY).filter((name) => typeof stored[name] === "string");
    return { ...EMPTY, ...Object.fromEntries(known.map((name) => [name, stored[name]])) };
  } catch {
    return EMPTY;
  }
}

function save(id: string, drafts: CardDrafts): void {
  try {
    if (Object.values(drafts).some(Boolean)) sessionStorage.setItem(storageKey(id), JSON.stringify(drafts));
    else sessionStorage.removeItem(storageKey(id));
  } catch {
    // without storage the text lives as long as the card
  }
}
