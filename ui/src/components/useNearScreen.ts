import { useEffect, useRef, useState, type RefObject } from "react";

/** Whether an element has been near the viewport. */
export function useNearScreen<E extends Element>(): [RefObject<E | null>, boolean] {
  const container = useRef<E>(null);
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    if (isNear || !container.current) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setNear(true),
      { root: container.current.closest("[data-scroller]"), rootMargin: "800px" },
    );
    observer.observe(container.current);
    return () => observer.disconnect();
  }, [isNear]);
  return [container, isNear];
}
