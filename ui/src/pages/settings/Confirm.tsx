import { Button, Group, Stack, Text } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { ErrorMessage } from "../../components/States";

interface ConfirmProps {
  /** On the button, before and after: what it does. */
  verb: string;
  /** What will be so afterwards. */
  consequence: ReactNode;
  sending: boolean;
  error: Error | null;
  onYes: () => void;
  children?: ReactNode;
}

/** What cannot be taken back is said before it is done. */
export function Confirm({ verb, consequence, sending, error, onYes, children }: ConfirmProps) {
  const [asked, setAsked] = useState(false);
  if (!asked)
    return (
      <Button variant="outline" color="red" style={{ alignSelf: "start" }} onClick={() => setAsked(true)}>
        {verb}
      </Button>
    );
  return (
    <Stack gap="xs" role="group" aria-label={verb}>
      <Text size="sm">{consequence}</Text>
      {children}
      {error && <ErrorMessage error={error} />}
      <Group gap="xs">
        <Button color="red" onClick={onYes} loading={sending}>
          {verb}
        </Button>
        <Button variant="default" onClick={() => setAsked(false)} autoFocus>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
