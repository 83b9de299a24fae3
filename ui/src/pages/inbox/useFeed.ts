import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { Filters } from "./filters";
import { FeedStore, type Listing } from "./store";

/** The list for these filters; other filters make another list. */
export function useFeed(filters: Filters): { store: FeedStore; listing: Listing } {
  const key = JSON.stringify(filters);
  const store = useMemo(() => new FeedStore(JSON.parse(key) as Filters), [key]);
  useEffect(() => store.start(), [store]);
  const listing = useSyncExternalStore(store.subscribe, store.get);
  return { store, listing };
}
