import { lazy, Suspense } from "react";
import { useLocation } from "wouter";
import { useAsked } from "./asking";

const AskedDialog = lazy(() => import("./AskedDialog"));

/** On any page: what is urgent and waits for this person comes to them. Closing it decides nothing. */
export function Asked() {
  const [path] = useLocation();
  const { ids, total, next } = useAsked(!isSeenAnyway(path));
  const id = ids[0];
  if (!id || isSeenAnyway(path)) return null;
  return (
    <Suspense fallback={null}>
      <AskedDialog key={id} id={id} place={total - ids.length + 1} total={total} onClose={next} />
    </Suspense>
  );
}

/** Where people look at what waits in any case. */
function isSeenAnyway(path: string): boolean {
  return path.startsWith("/a/") || path.startsWith("/inbox");
}
