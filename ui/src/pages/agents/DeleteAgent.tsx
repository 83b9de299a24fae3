import { Alert, Button, Group, List, Stack, Text, Textarea } from "@mantine/core";
import { useState } from "react";
import { ApiError } from "../../api/client";
import { Dialog } from "../../components/Dialog";
import { ErrorMessage, Loading } from "../../components/States";
import { deletionLabel, deletionTitle } from "./agentChange";
import * as messages from "./detailMessages";
import { useDeleteAgent, useDependents, type AgentInfo } from "./queries";

/** Says what depends on the agent and what becomes of it, then deletes the settings that were made here. */
export default function DeleteAgent({
  agent,
  onDeleted,
  onClose,
}: {
  agent: AgentInfo;
  onDeleted: (remains: boolean) => void;
  onClose: () => void;
}) {
  const dependents = useDependents(agent.name);
  const deletion = useDeleteAgent(agent);
  const [reason, setReason] = useState("");
  const found = dependents.data;
  const label = deletionLabel(agent);
  return (
    <Dialog title={deletionTitle(agent)} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          deletion.mutate(reason.trim(), { onSuccess: (done) => onDeleted(done.remains_as !== null) });
        }}
      >
        <Stack gap="sm">
          {dependents.isPending && <Loading label={messages.lookingForWhatDependsOnIt} />}
          {dependents.error && (
            <ErrorMessage error={dependents.error} onRetry={() => void dependents.refetch()} />
          )}
          {found?.blocked && (
            <Alert color="orange" title={messages.itCannotBeDeletedNow}>
              <Text size="sm">{found.blocked}</Text>
            </Alert>
          )}
          {found && !found.blocked && <Consequences lines={found.consequences} />}
          <Textarea
            label={messages.reason}
            description={messages.recordedInLedger}
            maxLength={500}
            rows={2}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {deletion.error && <ErrorMessage error={explain(deletion.error)} />}
          <Group>
            <Button
              type="submit"
              color="red.9"
              disabled={!found || found.blocked !== ""}
              loading={deletion.isPending}
            >
              {label}
            </Button>
            <Button variant="default" onClick={onClose}>
              {messages.keepIt}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

function Consequences({ lines }: { lines: string[] }) {
  return (
    <>
      <Text size="sm" fw={600}>
        {messages.whatHappensList}
      </Text>
      <List size="sm" aria-label={messages.whatHappens}>
        {lines.map((line) => (
          <List.Item key={line}>{line}</List.Item>
        ))}
      </List>
    </>
  );
}

function explain(error: Error): Error {
  if (error instanceof ApiError && error.code === "stale")
    return new Error(messages.changedMeanwhileLookAgain);
  return error;
}
