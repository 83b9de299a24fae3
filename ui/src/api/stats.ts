import { useQuery, type QueryClient } from "@tanstack/react-query";
import { useLiveState } from "../live/live";
import { callApi, type Schemas } from "./client";

const STATS_KEY = ["stats"] as const;
const POLL_INTERVAL = 5_000; // ms, without live events

/** The number of open requests: one count for the navigation, the tab title and the inbox, so that they agree. */
export function usePendingCount(): number {
  return useStats()?.pending ?? 0;
}

export function useStats(): Schemas["WorkspaceStats"] | undefined {
  const live = useLiveState();
  return useQuery({
    queryKey: STATS_KEY,
    queryFn: ({ signal }) => callApi("get", "/api/stats", { signal }),
    refetchInterval: live === "live" ? false : POLL_INTERVAL,
  }).data;
}

/** Counts the user's own decisions at once, and then asks the server, whose count may have had them already. */
export function changePendingCount(queries: QueryClient, by: number): void {
  void queries.cancelQueries({ queryKey: STATS_KEY }); // a running request may hold the count from before
  queries.setQueryData<Schemas["WorkspaceStats"]>(
    STATS_KEY,
    (stats) => stats && { ...stats, pending: Math.max(0, stats.pending + by) },
  );
  void queries.invalidateQueries({ queryKey: STATS_KEY });
}
