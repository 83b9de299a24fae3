import { NativeSelect, Stack, Text } from "@mantine/core";
import * as messages from "./messages";
import { PhraseButtons } from "./PhraseButtons";
import css from "./Transcript.module.css";
import type { ChatAgents } from "./useChatAgents";

const STARTERS = [
  "What's on my plate?",
  "Clean up the site",
  'Create an issue titled "Fix the login page"',
  "Assign DEMO-4 to Grace Hopper",
  "Open a pull request from search-index to main",
  'Publish the post "hello-world"',
  "Set key result KR-2 to 16",
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
    <div className={css.scroller} tabIndex={0} role="region" aria-label={messages.suggestions}>
      <Stack className={css.column} gap="md" py="xl">
        <Text size="lg" fw={600}>
          {messages.whatShouldAgentDo}
        </Text>
        <Text>{messages.newChatIntroduction(agents.isScripted, agents.chosen, toolsLabel(agents))}</Text>
        {agents.isDemo && (
          <PhraseButtons
            label={messages.starters}
            phrases={STARTERS}
            onSend={onSend}
            isDisabled={isSending}
          />
        )}
        {agents.all.length > 1 && (
          <NativeSelect
            label={messages.agent}
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
  if (tools.length === 0) return messages.noTools;
  return tools.includes("*") ? messages.allConfiguredTools : tools.slice(0, 8).join(", ");
}
