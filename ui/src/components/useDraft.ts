import { useDraftPlace, useStoredDraft } from "./storedDraft";
import { useLeaveWarning } from "./useLeaveWarning";

interface Draft<T> {
  etag: string;
  saved: T;
  values: T;
}

export interface ItemDraft<T> {
  values: T;
  etag: string;
  isDirty: boolean;
  isOutdated: boolean;
  set: (changes: Partial<T>) => void;
  /** After a save: fields that were changed since they were sent stay as they are, unsaved. */
  markSaved: (sent: T, saved: T, etag: string) => void;
  discard: () => void;
}

/**
 * What a person edits, beside the stored version; this tab keeps it until it is saved or discarded. A newer version
 * replaces it unless there are unsaved changes; then `isOutdated` is true until the person saves or loads it.
 */
export function useDraft<T extends object>(form: string, current: T, etag: string): ItemDraft<T> {
  const unchanged = { etag, saved: current, values: current };
  const [draft, change] = useStoredDraft<Draft<T>>(
    useDraftPlace(form),
    (stored) => readStored(stored, current) ?? unchanged,
    ({ values, saved }) => !isSame(values, saved),
  );
  const isDirty = !isSame(draft.values, draft.saved);
  const isOutdated = draft.etag !== etag;
  if (isOutdated && !isDirty) change(() => unchanged);
  useLeaveWarning(isDirty);
  return {
    values: draft.values,
    etag: draft.etag,
    isDirty,
    isOutdated: isOutdated && isDirty,
    set: (changes) => change((now) => ({ ...now, values: { ...now.values, ...changes } })),
    markSaved: (sent, saved, newEtag) =>
      change((now) => ({ etag: newEtag, saved, values: { ...saved, ...changedSince(sent, now.values) } })),
    discard: () => change(() => unchanged),
  };
}

/** Null if it has other fields than the form, or nothing that is not saved by now. */
function readStored<T extends object>(stored: unknown, current: T): Draft<T> | null {
  const { etag, saved, values } = (stored ?? {}) as Partial<Draft<T>>;
  if (typeof etag !== "string" || !saved || !values) return null;
  const isOfForm = [saved, values].every((each) =>
    isSame(Object.keys(each).sort(), Object.keys(current).sort()),
  );
  return isOfForm && !isSame(values, current) ? { etag, saved, values } : null;
}

function changedSince<T extends object>(sent: T, now: T): Partial<T> {
  const names = Object.keys(now) as (keyof T)[];
  const changed = names.filter((name) => !isSame(now[name], sent[name]));
  return Object.fromEntries(changed.map((name) => [name, now[name]])) as Partial<T>;
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);
