import { Button, CloseButton } from "@mantine/core";
import { useEffect, useRef, type MouseEvent } from "react";
import { useSearchParams } from "wouter";
import css from "./Chat.module.css";
import * as messages from "./messages";
import { ThreadList } from "./ThreadList";

/** A side panel on wide screens. */
export function ThreadPanel({ current }: { current: string | undefined }) {
  return (
    <nav className={css.panel} aria-label={messages.chats}>
      <ThreadList current={current} />
    </nav>
  );
}

/** A sheet behind a button on phones; its state is in the URL, so that "back" closes it. */
export function ThreadSheet({ current }: { current: string | undefined }) {
  const [search, setSearch] = useSearchParams();
  const isOpen = search.get("list") === "open";
  const dialog = useRef<HTMLDialogElement>(null);
  const show = (open: boolean) =>
    setSearch((now) => {
      if (open) now.set("list", "open");
      else now.delete("list");
      return now;
    });
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  const closeOutside = (event: MouseEvent) => event.target === dialog.current && show(false);
  return (
    <>
      <Button className={css.opener} variant="default" mih={44} onClick={() => show(true)}>
        {messages.chats}
      </Button>
      {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions -- a dialog closes with Esc by itself */}
      <dialog
        ref={dialog}
        className={css.sheet}
        aria-label={messages.chats}
        onClose={() => isOpen && show(false)}
        onClick={closeOutside}
      >
        {isOpen && (
          <nav className={css.panel} aria-label={messages.chats} style={{ height: "100%" }}>
            <CloseButton size={44} m={4} ml="auto" aria-label={messages.close} onClick={() => show(false)} />
            <ThreadList current={current} />
          </nav>
        )}
      </dialog>
    </>
  );
}
