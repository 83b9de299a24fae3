import { Fieldset, SimpleGrid, TextInput } from "@mantine/core";
import { AGENT_LIMITS, type AgentDraft } from "./agentDraft";
import * as messages from "./editorMessages";

/** The limits for each message; an empty field keeps the default. */
export function LimitFields({
  draft,
  onChange,
  problem,
}: {
  draft: AgentDraft;
  onChange: (fields: Partial<AgentDraft>) => void;
  problem: (pointer: string) => string | undefined;
}) {
  return (
    <Fieldset legend={messages.limitsForEachMessage}>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        {AGENT_LIMITS.map(({ name, label, unit, placeholder }) => (
          <TextInput
            key={name}
            label={label}
            description={messages.limitWithDefault(unit, placeholder)}
            placeholder={placeholder}
            maxLength={20}
            value={draft[name]}
            onChange={(event) => onChange({ [name]: event.currentTarget.value })}
            error={problem(`/limits/${name}`)}
          />
        ))}
      </SimpleGrid>
    </Fieldset>
  );
}
