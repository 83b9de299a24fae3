import { useEffect, useRef, useState, type RefObject } from "react";

/** Whether an element came near the screen; once it did, that stays. */
export function useNear<E extends Element>(): [RefObject<E | null>, boolean] {
  const place = useRef<E>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    if (isNear || !place.current) return;
    const seen = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setNear(true),
      { root: place.current.closest("[data-scroller]"), rootMargin: "800px" },
    );
    seen.observe(place.current);
    return () => seen.disconnect();
  }, [isNear]);
  return [place, isNear];
}
