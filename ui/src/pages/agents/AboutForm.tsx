import { Button, Group, SimpleGrid, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { Refused } from "../../api/client";
import { Problem } from "../../components/States";
import { fieldsOf, filledIn, LIMITS, type Filled } from "./aboutFields";
import { useChange, type AgentInfo } from "./data";
import { changed } from "./switching";

/** Only what differs is sent: the rest stays as the configuration file has it, also when that changes. */
export function AgentForm({ agent, onClose }: { agent: AgentInfo; onClose: () => void }) {
  const [filled, setFilled] = useState(() => filledIn(agent));
  const [reason, setReason] = useState("");
  const change = useChange(agent.name);
  const set = (name: keyof Filled) => (event: { currentTarget: { value: string } }) =>
    setFilled({ ...filled, [name]: event.currentTarget.value });
  const wrong = (pointer: string) => problemAt(change.error, pointer);
  const save = () => change.mutate(changed(agent, fieldsOf(filled, agent), reason), { onSuccess: onClose });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Model"
          description="provider:name; empty for the default model"
          value={filled.model}
          onChange={set("model")}
          error={wrong("/model")}
        />
        <Textarea
          label="Instructions"
          autosize={false}
          rows={5}
          value={filled.instructions}
          onChange={set("instructions")}
        />
        <Textarea
          label="Tools"
          description="One a line: names, patterns such as cms_list_*, packs such as cms, mcp:server, or *"
          rows={4}
          value={filled.tools}
          onChange={set("tools")}
          error={wrong("/tools")}
        />
        <Textarea
          label="Agents it may call"
          description="One a line"
          rows={2}
          value={filled.agents}
          onChange={set("agents")}
          error={wrong("/agents")}
        />
        <SimpleGrid cols={{ base: 1, sm: 3 }}>
          {LIMITS.map(({ name, label, placeholder }) => (
            <TextInput
              key={name}
              label={label}
              placeholder={placeholder}
              value={filled[name]}
              onChange={set(name)}
              error={wrong(`/limits/${name}`)}
            />
          ))}
        </SimpleGrid>
        <TextInput label="Why" value={reason} onChange={(event) => setReason(event.currentTarget.value)} />
        {change.error && <Problem error={change.error} />}
        <Text size="sm" c="dimmed">
          It counts from the next call on, and is kept in the record with your name.
        </Text>
        <Group>
          <Button type="submit" loading={change.isPending}>
            Save
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function problemAt(error: Error | null, pointer: string): string | undefined {
  if (!(error instanceof Refused)) return undefined;
  return error.problems.find((problem) => problem.pointer.startsWith(pointer))?.message;
}
