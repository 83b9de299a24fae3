import { useRef, useState } from "react";
import { useMe } from "../api/currentUser";
import { DRAFT_PREFIX, loadDraft, storeDraft } from "./draftStorage";

/** Where the draft of a form is stored: another person in the same tab has their own. */
export function useDraftPlace(form: string): string {
  const me = useMe().data;
  return `${DRAFT_PREFIX}${me?.workspace ?? ""}:${me?.name ?? ""}:${form}`;
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
