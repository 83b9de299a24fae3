import { Anchor, Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { callApi } from "../api/client";
import type { CurrentUser } from "../api/currentUser";
import { Dialog } from "./Dialog";
import * as messages from "./dialogMessages";
import { ErrorMessage } from "./States";

type Props = { me: CurrentUser; onDone: (isSignedIn: boolean) => void };

/** The dialog of `SignInPrompt`, loaded on demand. */
export default function PasswordDialog({ me, onDone }: Props) {
  return (
    <Dialog title={messages.signInAgain} onClose={() => onDone(false)}>
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
        <Text size="sm">{messages.signInNeeded}</Text>
        <PasswordInput
          name="password"
          label={messages.passwordFor(me.name)}
          autoComplete="current-password"
          required
        />
        {signIn.error && <ErrorMessage error={signIn.error} />}
        <Group>
          <Button type="submit" loading={signIn.isPending}>
            {messages.continueLabel}
          </Button>
        </Group>
        <Text size="sm" component="div">
          {messages.noPassword}{" "}
          <Anchor href="/signin?next=%2Fsettings%2Fme" target="_blank" underline="always">
            {messages.signInWithLinkInNewTab}
          </Anchor>
          {messages.thenSeparator}{" "}
          <Anchor component="button" type="button" underline="always" onClick={() => onDone(true)}>
            {" "}
            {messages.continueHere}{" "}
          </Anchor>
          .
        </Text>
      </Stack>
    </form>
  );
}
