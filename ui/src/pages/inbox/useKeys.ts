import { useEffect, useRef } from "react";
import { actionOf, type Action } from "./keys";

/** The keys of the inbox, wherever the focus is on the page. */
export function useKeys(does: Record<Action, () => void>): void {
  const now = useRef(does);
  now.current = does;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = actionOf(event);
      if (!action) return;
      if (action !== "leave") event.preventDefault();
      now.current[action]();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
