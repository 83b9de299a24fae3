import { Button, Checkbox, Fieldset, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { buildUrl, sendRequest, type Schemas } from "../../api/client";
import { ErrorMessage } from "../../components/States";
import { formatDateTime, isAway, listTeams, toLocalInput, useSendMutation, type PersonInfo } from "./data";
import css from "./Settings.module.css";

const MANY = 12;

interface AwayProps {
  person: PersonInfo;
  everybody: PersonInfo[];
  /** Whose page this is: one's own, or that of somebody else, by an admin. */
  whose: "mine" | "theirs";
}

/** Until when somebody is away, and who decides in their place (out of office). */
export function AwayForm({ person, everybody, whose }: AwayProps) {
  const put = useSendMutation(
    (body: Schemas["AwayBody"]) => sendRequest("put", addressOf(whose, person.name), { body }),
    ["users", "approval", "approvals"],
  );
  const back = () => put.mutate({ until: null, users: [], teams: [] });
  return (
    <Stack gap="sm">
      {isAway(person) && person.away && (
        <Group justify="space-between">
          <Text role="status">
            Away until {formatDateTime(person.away.until)}. {describeDeputies(person.away)}
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
      {put.error && <ErrorMessage error={put.error} />}
    </Stack>
  );
}

interface NewAwayProps {
  person: PersonInfo;
  everybody: PersonInfo[];
  sending: boolean;
  onSend: (body: Schemas["AwayBody"]) => void;
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
          min={toLocalInput(new Date())}
          defaultValue={person.away && isAway(person) ? toLocalInput(new Date(person.away.until)) : ""}
        />
        <NamePicker
          legend="Deputies (people)"
          names={others.map(({ name }) => name)}
          picked={users}
          onPick={setUsers}
        />
        <NamePicker legend="Deputies (teams)" names={listTeams(everybody)} picked={teams} onPick={setTeams} />
        {nobody && (
          <Text size="sm">No deputies: requests that only this person may decide stay pending.</Text>
        )}
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
export function describeDeputies({ users, teams }: { users: string[]; teams: string[] }): string {
  const names = [...users, ...teams.map((team) => `the team ${team}`)];
  if (!names.length) return "No deputies.";
  const listed = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  return names.length > 1 ? `Deputies: ${listed}.` : `Deputy: ${listed}.`;
}

function addressOf(whose: "mine" | "theirs", name: string): string {
  return whose === "mine" ? "/api/me/away" : buildUrl("/api/users/{name}/away", { name });
}

interface PicksProps {
  legend: string;
  names: string[];
  picked: string[];
  onPick: (picked: string[]) => void;
}

/** Some of many names; what is picked stays in sight whatever is looked for. */
function NamePicker({ legend, names, picked, onPick }: PicksProps) {
  const [wanted, setWanted] = useState("");
  const found = names.filter(
    (name) => picked.includes(name) || name.toLowerCase().includes(wanted.toLowerCase()),
  );
  if (!names.length) return null;
  return (
    <Fieldset legend={legend} p="sm">
      {names.length > MANY && (
        <TextInput
          aria-label={`Find: ${legend}`}
          placeholder="Find"
          value={wanted}
          onChange={(event) => setWanted(event.currentTarget.value)}
          mb="xs"
        />
      )}
      <div className={css.picks}>
        {found.map((name) => (
          <Checkbox
            key={name}
            label={name}
            py={6}
            checked={picked.includes(name)}
            onChange={(event) =>
              onPick(
                event.currentTarget.checked ? [...picked, name] : picked.filter((other) => other !== name),
              )
            }
          />
        ))}
      </div>
    </Fieldset>
  );
}
