import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import type { Schemas } from "../../../api/client";
import { Confirm } from "../../../components/Confirm";
import { Dialog } from "../../../components/Dialog";
import { useSendMutation } from "../../../components/mutations";
import { Loading } from "../../../components/States";
import { formatDateTime, TimeAgo } from "../../../components/TimeAgo";
import { describeKeyBinding, isActiveKey, type KeyInfo } from "../data";
import css from "../Settings.module.css";
import * as messages from "./messages";

const KeyForm = lazy(() => import("./KeyForm"));

interface KeyListProps {
  keys: KeyInfo[];
  onRevoke: (id: string) => Promise<unknown>;
}

/** Keys with their owner, creation and last use. */
export function KeyList({ keys, onRevoke }: KeyListProps) {
  if (!keys.length) return <Text size="sm">{messages.noKeys}</Text>;
  return (
    <ul className={css.list}>
      {keys.map((key) => (
        <KeyRow key={key.id} info={key} onRevoke={onRevoke} />
      ))}
    </ul>
  );
}

function KeyRow({ info, onRevoke }: { info: KeyInfo; onRevoke: KeyListProps["onRevoke"] }) {
  const revoke = useSendMutation(() => onRevoke(info.id), ["keys"]);
  const binding = describeKeyBinding(info);
  return (
    <li className={css.row} data-key={info.id}>
      <Stack gap={0}>
        <Group gap="xs">
          <Text fw={600}>{info.name}</Text>
          <Badge variant="light" tt="none">
            {info.role}
            {binding && info.role !== "agent" && ` ${binding}`}
          </Badge>
          {!isActiveKey(info) && (
            <Badge color="gray" variant="outline" tt="none">
              {info.revoked_at ? messages.revoked : messages.expired}
            </Badge>
          )}
        </Group>
        <Text size="sm" c="dimmed" component="div">
          <code>{info.id}…</code>
          {messages.createdBySuffix(info.created_by)} <TimeAgo at={info.created_at} />,{" "}
          {info.used_at ? (
            <>
              {messages.used} <TimeAgo at={info.used_at} />
            </>
          ) : (
            messages.neverUsed
          )}
          {info.expires_at && messages.expiresSuffix(formatDateTime(info.expires_at))}
        </Text>
        {info.role === "agent" && (
          <Text size="sm" c={info.agents.length ? "dimmed" : undefined}>
            {binding}
          </Text>
        )}
      </Stack>
      {!info.revoked_at && (
        <Confirm
          label={messages.revokeKey(info.name)}
          consequence={messages.keyIsRefused}
          sending={revoke.isPending}
          error={revoke.error}
          onConfirm={() => revoke.mutate(undefined)}
        />
      )}
    </li>
  );
}

interface KeyRequest {
  name: string;
  role: string;
  user: string;
  /** The agents that an agent key is bound to; empty: not bound. */
  agents: string[];
  requester: string;
  expires_in: string;
}

export interface NewKeyProps {
  roles: string[];
  /** Possible owners of a key for people; without it, the user's own. */
  people?: string[];
  onCreate: (request: KeyRequest, idempotencyKey: string) => Promise<Schemas["CreatedKey"]>;
}

export function NewKey(props: NewKeyProps) {
  const [opened, setOpened] = useState(false);
  return (
    <Group>
      <Button variant="default" onClick={() => setOpened(true)}>
        {messages.newKey}
      </Button>
      {opened && (
        <Dialog title={messages.newKey} onClose={() => setOpened(false)}>
          <Suspense fallback={<Loading />}>
            <KeyForm {...props} onDone={() => setOpened(false)} />
          </Suspense>
        </Dialog>
      )}
    </Group>
  );
}
