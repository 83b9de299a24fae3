import { useQuery } from "@tanstack/react-query";
import { callApi } from "./client";

/** The approval that a notification link leads to, and its recipient. Reading does not use the link up. */
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
