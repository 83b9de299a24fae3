import { Button, Group, NativeSelect, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage } from "../../../components/States";
import { splitNames } from "../data";
import { ShownOnce } from "../ShownOnce";
import type { NewKeyProps } from "./KeyList";
import * as messages from "./messages";

/** The form for a new key, and then the key, shown once. Loaded on demand. */
export default function KeyForm({ roles, people, onCreate, onDone }: NewKeyProps & { onDone: () => void }) {
  const [role, setRole] = useState(roles[0] ?? "viewer");
  const [isBound, setIsBound] = useState(true);
  const create = useSendMutation(onCreate, ["keys", "users"]);
  if (create.data)
    return (
      <ShownOnce
        title={messages.keyNamed(create.data.name)}
        secret={create.data.key}
        about={messages.bearerTokenHint}
        onDone={onDone}
      />
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const formData = new FormData(event.currentTarget);
        const field = (name: string) => String(formData.get(name) ?? "").trim();
        create.mutate({
          name: field("name"),
          role,
          user: field("user"),
          agents: role === "agent" && isBound ? splitNames(field("agents")) : [],
          requester: role === "agent" ? field("requester") : "",
          expires_in: field("expires_in"),
        });
      }}
    >
      <Stack gap="sm">
        <TextInput name="name" label={messages.name} description={messages.whatItIsFor} required autoFocus />
        <NativeSelect
          label={messages.role}
          value={role}
          onChange={(event) => setRole(event.currentTarget.value)}
          data={roles.map((value) => ({ value, label: messages.ROLE_LABELS[value] ?? value }))}
        />
        {people && role !== "agent" && (
          <NativeSelect name="user" label={messages.actsAs} data={people} description={messages.actsAsHint} />
        )}
        {role === "agent" && <BindingFields isBound={isBound} onChange={setIsBound} people={people ?? []} />}
        <NativeSelect
          name="expires_in"
          label={messages.expires}
          key={role}
          defaultValue={role === "agent" ? "never" : "90d"}
          data={messages.EXPIRIES}
        />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            {messages.createKey}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The binding of an agent key: bound by default, with a warning otherwise. */
function BindingFields({
  isBound,
  onChange,
  people,
}: {
  isBound: boolean;
  onChange: (isBound: boolean) => void;
  people: string[];
}) {
  return (
    <>
      <Switch
        label={messages.boundToAgent}
        checked={isBound}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {isBound ? (
        <TextInput name="agents" label={messages.agent} description={messages.boundAgentHint} required />
      ) : (
        <Text size="sm" role="note">
          {messages.unboundKeyWarning}
        </Text>
      )}
      <NativeSelect
        name="requester"
        label={messages.actsFor}
        description={messages.requesterHint}
        data={[...messages.REQUESTERS, { group: messages.onePerson, items: people }]}
      />
    </>
  );
}
