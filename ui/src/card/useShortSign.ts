import { useCallback, useEffect, useState } from "react";

const SIGN_TIME = 2_000; // ms

/** Whether something happened just now, and the function that says so. */
export function useShortSign(): [isShown: boolean, show: () => void] {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (!isShown) return;
    const timer = setTimeout(() => setShown(false), SIGN_TIME);
    return () => clearTimeout(timer);
  }, [isShown]);
  return [isShown, useCallback(() => setShown(true), [])];
}
