import { Button, Group, List, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { callApi } from "../../api/client";
import { Dialog } from "../../components/Dialog";
import { useSendMutation } from "../../components/mutations";
import { ErrorMessage } from "../../components/States";
import { describeFreeze } from "./activity";
import * as messages from "./detailMessages";

interface FreezeDialogProps {
  agent: string;
  pending: number;
  onClose: () => void;
}

/** What the freeze does, and its reason. Loaded on demand. */
export default function FreezeDialog({ agent, pending, onClose }: FreezeDialogProps) {
  const [reason, setReason] = useState("");
  const freeze = useSendMutation(
    (_: void) =>
      callApi("post", "/api/freeze", { body: { scope: "agent", name: agent, reason: reason.trim() } }),
    ["freezes"],
    onClose,
  );
  return (
    <Dialog title={messages.freezeQuestion(agent)} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (reason.trim()) freeze.mutate();
        }}
      >
        <Stack gap="sm">
          <List size="sm">
            {describeFreeze(agent, pending).map((sentence) => (
              <List.Item key={sentence}>{sentence}</List.Item>
            ))}
          </List>
          <TextInput
            label={messages.reason}
            description={messages.shownToEverybody}
            required
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {freeze.error && <ErrorMessage error={freeze.error} />}
          <Group gap="xs">
            <Button type="submit" color="red.9" disabled={!reason.trim()} loading={freeze.isPending}>
              {messages.freeze}
            </Button>
            <Button variant="default" onClick={onClose}>
              {messages.cancel}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
