import { Button, Group, NativeSelect, Stack, Text, TextInput, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { ApiError, buildUrl, callApi, sendRequest } from "../../../api/client";
import type { CurrentUser } from "../../../api/currentUser";
import { Confirm } from "../../../components/Confirm";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage, Loading } from "../../../components/States";
import { AwayForm } from "../AwayForm";
import {
  describeRemoval,
  readPerson,
  splitNames,
  type PersonInfo,
  type TaggedPerson,
  type UserRole,
} from "../data";
import css from "../Settings.module.css";
import * as messages from "./messages";

interface ChangePersonProps {
  name: string;
  me: CurrentUser;
  everybody: PersonInfo[];
  onDone: () => void;
}

/** All changes that an admin can make to a person. */
export function ChangePerson({ name, me, everybody, onDone }: ChangePersonProps) {
  const loaded = useQuery({
    queryKey: ["person", name],
    queryFn: ({ signal }) => readPerson(name, signal),
    gcTime: 0,
    staleTime: "static", // only the displayed version may be changed; reloading takes a click
  });
  if (loaded.isPending) return <Loading />;
  if (!loaded.data) return <ErrorMessage error={loaded.error} onRetry={() => void loaded.refetch()} />;
  const person = everybody.find((each) => each.name === name) ?? loaded.data.person;
  return (
    <Stack gap="md">
      <PersonForm
        key={loaded.data.tag}
        loaded={loaded.data}
        onReload={() => void loaded.refetch()}
        onDone={onDone}
      />
      {person.role !== "viewer" && (
        <Stack gap="sm" className={css.danger}>
          <Title order={3} size="h5">
            {messages.outOfOffice}
          </Title>
          <AwayForm person={person} everybody={everybody} owner="theirs" />
        </Stack>
      )}
      <DangerZone name={name} isMe={name === me.name} onDone={onDone} />
    </Stack>
  );
}

interface PersonFormProps {
  loaded: TaggedPerson;
  onReload: () => void;
  onDone: () => void;
}

/** Changes only the displayed version, so that concurrent changes are not lost. */
function PersonForm({ loaded, onReload, onDone }: PersonFormProps) {
  const change = useSendMutation(
    (body: PersonValues) =>
      sendRequest("put", buildUrl("/api/users/{name}", { name: loaded.person.name }), {
        body,
        headers: { "if-match": loaded.tag },
      }),
    ["users", "me"],
    onDone,
  );
  const stale = change.error instanceof ApiError && change.error.code === "stale";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(readPersonForm(event.currentTarget));
      }}
    >
      <Stack gap="sm">
        <PersonFields person={loaded.person} />
        {change.error && <ErrorMessage error={change.error} />}
        <Group>
          <Button type="submit" loading={change.isPending}>
            {messages.save}
          </Button>
          {stale && (
            <Button variant="default" onClick={onReload}>
              {messages.loadCurrentVersion}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}

function DangerZone({ name, isMe, onDone }: { name: string; isMe: boolean; onDone: () => void }) {
  const signOut = useSendMutation(
    (_: void) => callApi("delete", "/api/users/{name}/sessions", { path: { name } }),
    [],
  );
  const remove = useSendMutation(
    (_: void) => callApi("delete", "/api/users/{name}", { path: { name } }),
    ["users", "keys", "grants"],
    onDone,
  );
  if (isMe) return <Text size="sm">{messages.cannotRemoveYourself}</Text>;
  return (
    <Stack gap="sm" className={css.danger}>
      <Confirm
        label={messages.signOutEverywhere(name)}
        consequence={messages.signedOutHelp(name)}
        sending={signOut.isPending}
        error={signOut.error}
        onConfirm={() => signOut.mutate()}
      />
      {signOut.data && (
        <Text role="status" size="sm">
          {messages.personIsSignedOut(name, signOut.data.sessions, signOut.data.keys)}
        </Text>
      )}
      <Confirm
        label={messages.removePerson(name)}
        consequence={messages.allRightsEnd(name)}
        sending={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
      >
        <RemovalEffects name={name} />
      </Confirm>
    </Stack>
  );
}

/** Listed before the removal. */
function RemovalEffects({ name }: { name: string }) {
  const removal = useQuery({
    queryKey: ["removal", name],
    queryFn: ({ signal }) => callApi("get", "/api/users/{name}/removal", { path: { name }, signal }),
    gcTime: 0,
  });
  if (removal.isPending) return <Loading />;
  if (!removal.data) return <ErrorMessage error={removal.error} onRetry={() => void removal.refetch()} />;
  const lines = describeRemoval(removal.data);
  const keptKeys = removal.data.made_keys.map((key) => `${key.name} (${key.id})`).join(", ");
  return (
    <Stack gap={0} role="group" aria-label={messages.whatEnds}>
      {lines.length === 0 && <Text size="sm">{messages.nothingEnds}</Text>}
      {lines.map((line) => (
        <Text size="sm" key={line}>
          {line}
        </Text>
      ))}
      {keptKeys && <Text size="sm">{messages.keptKeys(keptKeys)}</Text>}
    </Stack>
  );
}

export interface PersonValues {
  role: UserRole;
  teams: string[];
  email: string;
}

/** The fields of a person, for adding and changing. */
export function PersonFields({ person }: { person?: PersonInfo }) {
  return (
    <>
      <NativeSelect
        name="role"
        label={messages.role}
        defaultValue={person?.role ?? "reviewer"}
        data={[
          { value: "viewer", label: messages.viewerRole },
          { value: "reviewer", label: messages.reviewerRole },
          { value: "admin", label: messages.adminRole },
        ]}
      />
      <TextInput
        name="teams"
        label={messages.teams}
        description={messages.teamsHint}
        defaultValue={person?.teams.join(", ")}
      />
      <TextInput
        name="email"
        type="email"
        label={messages.eMailAddress}
        description={messages.emailHint}
        defaultValue={person?.email ?? ""}
      />
    </>
  );
}

export function readPersonForm(form: HTMLFormElement): PersonValues {
  const formData = new FormData(form);
  return {
    role: String(formData.get("role")) as UserRole,
    teams: splitNames(String(formData.get("teams"))),
    email: String(formData.get("email")).trim(),
  };
}
