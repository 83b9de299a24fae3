import { useCallback, useEffect, useMemo, useState } from "react";

/** What a decision did. */
export interface Toast {
  kind: "approved" | "rejected" | "info";
  text: string;
  /** The request that it is about. */
  subject?: string;
  /** The time in which the server still accepts an undo; none without it. */
  undoMilliseconds?: number;
}

/** A toast with the time for which it is shown, and at which that ends. */
export type ShownToast = Toast & { milliseconds: number; until: number };

export interface Announcements {
  toast: ShownToast | null;
  /** A hint about the last key or click. */
  hint: string;
  announce: (text: string) => void;
  showToast: (toast: Toast) => void;
}

const TOAST_TIME = 6_000; // ms, without an undo
const HINT_TIME = 6_000;

/** The messages at the end of the list: what a decision did, and beside it what a key could not do. */
export function useAnnouncements(): Announcements {
  const [toast, setToast] = useState<ShownToast | null>(null);
  const [hint, setHint] = useState({ text: "" });
  useExpiry(toast, toast?.milliseconds ?? 0, () => setToast(null));
  useExpiry(hint.text ? hint : null, HINT_TIME, () => setHint({ text: "" }));
  const announce = useCallback((text: string) => setHint({ text }), []);
  const showToast = useCallback((next: Toast) => {
    setHint({ text: "" });
    const milliseconds = next.undoMilliseconds || TOAST_TIME;
    setToast({ ...next, milliseconds, until: performance.now() + milliseconds });
  }, []);
  return useMemo(() => ({ toast, hint: hint.text, announce, showToast }), [toast, hint, announce, showToast]);
}

/** Calls back when this value has been shown long enough. */
function useExpiry(value: object | null, milliseconds: number, onExpired: () => void): void {
  useEffect(() => {
    if (!value) return;
    const timer = setTimeout(onExpired, milliseconds);
    return () => clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each value
  }, [value]);
}
