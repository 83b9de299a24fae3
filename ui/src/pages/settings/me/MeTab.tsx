import { Button, Group, PasswordInput, Stack, Text, useMantineColorScheme } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useSearchParams } from "wouter";
import { callApi } from "../../../api/client";
import type { CurrentUser } from "../../../api/currentUser";
import { Choice } from "../../../components/Choice";
import { Confirm } from "../../../components/Confirm";
import { useSendMutation } from "../../../components/mutations";
import { NewPasswordInput } from "../../../components/NewPasswordInput";
import { Section } from "../../../components/Section";
import { ErrorMessage, Loading } from "../../../components/States";
import {
  disableNotifications,
  enableNotifications,
  readNotificationState,
  type NotificationState,
} from "../../../live/notifications";
import { signOut } from "../../../live/session";
import { AwayForm } from "../AwayForm";
import { isActiveKey, useUsers, type UserRole } from "../data";
import { Identities } from "../Identities";
import { KeyList, NewKey } from "../keys/KeyList";

const ConfirmIdentity = lazy(() => import("./ConfirmIdentity"));
const ROLES: UserRole[] = ["viewer", "reviewer", "admin"];
const STATE_LABELS: Record<NotificationState, string> = {
  on: "On in this browser, for approvals that need your decision and are not visible on any of your screens.",
  off: "Off in this browser.",
  denied: "Blocked by this browser. Allow notifications for this site in its settings, then return here.",
  impossible: "This browser does not support notifications here.",
};

/** The user's own settings. */
export default function MeTab({ me }: { me: CurrentUser }) {
  return (
    <Stack gap="md">
      <Text>
        You are {me.name}, {me.role} in the workspace {me.workspace}
        {me.teams.length > 0 && `, teams ${me.teams.join(", ")}`}.
      </Text>
      <OutOfOffice me={me} />
      <BrowserNotifications />
      <Appearance />
      <Password />
      <MyKeys me={me} />
      <LinkedAccounts />
      <Sessions />
    </Stack>
  );
}

function OutOfOffice({ me }: { me: CurrentUser }) {
  const users = useUsers();
  const person = users.data?.items.find(({ name }) => name === me.name);
  return (
    <Section
      title="Out of office"
      about="While you are away, your delegates decide on your behalf. The ledger records who voted, and on whose behalf."
    >
      {users.isPending && <Loading />}
      {users.error && !users.data && (
        <ErrorMessage error={users.error} onRetry={() => void users.refetch()} />
      )}
      {users.data && person && <AwayForm person={person} everybody={users.data.items} owner="mine" />}
    </Section>
  );
}

function Appearance() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Section title="Appearance">
      <Choice
        label="Appearance"
        value={colorScheme}
        onChange={(value) => setColorScheme(value as "light" | "dark" | "auto")}
        options={[
          { value: "auto", label: "System" },
          { value: "light", label: "Light" },
          { value: "dark", label: "Dark" },
        ]}
      />
    </Section>
  );
}

function Password() {
  const [done, setDone] = useState(0);
  const change = useSendMutation(
    (body: { old: string; new: string }) => callApi("put", "/api/me/password", { body }),
    [],
    () => setDone((count) => count + 1),
  );
  return (
    <Section title="Password" about="At least 12 characters. A new password ends all of your other sessions.">
      <form
        key={done}
        onSubmit={(event) => {
          event.preventDefault();
          const formData = new FormData(event.currentTarget);
          change.mutate({ old: String(formData.get("old")), new: String(formData.get("new")) });
        }}
      >
        <Stack gap="sm" maw={360}>
          <PasswordInput name="old" label="Current password" autoComplete="current-password" required />
          <NewPasswordInput name="new" label="New password" required />
          {change.error && <ErrorMessage error={change.error} />}
          {change.isSuccess && (
            <Text role="status">Your password was changed. Your other sessions were ended.</Text>
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
  const signOutEverywhere = useSendMutation((_: void) => signOut("everywhere"), []);
  return (
    <Section title="Sessions" about="Sessions end after seven days.">
      <Confirm
        label="Sign out everywhere"
        consequence="Every browser in which you are signed in, including this one, will ask you to sign in again. Your own keys are revoked."
        sending={signOutEverywhere.isPending}
        error={signOutEverywhere.error}
        onConfirm={() => signOutEverywhere.mutate()}
      />
    </Section>
  );
}

/** The user's channel accounts, and the confirmation of a new one. */
function LinkedAccounts() {
  const [search, setSearch] = useSearchParams();
  const link = search.get("link");
  return (
    <Section
      title="Linked accounts"
      about="Channel accounts with which you can decide. To link one, press a button in a message there and follow the link that you get."
    >
      <Identities owner="mine" />
      {link && (
        <Suspense>
          <ConfirmIdentity link={link} onClose={() => setSearch({}, { replace: true })} />
        </Suspense>
      )}
    </Section>
  );
}

/** Keys that act as the user, with at most the user's role. */
function MyKeys({ me }: { me: CurrentUser }) {
  const keys = useQuery({
    queryKey: ["keys", "mine"],
    queryFn: ({ signal }) => callApi("get", "/api/me/keys", { signal }),
  });
  return (
    <Section
      title="My keys"
      about="For programs that act as you, over the HTTP API or the command line. They are revoked when you change your password or sign out everywhere."
    >
      {keys.isPending && <Loading />}
      {keys.error && !keys.data && <ErrorMessage error={keys.error} onRetry={() => void keys.refetch()} />}
      {keys.data && (
        <KeyList
          keys={keys.data.items.filter(isActiveKey)}
          onRevoke={(key_id) => callApi("delete", "/api/me/keys/{key_id}", { path: { key_id } })}
        />
      )}
      <NewKey
        roles={ROLES.slice(0, ROLES.indexOf(me.role as UserRole) + 1)}
        onCreate={({ name, role, expires_in }, idempotencyKey) =>
          callApi("post", "/api/me/keys", {
            body: { name, role: role as UserRole, expires_in },
            idempotencyKey,
          })
        }
      />
    </Section>
  );
}

/** The browser asks for permission only after a click on this button. */
function BrowserNotifications() {
  const [now, setNow] = useState(readNotificationState);
  return (
    <Section
      title="Notifications"
      about="They name the tool and the requester, never the arguments. A click opens the approval."
    >
      <Group justify="space-between">
        <Text role="status">{STATE_LABELS[now]}</Text>
        {now === "off" && (
          <Button onClick={() => void enableNotifications().then(setNow)}>Turn on notifications</Button>
        )}
        {now === "on" && (
          <Button variant="default" onClick={() => setNow(disableNotifications())}>
            Turn off notifications
          </Button>
        )}
      </Group>
    </Section>
  );
}
