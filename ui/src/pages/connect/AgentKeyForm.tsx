import { Anchor, Button, Group, Text, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { Link } from "wouter";
import { callApi } from "../../api/client";
import { CopyButton } from "../../components/CopyButton";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import css from "./Connect.module.css";
import { AGENT_NAME } from "./snippets";

/** A key that was just created, and the agent that it is bound to. */
export interface AgentKey {
  id: string;
  key: string;
  agent: string;
}

const NAME_RULE = "Letters, digits, _ and -, at most 58.";

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
          This key is new and belongs to <strong>{made.agent}</strong>. Copy it now: it is not shown again.
        </Text>
        <code ref={shown}>{made.key}</code>
        <CopyButton
          text={made.key}
          shown={() => shown.current}
          label="Copy key"
          variant="default"
          size="xs"
        />
        <Button variant="subtle" size="compact-sm" onClick={onAgain}>
          Connect another agent
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
          label="Name of the agent"
          description={`Rules and people know it by this name. ${NAME_RULE}`}
          value={name}
          maxLength={58}
          onChange={(event) => onName(event.currentTarget.value)}
          error={isChecked && !isValid && NAME_RULE}
        />
        <Button type="submit" loading={create.isPending}>
          Create key
        </Button>
      </div>
      {create.error && <ErrorMessage error={create.error} />}
      <Text size="sm" c="dimmed" mt={4}>
        The key works for this agent only. You find and revoke it under{" "}
        <Anchor component={Link} href="/settings/keys" inherit underline="always">
          Settings, Keys
        </Anchor>
        .
      </Text>
    </form>
  );
}
