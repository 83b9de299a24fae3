import { Anchor, Button, Group, Text, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { Link } from "wouter";
import { callApi } from "../../api/client";
import { CopyButton } from "../../components/CopyButton";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import css from "./Connect.module.css";
import * as messages from "./messages";
import { AGENT_NAME } from "./snippets";

/** A key that was just created, and the agent that it is bound to. */
export interface AgentKey {
  id: string;
  key: string;
  agent: string;
}

interface Props {
  made: AgentKey | null;
  name: string;
  onName: (name: string) => void;
  onMade: (made: AgentKey) => void;
  onAgain: () => void;
}

/** Asks for the agent's name and creates its key; then says that this was the only time it is shown. */
export function AgentKeyForm({ made, name, onName, onMade, onAgain }: Props) {
  const [isChecked, setChecked] = useState(false);
  const shown = useRef<HTMLElement>(null);
  const isValid = AGENT_NAME.test(name.trim());
  const create = useSendMutation(
    (agent: string, idempotencyKey) =>
      callApi("post", "/api/keys", {
        body: {
          name: agent,
          role: "agent",
          user: "",
          agents: [agent],
          tools: [],
          requester: "",
          expires_in: "",
        },
        idempotencyKey,
      }),
    ["keys", "agents", "activity"],
    ({ id, key, agents }) => onMade({ id, key, agent: agents[0] ?? name.trim() }),
  );
  if (made)
    return (
      <Group gap="sm" role="status" className={css.made}>
        <Text size="sm">
          {messages.keyBelongsTo} <strong>{made.agent}</strong>
          {messages.copyItNow}
        </Text>
        <code ref={shown}>{made.key}</code>
        <CopyButton
          text={made.key}
          shown={() => shown.current}
          label={messages.copyKey}
          variant="default"
          size="xs"
        />
        <Button variant="subtle" size="compact-sm" onClick={onAgain}>
          {messages.connectAnotherAgent}
        </Button>
      </Group>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setChecked(true);
        if (isValid) create.mutate(name.trim());
      }}
    >
      <div className={css.name}>
        <TextInput
          label={messages.nameOfAgent}
          description={messages.nameIsKnownInRules(messages.NAME_RULE)}
          value={name}
          maxLength={58}
          onChange={(event) => onName(event.currentTarget.value)}
          error={isChecked && !isValid && messages.NAME_RULE}
        />
        <Button type="submit" loading={create.isPending}>
          {messages.createKey}
        </Button>
      </div>
      {create.error && <ErrorMessage error={create.error} />}
      <Text size="sm" c="dimmed" mt={4}>
        {messages.keyIsForThisAgent}{" "}
        <Anchor component={Link} href="/settings/keys" inherit underline="always">
          {messages.settingsKeys}
        </Anchor>
        .
      </Text>
    </form>
  );
}
