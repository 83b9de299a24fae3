import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { callApi, type Schemas } from "../../../api/client";
import { useSendMutation } from "../../../components/mutations";
import { ErrorMessage } from "../../../components/States";
import { TimeAgo } from "../../../components/TimeAgo";
import css from "../Settings.module.css";

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
              default
            </Badge>
          )}
          {off && (
            <Badge color="red" variant="outline" tt="none">
              {" "}
              disabled{" "}
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
            Disabled <TimeAgo at={off.since} />: {off.why}{" "}
          </>
        )}
        {last_sent_at ? (
          <>
            Last notification <TimeAgo at={last_sent_at} />.{" "}
          </>
        ) : (
          "No notification sent yet. "
        )}
        {describeBacklog(due)}
        {due_since && (
          <>
            {" "}
            The oldest is from <TimeAgo at={due_since} />.
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
            Enable {name}
          </Button>
        )}
        <Button
          variant="default"
          loading={test.isPending}
          onClick={() => test.mutate()}
          aria-label={`Send a test to ${name}`}
        >
          Send a test
        </Button>
      </Group>
      {test.isSuccess && (
        <Text size="sm" role="status">
          {test.data.person ? `A test was sent to ${test.data.person}.` : "A test was sent."}
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
    ...channel.priorities.map((priority) => `${priority} priority`),
    ...channel.teams.map((team) => `team ${team}`),
  ];
  const kindLabel = channel.kind === "dashboard" ? "Always available" : channel.kind;
  const to = channel.personal ? ", to each person individually" : "";
  const answers =
    channel.answers && channel.kind !== "dashboard" ? ". People can answer there." : routes.length ? "." : "";
  return `${kindLabel}${to}${routes.length ? `, for ${routes.join(", ")}` : ""}${answers}`;
}

/** Queued messages, counted up to a thousand. */
export function describeBacklog(due: number): string {
  if (!due) return "No messages queued.";
  if (due === 1) return "1 message queued.";
  return `${due >= 1_000 ? "1,000 or more" : due} messages queued.`;
}

const REASONS: Record<Delivery["reason"], string> = {
  asked: "request for a decision",
  escalated: "escalation",
  expired: "expiry notice",
  woken: "resumes a workflow",
  group: "number of pending calls",
  test: "test",
};

/** "To ada via mail: request for a decision" */
export function describeDelivery({ person, place, channel, reason }: Delivery): string {
  const to = person ?? place;
  return `${to ? `To ${to} via` : "Via"} ${channel}: ${REASONS[reason]}`;
}
