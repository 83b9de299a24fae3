import { useEffect, useMemo, useSyncExternalStore } from "react";
import { Reader, type Reading } from "./reader";

const NOTHING = () => () => undefined;
const NULL = () => null;

/** The thread of this address, read while it is on the screen. */
export function useReader(thread: string | undefined): [Reader | null, Reading | null] {
  const reader = useMemo(() => (thread ? new Reader(thread) : null), [thread]);
  useEffect(() => reader?.start(), [reader]);
  return [reader, useSyncExternalStore(reader?.watch ?? NOTHING, reader?.now ?? NULL)];
}
