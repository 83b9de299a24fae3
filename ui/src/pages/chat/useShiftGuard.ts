import { useCallback, useEffect, useState, type SyntheticEvent } from "react";
import { SETTLE_MS } from "../../card/clock";

const OPEN_CARD = "article[data-approval][data-status=pending]";
const NOTICE_MS = 1_200;
const HARMLESS_KEYS = new Set(["Tab", "Shift", "Escape"]);

/**
 * When a card shrinks to a line, others move to where it was: what is pressed right after was meant for what stood
 * there. `start` is called then, `hold` goes onto the capturing handlers of what holds the cards.
 */
export function useShiftGuard() {
  const [isShifting, setShifting] = useState(false);
  const [isEarly, setEarly] = useState(false);
  useTimeout(isShifting, SETTLE_MS, setShifting);
  useTimeout(isEarly, NOTICE_MS, setEarly);
  const start = useCallback(() => setShifting(true), []);
  const hold = (event: SyntheticEvent) => {
    if (!isShifting || !(event.target as Element).closest(OPEN_CARD)) return;
    if (HARMLESS_KEYS.has((event.nativeEvent as Partial<KeyboardEvent>).key ?? "")) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.type !== "pointerdown") setEarly(true);
  };
  return { isShifting, isEarly, start, hold };
}

function useTimeout(isRunning: boolean, milliseconds: number, set: (isRunning: false) => void): void {
  useEffect(() => {
    if (!isRunning) return;
    const timer = setTimeout(() => set(false), milliseconds);
    return () => clearTimeout(timer);
  }, [isRunning, milliseconds, set]);
}
