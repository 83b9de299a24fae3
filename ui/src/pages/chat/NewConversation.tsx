import { Button, NativeSelect, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { callApi, type Schemas } from "../../api/client";
import css from "./Transcript.module.css";

const SUGGESTIONS = [
  'Create an issue titled "Fix the login page"',
  "List pages",
  'Publish the post "hello-world"',
  "Delete the pricing page",
  "Ask me which colour to use",
];

/** A new conversation: the agent, and suggestions. */
export function NewConversation({
  agents,
  onSend,
  isSending,
}: {
  agents: ChatAgents;
  onSend: (text: string) => void;
  isSending: boolean;
}) {
  return (
    <div className={css.scroller} tabIndex={0} role="region" aria-label="Suggestions">
      <Stack className={css.column} gap="md" py="xl">
        <Text size="lg" fw={600}>
          What should the agent do?
        </Text>
        <Text>
          {agents.isDemo
            ? "This is the demo: a small script that understands a few sentences. "
            : `${agents.chosen} answers, looks things up, and acts with ${toolsLabel(agents)}. `}
          Calls that change something wait here for your approval.
        </Text>
        {agents.isDemo && (
          <div className={css.phrases}>
            {SUGGESTIONS.map((phrase) => (
              <Button
                key={phrase}
                variant="default"
                mih={44}
                h="auto"
                fw={500}
                classNames={{ label: css.phrase }}
                disabled={isSending}
                onClick={() => onSend(phrase)}
              >
                {phrase}
              </Button>
            ))}
          </div>
        )}
        {agents.all.length > 1 && (
          <NativeSelect
            label="Agent"
            maw={300}
            size="md"
            value={agents.chosen}
            onChange={(event) => agents.choose(event.currentTarget.value)}
            data={agents.all.map((agent) => agent.name)}
          />
        )}
      </Stack>
    </div>
  );
}

function toolsLabel({ all, chosen }: ChatAgents): string {
  const tools = all.find((agent) => agent.name === chosen)?.tools ?? [];
  if (tools.length === 0) return "no tools";
  return tools.includes("*") ? "all configured tools" : tools.slice(0, 8).join(", ");
}

type ChatAgent = Schemas["AgentInfo"];

const DEFAULT_AGENT = "assistant";

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
    error: found.error,
  };
}

type ChatAgents = ReturnType<typeof useChatAgents>;

/** The writer exists only in the demo. */
function isDemoAgent(agent: ChatAgent): boolean {
  return agent.name === "writer" && agent.source === "built-in";
}
