import { useEffect, useRef } from "react";

export const FIRST_INPUT = ["input, textarea, select", "[role=tab]"];
export const FIRST_PROBLEM = ["[aria-invalid=true]", "[data-problem]", "[role=alert]"];
const RENDER_TIME = 50; // milliseconds until the element is rendered
const MAX_TRIES = 40; // parts that are loaded on demand come later

/** Focuses the first matching element each time `trigger` changes, unless the user is typing. */
export function useFocusFirst(
  root: { current: HTMLElement | null },
  selectors: string[],
  trigger: unknown,
  options?: FocusOptions,
): void {
  const isQuiet = options?.preventScroll ?? false;
  useEffect(() => {
    let tries = 0;
    let timer: ReturnType<typeof setTimeout>;
    let meanwhile: HTMLElement | null = null; // has the focus until the first choice is there
    const focus = () => {
      if (root.current && isTypingIn(root.current)) return;
      if (meanwhile && document.activeElement !== meanwhile) return;
      const found = findFirst(root.current, selectors.slice(0, 1));
      if (found) return found.focus({ preventScroll: isQuiet });
      meanwhile ??= findFirst(root.current, selectors);
      meanwhile?.focus({ preventScroll: isQuiet });
      if (++tries < MAX_TRIES) timer = setTimeout(focus, RENDER_TIME);
    };
    timer = setTimeout(focus, RENDER_TIME);
    return () => clearTimeout(timer);
  }, [root, selectors, trigger, isQuiet]);
}

function findFirst(root: HTMLElement | null, selectors: string[]): HTMLElement | null {
  for (const each of selectors) {
    const found = root?.querySelector<HTMLElement>(each);
    if (found) return found;
  }
  return null;
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
