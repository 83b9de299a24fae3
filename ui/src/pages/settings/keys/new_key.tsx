import { Button, Group, NativeSelect, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Shapes } from "../../../api/client";
import { Dialog } from "../../../parts/dialog";
import { Problem } from "../../../parts/states";
import { useSending } from "../data";
import { ShownOnce } from "../shown_once";

export interface WantedKey {
  name: string;
  role: string;
  user: string;
}

interface NewKeyProps {
  roles: string[];
  /** Whose a key for people may be; without any it is one's own. */
  people?: string[];
  onMake: (wanted: WantedKey, once: string) => Promise<Shapes["MadeKey"]>;
}

const FOR: Record<string, string> = {
  agent: "agent: proposes calls, decides nothing",
  viewer: "viewer: looks, decides nothing",
  reviewer: "reviewer: decides",
  admin: "admin: decides, and changes everything",
};

export function NewKey(props: NewKeyProps) {
  const [opened, setOpened] = useState(false);
  return (
    <Group>
      <Button variant="default" onClick={() => setOpened(true)}>
        New key
      </Button>
      {opened && (
        <Dialog title="New key" onClose={() => setOpened(false)}>
          <KeyForm {...props} onDone={() => setOpened(false)} />
        </Dialog>
      )}
    </Group>
  );
}

function KeyForm({ roles, people, onMake, onDone }: NewKeyProps & { onDone: () => void }) {
  const [role, setRole] = useState(roles[0] ?? "viewer");
  const make = useSending(onMake, ["keys", "users"]);
  if (make.data)
    return (
      <ShownOnce
        title={`The key ${make.data.name}`}
        secret={make.data.key}
        about="Give it to the program, which sends it as a Bearer token."
        onDone={onDone}
      />
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const given = new FormData(event.currentTarget);
        make.mutate({ name: String(given.get("name")), role, user: String(given.get("user") ?? "") });
      }}
    >
      <Stack gap="sm">
        <TextInput
          name="name"
          label="Name"
          description={role === "agent" ? "The agent is known by this name." : "What it is for."}
          required
          autoFocus
        />
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
            description="What it does counts as theirs."
          />
        )}
        {make.error && <Problem error={make.error} />}
        <Group>
          <Button type="submit" loading={make.isPending}>
            Make the key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
