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

/** Reloads agents that somebody changed or deleted. */
export function useAgentChanges(): void {
  const queries = useQueryClient();
  useEffect(
    () =>
      live.subscribe(({ kind }) => {
        if (kind.startsWith("agent_")) void queries.invalidateQueries({ queryKey: ["agents"] });
      }),
    [queries],
  );
}

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

const ALL_PAGE_SIZE = 500;
const MAX_ALL_PAGES = 8; // of tools in one list

/** All tools, for a list to choose from. */
export function useAllTools() {
  return useQuery({
    queryKey: ["tools", "all"],
    queryFn: async ({ signal }) => {
      const items: ToolInfo[] = [];
      let cursor = "";
      for (let page = 0; page < MAX_ALL_PAGES; page++) {
        const found = await callApi("get", "/api/tools", {
          query: { cursor, limit: ALL_PAGE_SIZE },
          signal,
        });
        items.push(...found.items);
        if (!found.next) return { items, isComplete: true };
        cursor = found.next;
      }
      return { items, isComplete: false };
    },
  });
}

/** The default model and those in use, or one model, and why each cannot be used, if so. */
export function useModels(name = "") {
  return useQuery({
    queryKey: ["models", name],
    queryFn: ({ signal }) => callApi("get", "/api/models", { query: { name }, signal }),
    staleTime: 60_000,
  });
}

/** What depends on an agent, and what deleting it would do. */
export function useDependents(name: string) {
  return useQuery({
    queryKey: ["agents", name, "dependents"],
    queryFn: ({ signal }) => callApi("get", "/api/agents/{name}/dependents", { path: { name }, signal }),
    gcTime: 0, // counted again each time
  });
}

/** Bound to the displayed version. */
export function useDeleteAgent(agent: AgentInfo) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (reason: string) =>
      callApi("delete", "/api/agents/{name}", {
        path: { name: agent.name },
        query: { reason },
        headers: { "if-match": `"${agent.version}"` },
      }),
    onSuccess: (done) => {
      if (done.remains_as === null) queries.removeQueries({ queryKey: ["agents", agent.name] });
    },
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["agents"] });
      void queries.invalidateQueries({ queryKey: ["activity"] });
      void queries.invalidateQueries({ queryKey: ["tools"] });
    },
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

/** Bound to the displayed version, or to there being none; after a refusal the current version is loaded. */
export function useChangeAgent(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ body, version, reason }: AgentChange) =>
      callApi("put", "/api/agents/{name}", {
        path: { name },
        query: { reason },
        body: body as Schemas["AgentBody"],
        headers: version === null ? { "if-none-match": "*" } : { "if-match": `"${version}"` },
      }),
    onSuccess: (now) => queries.setQueryData(["agents", name], now),
    onSettled: () => {
      void queries.invalidateQueries({ queryKey: ["agents"] });
      void queries.invalidateQueries({ queryKey: ["tools"] });
    },
  });
}
