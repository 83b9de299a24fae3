import { Badge, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useSearchParams } from "wouter";
import { isAdmin, type Myself } from "../../../api/me";
import { Dialog } from "../../../components/Dialog";
import { Loading, Problem } from "../../../components/States";
import { deputies } from "../AwayForm";
import { dateTime, isAway, useUsers, type PersonInfo } from "../data";
import { Section } from "../Section";
import css from "../Settings.module.css";
import { AddPerson } from "./AddPerson";
import { ChangePerson } from "./ChangePerson";
import { SignInLink } from "./SignInLink";

const MANY = 12;

/** Everybody of the workspace; what is open, and for whom, stands in the address. */
export default function PeopleTab({ me }: { me: Myself }) {
  const [search, setSearch] = useSearchParams();
  const users = useUsers();
  const open = (what: Record<string, string>) => setSearch(what);
  const close = () => setSearch({});
  if (users.isPending) return <Loading />;
  if (!users.data) return <Problem error={users.error} again={() => void users.refetch()} />;
  const people = users.data.items;
  const wanted = (search.get("q") ?? "").toLowerCase();
  const found = people.filter((person) => textOf(person).includes(wanted));
  const changed = isAdmin(me) ? search.get("change") : null;
  const linked = isAdmin(me) ? search.get("link") : null;
  return (
    <Section
      title="People"
      about={
        isAdmin(me)
          ? "Viewers look, reviewers decide, admins change everything."
          : "Viewers look, reviewers decide, admins change everything. Only admins can change who is here."
      }
    >
      <Group justify="space-between">
        {people.length > MANY && (
          <TextInput
            aria-label="Find somebody"
            placeholder="Find by name, team or role"
            value={search.get("q") ?? ""}
            onChange={(event) =>
              setSearch(event.currentTarget.value ? { q: event.currentTarget.value } : {}, { replace: true })
            }
          />
        )}
        {isAdmin(me) && <Button onClick={() => open({ add: "1" })}>Add somebody</Button>}
      </Group>
      <ul className={css.list}>
        {found.map((person) => (
          <PersonRow key={person.name} person={person} me={me} onOpen={open} />
        ))}
      </ul>
      {isAdmin(me) && search.has("add") && (
        <Dialog title="Add somebody" onClose={close}>
          <AddPerson onDone={close} />
        </Dialog>
      )}
      {linked && (
        <Dialog title={`A sign-in link for ${linked}`} onClose={close}>
          <SignInLink name={linked} onDone={close} />
        </Dialog>
      )}
      {changed && (
        <Dialog title={`Change ${changed}`} onClose={close}>
          <ChangePerson name={changed} me={me} everybody={people} onDone={close} />
        </Dialog>
      )}
    </Section>
  );
}

interface PersonRowProps {
  person: PersonInfo;
  me: Myself;
  onOpen: (what: Record<string, string>) => void;
}

function PersonRow({ person, me, onOpen }: PersonRowProps) {
  const about = [person.teams.length ? `in ${person.teams.join(", ")}` : "in no team", person.email].filter(
    Boolean,
  );
  return (
    <li className={css.row} data-person={person.name}>
      <Stack gap={0}>
        <Group gap="xs">
          <Text fw={600}>{person.name}</Text>
          <Badge variant="light" tt="none">
            {person.role}
          </Badge>
          {person.name === me.name && (
            <Text size="sm" c="dimmed">
              you
            </Text>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {about.join(", ")}
        </Text>
        {isAway(person) && person.away && (
          <Text size="sm">
            Away until {dateTime(person.away.until)}. {deputies(person.away)}
          </Text>
        )}
      </Stack>
      {isAdmin(me) && (
        <Group gap="xs">
          <Button
            variant="default"
            onClick={() => onOpen({ link: person.name })}
            aria-label={`Sign-in link for ${person.name}`}
          >
            Sign-in link
          </Button>
          <Button
            variant="default"
            onClick={() => onOpen({ change: person.name })}
            aria-label={`Change ${person.name}`}
          >
            Change
          </Button>
        </Group>
      )}
    </li>
  );
}

function textOf(person: PersonInfo): string {
  return [person.name, person.role, person.email ?? "", ...person.teams].join(" ").toLowerCase();
}
