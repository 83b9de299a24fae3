import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";
import type { TranscriptItem } from "./transcriptItems";

const NEAR = 150;

/** Follows the end while one is there; above it, nothing moves what one reads, and it says that there is news. */
export function useScrollPosition(
  column: RefObject<HTMLElement | null>,
  items: TranscriptItem[],
  saidHere: number,
) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const [hasNews, setNews] = useState(false);
  const toEnd = useCallback(() => {
    isAtEnd.current = true;
    setNews(false);
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, []);

  useEffect(() => {
    if (!column.current) return;
    const grown = new ResizeObserver(() => isAtEnd.current && toEnd());
    grown.observe(column.current);
    if (scroller.current) grown.observe(scroller.current);
    return () => grown.disconnect();
  }, [column, toEnd]);

  const last = items.at(-1)?.key;
  const seen = useRef(last);
  useEffect(() => {
    if (last === seen.current) return;
    seen.current = last;
    if (isAtEnd.current) toEnd();
    else setNews(true);
  }, [last, toEnd]);
  useEffect(() => {
    // eslint-disable-next-line react-hooks/set-state-in-effect -- to be at the end is what takes the notice away
    if (saidHere) toEnd();
  }, [saidHere, toEnd]);

  useKept(scroller, items[0]?.key);

  const top = useRef(0);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    const isUpwards = element.scrollTop < top.current; // only that is a wish to read above: what comes in below is none
    top.current = element.scrollTop;
    if (isNear) setNews(false);
    isAtEnd.current = isNear || (isAtEnd.current && !isUpwards);
  };
  return { scroller, onScroll, hasNews, toEnd };
}

/** What comes in above pushes nothing away. */
function useKept(scroller: RefObject<HTMLElement | null>, first: string | undefined): void {
  const known = useRef({ first, height: 0 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const isEarlier = known.current.first !== undefined && known.current.first !== first;
    if (isEarlier && element.scrollTop < NEAR)
      element.scrollTop += element.scrollHeight - known.current.height;
    known.current = { first, height: element.scrollHeight };
  });
}
