import { Anchor, Button, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { isAdmin, type CurrentUser } from "../../../api/currentUser";
import { Section } from "../../../components/Section";
import { EmptyState, ErrorMessage, Loading } from "../../../components/States";
import { listTeams, useUsers, type PersonInfo } from "../data";
import css from "../Settings.module.css";
import * as messages from "./messages";

/** A team exists as long as it has members. */
export default function TeamsTab({ me }: { me: CurrentUser }) {
  const users = useUsers();
  if (users.isPending) return <Loading />;
  if (!users.data) return <ErrorMessage error={users.error} onRetry={() => void users.refetch()} />;
  const people = users.data.items;
  const teams = listTeams(people);
  return (
    <Section title={messages.teams} about={messages.teamsHelp(isAdmin(me))}>
      {teams.length === 0 && (
        <EmptyState
          title={messages.noTeamsYet}
          action={
            isAdmin(me) && (
              <Button variant="default" component={Link} href="/settings/people">
                {messages.choosePerson}
              </Button>
            )
          }
        >
          {isAdmin(me) ? messages.selectPersonAndEnterTheirTeams : messages.adminsAddPeopleToTeams}
        </EmptyState>
      )}
      {teams.length > 0 && (
        <ul className={css.list}>
          {teams.map((team) => (
            <Team
              key={team}
              name={team}
              people={people.filter((person) => person.teams.includes(team))}
              me={me}
            />
          ))}
        </ul>
      )}
    </Section>
  );
}

function Team({ name, people, me }: { name: string; people: PersonInfo[]; me: CurrentUser }) {
  return (
    <li className={css.row} data-team={name}>
      <Stack gap={2}>
        <Text fw={600}>{name}</Text>
        <Text component="div">
          {people.map((person, at) => (
            <span key={person.name}>
              {at > 0 && ", "}
              {isAdmin(me) ? (
                <Anchor
                  component={Link}
                  href={`/settings/people?change=${encodeURIComponent(person.name)}`}
                  underline="always"
                >
                  {person.name}
                </Anchor>
              ) : (
                person.name
              )}
            </span>
          ))}
        </Text>
      </Stack>
    </li>
  );
}
