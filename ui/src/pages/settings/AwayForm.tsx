import { Button, Checkbox, Fieldset, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { buildUrl, sendRequest, type Schemas } from "../../api/client";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import { formatDateTime } from "../../components/TimeAgo";
import { isAway, listTeams, toLocalInput, type PersonInfo } from "./data";
import * as messages from "./messages";
import css from "./Settings.module.css";

const SEARCH_ABOVE = 12;

interface AwayFormProps {
  person: PersonInfo;
  everybody: PersonInfo[];
  /** The user's own absence, or another person's, set by an admin. */
  owner: "mine" | "theirs";
}

/** A person's absence and their delegates (out of office). */
export function AwayForm({ person, everybody, owner }: AwayFormProps) {
  const setAway = useSendMutation(
    (body: Schemas["AwayBody"]) => sendRequest("put", awayUrl(owner, person.name), { body }),
    ["users", "approval", "approvals"],
  );
  const endAway = () => setAway.mutate({ until: null, users: [], teams: [] });
  return (
    <Stack gap="sm">
      {isAway(person) && person.away && (
        <Group justify="space-between">
          <Text role="status">
            {messages.awayUntil(formatDateTime(person.away.until), describeDeputies(person.away))}
          </Text>
          <Button
            variant="default"
            onClick={endAway}
            loading={setAway.isPending && setAway.variables.until === null}
          >
            {owner === "mine" ? messages.iAmBack : messages.personIsBack(person.name)}
          </Button>
        </Group>
      )}
      <AbsenceForm
        key={person.away?.until}
        person={person}
        everybody={everybody}
        sending={setAway.isPending && setAway.variables.until !== null}
        onSend={(body) => setAway.mutate(body)}
      />
      {setAway.error && <ErrorMessage error={setAway.error} />}
    </Stack>
  );
}

interface AbsenceFormProps {
  person: PersonInfo;
  everybody: PersonInfo[];
  sending: boolean;
  onSend: (body: Schemas["AwayBody"]) => void;
}

function AbsenceForm({ person, everybody, sending, onSend }: AbsenceFormProps) {
  const [users, setUsers] = useState(person.away?.users ?? []);
  const [teams, setTeams] = useState(person.away?.teams ?? []);
  const others = everybody.filter(({ name, role }) => name !== person.name && role !== "viewer");
  const hasNoDeputies = users.length + teams.length === 0;
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
          label={messages.awayUntilField}
          required
          maw={260}
          min={toLocalInput(new Date())}
          defaultValue={person.away && isAway(person) ? toLocalInput(new Date(person.away.until)) : ""}
        />
        <NamePicker
          legend={messages.delegatesPeople}
          names={others.map(({ name }) => name)}
          selected={users}
          onSelect={setUsers}
        />
        <NamePicker
          legend={messages.delegatesTeams}
          names={listTeams(everybody)}
          selected={teams}
          onSelect={setTeams}
        />
        {hasNoDeputies && <Text size="sm">{messages.noDelegatesHint}</Text>}
        <Group>
          <Button type="submit" loading={sending}>
            {person.away && isAway(person) ? messages.changeAbsence : messages.setAway}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** "Delegates: bob and the team finance." */
export function describeDeputies({ users, teams }: { users: string[]; teams: string[] }): string {
  const names = [...users, ...teams.map((team) => messages.theTeam(team))];
  if (!names.length) return messages.noDelegates;
  const listed =
    names.length > 1 ? messages.namesAndLast(names.slice(0, -1).join(", "), names.at(-1)) : names[0];
  return names.length > 1 ? messages.delegatesAre(listed) : messages.delegateIs(listed);
}

function awayUrl(owner: "mine" | "theirs", name: string): string {
  return owner === "mine" ? "/api/me/away" : buildUrl("/api/users/{name}/away", { name });
}

interface NamePickerProps {
  legend: string;
  names: string[];
  selected: string[];
  onSelect: (selected: string[]) => void;
}

/** A searchable list of checkboxes; selected names stay visible. */
function NamePicker({ legend, names, selected, onSelect }: NamePickerProps) {
  const [search, setSearch] = useState("");
  const found = names.filter(
    (name) => selected.includes(name) || name.toLowerCase().includes(search.toLowerCase()),
  );
  if (!names.length) return null;
  return (
    <Fieldset legend={legend} p="sm">
      {names.length > SEARCH_ABOVE && (
        <TextInput
          aria-label={messages.findIn(legend)}
          placeholder={messages.find}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          mb="xs"
        />
      )}
      <div className={css.picks}>
        {found.map((name) => (
          <Checkbox
            key={name}
            label={name}
            py={6}
            checked={selected.includes(name)}
            onChange={(event) =>
              onSelect(
                event.currentTarget.checked
                  ? [...selected, name]
                  : selected.filter((other) => other !== name),
              )
            }
          />
        ))}
      </div>
    </Fieldset>
  );
}
