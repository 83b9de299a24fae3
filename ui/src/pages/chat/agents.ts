import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { call, type Shapes } from "../../api/client";

export type AgentInfo = Shapes["AgentInfo"];

const USUAL = "assistant";

/** Whom one can talk to, and who is chosen: that is part of the address of a new conversation. */
export function useAgents() {
  const [search, setSearch] = useSearchParams();
  const found = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => call("get", "/api/agents", { signal }),
    staleTime: 60_000,
  });
  const all = (found.data?.items ?? []).filter((agent) => agent.source !== "calls");
  const names = all.map((agent) => agent.name);
  const chosen = search.get("agent") ?? (names.includes(USUAL) ? USUAL : (names[0] ?? USUAL));
  const choose = (name: string) =>
    setSearch((now) => {
      now.set("agent", name);
      return now;
    });
  return { all, chosen, choose, isDemo: chosen === USUAL && all.some(isTheDemos), error: found.error };
}

export type Agents = ReturnType<typeof useAgents>;

/** The writer comes with the demo's content, and with nothing else. */
function isTheDemos(agent: AgentInfo): boolean {
  return agent.name === "writer" && agent.source === "built-in";
}
