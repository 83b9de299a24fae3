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
  load: (values: T, etag: string) => void;
  discard: () => void;
}

/**
 * What a person edits, beside the stored version. A newer version replaces it unless there are unsaved changes; then
 * `isOutdated` is true until the person saves or loads it.
 */
export function useDraft<T>(current: T, etag: string): ItemDraft<T> {
  const [draft, setDraft] = useState<Draft<T>>({ etag, saved: current, values: current });
  const isDirty = JSON.stringify(draft.values) !== JSON.stringify(draft.saved);
  const isOutdated = draft.etag !== etag;
  const load = (values: T, newEtag: string) => setDraft({ etag: newEtag, saved: values, values });
  if (isOutdated && !isDirty) load(current, etag);
  useLeaveWarning(isDirty);
  return {
    values: draft.values,
    etag: draft.etag,
    isDirty,
    isOutdated: isOutdated && isDirty,
    set: (changes: Partial<T>) => setDraft({ ...draft, values: { ...draft.values, ...changes } }),
    load,
    discard: () => load(current, etag),
  };
}
