import { Badge, Group, Stack, Text } from "@mantine/core";
import { Ago } from "../../../components/Time";
import { Confirm } from "../Confirm";
import { boundTo, counts, dateTime, useSending, type KeyInfo } from "../data";
import css from "../Settings.module.css";

interface KeyListProps {
  keys: KeyInfo[];
  onRevoke: (id: string) => Promise<unknown>;
}

/** Who a key acts as, when it was made and last used. */
export function KeyList({ keys, onRevoke }: KeyListProps) {
  if (!keys.length) return <Text size="sm">There are none.</Text>;
  return (
    <ul className={css.list}>
      {keys.map((key) => (
        <KeyRow key={key.id} info={key} onRevoke={onRevoke} />
      ))}
    </ul>
  );
}

function KeyRow({ info, onRevoke }: { info: KeyInfo; onRevoke: KeyListProps["onRevoke"] }) {
  const revoke = useSending(() => onRevoke(info.id), ["keys"]);
  const bound = boundTo(info);
  return (
    <li className={css.row} data-key={info.id}>
      <Stack gap={0}>
        <Group gap="xs">
          <Text fw={600}>{info.name}</Text>
          <Badge variant="light" tt="none">
            {info.role}
            {bound && info.role !== "agent" && ` ${bound}`}
          </Badge>
          {!counts(info) && (
            <Badge color="gray" variant="outline" tt="none">
              {info.revoked_at ? "revoked" : "expired"}
            </Badge>
          )}
        </Group>
        <Text size="sm" c="dimmed" component="div">
          <code>{info.id}…</code>, made by {info.created_by} <Ago at={info.created_at} />,{" "}
          {info.used_at ? (
            <>
              used <Ago at={info.used_at} />
            </>
          ) : (
            "never used"
          )}
          {info.expires_at && `, ends ${dateTime(info.expires_at)}`}
        </Text>
        {info.role === "agent" && (
          <Text size="sm" c={info.agents.length ? "dimmed" : undefined}>
            {bound}
          </Text>
        )}
      </Stack>
      {!info.revoked_at && (
        <Confirm
          verb={`Revoke ${info.name}`}
          consequence="Programs with this key are refused from then on, for good."
          sending={revoke.isPending}
          error={revoke.error}
          onYes={() => revoke.mutate(undefined)}
        />
      )}
    </li>
  );
}
