import { Button, Group, NativeSelect, Stack, Text } from "@mantine/core";
import { call } from "../../../api/client";
import { Problem } from "../../../components/States";
import { dateTime, reachable, useSending } from "../data";
import { ShownOnce } from "../ShownOnce";

/** A link with which somebody signs in once, and may choose a password. */
export function SignInLink({ name, onDone }: { name: string; onDone: () => void }) {
  const make = useSending(
    (expires_in: string, once) =>
      call("post", "/api/users/{name}/link", { path: { name }, body: { expires_in }, once }),
    [],
  );
  if (make.data)
    return (
      <ShownOnce
        title={`For ${name}`}
        secret={reachable(make.data.url)}
        about={`Send it to ${name} by a way that only they read. It signs in once, until ${dateTime(make.data.expires_at)}.`}
        onDone={onDone}
      />
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.mutate(String(new FormData(event.currentTarget).get("lasts")));
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          Whoever opens the link first is signed in as {name}, and may choose a new password. The record says
          that you made it.
        </Text>
        <NativeSelect
          name="lasts"
          label="It can be opened for"
          data={[
            { value: "1h", label: "an hour" },
            { value: "1d", label: "a day" },
            { value: "7d", label: "a week" },
          ]}
        />
        {make.error && <Problem error={make.error} />}
        <Group>
          <Button type="submit" loading={make.isPending}>
            Make a sign-in link
          </Button>
          <Button variant="default" onClick={onDone}>
            Not now
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
