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
} from "../../../live/notifications";
import { signOut } from "../../../live/session";
import { AwayForm } from "../AwayForm";
import { isActiveKey, useUsers, type UserRole } from "../data";
import { Identities } from "../Identities";
import { KeyList, NewKey } from "../keys/KeyList";
import * as messages from "./messages";

const ConfirmIdentity = lazy(() => import("./ConfirmIdentity"));
const ROLES: UserRole[] = ["viewer", "reviewer", "admin"];

/** The user's own settings. */
export default function MeTab({ me }: { me: CurrentUser }) {
  return (
    <Stack gap="md">
      <Text>
        {messages.youInWorkspace(me.name, me.role, me.workspace)}
        {me.teams.length > 0 && messages.teamsSuffix(me.teams.join(", "))}.
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
    <Section title={messages.outOfOffice} about={messages.outOfOfficeHelp}>
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
    <Section title={messages.appearance}>
      <Choice
        label={messages.appearance}
        value={colorScheme}
        onChange={(value) => setColorScheme(value as "light" | "dark" | "auto")}
        options={[
          { value: "auto", label: messages.system },
          { value: "light", label: messages.light },
          { value: "dark", label: messages.dark },
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
    <Section title={messages.password} about={messages.newPasswordHint}>
      <form
        key={done}
        onSubmit={(event) => {
          event.preventDefault();
          const formData = new FormData(event.currentTarget);
          change.mutate({ old: String(formData.get("old")), new: String(formData.get("new")) });
        }}
      >
        <Stack gap="sm" maw={360}>
          <PasswordInput
            name="old"
            label={messages.currentPassword}
            autoComplete="current-password"
            required
          />
          <NewPasswordInput name="new" label={messages.newPassword} required />
          {change.error && <ErrorMessage error={change.error} />}
          {change.isSuccess && <Text role="status">{messages.passwordChanged}</Text>}
          <Group>
            <Button type="submit" loading={change.isPending}>
              {messages.changePassword}
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
    <Section title={messages.sessions} about={messages.sessionsEndAfterSevenDays}>
      <Confirm
        label={messages.signOutEverywhere}
        consequence={messages.signOutEverywhereHelp}
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
    <Section title={messages.linkedAccounts} about={messages.linkedAccountsHelp}>
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
    <Section title={messages.myKeys} about={messages.myKeysHelp}>
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
    <Section title={messages.notifications} about={messages.notificationsHelp}>
      <Group justify="space-between">
        <Text role="status">{messages.STATE_LABELS[now]}</Text>
        {now === "off" && (
          <Button onClick={() => void enableNotifications().then(setNow)}>
            {messages.turnOnNotifications}
          </Button>
        )}
        {now === "on" && (
          <Button variant="default" onClick={() => setNow(disableNotifications())}>
            {messages.turnOffNotifications}
          </Button>
        )}
      </Group>
    </Section>
  );
}
