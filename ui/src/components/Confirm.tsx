import { Button, Group, Stack, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";
import * as messages from "./messages";
import { ErrorMessage } from "./States";

interface ConfirmProps {
  /** The button's label. */
  label: string;
  /** The consequence, shown before the confirmation. */
  consequence: ReactNode;
  sending: boolean;
  error: Error | null;
  onConfirm: () => void;
  children?: ReactNode;
}

/** Asks for confirmation before an irreversible action. */
export function Confirm({ label, consequence, sending, error, onConfirm, children }: ConfirmProps) {
  const [isAsking, setAsking] = useState(false);
  if (!isAsking)
    return (
      <Button variant="outline" color="red" style={{ alignSelf: "start" }} onClick={() => setAsking(true)}>
        {label}
      </Button>
    );
  return (
    <Stack gap="xs" role="group" aria-label={label}>
      <Text size="sm">{consequence}</Text>
      {children}
      {error && <ErrorMessage error={error} />}
      <Group gap="xs">
        <Button color="red" onClick={onConfirm} loading={sending}>
          {label}
        </Button>
        <Button variant="default" onClick={() => setAsking(false)} autoFocus>
          {messages.cancel}
        </Button>
      </Group>
    </Stack>
  );
}
