import { Button, Group, Kbd, Title } from "@mantine/core";
import { useEffect, useRef } from "react";
import css from "./Inbox.module.css";
import { KEY_DESCRIPTIONS } from "./keys";
import * as messages from "./messages";

/** The keyboard shortcuts; Esc and a click outside close the dialog. */
export default function KeyHelp({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const closeOutside = (event: React.MouseEvent) =>
    event.target === dialog.current && dialog.current?.close();
  return (
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions -- a dialog closes with Esc by itself
    <dialog
      ref={dialog}
      className={css.help}
      aria-labelledby="inbox-keys"
      onClose={onClose}
      onClick={closeOutside}
    >
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4" id="inbox-keys">
          {messages.keyboardShortcuts}
        </Title>
        <Button variant="default" size="xs" onClick={() => dialog.current?.close()}>
          {messages.close}
        </Button>
      </Group>
      <dl className={css.keys}>
        {KEY_DESCRIPTIONS.map(([keys, description]) => (
          <div key={keys}>
            <dt>
              <Kbd>{keys}</Kbd>
            </dt>
            <dd>{description}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}
