import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { address, send, type Shapes } from "../../api/client";
import { Problem } from "../../components/States";
import { dateTime, isAway, localInput, teamsOf, useSending, type PersonInfo } from "./data";
import { Picks } from "./Picks";

interface AwayProps {
  person: PersonInfo;
  everybody: PersonInfo[];
  /** Whose page this is: one's own, or that of somebody else, by an admin. */
  whose: "mine" | "theirs";
}

/** Until when somebody is away, and who decides in their place (out of office). */
export function AwayForm({ person, everybody, whose }: AwayProps) {
  const put = useSending(
    (body: Shapes["AwayBody"]) => send("put", addressOf(whose, person.name), { body }),
    ["users", "approval", "approvals"],
  );
  const back = () => put.mutate({ until: null, users: [], teams: [] });
  return (
    <Stack gap="sm">
      {isAway(person) && person.away && (
        <Group justify="space-between">
          <Text role="status">
            Away until {dateTime(person.away.until)}. {deputies(person.away)}
          </Text>
          <Button variant="default" onClick={back} loading={put.isPending && put.variables.until === null}>
            {whose === "mine" ? "I am back" : `${person.name} is back`}
          </Button>
        </Group>
      )}
      <NewAway
        key={person.away?.until}
        person={person}
        everybody={everybody}
        sending={put.isPending && put.variables.until !== null}
        onSend={(body) => put.mutate(body)}
      />
      {put.error && <Problem error={put.error} />}
    </Stack>
  );
}

interface NewAwayProps {
  person: PersonInfo;
  everybody: PersonInfo[];
  sending: boolean;
  onSend: (body: Shapes["AwayBody"]) => void;
}

function NewAway({ person, everybody, sending, onSend }: NewAwayProps) {
  const [users, setUsers] = useState(person.away?.users ?? []);
  const [teams, setTeams] = useState(person.away?.teams ?? []);
  const others = everybody.filter(({ name, role }) => name !== person.name && role !== "viewer");
  const nobody = users.length + teams.length === 0;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const until = new Date(String(new FormData(event.currentTarget).get("until")));
        onSend({ until: until.toISOString(), users, teams });
      }}
    >
      <Stack gap="sm">
        <TextInput
          name="until"
          type="datetime-local"
          label="Away until"
          required
          maw={260}
          min={localInput(new Date())}
          defaultValue={person.away && isAway(person) ? localInput(new Date(person.away.until)) : ""}
        />
        <Picks
          legend="People who decide meanwhile"
          names={others.map(({ name }) => name)}
          picked={users}
          onPick={setUsers}
        />
        <Picks
          legend="Teams that decide meanwhile"
          names={teamsOf(everybody)}
          picked={teams}
          onPick={setTeams}
        />
        {nobody && <Text size="sm">Nobody is picked: what only this person may decide waits.</Text>}
        <Group>
          <Button type="submit" loading={sending}>
            {person.away && isAway(person) ? "Change absence" : "Set away"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** "bob and the team finance decide meanwhile." */
export function deputies({ users, teams }: { users: string[]; teams: string[] }): string {
  const names = [...users, ...teams.map((team) => `the team ${team}`)];
  if (!names.length) return "Nobody decides in this place.";
  const listed = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  return names.length > 1 || teams.length ? `${listed} decide meanwhile.` : `${listed} decides meanwhile.`;
}

function addressOf(whose: "mine" | "theirs", name: string): string {
  return whose === "mine" ? "/api/me/away" : address("/api/users/{name}/away", { name });
}
