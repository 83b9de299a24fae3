import { useEffect } from "react";

/** Asks before the site is left with unsaved changes. */
export function useLeaveWarning(isEnabled: boolean): void {
  useEffect(() => {
    if (!isEnabled) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isEnabled]);
}
