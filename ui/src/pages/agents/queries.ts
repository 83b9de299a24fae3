import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { callApi, type Schemas } from "../../api/client";
import { live } from "../../live/live";
import type { AgentChange } from "./agentChange";

export type AgentInfo = Schemas["AgentInfo"];
export type ToolInfo = Schemas["ToolInfo"];
export type VerdictReason = Schemas["VerdictReason"];
export type ToolCallCounts = Schemas["ToolCallCountsJson"];

export const COUNTED_DAYS = 30;
const PAGE_SIZE = 50;

export function useAgents() {
  return useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => callApi("get", "/api/agents", { signal }),
  });
}

export function useAgent(name: string) {
  return useQuery({
    queryKey: ["agents", name],
    queryFn: ({ signal }) => callApi("get", "/api/agents/{name}", { path: { name }, signal }),
  });
}

interface ToolQuery {
  agent: string;
  q: string;
  /** Only the agent's tools, or all known tools. */
  offered?: boolean;
}

/** In pages; reloaded when a policy, a switch or a pin changes. */
export function useTools(query: ToolQuery) {
  const queries = useQueryClient();
  useEffect(
    () =>
      live.subscribe(({ kind }) => {
        if (/^(policy|agent|tool)_/.test(kind)) void queries.invalidateQueries({ queryKey: ["tools"] });
      }),
    [queries],
  );
  return useInfiniteQuery({
    queryKey: ["tools", query],
    queryFn: ({ pageParam, signal }) =>
      callApi("get", "/api/tools", { query: { ...query, cursor: pageParam, limit: PAGE_SIZE }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
  });
}

export function useToolCalls(agent: string, tool: string) {
  return useQuery({
    queryKey: ["tools", "calls", agent, tool],
    queryFn: ({ signal }) =>
      callApi("get", "/api/tools/{name}/calls", {
        path: { name: tool },
        query: { agent, days: COUNTED_DAYS },
        signal,
      }),
  });
}

/** Bound to the displayed version; after a refusal the current version is loaded. */
export function useChangeAgent(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ body, version, reason }: AgentChange) =>
      callApi("put", "/api/agents/{name}", {
        path: { name },
        query: { reason },
        body: body as Schemas["AgentBody"],
        headers: { "if-match": `"${version}"` },
      }),
    onSuccess: (now) => queries.setQueryData(["agents", name], now),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["agents"] });
      void queries.invalidateQueries({ queryKey: ["tools"] });
    },
  });
}
