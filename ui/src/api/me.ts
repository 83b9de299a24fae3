import { useQuery } from "@tanstack/react-query";
import { call, type Shapes } from "./client";

export type Myself = Shapes["CurrentUser"];

/** Who is signed in; the shell shows no page before this is known. */
export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: ({ signal }) => call("get", "/api/me", { signal }),
    staleTime: 60_000,
    retry: (count, error) => !("status" in error && error.status === 401) && count < 5,
  });
}

export const mayDecide = (me: Myself | undefined) => me?.role === "reviewer" || me?.role === "admin";
export const isAdmin = (me: Myself | undefined) => me?.role === "admin";
