import { Button, Group, Textarea, TextInput } from "@mantine/core";
import type { FormEvent, KeyboardEvent, ReactNode } from "react";
import css from "./Card.module.css";
import type { Held } from "./held";

/** No, with a reason if one likes; the agent hears of it when the time to undo has passed. */
export function RejectForm({ held }: { held: Held }) {
  const { drafts, draft, sending, decide } = held;
  const reason = drafts.reason.trim();
  return (
    <Form held={held} onSend={() => decide("reject", reason ? { reason } : {})}>
      <TextInput
        label="Why not?"
        description="The agent is told. You may leave it empty."
        maxLength={500}
        autoFocus
        value={drafts.reason}
        onChange={(event) => draft({ reason: event.currentTarget.value })}
      />
      <Group gap="xs">
        <Button type="submit" color="red" className={css.wide} loading={sending === "reject"}>
          Reject
        </Button>
        <Back held={held} />
      </Group>
    </Form>
  );
}

/** Words to the agent instead of running the call. */
export function RespondForm({ held }: { held: Held }) {
  const { drafts, draft, sending, decide } = held;
  const message = drafts.message.trim();
  return (
    <Form held={held} onSend={() => message && decide("respond", { message })}>
      <Textarea
        label="Tell the agent"
        description="It gets these words instead of a result; the call does not run."
        maxLength={20_000}
        autosize={false}
        rows={4}
        autoFocus
        value={drafts.message}
        onChange={(event) => draft({ message: event.currentTarget.value })}
      />
      <Group gap="xs">
        <Button type="submit" className={css.wide} disabled={!message} loading={sending === "respond"}>
          Send
        </Button>
        <Back held={held} />
      </Group>
    </Form>
  );
}

/** Esc closes it and sends nothing; what was written stays for when it is opened again. */
function Form({ held, onSend, children }: { held: Held; onSend: () => void; children: ReactNode }) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!held.sending) onSend();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !event.nativeEvent.isComposing) {
      event.preventDefault();
      event.stopPropagation();
      held.open("");
    }
  };
  return (
    <form className={css.answers} onSubmit={submit} onKeyDown={onKeyDown}>
      {children}
    </form>
  );
}

function Back({ held }: { held: Held }) {
  return (
    <Button variant="default" className={css.wide} onClick={() => held.open("")}>
      Back
    </Button>
  );
}
