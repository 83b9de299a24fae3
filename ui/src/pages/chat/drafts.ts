/** What was typed and not sent, for each thread: a reload or a look elsewhere loses nothing. */
export interface Draft {
  text: string;
  /** The key under which it was tried to send; empty if it was not, or if it was changed since. */
  once: string;
}

const EMPTY: Draft = { text: "", once: "" };

export function draftOf(thread: string): Draft {
  try {
    return { ...EMPTY, ...(JSON.parse(sessionStorage.getItem(place(thread)) ?? "{}") as Partial<Draft>) };
  } catch {
    return EMPTY;
  }
}

export function keepDraft(thread: string, draft: Draft): void {
  try {
    if (draft.text) sessionStorage.setItem(place(thread), JSON.stringify(draft));
    else sessionStorage.removeItem(place(thread));
  } catch {
    // full or switched off: then it lives as long as the page
  }
}

const place = (thread: string) => `interlock-draft-${thread || "new"}`;
