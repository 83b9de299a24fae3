import { useEffect } from "react";

export const FIRST = ["input, textarea, select", "[role=tab]"];
export const WRONG = ["[aria-invalid=true]", "[data-problem]", "[role=alert]"];
const DRAWN = 50; // milliseconds; what is looked for is drawn by then, or there is nothing to go to

/** The focus goes to the first of these that is there, each time that `why` changes; not away from where one writes. */
export function useFocus(root: { current: HTMLElement | null }, wanted: string[], why: unknown): void {
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
