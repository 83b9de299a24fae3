import { Button, Group, NativeSelect, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { ErrorMessage } from "../../../components/States";
import { splitNames, useSendMutation } from "../data";
import { ShownOnce } from "../ShownOnce";
import type { NewKeyProps } from "./KeyList";

const FOR: Record<string, string> = {
  agent: "agent: proposes calls, decides nothing",
  viewer: "viewer: views, decides nothing",
  reviewer: "reviewer: decides",
  admin: "admin: decides and changes settings",
};

const ENDS = [
  { value: "30d", label: "after 30 days" },
  { value: "90d", label: "after 90 days" },
  { value: "365d", label: "after a year" },
  { value: "never", label: "never" },
];

/** What a new key is for, and then the key itself, this once. Loaded when it is opened. */
export default function KeyForm({ roles, people, onMake, onDone }: NewKeyProps & { onDone: () => void }) {
  const [role, setRole] = useState(roles[0] ?? "viewer");
  const [bound, setBound] = useState(true);
  const make = useSendMutation(onMake, ["keys", "users"]);
  if (make.data)
    return (
      <ShownOnce
        title={`Key ${make.data.name}`}
        secret={make.data.key}
        about="The program sends it as a Bearer token."
        onDone={onDone}
      />
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        const field = (name: string) => String(given.get(name) ?? "").trim();
        make.mutate({
          name: field("name"),
          role,
          user: field("user"),
          agents: role === "agent" && bound ? splitNames(field("agents")) : [],
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
          data={roles.map((value) => ({ value, label: FOR[value] ?? value }))}
        />
        {people && role !== "agent" && (
          <NativeSelect
            name="user"
            label="Acts as"
            data={people}
            description="Its actions count as this person's."
          />
        )}
        {role === "agent" && <Bindings bound={bound} onBound={setBound} />}
        <NativeSelect
          name="expires_in"
          label="Expires"
          key={role}
          defaultValue={role === "agent" ? "never" : "90d"}
          data={ENDS}
        />
        {make.error && <ErrorMessage error={make.error} />}
        <Group>
          <Button type="submit" loading={make.isPending}>
            Create key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** For whom an agent's key is: bound unless somebody says otherwise, and then the page says what that means. */
function Bindings({ bound, onBound }: { bound: boolean; onBound: (bound: boolean) => void }) {
  return (
    <>
      <Switch
        label="Bound to an agent"
        checked={bound}
        onChange={(event) => onBound(event.currentTarget.checked)}
      />
      {bound ? (
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
