import { Anchor, Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { callApi } from "../api/client";
import type { CurrentUser } from "../api/currentUser";
import { Dialog } from "./Dialog";
import { ErrorMessage } from "./States";

type Props = { me: CurrentUser; onDone: (isSignedIn: boolean) => void };

/** The dialog of `SignInPrompt`, loaded on demand. */
export default function PasswordDialog({ me, onDone }: Props) {
  return (
    <Dialog title="Sign in again" onClose={() => onDone(false)}>
      <PasswordForm me={me} onDone={onDone} />
    </Dialog>
  );
}

function PasswordForm({ me, onDone }: Props) {
  const queries = useQueryClient();
  const signIn = useMutation({
    mutationFn: (password: string) =>
      callApi("post", "/api/session", {
        body: { workspace: me.workspace, name: me.name, password, next: "" },
      }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["me"] });
      onDone(true);
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation();
        signIn.mutate(String(new FormData(event.currentTarget).get("password")));
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          Changes to keys, grants, policies, agents and people require a sign-in within the last 5 minutes.
        </Text>
        <PasswordInput
          name="password"
          label={`Password for ${me.name}`}
          autoComplete="current-password"
          required
        />
        {signIn.error && <ErrorMessage error={signIn.error} />}
        <Group>
          <Button type="submit" loading={signIn.isPending}>
            {" "}
            Continue{" "}
          </Button>
        </Group>
        <Text size="sm" component="div">
          No password?{" "}
          <Anchor href="/signin?next=%2Fsettings%2Fme" target="_blank" underline="always">
            Sign in again with a link or your organisation (opens in a new tab)
          </Anchor>
          , then{" "}
          <Anchor component="button" type="button" underline="always" onClick={() => onDone(true)}>
            {" "}
            continue here{" "}
          </Anchor>
          .
        </Text>
      </Stack>
    </form>
  );
}
