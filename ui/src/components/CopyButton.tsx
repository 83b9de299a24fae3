import { Button, type ButtonProps } from "@mantine/core";
import { useState } from "react";
import { IconCheck, IconCopy } from "./icons";
import * as messages from "./messages";

/** Copies a text. `shown` is the element that shows it, selected where scripts may not use the clipboard. */
export function CopyButton({
  text,
  shown,
  label = "Copy",
  ...props
}: { text: string; shown?: () => HTMLElement | null; label?: string } & ButtonProps) {
  const [copied, setCopied] = useState("");
  const isCopied = copied === text;
  return (
    <Button
      leftSection={
        isCopied ? <IconCheck size={16} aria-hidden="true" /> : <IconCopy size={16} aria-hidden="true" />
      }
      {...props}
      onClick={() => void copyText(text, shown?.() ?? null).then((done) => setCopied(done ? text : ""))}
    >
      {isCopied ? messages.copied : label}
    </Button>
  );
}

/** On plain HTTP scripts have no clipboard access; the selected text can still be copied. */
async function copyText(text: string, shown: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown) getSelection()?.selectAllChildren(shown);
    return document.execCommand("copy");
  }
}
