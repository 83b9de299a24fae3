import { Button, Group, Stack, TextInput } from "@mantine/core";
import { call } from "../../../api/client";
import { Problem } from "../../../components/States";
import { useSending } from "../data";
import { givenIn, PersonFields, type Given } from "./PersonFields";
import { SignInLink } from "./SignInLink";

/** Somebody new cannot sign in yet: a link for them comes right after. */
export function AddPerson({ onDone }: { onDone: () => void }) {
  const add = useSending(
    (body: Given & { name: string }, once) => call("post", "/api/users", { body, once }),
    ["users"],
  );
  if (add.data) return <SignInLink name={add.data.name} onDone={onDone} />;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const name = String(new FormData(event.currentTarget).get("name")).trim();
        add.mutate({ name, ...givenIn(event.currentTarget) });
      }}
    >
      <Stack gap="sm">
        <TextInput
          name="name"
          label="Name"
          description="The record keeps it for good."
          autoComplete="off"
          required
          autoFocus
        />
        <PersonFields />
        {add.error && <Problem error={add.error} />}
        <Group>
          <Button type="submit" loading={add.isPending}>
            Add
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
