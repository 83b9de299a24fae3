import { Badge, Button, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { useSearchParams } from "wouter";
import { callApi } from "../../../api/client";
import { isAdmin, type CurrentUser } from "../../../api/currentUser";
import { Dialog } from "../../../components/Dialog";
import { useSendMutation } from "../../../components/mutations";
import { Section } from "../../../components/Section";
import { ErrorMessage, Loading } from "../../../components/States";
import { formatDateTime } from "../../../components/TimeAgo";
import { describeDeputies } from "../AwayForm";
import { isAway, reachableUrl, useUsers, type PersonInfo } from "../data";
import css from "../Settings.module.css";
import { ShownOnce } from "../ShownOnce";
import { ChangePerson, PersonFields, readPersonForm, type PersonValues } from "./ChangePerson";
import * as messages from "./messages";

const SEARCH_ABOVE = 12;

/** The people of the workspace; the open dialog is in the URL. */
export default function PeopleTab({ me }: { me: CurrentUser }) {
  const [search, setSearch] = useSearchParams();
  const users = useUsers();
  const open = (params: Record<string, string>) => setSearch(params);
  const close = () => setSearch({});
  if (users.isPending) return <Loading />;
  if (!users.data) return <ErrorMessage error={users.error} onRetry={() => void users.refetch()} />;
  const people = users.data.items;
  const searchTerm = (search.get("q") ?? "").toLowerCase();
  const found = people.filter((person) => searchText(person).includes(searchTerm));
  const changed = isAdmin(me) ? search.get("change") : null;
  const linked = isAdmin(me) ? search.get("link") : null;
  return (
    <Section title={messages.people} about={isAdmin(me) ? messages.peopleHelp : messages.peopleHelpForOthers}>
      <Group justify="space-between">
        {people.length > SEARCH_ABOVE && (
          <TextInput
            aria-label={messages.findPerson}
            placeholder={messages.findByNameTeamOrRole}
            value={search.get("q") ?? ""}
            onChange={(event) =>
              setSearch(event.currentTarget.value ? { q: event.currentTarget.value } : {}, { replace: true })
            }
          />
        )}
        {isAdmin(me) && <Button onClick={() => open({ add: "1" })}>{messages.addPerson}</Button>}
      </Group>
      <ul className={css.list}>
        {found.map((person) => (
          <PersonRow key={person.name} person={person} me={me} onOpen={open} />
        ))}
      </ul>
      {isAdmin(me) && search.has("add") && (
        <Dialog title={messages.addPerson} onClose={close}>
          <AddPerson onDone={close} />
        </Dialog>
      )}
      {linked && (
        <Dialog title={messages.linkForPerson(linked)} onClose={close}>
          <SignInLink name={linked} onDone={close} />
        </Dialog>
      )}
      {changed && (
        <Dialog title={messages.changePerson(changed)} onClose={close}>
          <ChangePerson name={changed} me={me} everybody={people} onDone={close} />
        </Dialog>
      )}
    </Section>
  );
}

interface PersonRowProps {
  person: PersonInfo;
  me: CurrentUser;
  onOpen: (params: Record<string, string>) => void;
}

function PersonRow({ person, me, onOpen }: PersonRowProps) {
  const about = [
    person.teams.length ? messages.inTeams(person.teams.join(", ")) : messages.inNoTeam,
    person.email,
  ].filter(Boolean);
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
              {messages.you}
            </Text>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {about.join(", ")}
        </Text>
        {isAway(person) && person.away && (
          <Text size="sm">
            {messages.awayUntil(formatDateTime(person.away.until), describeDeputies(person.away))}
          </Text>
        )}
      </Stack>
      {isAdmin(me) && (
        <Group gap="xs">
          <Button
            variant="default"
            onClick={() => onOpen({ link: person.name })}
            aria-label={messages.linkForPerson(person.name)}
          >
            {messages.signInLink}
          </Button>
          <Button
            variant="default"
            onClick={() => onOpen({ change: person.name })}
            aria-label={messages.changePerson(person.name)}
          >
            {messages.change}
          </Button>
        </Group>
      )}
    </li>
  );
}

function searchText(person: PersonInfo): string {
  return [person.name, person.role, person.email ?? "", ...person.teams].join(" ").toLowerCase();
}

/** A new person cannot sign in yet, so a sign-in link follows. */
function AddPerson({ onDone }: { onDone: () => void }) {
  const add = useSendMutation(
    (body: PersonValues & { name: string }, idempotencyKey) =>
      callApi("post", "/api/users", { body, idempotencyKey }),
    ["users"],
  );
  if (add.data) return <SignInLink name={add.data.name} onDone={onDone} />;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const name = String(new FormData(event.currentTarget).get("name")).trim();
        add.mutate({ name, ...readPersonForm(event.currentTarget) });
      }}
    >
      <Stack gap="sm">
        <TextInput
          name="name"
          label={messages.name}
          description={messages.nameIsPermanent}
          autoComplete="off"
          required
          autoFocus
        />
        <PersonFields />
        {add.error && <ErrorMessage error={add.error} />}
        <Group>
          <Button type="submit" loading={add.isPending}>
            {messages.add}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** A one-time sign-in link. */
function SignInLink({ name, onDone }: { name: string; onDone: () => void }) {
  const create = useSendMutation(
    (expires_in: string, idempotencyKey) =>
      callApi("post", "/api/users/{name}/link", { path: { name }, body: { expires_in }, idempotencyKey }),
    [],
  );
  if (create.data)
    return (
      <ShownOnce
        title={messages.linkIsForName(name)}
        secret={reachableUrl(create.data.url)}
        about={messages.sendLinkPrivately(name, formatDateTime(create.data.expires_at))}
        onDone={onDone}
      />
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate(String(new FormData(event.currentTarget).get("lasts")));
      }}
    >
      <Stack gap="sm">
        <Text size="sm">{messages.whoeverOpensTheLink(name)}</Text>
        <NativeSelect
          name="lasts"
          label={messages.validFor}
          data={[
            { value: "1h", label: messages.anHour },
            { value: "1d", label: messages.aDay },
            { value: "7d", label: messages.aWeek },
          ]}
        />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            {messages.createSignInLink}
          </Button>
          <Button variant="default" onClick={onDone}>
            {messages.notNow}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
