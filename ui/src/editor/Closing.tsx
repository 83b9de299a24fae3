import { Button, Group, Text } from "@mantine/core";
import { useEffect, useRef } from "react";
import css from "./Editor.module.css";

interface ClosingProps {
  count: string;
  onKeep: () => void;
  onDiscard: () => void;
  onBack: () => void;
}

/** Asked where the buttons are, when somebody closes an editor that holds changes. */
export function Closing({ count, onKeep, onDiscard, onBack }: ClosingProps) {
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <Group gap="sm" className={css.foot} role="group" aria-label="Close the editor?">
      <Text size="sm" w="100%">
        You have {count} that nobody got yet.
      </Text>
      <Button ref={first} variant="default" onClick={onKeep}>
        Keep them and close
      </Button>
      <Button variant="default" onClick={onDiscard}>
        Throw them away
      </Button>
      <Button variant="subtle" onClick={onBack}>
        Go on editing
      </Button>
    </Group>
  );
}
