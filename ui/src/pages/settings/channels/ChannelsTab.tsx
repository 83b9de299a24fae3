import { Anchor, Button, Stack, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { callApi, type Schemas } from "../../../api/client";
import { isAdmin, type CurrentUser } from "../../../api/currentUser";
import { useSendMutation } from "../../../components/mutations";
import { Section } from "../../../components/Section";
import { ErrorMessage, Loading } from "../../../components/States";
import { TimeAgo } from "../../../components/TimeAgo";
import { Identities } from "../Identities";
import css from "../Settings.module.css";
import { ChannelRow, describeDelivery } from "./ChannelRow";
import * as messages from "./messages";

/** The channels, their state, and dead letters. Addresses and secrets stay on the server. */
export default function ChannelsTab({ me }: { me: CurrentUser }) {
  const channels = useQuery({
    queryKey: ["channels"],
    queryFn: ({ signal }) => callApi("get", "/api/channels", { signal }),
    refetchInterval: 10_000,
  });
  if (channels.isPending) return <Loading />;
  if (!channels.data) return <ErrorMessage error={channels.error} onRetry={() => void channels.refetch()} />;
  const { items } = channels.data;
  const isOnlyDashboard = items.length === 1;
  return (
    <Stack gap="md">
      <Section
        title={messages.channels}
        about={isOnlyDashboard ? messages.onlyDashboard(configKeys(me.workspace)) : messages.channelsHelp}
      >
        <ul className={css.list}>
          {items.map((channel) => (
            <ChannelRow key={channel.name} channel={channel} admin={isAdmin(me)} />
          ))}
        </ul>
      </Section>
      {!isOnlyDashboard && <FailedDeliveries admin={isAdmin(me)} />}
      {!isOnlyDashboard && isAdmin(me) && (
        <Section title={messages.linkedAccounts} about={messages.linkedAccountsHelp}>
          <Identities owner="everybody" />
        </Section>
      )}
    </Stack>
  );
}

/** Channels are configured per workspace; those of the default workspace are at the top level of the file. */
function configKeys(workspace: string): string {
  return workspace === "default" ? messages.channelsAndRouting : messages.settingsOfWorkspace(workspace);
}

/** Dead letters; the requests themselves are still in the inbox. */
function FailedDeliveries({ admin }: { admin: boolean }) {
  const deadLetters = useInfiniteQuery({
    queryKey: ["deliveries"],
    queryFn: ({ signal, pageParam }) =>
      callApi("get", "/api/deliveries", {
        query: { status: "parked", limit: 50, cursor: pageParam },
        signal,
      }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
    refetchInterval: 10_000,
  });
  const items = deadLetters.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Section title={messages.deadLetters} about={messages.deadLettersHelp}>
      {deadLetters.isPending && <Loading />}
      {deadLetters.error && (
        <ErrorMessage error={deadLetters.error} onRetry={() => void deadLetters.refetch()} />
      )}
      {deadLetters.data && !items.length && <Text size="sm">{messages.noDeadLetters}</Text>}
      {items.length > 0 && (
        <ul className={css.list} aria-label={messages.deadLetters}>
          {items.map((delivery) => (
            <DeadLetterRow key={delivery.id} delivery={delivery} admin={admin} />
          ))}
        </ul>
      )}
      {deadLetters.hasNextPage && (
        <Button
          variant="default"
          loading={deadLetters.isFetchingNextPage}
          onClick={() => void deadLetters.fetchNextPage()}
        >
          {messages.showMore}
        </Button>
      )}
    </Section>
  );
}

function DeadLetterRow({ delivery, admin }: { delivery: Schemas["DeliveryInfo"]; admin: boolean }) {
  const retry = useSendMutation(
    (_: void, idempotencyKey) =>
      callApi("post", "/api/deliveries/{delivery_id}/retry", {
        path: { delivery_id: delivery.id },
        idempotencyKey,
      }),
    ["deliveries", "channels"],
  );
  return (
    <li className={css.row} data-delivery={delivery.id}>
      <Stack gap={2}>
        <Text>{describeDelivery(delivery)}</Text>
        {delivery.error && (
          <Text size="sm" className={css.wrong}>
            {delivery.error}
          </Text>
        )}
        <Text size="sm" c="dimmed" component="div">
          {messages.created} <TimeAgo at={delivery.created_at} />
          {delivery.approval_id && (
            <>
              {messages.about}
              <Anchor component={Link} href={`/a/${delivery.approval_id}`} size="sm" underline="always">
                {messages.thisApproval}
              </Anchor>
            </>
          )}
        </Text>
        {retry.error && <ErrorMessage error={retry.error} />}
      </Stack>
      {admin && (
        <Button variant="default" loading={retry.isPending} onClick={() => retry.mutate()}>
          {messages.retry}
        </Button>
      )}
    </li>
  );
}
