import { useQuery } from "@tanstack/react-query";
import { callApi } from "./client";

/** What the link of a message shows, and for whom it was made. To look spends nothing. */
export function useLinkPreview(token: string) {
  return useQuery({
    queryKey: ["link", token],
    queryFn: async ({ signal }) => ({
      ...(await callApi("post", "/api/links/inspect", { body: { token }, signal })),
      read_at: performance.now(),
    }),
    enabled: token !== "",
    staleTime: Infinity,
    retry: false,
  });
}
