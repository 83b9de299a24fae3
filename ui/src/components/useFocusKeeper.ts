import { useEffect, useRef, type RefObject } from "react";

/**
 * Calls back when the element with the focus is gone or cannot have it any more, so that keys and screen readers never
 * start again at the top of the page. A click beside everything moves the focus away on purpose.
 */
export function useFocusKeeper(root: RefObject<HTMLElement | null>, onLost: () => void): void {
  const now = useRef(onLost);
  now.current = onLost;
  useEffect(() => {
    const part = root.current;
    if (!part) return;
    let last: Element | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const remember = ({ target }: Event) => (last = target as Element);
    const check = () => {
      timer = undefined;
      if (!isFocusOnBody() || !last || canHaveFocus(last)) return;
      last = null;
      now.current();
    };
    const schedule = () => (timer ??= setTimeout(check, 50)); // the browser gives up the focus when it next paints
    const forget = () =>
      setTimeout(() => {
        if (isFocusOnBody() && last && canHaveFocus(last)) last = null;
      });
    const observer = new MutationObserver(schedule);
    observer.observe(part, {
      childList: true,
      subtree: true,
      attributes: true,
      attributeFilter: ["disabled", "inert"],
    });
    part.addEventListener("focusin", remember);
    addEventListener("click", forget);
    return () => {
      observer.disconnect();
      clearTimeout(timer);
      part.removeEventListener("focusin", remember);
      removeEventListener("click", forget);
    };
  }, [root]);
}

function isFocusOnBody(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

function canHaveFocus(element: Element): boolean {
  return element.isConnected && !element.matches(":disabled") && !element.closest("[inert]");
}
