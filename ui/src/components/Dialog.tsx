import { CloseButton, Stack, Title } from "@mantine/core";
import { useEffect, useId, useRef, type ReactNode } from "react";
import css from "./Dialog.module.css";
import * as messages from "./messages";

/** The browser's own dialog: it traps and restores the focus and closes on Escape. Open while it is rendered. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    element?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={css.dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <Stack gap="md">
        <div className={css.head}>
          <Title order={2} size="h4" id={id}>
            {title}
          </Title>
          <CloseButton aria-label={messages.close} size={44} iconSize={20} onClick={onClose} />
        </div>
        {children}
      </Stack>
    </dialog>
  );
}
