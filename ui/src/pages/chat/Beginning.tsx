import { Button, NativeSelect, Stack, Text } from "@mantine/core";
import type { Agents } from "./agents";
import css from "./Log.module.css";

const PHRASES = [
  'Create an issue titled "Fix the login page"',
  "List pages",
  'Publish the post "hello-world"',
  "Delete the pricing page",
  "Ask me which colour to use",
];

/** A new conversation: whom it is with, and what could be said. */
export function Beginning({
  agents,
  onSay,
  isSending,
}: {
  agents: Agents;
  onSay: (text: string) => void;
  isSending: boolean;
}) {
  return (
    <div className={css.scroller} tabIndex={0} role="region" aria-label="What you can say">
      <Stack className={css.column} gap="md" py="xl">
        <Text size="lg" fw={600}>
          What should the agent do?
        </Text>
        <Text>
          {agents.isDemo
            ? "This is the demo: a small script that understands a few sentences. "
            : `${agents.chosen} answers, looks things up, and acts with ${toolsOf(agents)}. `}
          What changes something waits here until you have seen it and said yes.
        </Text>
        {agents.isDemo && (
          <div className={css.phrases}>
            {PHRASES.map((phrase) => (
              <Button
                key={phrase}
                variant="default"
                mih={44}
                h="auto"
                fw={500}
                classNames={{ label: css.phrase }}
                disabled={isSending}
                onClick={() => onSay(phrase)}
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

function toolsOf({ all, chosen }: Agents): string {
  const tools = all.find((agent) => agent.name === chosen)?.tools ?? [];
  if (tools.length === 0) return "no tools";
  return tools.includes("*") ? "all tools that are set up" : tools.slice(0, 8).join(", ");
}
