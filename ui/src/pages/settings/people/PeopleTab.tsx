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
    <Section
      title="People"
      about={
        isAdmin(me)
          ? "Viewers can look, reviewers can decide, admins can change everything."
          : "Viewers can look, reviewers can decide, admins can change everything. Only admins can add or remove people."
      }
    >
      <Group justify="space-between">
        {people.length > SEARCH_ABOVE && (
          <TextInput
            aria-label="Find a person"
            placeholder="Find by name, team or role"
            value={search.get("q") ?? ""}
            onChange={(event) =>
              setSearch(event.currentTarget.value ? { q: event.currentTarget.value } : {}, { replace: true })
            }
          />
        )}
        {isAdmin(me) && <Button onClick={() => open({ add: "1" })}>Add person</Button>}
      </Group>
      <ul className={css.list}>
        {found.map((person) => (
          <PersonRow key={person.name} person={person} me={me} onOpen={open} />
        ))}
      </ul>
      {isAdmin(me) && search.has("add") && (
        <Dialog title="Add person" onClose={close}>
          <AddPerson onDone={close} />
        </Dialog>
      )}
      {linked && (
        <Dialog title={`Sign-in link for ${linked}`} onClose={close}>
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
  me: CurrentUser;
  onOpen: (params: Record<string, string>) => void;
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
            Away until {formatDateTime(person.away.until)}. {describeDeputies(person.away)}
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
          label="Name"
          description="Permanent: the ledger keeps it."
          autoComplete="off"
          required
          autoFocus
        />
        <PersonFields />
        {add.error && <ErrorMessage error={add.error} />}
        <Group>
          <Button type="submit" loading={add.isPending}>
            Add
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
        title={`For ${name}`}
        secret={reachableUrl(create.data.url)}
        about={`Send it to ${name} over a private channel. It works once, until ${formatDateTime(create.data.expires_at)}.`}
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
        <Text size="sm">
          The first person to open the link is signed in as {name} and may choose a new password. The ledger
          records that you created it.
        </Text>
        <NativeSelect
          name="lasts"
          label="Valid for"
          data={[
            { value: "1h", label: "an hour" },
            { value: "1d", label: "a day" },
            { value: "7d", label: "a week" },
          ]}
        />
        {create.error && <ErrorMessage error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            Create sign-in link
          </Button>
          <Button variant="default" onClick={onDone}>
            Not now
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
