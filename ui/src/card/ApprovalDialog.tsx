import { Button, Group, Title } from "@mantine/core";
import { useEffect, useRef } from "react";
import { ApprovalCard } from "./ApprovalCard";
import css from "./ApprovalDialog.module.css";
import * as messages from "./moreMessages";

interface ApprovalDialogProps {
  id: string;
  position: number;
  total: number;
  onClose: () => void;
}

/** The card as a modal. The focus is on its heading, so that no key meant for the page decides. */
export default function ApprovalDialog({ id, position, total, onClose }: ApprovalDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!dialog.current?.open) dialog.current?.showModal();
    heading.current?.focus();
  }, []);
  return (
    <dialog ref={dialog} className={css.dialog} aria-labelledby="asked" onClose={onClose}>
      <Group justify="space-between" gap="xs" className={css.head}>
        <Title order={2} size="h4" id="asked" ref={heading} tabIndex={-1} className={css.title}>
          {messages.waitingForYou(total, position)}
        </Title>
        <Button variant="default" className={css.close} onClick={() => dialog.current?.close()}>
          {position < total ? messages.next : messages.close}
        </Button>
      </Group>
      <ApprovalCard id={id} location="modal" />
    </dialog>
  );
}
