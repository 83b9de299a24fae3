import { useRef, useState } from "react";
import { useMe } from "../api/currentUser";

/** What was typed and not sent. "sessionStorage" is that of this tab. */
type DraftStorage = "sessionStorage" | "localStorage";

const PREFIX = "draft:";
const MAX_DRAFTS = 20; // of these names, so that the storage does not fill up

/** Where the draft of a form is stored: another person in the same tab has their own. */
export function useDraftPlace(form: string): string {
  const me = useMe().data;
  return `${PREFIX}${me?.workspace ?? ""}:${me?.name ?? ""}:${form}`;
}

/** Whether a form that is opened first has something in it. */
export function useHasDraft(form: string): boolean {
  return loadDraft(useDraftPlace(form)) !== null;
}

/**
 * A draft that the browser stores in this tab as long as it `isKept`: it survives a closed form, another page and a
 * reload. `read` makes it from what is stored, which may be null, of an older page, or damaged.
 */
export function useStoredDraft<T>(
  place: string,
  read: (stored: unknown) => T,
  isKept: (draft: T) => boolean,
): [draft: T, change: (update: (now: T) => T) => void] {
  const [state, setState] = useState(() => ({ place, draft: read(loadDraft(place)) }));
  const latest = useRef(state);
  const show = (draft: T) => setState((latest.current = { place, draft }));
  if (state.place !== place) show(read(loadDraft(place))); // rerenders before anything is displayed
  const change = (update: (now: T) => T) => {
    const isShown = latest.current.place === place;
    const draft = update(isShown ? latest.current.draft : read(loadDraft(place)));
    storeDraft(place, isKept(draft) ? draft : null); // also if the form is gone when an answer comes
    if (isShown) show(draft);
  };
  return [state.draft, change];
}

/** The draft of fields that are all texts; it is kept until all are as in `empty`. */
export function useStoredTexts<T extends { [Name in keyof T]: string }>(
  place: string,
  empty: T,
): [texts: T, change: (changes: Partial<T>) => void] {
  const names = Object.keys(empty) as (keyof T)[];
  const read = (found: unknown): T => {
    const stored = (found ?? {}) as Record<keyof T, unknown>;
    const known = names.filter((name) => typeof stored[name] === "string");
    return { ...empty, ...Object.fromEntries(known.map((name) => [name, stored[name]])) };
  };
  const [texts, change] = useStoredDraft(place, read, (now) =>
    names.some((name) => now[name] !== empty[name]),
  );
  return [texts, (changes) => change((now) => ({ ...now, ...changes }))];
}

/** Null if there is none, or if it cannot be read. */
export function loadDraft(place: string, storage: DraftStorage = "sessionStorage"): unknown {
  try {
    return JSON.parse(window[storage].getItem(place) ?? "null");
  } catch {
    return null;
  }
}

/** Null removes it. Without storage a draft lives as long as the page. */
export function storeDraft(place: string, draft: unknown, storage: DraftStorage = "sessionStorage"): void {
  try {
    if (draft === null) return window[storage].removeItem(place);
    prune(place);
    window[storage].setItem(place, JSON.stringify(draft));
  } catch {
    // there is nothing else to do
  }
}

function prune(kept: string): void {
  const names = Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX) && name !== kept);
  for (const name of names.slice(0, Math.max(0, names.length + 1 - MAX_DRAFTS)))
    sessionStorage.removeItem(name);
}
