import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useRef } from "react";
import { CopyButton } from "../../components/CopyButton";
import * as messages from "./messages";
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
  return (
    <Alert title={title} role="status" variant="default">
      <Stack gap="sm">
        <Text size="sm">{messages.shownOnlyOnce(about)}</Text>
        <code ref={text} className={css.secret} data-secret>
          {secret}
        </code>
        <Group gap="xs">
          <CopyButton text={secret} shown={() => text.current} />
          <Button variant="default" onClick={onDone}>
            {messages.done}
          </Button>
        </Group>
      </Stack>
    </Alert>
  );
}
