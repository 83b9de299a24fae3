import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { callApi, type Schemas } from "../../../api/client";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage } from "../../../components/States";
import { TimeAgo } from "../../../components/TimeAgo";
import css from "../Settings.module.css";
import * as messages from "./messages";

type Channel = Schemas["ChannelInfo"];

/** One channel: its routes, its state, and actions for admins. */
export function ChannelRow({ channel, admin }: { channel: Channel; admin: boolean }) {
  const { name, kind, off } = channel;
  const isDashboard = kind === "dashboard";
  return (
    <li className={css.row} data-channel={name}>
      <Stack gap={2}>
        <Group gap="xs">
          <Text fw={600}>{name}</Text>
          {channel.is_default && (
            <Badge variant="light" tt="none">
              {messages.defaultLabel}
            </Badge>
          )}
          {off && (
            <Badge color="red" variant="outline" tt="none">
              {messages.disabled}
            </Badge>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {describePurpose(channel)}
        </Text>
        {!isDashboard && <ChannelState channel={channel} />}
      </Stack>
      {admin && !isDashboard && <ChannelActions name={name} isOff={off !== null} />}
    </li>
  );
}

function ChannelState({ channel }: { channel: Channel }) {
  const { off, due, due_since, last_sent_at, error } = channel;
  return (
    <>
      <Text size="sm" component="div">
        {off && (
          <>
            {messages.disabledSince} <TimeAgo at={off.since} />: {off.why}{" "}
          </>
        )}
        {last_sent_at ? (
          <>
            {messages.lastNotification} <TimeAgo at={last_sent_at} />.{" "}
          </>
        ) : (
          messages.noNotificationSentYet
        )}
        {describeBacklog(due)}
        {due_since && (
          <>
            {" "}
            {messages.oldestIsFrom} <TimeAgo at={due_since} />.
          </>
        )}
      </Text>
      {error && !off && (
        <Text size="sm" className={css.wrong}>
          {error}
        </Text>
      )}
    </>
  );
}

function ChannelActions({ name, isOff }: { name: string; isOff: boolean }) {
  const test = useSendMutation(
    (_: void, idempotencyKey) =>
      callApi("post", "/api/channels/{name}/test", { path: { name }, idempotencyKey }),
    ["channels"],
  );
  const on = useSendMutation(
    (_: void, idempotencyKey) =>
      callApi("post", "/api/channels/{name}/enable", { path: { name }, idempotencyKey }),
    ["channels"],
  );
  return (
    <Stack gap="xs" align="flex-start">
      <Group gap="xs">
        {isOff && (
          <Button variant="default" loading={on.isPending} onClick={() => on.mutate()}>
            {messages.enableChannel(name)}
          </Button>
        )}
        <Button
          variant="default"
          loading={test.isPending}
          onClick={() => test.mutate()}
          aria-label={messages.sendTestTo(name)}
        >
          {messages.sendTest}
        </Button>
      </Group>
      {test.isSuccess && (
        <Text size="sm" role="status">
          {test.data.person ? messages.testWasSentTo(test.data.person) : messages.testWasSent}
        </Text>
      )}
      {(test.error ?? on.error) && <ErrorMessage error={(test.error ?? on.error) as Error} />}
    </Stack>
  );
}

type Delivery = Schemas["DeliveryInfo"];

/** "slack, for high priority and team finance. People can answer there." */
export function describePurpose(channel: Channel): string {
  const routes = [
    ...channel.priorities.map((priority) => messages.priorityRoute(priority)),
    ...channel.teams.map((team) => messages.teamRoute(team)),
  ];
  const kindLabel = channel.kind === "dashboard" ? messages.alwaysAvailable : channel.kind;
  const to = channel.personal ? messages.toEachPersonIndividually : "";
  const answers =
    channel.answers && channel.kind !== "dashboard" ? messages.peopleCanAnswer : routes.length ? "." : "";
  return messages.purpose(kindLabel, to, routes.length, routes.join(", "), answers);
}

/** Queued messages, counted up to a thousand. */
export function describeBacklog(due: number): string {
  if (!due) return messages.noMessagesQueued;
  if (due === 1) return messages.oneMessageQueued;
  return messages.messagesQueued(due);
}

const REASONS: Record<Delivery["reason"], string> = {
  asked: messages.requestForDecision,
  escalated: messages.escalation,
  expired: messages.expiryNotice,
  woken: messages.resumesWorkflow,
  group: messages.numberOfPendingCalls,
  test: messages.test,
};

/** "To ada via mail: request for a decision" */
export function describeDelivery({ person, place, channel, reason }: Delivery): string {
  const to = person ?? place;
  return messages.deliveryVia(to, channel, REASONS[reason]);
}
