import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { address, call, Refused, send } from "../../../api/client";
import type { Myself } from "../../../api/me";
import { Loading, Problem } from "../../../components/States";
import { AwayForm } from "../AwayForm";
import { Confirm } from "../Confirm";
import { endedLines, readPerson, useSending, type PersonInfo, type Tagged } from "../data";
import css from "../Settings.module.css";
import { givenIn, PersonFields, type Given } from "./PersonFields";

interface ChangePersonProps {
  name: string;
  me: Myself;
  everybody: PersonInfo[];
  onDone: () => void;
}

/** Everything an admin can do to somebody. */
export function ChangePerson({ name, me, everybody, onDone }: ChangePersonProps) {
  const seen = useQuery({
    queryKey: ["person", name],
    queryFn: ({ signal }) => readPerson(name, signal),
    gcTime: 0,
    staleTime: "static", // only what was seen may be changed; reading it anew is a click
  });
  if (seen.isPending) return <Loading />;
  if (!seen.data) return <Problem error={seen.error} again={() => void seen.refetch()} />;
  const person = everybody.find((each) => each.name === name) ?? seen.data.person;
  return (
    <Stack gap="md">
      <Fields key={seen.data.tag} seen={seen.data} onAgain={() => void seen.refetch()} onDone={onDone} />
      {person.role !== "viewer" && (
        <Stack gap="sm" className={css.danger}>
          <Title order={3} size="h5">
            Out of office
          </Title>
          <AwayForm person={person} everybody={everybody} whose="theirs" />
        </Stack>
      )}
      <Ends name={name} isMe={name === me.name} onDone={onDone} />
    </Stack>
  );
}

interface FieldsProps {
  seen: Tagged;
  onAgain: () => void;
  onDone: () => void;
}

/** Only what was seen is changed: if somebody else was faster, nothing is lost on either side. */
function Fields({ seen, onAgain, onDone }: FieldsProps) {
  const change = useSending(
    (body: Given) =>
      send("put", address("/api/users/{name}", { name: seen.person.name }), {
        body,
        headers: { "if-match": seen.tag },
      }),
    ["users", "me"],
    onDone,
  );
  const stale = change.error instanceof Refused && change.error.code === "stale";
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(givenIn(event.currentTarget));
      }}
    >
      <Stack gap="sm">
        <PersonFields person={seen.person} />
        {change.error && <Problem error={change.error} />}
        <Group>
          <Button type="submit" loading={change.isPending}>
            Save
          </Button>
          {stale && (
            <Button variant="default" onClick={onAgain}>
              Load how it is now
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}

function Ends({ name, isMe, onDone }: { name: string; isMe: boolean; onDone: () => void }) {
  const signOut = useSending(
    (_: void) => call("delete", "/api/users/{name}/sessions", { path: { name } }),
    [],
  );
  const remove = useSending(
    (_: void) => call("delete", "/api/users/{name}", { path: { name } }),
    ["users", "keys", "grants"],
    onDone,
  );
  if (isMe) return <Text size="sm">You cannot remove yourself here. Another admin can.</Text>;
  return (
    <Stack gap="sm" className={css.danger}>
      <Confirm
        verb={`Sign ${name} out everywhere`}
        consequence={`All browsers of ${name} will ask to sign in again, and keys of their own end. Keys of agents go on working.`}
        sending={signOut.isPending}
        error={signOut.error}
        onYes={() => signOut.mutate()}
      />
      {signOut.data && (
        <Text role="status" size="sm">
          {name} is signed out:{" "}
          {signOut.data.sessions === 1 ? "1 session" : `${signOut.data.sessions} sessions`} and{" "}
          {signOut.data.keys === 1 ? "1 key" : `${signOut.data.keys} keys`} ended.
        </Text>
      )}
      <Confirm
        verb={`Remove ${name}`}
        consequence={`All that stands for ${name} ends at once. What was approved before stays approved, and what only ${name} may approve will wait for nobody. The record keeps the name, which nobody else can get.`}
        sending={remove.isPending}
        error={remove.error}
        onYes={() => remove.mutate()}
      >
        <WhatEnds name={name} />
      </Confirm>
    </Stack>
  );
}

/** Listed before it is done. */
function WhatEnds({ name }: { name: string }) {
  const removal = useQuery({
    queryKey: ["removal", name],
    queryFn: ({ signal }) => call("get", "/api/users/{name}/removal", { path: { name }, signal }),
    gcTime: 0,
  });
  if (removal.isPending) return <Loading />;
  if (!removal.data) return <Problem error={removal.error} again={() => void removal.refetch()} />;
  const lines = endedLines(removal.data);
  const kept = removal.data.made_keys.map((key) => `${key.name} (${key.id})`).join(", ");
  return (
    <Stack gap={0} role="group" aria-label="What ends">
      {lines.length === 0 && (
        <Text size="sm">They have no grants, keys, sessions, votes or delegations.</Text>
      )}
      {lines.map((line) => (
        <Text size="sm" key={line}>
          {line}
        </Text>
      ))}
      {kept && <Text size="sm">Keys that they made for others stay: {kept}. Replace them if need be.</Text>}
    </Stack>
  );
}
