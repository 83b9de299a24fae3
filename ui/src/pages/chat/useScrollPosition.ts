import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import type { TranscriptItem } from "./transcriptItems";

const NEAR = 150; // to the end
const MARGIN = 12; // above an open request
const INPUT_MS = 400; // in which a scroll follows from the person's input
const INPUTS = ["wheel", "touchmove", "keydown", "pointerdown"] as const;

/**
 * Follows the end, but never past the top of the first open request. Elsewhere it keeps the position and reports new
 * items.
 */
export function useScrollPosition(
  column: RefObject<HTMLElement | null>,
  items: TranscriptItem[],
  sentHere: number,
) {
  const scroller = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const placed = useRef(0);
  const [hasNewItems, setNews] = useState(false);
  const follow = useCallback(() => {
    follows.current = true;
    setNews(false);
    const element = scroller.current;
    if (!element) return;
    element.scrollTop = findTarget(element).top;
    placed.current = element.scrollTop;
  }, []);

  useEffect(() => {
    if (!column.current) return;
    const observer = new ResizeObserver(() => follows.current && follow());
    observer.observe(column.current);
    if (scroller.current) observer.observe(scroller.current);
    return () => observer.disconnect();
  }, [column, follow]);

  const last = items.at(-1)?.key;
  const lastKey = useRef(last);
  useEffect(() => {
    if (last === lastKey.current) return;
    lastKey.current = last;
    if (follows.current) follow();
    else setNews(true);
  }, [last, follow]);
  useEffect(() => {
    // eslint-disable-next-line react-hooks/set-state-in-effect -- to be at the end is what takes the notice away
    if (sentHere) follow();
  }, [sentHere, follow]);

  useKeepPosition(scroller, items[0]?.key);

  const inputAt = useInputTime(scroller);
  const top = useRef(0);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const isUpwards = element.scrollTop < top.current;
    top.current = element.scrollTop;
    if (Math.abs(element.scrollTop - placed.current) <= 1) return; // by `follow`
    const target = findTarget(element);
    const distance = Math.abs(element.scrollTop - target.top);
    const isNear = distance < (target.isEnd ? NEAR : MARGIN);
    const isPushed = performance.now() - inputAt.current < INPUT_MS && !target.isEnd;
    if (isNear) setNews(false);
    follows.current = isNear || (follows.current && !isUpwards && !isPushed); // new content leaves nothing
  };
  return { scroller, onScroll, hasNewItems, follow };
}

/** Where it scrolls to by itself: the end, or the top of the first open request if that is above. */
function findTarget(scroller: HTMLElement): { top: number; isEnd: boolean } {
  const end = scroller.scrollHeight - scroller.clientHeight;
  const open = scroller.querySelector("[data-open]");
  if (!open) return { top: end, isEnd: true };
  const distance = open.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
  const top = Math.max(0, Math.floor(scroller.scrollTop + distance - MARGIN));
  return top < end ? { top, isEnd: false } : { top: end, isEnd: true };
}

/** When the person last did something that may scroll. */
function useInputTime(scroller: RefObject<HTMLElement | null>): RefObject<number> {
  const at = useRef(-INPUT_MS);
  useEffect(() => {
    const element = scroller.current;
    const note = () => void (at.current = performance.now());
    for (const kind of INPUTS) element?.addEventListener(kind, note, { passive: true });
    return () => INPUTS.forEach((kind) => element?.removeEventListener(kind, note));
  }, [scroller]);
  return at;
}

/** Keeps the position when items are added above. */
function useKeepPosition(scroller: RefObject<HTMLElement | null>, first: string | undefined): void {
  const previous = useRef({ first, height: 0 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const isEarlier = previous.current.first !== undefined && previous.current.first !== first;
    if (isEarlier && element.scrollTop < NEAR)
      element.scrollTop += element.scrollHeight - previous.current.height;
    previous.current = { first, height: element.scrollHeight };
  });
}
