import { Button, Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { mayDecide, useMe } from "../api/me";
import css from "./Card.module.css";
import type { Held } from "./held";

/** The agent was lost while the call ran. Only somebody who looks can say how it ended. */
export function Unknown({ held }: { held: Held }) {
  const [note, setNote] = useState("");
  const me = useMe().data;
  if (held.now.status !== "unknown") return null;
  const say = (ok: boolean) => held.move("resolve-unknown", { ok, note: note.trim() });
  const isSending = held.sending === "resolve-unknown";
  return (
    <div className={css.answers}>
      <Text size="sm">
        The agent was lost while this ran. Look in the other system whether it happened: nothing is run again.
      </Text>
      {mayDecide(me) && (
        <>
          <TextInput
            label="What did you see?"
            maxLength={500}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
          />
          <Group gap="xs">
            <Button variant="default" className={css.wide} loading={isSending} onClick={() => say(true)}>
              I looked: it happened
            </Button>
            <Button variant="default" className={css.wide} loading={isSending} onClick={() => say(false)}>
              I looked: it did not
            </Button>
          </Group>
        </>
      )}
    </div>
  );
}
