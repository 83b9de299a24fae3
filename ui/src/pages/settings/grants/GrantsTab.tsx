import { Badge, Button, Group, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { callApi } from "../../../api/client";
import { mayDecide, type CurrentUser } from "../../../api/currentUser";
import { Dialog } from "../../../components/Dialog";
import { Section } from "../../../components/Section";
import { EmptyState, ErrorMessage, Loading } from "../../../components/States";
import type { GrantInfo } from "../data";
import css from "../Settings.module.css";
import { describeGrant, describeLimits, GrantDetails } from "./GrantDetails";
import * as messages from "./messages";
import { NewGrant } from "./NewGrant";

/** Grants. `?new&tool=…&agent=…` opens the form with these values; `?grant=ID` opens one grant. */
export default function GrantsTab({ me }: { me: CurrentUser }) {
  const [search, setSearch] = useSearchParams();
  const state = search.get("state") === "all" ? "all" : "active";
  const openGrant = search.get("grant");
  const filterParams: Record<string, string> = state === "all" ? { state } : {};
  const grants = useQuery({
    queryKey: ["grants", state],
    queryFn: ({ signal }) => callApi("get", "/api/grants", { query: { state }, signal }),
  });
  return (
    <Section title={messages.grants} about={messages.grantsHelp}>
      <Group justify="space-between">
        <Switch
          label={messages.showEndedGrants}
          checked={state === "all"}
          onChange={(event) =>
            setSearch(event.currentTarget.checked ? { state: "all" } : {}, { replace: true })
          }
        />
        {mayDecide(me) ? (
          <Button onClick={() => setSearch({ ...filterParams, new: "1" })}>{messages.newGrant}</Button>
        ) : (
          <Text size="sm">{messages.whoCreatesGrants}</Text>
        )}
      </Group>
      {grants.isPending && <Loading />}
      {grants.error && !grants.data && (
        <ErrorMessage error={grants.error} onRetry={() => void grants.refetch()} />
      )}
      {grants.data?.items.length === 0 && (
        <EmptyState title={messages.noGrants}>{messages.gatedCallsNeedApproval}</EmptyState>
      )}
      {!!grants.data?.items.length && (
        <ul className={css.list}>
          {grants.data.items.map((grant) => (
            <GrantRow
              key={grant.id}
              grant={grant}
              onOpen={() => setSearch({ ...filterParams, grant: grant.id })}
            />
          ))}
        </ul>
      )}
      {mayDecide(me) && search.has("new") && (
        <Dialog title={messages.newGrant} onClose={() => setSearch(filterParams)}>
          <NewGrant
            tool={search.get("tool") ?? ""}
            agent={search.get("agent") ?? "*"}
            onDone={() => setSearch(filterParams)}
          />
        </Dialog>
      )}
      {openGrant && (
        <Dialog title={messages.grant} onClose={() => setSearch(filterParams)}>
          <GrantDetails id={openGrant} me={me} />
        </Dialog>
      )}
    </Section>
  );
}

function GrantRow({ grant, onOpen }: { grant: GrantInfo; onOpen: () => void }) {
  return (
    <li className={css.row} data-grant={grant.id}>
      <Stack gap={0}>
        <Group gap="xs">
          <Text fw={600}>{grant.tool}</Text>
          <Badge
            variant={grant.state === "active" ? "light" : "outline"}
            color={grant.state === "active" ? undefined : "gray"}
            tt="none"
          >
            {grant.state}
          </Badge>
        </Group>
        <Text size="sm">{describeGrant(grant)}</Text>
        <Text size="sm">{describeLimits(grant).join(" · ")}</Text>
        <Text size="sm" c="dimmed">
          {grant.created_by}: {grant.reason}
        </Text>
      </Stack>
      <Button variant="default" onClick={onOpen} aria-label={messages.detailsOfGrantFor(grant.tool)}>
        {messages.details}
      </Button>
    </li>
  );
}
