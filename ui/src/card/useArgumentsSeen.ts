import { useEffect, useState, type RefObject } from "react";

const BAR = 80; // pixels at the end of the screen that the answers of a card may cover

/** Whether the arguments of a card have been on the screen: before that, its answers do not come to the reader. */
export function useArgumentsSeen(card: RefObject<HTMLElement | null>, isWanted: boolean): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const part = isWanted && !isSeen ? card.current?.querySelector("[data-arguments]") : null;
    if (!part) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some(({ isIntersecting }) => isIntersecting) && setSeen(true),
      { rootMargin: `0px 0px -${BAR}px 0px` },
    );
    observer.observe(part);
    return () => observer.disconnect();
  }, [card, isWanted, isSeen]);
  return isSeen;
}
