import { useEffect, useRef } from "react";

export const FIRST_INPUT = ["input, textarea, select", "[role=tab]"];
export const FIRST_PROBLEM = ["[aria-invalid=true]", "[data-problem]", "[role=alert]"];
const DRAWN = 50; // milliseconds; what is looked for is drawn by then, or there is nothing to go to

/** The focus goes to the first of these that is there, each time that `why` changes; not away from where one writes. */
export function useFocusFirst(root: { current: HTMLElement | null }, wanted: string[], why: unknown): void {
  useEffect(() => {
    const timer = setTimeout(() => {
      if (root.current && writesIn(root.current)) return;
      const found = wanted.map((each) => root.current?.querySelector<HTMLElement>(each));
      found.find((each) => each)?.focus();
    }, DRAWN);
    return () => clearTimeout(timer);
  }, [root, wanted, why]);
}

/** Else what one types would land in another field. */
function writesIn(root: HTMLElement): boolean {
  const here = document.activeElement;
  return root.contains(here) && here?.matches("input, textarea, select, [contenteditable=true]") === true;
}

/** The same object as long as it says the same, so that what depends on it is not made anew at every key. */
export function useStableValue<T>(value: T, said: (value: T) => string = JSON.stringify): T {
  const last = useRef({ value, words: "" });
  const words = said(value);
  if (words !== last.current.words) last.current = { value, words };
  return last.current.value;
}
