import { useQuery } from "@tanstack/react-query";
import { call } from "./client";

/** What the link of a message shows, and for whom it was made. To look spends nothing. */
export function useLook(token: string) {
  return useQuery({
    queryKey: ["link", token],
    queryFn: async ({ signal }) => ({
      ...(await call("post", "/api/links/inspect", { body: { token }, signal })),
      read_at: performance.now(),
    }),
    enabled: token !== "",
    staleTime: Infinity,
    retry: false,
  });
}
