import { Button, Group, NativeSelect, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage } from "../../../components/States";
import { splitNames } from "../data";
import { ShownOnce } from "../ShownOnce";
import type { NewKeyProps } from "./KeyList";

const ROLE_LABELS: Record<string, string> = {
  agent: "agent: proposes calls, decides nothing",
  viewer: "viewer: views, decides nothing",
  reviewer: "reviewer: decides",
  admin: "admin: decides and changes settings",
};

const EXPIRIES = [
  { value: "30d", label: "after 30 days" },
  { value: "90d", label: "after 90 days" },
  { value: "365d", label: "after a year" },
  { value: "never", label: "never" },
];

/** The form for a new key, and then the key, shown once. Loaded on demand. */
export default function KeyForm({ roles, people, onCreate, onDone }: NewKeyProps & { onDone: () => void }) {
  const [role, setRole] = useState(roles[0] ?? "viewer");
  const [isBound, setIsBound] = useState(true);
  const create = useSendMutation(onCreate, ["keys", "users"]);
  if (create.data)
    return (
      <ShownOnce
        title={`Key ${create.data.name}`}
        secret={create.data.key}
        about="The program sends it as a Bearer token."
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
        <TextInput name="name" label="Name" description="What it is for." required autoFocus />
        <NativeSelect
          label="Role"
          value={role}
          onChange={(event) => setRole(event.currentTarget.value)}
          data={roles.map((value) => ({ value, label: ROLE_LABELS[value] ?? value }))}
        />
        {people && role !== "agent" && (
          <NativeSelect
            name="user"
            label="Acts as"
            data={people}
            description="Its actions count as this person's."
          />
        )}
        {role === "agent" && <BindingFields isBound={isBound} onChange={setIsBound} />}
        <NativeSelect
          name="expires_in"
          label="Expires"
          key={role}
          defaultValue={role === "agent" ? "never" : "90d"}
          data={EXPIRIES}
        />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            Create key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The binding of an agent key: bound by default, with a warning otherwise. */
function BindingFields({ isBound, onChange }: { isBound: boolean; onChange: (isBound: boolean) => void }) {
  return (
    <>
      <Switch
        label="Bound to an agent"
        checked={isBound}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {isBound ? (
        <TextInput
          name="agents"
          label="Agent"
          description="The agent's name, as used in rules and grants; separate several with commas. Calls under another name are refused."
          required
        />
      ) : (
        <Text size="sm" role="note">
          A program with this key may claim any agent's name. Allow rules and grants that name an agent or a
          person do not apply to it, and it can evade rules that ask or deny by such a name.
        </Text>
      )}
      <TextInput
        name="requester"
        label="Acts for"
        description="A person's name; any, if the program authenticates its own users; none, for calls without a requester. Empty: not bound."
      />
    </>
  );
}
