import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import css from "./Card.module.css";
import type { Held } from "./held";

interface LineProps {
  held: Held;
  verb: "ask" | "comment";
  field: "question" | "text";
  label: string;
  button: string;
}

/** One line that is sent about the call; it stays until it has arrived. */
export function Line({ held, verb, field, label, button }: LineProps) {
  const [text, setText] = useState("");
  const said = text.trim();
  return (
    <form
      className={css.line}
      onSubmit={(event) => {
        event.preventDefault();
        if (said && !held.sending) held.move(verb, { [field]: said }, () => setText(""));
      }}
    >
      <TextInput
        className={css.grow}
        label={label}
        maxLength={2_000}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button
        type="submit"
        variant="default"
        className={css.wide}
        disabled={!said}
        loading={held.sending === verb}
      >
        {button}
      </Button>
    </form>
  );
}
