import { Button, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import css from "./Card.module.css";
import type { Held } from "./held";
import { HoldButton } from "./Hold";

/** High risk is never approved by one key or click: it is held for a second, or the tool's name is typed. */
export function HighRisk({ held: { now, ready, settled, sending, decide } }: { held: Held }) {
  const [hint, setHint] = useState(false);
  const [typed, setTyped] = useState("");
  const isSending = sending === "approve";
  const approve = () => ready && settled && decide("approve");
  return (
    <>
      <HoldButton
        data-answer="approve"
        disabled={!ready && !isSending}
        aria-disabled={!settled || undefined}
        loading={isSending}
        onHeld={approve}
        onShort={() => setHint(true)}
      >
        Hold to approve
      </HoldButton>
      {hint && ready && (
        <form
          className={css.typed}
          onSubmit={(event) => {
            event.preventDefault();
            if (typed.trim() === now.tool) approve();
          }}
        >
          <Text size="sm">Hold the button for one second, or type the tool’s name:</Text>
          <TextInput
            aria-label={`Type ${now.card.tool} to approve`}
            placeholder={now.card.tool}
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            rightSectionWidth={96}
            rightSection={
              <Button type="submit" size="compact-sm" disabled={typed.trim() !== now.tool}>
                Approve
              </Button>
            }
          />
        </form>
      )}
    </>
  );
}
