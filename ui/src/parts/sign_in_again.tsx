import { Anchor, Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { call } from "../api/client";
import type { Myself } from "../api/me";
import { asksBy } from "../api/recent";
import { Dialog } from "./dialog";
import { Problem } from "./states";

type Answer = (again: boolean) => void;

/** What lasts longer than a session needs a recent sign-in: asked for where it is needed, and then it goes on. */
export function SignInAgain({ me }: { me: Myself }) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  useEffect(() => asksBy(() => new Promise<boolean>((resolve) => setAnswer(() => resolve))), []);
  if (!answer) return null;
  const end: Answer = (again) => {
    setAnswer(null);
    answer(again);
  };
  return (
    <Dialog title="Sign in again" onClose={() => end(false)}>
      <Password me={me} onEnd={end} />
    </Dialog>
  );
}

function Password({ me, onEnd }: { me: Myself; onEnd: Answer }) {
  const queries = useQueryClient();
  const enter = useMutation({
    mutationFn: (password: string) =>
      call("post", "/api/session", {
        body: { workspace: me.workspace, name: me.name, password, next: "" },
      }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["me"] });
      onEnd(true);
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation();
        enter.mutate(String(new FormData(event.currentTarget).get("password")));
      }}
    >
      <Stack gap="sm">
        <Text size="sm">
          Keys, grants, policies and people outlast a session, so this needs a sign-in of the last 5 minutes.
        </Text>
        <PasswordInput
          name="password"
          label={`Password of ${me.name}`}
          autoComplete="current-password"
          required
        />
        {enter.error && <Problem error={enter.error} />}
        <Group>
          <Button type="submit" loading={enter.isPending}>
            Go on
          </Button>
        </Group>
        <Text size="sm" component="div">
          No password?{" "}
          <Anchor href="/signin?next=%2Fsettings%2Fme" target="_blank" underline="always">
            Sign in again by a link or your organisation (in a new tab)
          </Anchor>
          , then{" "}
          <Anchor component="button" type="button" underline="always" onClick={() => onEnd(true)}>
            go on here
          </Anchor>
          .
        </Text>
      </Stack>
    </form>
  );
}
