import { Button, Group, Stack, Text } from "@mantine/core";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError } from "../api/client";
import * as messages from "./dialogMessages";
import { ChangedElsewhere, ErrorMessage } from "./States";
import type { ItemDraft } from "./useDraft";

interface EditFormProps<Fields, Saved> {
  /** "Edit post" */
  label: string;
  draft: ItemDraft<Fields>;
  save: UseMutationResult<Saved, Error, { body: Fields; etag: string }>;
  /** The fields of an item that was saved, as they are edited. */
  toFields: (saved: Saved) => Fields;
  /** What saving causes, if it is more than the change itself. */
  hint?: string;
  /** For a form that was opened: it can be closed without saving. */
  onClose?: () => void;
  children: ReactNode;
}

/** A form over a stored item: it saves, discards, and says if somebody else changed the item meanwhile. */
export function EditForm<Fields extends object, Saved extends { etag: string }>({
  label,
  draft,
  save,
  toFields,
  hint,
  onClose,
  children,
}: EditFormProps<Fields, Saved>) {
  const { error } = save;
  const isStale = draft.isOutdated || (error instanceof ApiError && error.code === "stale");
  const discard = () => {
    save.reset();
    draft.discard();
  };
  return (
    <form
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        const sent = { body: draft.values, etag: draft.etag };
        save.mutate(sent, {
          onSuccess: (saved) => draft.markSaved(sent.body, toFields(saved), saved.etag),
        });
      }}
    >
      <Stack gap="sm">
        {children}
        {draft.isDirty && isStale && (
          <ChangedElsewhere action={messages.loadCurrentVersion} onAction={discard}>
            {messages.nothingWasOverwritten}
          </ChangedElsewhere>
        )}
        {error && !isStale && <ErrorMessage error={error} />}
        {draft.isDirty && hint && <Text size="sm">{hint}</Text>}
        <Group>
          <Button type="submit" loading={save.isPending} disabled={!draft.isDirty || draft.isOutdated}>
            {messages.saveChanges}
          </Button>
          {(draft.isDirty || onClose) && (
            <Button
              variant="default"
              onClick={() => {
                discard();
                onClose?.();
              }}
            >
              {draft.isDirty ? messages.discardChanges : messages.cancel}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}
