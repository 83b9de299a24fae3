import { useQuery } from "@tanstack/react-query";
import { openDrafts } from "../components/draftStorage";
import { callApi, type Schemas } from "./client";

export type CurrentUser = Schemas["CurrentUser"];

/** The signed-in user; the shell shows no page before this is loaded. */
export function useMe() {
  return useQuery({
    queryKey: ["me"],
    queryFn: async ({ signal }) => {
      const me = await callApi("get", "/api/me", { signal });
      openDrafts(`${me.workspace}/${me.name}`);
      return me;
    },
    staleTime: 60_000,
    retry: (count, error) => !("status" in error && error.status === 401) && count < 5,
  });
}

export const mayDecide = (me: CurrentUser | undefined) => me?.role === "reviewer" || me?.role === "admin";
export const isAdmin = (me: CurrentUser | undefined) => me?.role === "admin";
