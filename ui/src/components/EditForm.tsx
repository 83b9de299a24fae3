import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { ApiError } from "../api/client";
import { ErrorMessage } from "./States";

interface EditFormProps {
  /** "Edit post" */
  label: string;
  isDirty: boolean;
  isOutdated: boolean;
  saving: boolean;
  error: Error | null;
  /** What saving causes, if it is more than the change itself. */
  hint?: string;
  onSave: () => void;
  onDiscard: () => void;
  children: ReactNode;
}

/** A form over a stored item: it saves, discards, and says if somebody else changed the item meanwhile. */
export function EditForm({
  label,
  isDirty,
  isOutdated,
  saving,
  error,
  hint,
  onSave,
  onDiscard,
  children,
}: EditFormProps) {
  const isStale = isOutdated || (error instanceof ApiError && error.code === "stale");
  return (
    <form
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        onSave();
      }}
    >
      <Stack gap="sm">
        {children}
        {isDirty && isStale && <ChangedElsewhere onDiscard={onDiscard} />}
        {error && !isStale && <ErrorMessage error={error} />}
        {isDirty && hint && <Text size="sm">{hint}</Text>}
        <Group>
          <Button type="submit" loading={saving} disabled={!isDirty || isOutdated}>
            Save changes
          </Button>
          {isDirty && (
            <Button variant="default" onClick={onDiscard}>
              Discard changes
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}

function ChangedElsewhere({ onDiscard }: { onDiscard: () => void }) {
  return (
    <Alert color="orange" title="Somebody else changed this" role="alert">
      <Stack gap="xs" align="start">
        <Text size="sm">
          Nothing was overwritten. Copy what you want to keep, then load the current version and make your
          change again.
        </Text>
        <Button size="xs" variant="default" onClick={onDiscard}>
          Load the current version
        </Button>
      </Stack>
    </Alert>
  );
}
