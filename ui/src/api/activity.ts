import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { live } from "../live/live";
import { callApi, type Schemas } from "./client";

export type AgentActivity = Schemas["AgentActivity"];
export type AgentActivityDetails = Schemas["AgentActivityDetails"];

const ACTIVITY_KEY = ["activity"]; // not below "agents", where an agent may have this name
const REFRESH_INTERVAL = 30_000;
const CALLS_INTERVAL = 1_000; // at the most often
const PROPOSALS = new Set(["proposed", "allowed", "denied"]);

/** What each agent did in the last days; those with nothing but a key are listed too. */
export function useActivity(refetchInterval = REFRESH_INTERVAL) {
  return useQuery({
    queryKey: ACTIVITY_KEY,
    queryFn: ({ signal }) => callApi("get", "/api/activity", { signal }),
    refetchInterval,
  });
}

export function useAgentActivity(name: string) {
  return useQuery({
    queryKey: [...ACTIVITY_KEY, name],
    queryFn: ({ signal }) => callApi("get", "/api/agents/{name}/activity", { path: { name }, signal }),
    refetchInterval: REFRESH_INTERVAL,
  });
}

/** Loads the activity when this agent makes a call; of many calls at once, not for each. */
export function useCallsOf(agent: string): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unsubscribe = live.subscribe(({ kind, actor }) => {
      if (!PROPOSALS.has(kind) || actor !== `agent:${agent}`) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        void queries.invalidateQueries({ queryKey: ACTIVITY_KEY });
      }, CALLS_INTERVAL);
    });
    return () => {
      unsubscribe();
      clearTimeout(timer);
    };
  }, [queries, agent]);
}
