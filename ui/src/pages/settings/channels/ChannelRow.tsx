import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { call, type Shapes } from "../../../api/client";
import { Problem } from "../../../components/States";
import { Ago } from "../../../components/Time";
import { useSending } from "../data";
import css from "../Settings.module.css";
import { purpose, waiting } from "./words";

type Channel = Shapes["ChannelInfo"];

/** One channel: what it is for, how it stands, and what an admin can do about it. */
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
              off
            </Badge>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {purpose(channel)}
        </Text>
        {!isDashboard && <Standing channel={channel} />}
      </Stack>
      {admin && !isDashboard && <Acts name={name} isOff={off !== null} />}
    </li>
  );
}

function Standing({ channel }: { channel: Channel }) {
  const { off, due, due_since, last_sent_at, error } = channel;
  return (
    <>
      <Text size="sm" component="div">
        {off && (
          <>
            Switched off <Ago at={off.since} />: {off.why}{" "}
          </>
        )}
        {last_sent_at ? (
          <>
            Last told somebody <Ago at={last_sent_at} />.{" "}
          </>
        ) : (
          "Has told nobody yet. "
        )}
        {waiting(due)}
        {due_since && (
          <>
            {" "}
            The oldest is from <Ago at={due_since} />.
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

function Acts({ name, isOff }: { name: string; isOff: boolean }) {
  const test = useSending(
    (_: void, once) => call("post", "/api/channels/{name}/test", { path: { name }, once }),
    ["channels"],
  );
  const on = useSending(
    (_: void, once) => call("post", "/api/channels/{name}/enable", { path: { name }, once }),
    ["channels"],
  );
  return (
    <Stack gap="xs" align="flex-start">
      <Group gap="xs">
        {isOff && (
          <Button variant="default" loading={on.isPending} onClick={() => on.mutate()}>
            Switch {name} on again
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
      {(test.error ?? on.error) && <Problem error={(test.error ?? on.error) as Error} />}
    </Stack>
  );
}
