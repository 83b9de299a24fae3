import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import type { TranscriptItem } from "./transcriptItems";

const NEAR = 150;

/** Follows the end while scrolled there; elsewhere it keeps the position and reports new items. */
export function useScrollPosition(
  column: RefObject<HTMLElement | null>,
  items: TranscriptItem[],
  sentHere: number,
) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [hasNewItems, setNews] = useState(false);
  const toEnd = useCallback(() => {
    isAtEnd.current = true;
    setNews(false);
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, []);

  useEffect(() => {
    if (!column.current) return;
    const observer = new ResizeObserver(() => isAtEnd.current && toEnd());
    observer.observe(column.current);
    if (scroller.current) observer.observe(scroller.current);
    return () => observer.disconnect();
  }, [column, toEnd]);

  const last = items.at(-1)?.key;
  const lastKey = useRef(last);
  useEffect(() => {
    if (last === lastKey.current) return;
    lastKey.current = last;
    if (isAtEnd.current) toEnd();
    else setNews(true);
  }, [last, toEnd]);
  useEffect(() => {
    // eslint-disable-next-line react-hooks/set-state-in-effect -- to be at the end is what takes the notice away
    if (sentHere) toEnd();
  }, [sentHere, toEnd]);

  useKeepPosition(scroller, items[0]?.key);

  const top = useRef(0);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    const isUpwards = element.scrollTop < top.current; // only this leaves the end: new content below does not
    top.current = element.scrollTop;
    if (isNear) setNews(false);
    isAtEnd.current = isNear || (isAtEnd.current && !isUpwards);
  };
  return { scroller, onScroll, hasNewItems, toEnd };
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
