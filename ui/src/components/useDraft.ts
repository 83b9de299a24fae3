import { useState } from "react";
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
 * What a person edits, beside the stored version. A newer version replaces it unless there are unsaved changes; then
 * `isOutdated` is true until the person saves or loads it.
 */
export function useDraft<T extends object>(current: T, etag: string): ItemDraft<T> {
  const [draft, setDraft] = useState<Draft<T>>({ etag, saved: current, values: current });
  const isDirty = !isSame(draft.values, draft.saved);
  const isOutdated = draft.etag !== etag;
  const load = (values: T, newEtag: string) => setDraft({ etag: newEtag, saved: values, values });
  if (isOutdated && !isDirty) load(current, etag);
  useLeaveWarning(isDirty);
  return {
    values: draft.values,
    etag: draft.etag,
    isDirty,
    isOutdated: isOutdated && isDirty,
    set: (changes) => setDraft((now) => ({ ...now, values: { ...now.values, ...changes } })),
    markSaved: (sent, saved, newEtag) =>
      setDraft((now) => ({ etag: newEtag, saved, values: { ...saved, ...changedSince(sent, now.values) } })),
    discard: () => load(current, etag),
  };
}

function changedSince<T extends object>(sent: T, now: T): Partial<T> {
  const names = Object.keys(now) as (keyof T)[];
  const changed = names.filter((name) => !isSame(now[name], sent[name]));
  return Object.fromEntries(changed.map((name) => [name, now[name]])) as Partial<T>;
}

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);
