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
        title="Channels"
        about={
          isOnlyDashboard
            ? `Only the dashboard (this web app) is configured for this workspace. Configure others in interlock.yaml on the server, under ${configKeys(me.workspace)}.`
            : "How people in this workspace are notified. Channels are configured in interlock.yaml on the server and cannot be changed here."
        }
      >
        <ul className={css.list}>
          {items.map((channel) => (
            <ChannelRow key={channel.name} channel={channel} admin={isAdmin(me)} />
          ))}
        </ul>
      </Section>
      {!isOnlyDashboard && <FailedDeliveries admin={isAdmin(me)} />}
      {!isOnlyDashboard && isAdmin(me) && (
        <Section
          title="Linked accounts"
          about="The user that each channel account belongs to. Decisions made with an account count as that user's."
        >
          <Identities owner="everybody" />
        </Section>
      )}
    </Stack>
  );
}

/** Channels are configured per workspace; those of the default workspace are at the top level of the file. */
function configKeys(workspace: string): string {
  return workspace === "default" ? "channels and routing" : `workspaces: ${workspace}: channels and routing`;
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
    <Section
      title="Dead letters"
      about="Messages that were refused, or could not be sent for a day. The approvals themselves are still in the inbox."
    >
      {deadLetters.isPending && <Loading />}
      {deadLetters.error && (
        <ErrorMessage error={deadLetters.error} onRetry={() => void deadLetters.refetch()} />
      )}
      {deadLetters.data && !items.length && <Text size="sm">No dead letters.</Text>}
      {items.length > 0 && (
        <ul className={css.list} aria-label="Dead letters">
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
          Show more
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
          Created <TimeAgo at={delivery.created_at} />
          {delivery.approval_id && (
            <>
              {", about "}
              <Anchor component={Link} href={`/a/${delivery.approval_id}`} size="sm" underline="always">
                this approval
              </Anchor>
            </>
          )}
        </Text>
        {retry.error && <ErrorMessage error={retry.error} />}
      </Stack>
      {admin && (
        <Button variant="default" loading={retry.isPending} onClick={() => retry.mutate()}>
          Retry
        </Button>
      )}
    </li>
  );
}
