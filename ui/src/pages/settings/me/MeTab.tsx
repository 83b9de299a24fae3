import {
  Button,
  Group,
  PasswordInput,
  SegmentedControl,
  Stack,
  Text,
  useMantineColorScheme,
} from "@mantine/core";
import { useState } from "react";
import { call } from "../../../api/client";
import type { Myself } from "../../../api/me";
import { signOut } from "../../../live/account";
import { Loading, Problem } from "../../../components/States";
import { AwayForm } from "../AwayForm";
import { Confirm } from "../Confirm";
import { useSending, useUsers } from "../data";
import { Section } from "../Section";
import { Elsewhere } from "./Elsewhere";
import { MyKeys } from "./MyKeys";
import { Notifications } from "./Notifications";

/** What is everybody's own to set. */
export default function Me({ me }: { me: Myself }) {
  return (
    <Stack gap="md">
      <Text>
        You are {me.name}, {me.role} of the workspace {me.workspace}
        {me.teams.length > 0 && `, in ${me.teams.join(", ")}`}.
      </Text>
      <OutOfOffice me={me} />
      <Notifications />
      <Appearance />
      <Password />
      <MyKeys me={me} />
      <Elsewhere />
      <Sessions />
    </Stack>
  );
}

function OutOfOffice({ me }: { me: Myself }) {
  const users = useUsers();
  const person = users.data?.items.find(({ name }) => name === me.name);
  return (
    <Section
      title="Out of office"
      about="While you are away, others decide in your place. The record says who voted, and in whose seat."
    >
      {users.isPending && <Loading />}
      {users.error && !users.data && <Problem error={users.error} again={() => void users.refetch()} />}
      {users.data && person && <AwayForm person={person} everybody={users.data.items} whose="mine" />}
    </Section>
  );
}

function Appearance() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Section title="Appearance">
      <SegmentedControl
        aria-label="Appearance"
        value={colorScheme}
        onChange={(value) => setColorScheme(value as "light" | "dark" | "auto")}
        data={[
          { value: "auto", label: "As the system" },
          { value: "light", label: "Light" },
          { value: "dark", label: "Dark" },
        ]}
      />
    </Section>
  );
}

function Password() {
  const [done, setDone] = useState(0);
  const change = useSending(
    (body: { old: string; new: string }) => call("put", "/api/me/password", { body }),
    [],
    () => setDone((count) => count + 1),
  );
  return (
    <Section title="Password" about="At least 12 characters. A new one ends all of your other sessions.">
      <form
        key={done}
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          change.mutate({ old: String(given.get("old")), new: String(given.get("new")) });
        }}
      >
        <Stack gap="sm" maw={360}>
          <PasswordInput name="old" label="Password now" autoComplete="current-password" required />
          <PasswordInput
            name="new"
            label="New password"
            autoComplete="new-password"
            minLength={12}
            required
          />
          {change.error && <Problem error={change.error} />}
          {change.isSuccess && (
            <Text role="status">Your password is changed. Your other sessions ended.</Text>
          )}
          <Group>
            <Button type="submit" loading={change.isPending}>
              Change password
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  );
}

function Sessions() {
  const leave = useSending((_: void) => signOut("everywhere"), []);
  return (
    <Section title="Sessions" about="A session ends by itself after seven days.">
      <Confirm
        verb="Sign out everywhere"
        consequence="Every browser in which you are signed in will ask you to sign in again, this one too. Your keys go on working."
        sending={leave.isPending}
        error={leave.error}
        onYes={() => leave.mutate()}
      />
    </Section>
  );
}
