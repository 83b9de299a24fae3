import { useEffect, useState } from "react";
import { SETTLE } from "./clock";

/** Whether `what` has stood there for a moment: what is pressed sooner was meant for something else. */
export function useSettled(what: string): boolean {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(what), SETTLE);
    return () => clearTimeout(timer);
  }, [what]);
  return settled === what;
}
