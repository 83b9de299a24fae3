import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useRef, useState } from "react";
import css from "./Settings.module.css";

/** A key or a link that is shown only once. */
export function ShownOnce({
  title,
  secret,
  about,
  onDone,
}: {
  title: string;
  secret: string;
  about: string;
  onDone: () => void;
}) {
  const text = useRef<HTMLElement>(null);
  const [copied, setCopied] = useState(false);
  return (
    <Alert title={title} role="status" variant="default">
      <Stack gap="sm">
        <Text size="sm">{about} It is shown only once.</Text>
        <code ref={text} className={css.secret} data-secret>
          {secret}
        </code>
        <Group gap="xs">
          <Button onClick={() => void copy(secret, text.current).then(setCopied)}>
            {copied ? "Copied" : "Copy"}
          </Button>
          <Button variant="default" onClick={onDone}>
            Done
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}

/** On plain HTTP scripts have no clipboard access; the selected text can still be copied. */
async function copy(text: string, shown: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown) getSelection()?.selectAllChildren(shown);
    return document.execCommand("copy");
  }
}
