import { useEffect, useRef } from "react";

export const FIRST_INPUT = ["input, textarea, select", "[role=tab]"];
export const FIRST_PROBLEM = ["[aria-invalid=true]", "[data-problem]", "[role=alert]"];
const RENDER_TIME = 50; // milliseconds until the element is rendered

/** Focuses the first matching element each time `trigger` changes, unless the user is typing. */
export function useFocusFirst(
  root: { current: HTMLElement | null },
  selectors: string[],
  trigger: unknown,
): void {
  useEffect(() => {
    const timer = setTimeout(() => {
      if (root.current && isTypingIn(root.current)) return;
      const found = selectors.map((each) => root.current?.querySelector<HTMLElement>(each));
      found.find((each) => each)?.focus();
    }, RENDER_TIME);
    return () => clearTimeout(timer);
  }, [root, selectors, trigger]);
}

/** Otherwise typed text would land in another field. */
function isTypingIn(root: HTMLElement): boolean {
  const here = document.activeElement;
  return root.contains(here) && here?.matches("input, textarea, select, [contenteditable=true]") === true;
}

/** The same object while its key stays the same, so that dependent values are not recomputed on every key press. */
export function useStableValue<T>(value: T, toKey: (value: T) => string = JSON.stringify): T {
  const last = useRef({ value, key: "" });
  const key = toKey(value);
  if (key !== last.current.key) last.current = { value, key };
  return last.current.value;
}
