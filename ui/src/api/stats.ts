import { useQuery, type QueryClient } from "@tanstack/react-query";
import { useLiveState } from "../live/live";
import { callApi, type Schemas } from "./client";

const STATS_KEY = ["stats"] as const;
const POLL_INTERVAL = 5_000; // ms, without live events

/** The number of open requests: one count for the navigation, the tab title and the inbox, so that they agree. */
export function usePendingCount(): number {
  const live = useLiveState();
  const stats = useQuery({
    queryKey: STATS_KEY,
    queryFn: ({ signal }) => callApi("get", "/api/stats", { signal }),
    refetchInterval: live === "live" ? false : POLL_INTERVAL,
  });
  return stats.data?.pending ?? 0;
}

/** Counts the user's own decisions at once; the live connection brings the server's count within a second. */
export function changePendingCount(queries: QueryClient, by: number): void {
  void queries.cancelQueries({ queryKey: STATS_KEY }); // a running request may hold the count from before
  queries.setQueryData<Schemas["WorkspaceStats"]>(
    STATS_KEY,
    (stats) => stats && { ...stats, pending: Math.max(0, stats.pending + by) },
  );
}
