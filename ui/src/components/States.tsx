import { Alert, Box, Button, Center, Loader, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import * as messages from "./messages";

/** A loading indicator with a label for screen readers. */
export function Loading({ label = "Loading" }: { label?: string }) {
  return (
    <Center mih={160} role="status" aria-label={label}>
      <Loader />
    </Center>
  );
}

/** An error message with an optional retry button. */
export function ErrorMessage({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  return (
    <Alert color="red" title={messages.requestFailed} role="alert" my="md">
      <Stack gap="sm" align="start">
        <Text size="sm">{error.message}</Text>
        {onRetry && (
          <Button size="xs" variant="default" onClick={onRetry}>
            {messages.tryAgain}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

interface ChangedElsewhereProps {
  /** What became of the person's own changes, and what to do. */
  children: ReactNode;
  action: string;
  onAction: () => void;
}

/** Somebody else changed what is edited here, and saving would overwrite it. */
export function ChangedElsewhere({ children, action, onAction }: ChangedElsewhereProps) {
  return (
    <Alert color="orange" title={messages.somebodyElseChangedThis} role="alert">
      <Stack gap="sm" align="start">
        <Text size="sm">{children}</Text>
        <Button size="xs" variant="default" onClick={onAction}>
          {action}
        </Button>
      </Stack>
    </Alert>
  );
}

interface EmptyStateProps {
  title: string;
  children?: ReactNode;
  /** The next step, as a button or a link. */
  action?: ReactNode;
}

/** Explains an empty list, and what to do next. */
export function EmptyState({ title, children, action }: EmptyStateProps) {
  return (
    <Center mih={160} p="md">
      <Stack align="center" gap={4} maw={420} ta="center">
        <Text fw={600}>{title}</Text>
        <Text size="sm" c="dimmed" component="div">
          {children}
        </Text>
        {action && <Box mt="xs">{action}</Box>}
      </Stack>
    </Center>
  );
}
