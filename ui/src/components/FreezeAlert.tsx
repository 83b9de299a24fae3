import { Alert, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { callApi } from "../api/client";
import { describeScope, type FreezeInfo } from "./FreezeBanner";
import { ErrorMessage } from "./States";
import { TimeAgo } from "./TimeAgo";
import { visible } from "./visible";

/** What is frozen, by whom and why, with a way out for admins. Loaded when something is frozen. */
export default function FreezeAlert({ freezes, admin }: { freezes: FreezeInfo[]; admin: boolean }) {
  return (
    <Alert color="red" title="Frozen: affected calls cannot start" mb="md" role="status">
      <Stack gap="xs">
        {freezes.map((freeze) => (
          <OneFreeze key={freeze.id} freeze={freeze} admin={admin} />
        ))}
      </Stack>
    </Alert>
  );
}

function OneFreeze({ freeze, admin }: { freeze: FreezeInfo; admin: boolean }) {
  const [asked, setAsked] = useState(false);
  return (
    <Stack gap={4} data-freeze={freeze.id}>
      <Group justify="space-between">
        <Text size="sm">
          {describeScope(freeze)}, by {visible(freeze.created_by)}, <TimeAgo at={freeze.created_at} />:{" "}
          {visible(freeze.reason)}
        </Text>
        {admin && !asked && (
          <Button size="compact-sm" variant="default" onClick={() => setAsked(true)}>
            Unfreeze
          </Button>
        )}
      </Group>
      {asked && <Release id={freeze.id} onCancel={() => setAsked(false)} />}
    </Stack>
  );
}

function Release({ id, onCancel }: { id: string; onCancel: () => void }) {
  const [reason, setReason] = useState("");
  const queries = useQueryClient();
  const release = useMutation({
    mutationFn: () =>
      callApi("delete", "/api/freeze/{freeze_id}", { path: { freeze_id: id }, query: { reason } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["freezes"] }),
  });
  return (
    <Stack gap="xs" role="group" aria-label="Unfreeze">
      <Text size="sm">Calls can start again. Deadlines are extended by the duration of the freeze.</Text>
      <TextInput
        label="Reason (recorded in the ledger)"
        value={reason}
        maxLength={500}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      {release.error && <ErrorMessage error={release.error} />}
      <Group gap="xs">
        <Button color="red" onClick={() => release.mutate()} loading={release.isPending}>
          Unfreeze
        </Button>
        <Button variant="default" onClick={onCancel}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
