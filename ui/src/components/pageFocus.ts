import { useEffect, useRef } from "react";

const PATIENCE = 5_000; // a page that takes longer to load leaves the focus where it is

/** After going to another page, a screen reader and the keyboard go on at its heading, unless the page wants it elsewhere. */
export function useFocusOnPage(page: string): void {
  const before = useRef(page);
  useEffect(() => {
    if (before.current === page) return;
    before.current = page;
    window.scrollTo(0, 0);
    return onceThere(heading, focusUnlessTaken);
  }, [page]);
}

/** That of the page before stays, hidden, until the next one is loaded. */
function heading(): HTMLElement | null {
  const found = document.querySelector<HTMLElement>("main h1");
  return found?.checkVisibility() ? found : null;
}

function onceThere(find: () => HTMLElement | null, then: (found: HTMLElement) => void): () => void {
  const look = () => {
    const found = find();
    if (!found) return;
    stop();
    then(found);
  };
  const observer = new MutationObserver(look);
  const timer = setTimeout(() => stop(), PATIENCE);
  const stop = () => {
    observer.disconnect();
    clearTimeout(timer);
  };
  observer.observe(document.body, { childList: true, subtree: true });
  look();
  return stop;
}

function focusUnlessTaken(heading: HTMLElement): void {
  const focused = document.activeElement;
  if (focused && focused !== document.body && !focused.closest("nav, header")) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
