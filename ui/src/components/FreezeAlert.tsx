import { Alert, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { callApi } from "../api/client";
import * as messages from "./dialogMessages";
import { describeScope, type FreezeInfo } from "./FreezeBanner";
import { ErrorMessage } from "./States";
import { TimeAgo } from "./TimeAgo";
import { escapeInvisible } from "./escapeInvisible";

/** Active freezes with author and reason, and a button to unfreeze for admins. Loaded on demand. */
export default function FreezeAlert({ freezes, admin }: { freezes: FreezeInfo[]; admin: boolean }) {
  return (
    <Alert color="red" title={messages.frozenAffectedCallsCannotStart} mb="md" role="status">
      <Stack gap="xs">
        {freezes.map((freeze) => (
          <FreezeItem key={freeze.id} freeze={freeze} admin={admin} />
        ))}
      </Stack>
    </Alert>
  );
}

function FreezeItem({ freeze, admin }: { freeze: FreezeInfo; admin: boolean }) {
  const [isConfirming, setConfirming] = useState(false);
  const scope = useScopeName(freeze, admin);
  return (
    <Stack gap={4} data-freeze={freeze.id}>
      <Group justify="space-between">
        <Text size="sm">
          {messages.frozenScopeBy(scope, escapeInvisible(freeze.created_by))}{" "}
          <TimeAgo at={freeze.created_at} />: {escapeInvisible(freeze.reason)}
        </Text>
        {admin && !isConfirming && (
          <Button size="compact-sm" variant="default" onClick={() => setConfirming(true)}>
            {messages.unfreeze}
          </Button>
        )}
      </Group>
      {isConfirming && <UnfreezeForm id={freeze.id} onCancel={() => setConfirming(false)} />}
    </Stack>
  );
}

/** Admins see a key by its name: a freeze has only its id. */
function useScopeName(freeze: FreezeInfo, admin: boolean): string {
  const keys = useQuery({
    queryKey: ["keys"],
    queryFn: ({ signal }) => callApi("get", "/api/keys", { signal }),
    enabled: admin && freeze.scope === "key",
  });
  const key = keys.data?.items.find(({ id }) => id === freeze.name);
  return key ? messages.keyName(escapeInvisible(key.name)) : describeScope(freeze);
}

function UnfreezeForm({ id, onCancel }: { id: string; onCancel: () => void }) {
  const [reason, setReason] = useState("");
  const queries = useQueryClient();
  const unfreeze = useMutation({
    mutationFn: () =>
      callApi("delete", "/api/freeze/{freeze_id}", { path: { freeze_id: id }, query: { reason } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["freezes"] }),
  });
  return (
    <Stack gap="xs" role="group" aria-label={messages.unfreeze}>
      <Text size="sm">{messages.callsCanStartAgain}</Text>
      <TextInput
        label={messages.reasonRecordedInLedger}
        value={reason}
        maxLength={500}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      {unfreeze.error && <ErrorMessage error={unfreeze.error} />}
      <Group gap="xs">
        <Button color="red" onClick={() => unfreeze.mutate()} loading={unfreeze.isPending}>
          {messages.unfreeze}
        </Button>
        <Button variant="default" onClick={onCancel}>
          {messages.cancel}
        </Button>
      </Group>
    </Stack>
  );
}
