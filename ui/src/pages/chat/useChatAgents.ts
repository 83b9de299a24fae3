import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { callApi, type Schemas } from "../../api/client";

type ChatAgent = Schemas["AgentInfo"];

const DEFAULT_AGENT = "assistant";
const SCRIPTED_MODEL = "demo:scripted";

/** The available agents and the selected one, which is in the URL. */
export function useChatAgents() {
  const [search, setSearch] = useSearchParams();
  const found = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => callApi("get", "/api/agents", { signal }),
    staleTime: 60_000,
  });
  const all = (found.data?.items ?? []).filter((agent) => agent.source !== "calls");
  const names = all.map((agent) => agent.name);
  const chosen =
    search.get("agent") ?? (names.includes(DEFAULT_AGENT) ? DEFAULT_AGENT : (names[0] ?? DEFAULT_AGENT));
  const choose = (name: string) =>
    setSearch((now) => {
      now.set("agent", name);
      return now;
    });
  return {
    all,
    chosen,
    choose,
    isDemo: chosen === DEFAULT_AGENT && all.some(isDemoAgent),
    isScripted: all.some((agent) => agent.name === chosen && agent.model === SCRIPTED_MODEL),
    error: found.error,
  };
}

export type ChatAgents = ReturnType<typeof useChatAgents>;

/** The writer exists only in the demo. */
function isDemoAgent(agent: ChatAgent): boolean {
  return agent.name === "writer" && agent.source === "built-in";
}
