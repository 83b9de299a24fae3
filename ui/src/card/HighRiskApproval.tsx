import { Button, Text, TextInput, type ButtonProps } from "@mantine/core";
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import css from "./ApprovalCard.module.css";
import { isDeliberatePress } from "./keys";
import type { ApprovalCardState } from "./useApprovalCard";

const HELD = 1_000;

/** High risk is never approved by one key or click: it is held for a second, or the tool's name is typed. */
export function HighRiskApproval({
  held: { now, ready, settled, sending, decide },
}: {
  held: ApprovalCardState;
}) {
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

interface HoldProps extends ButtonProps {
  onHeld: () => void;
  /** It was only pressed: time to say how it works. */
  onShort: () => void;
  children: ReactNode;
}

/** Counts only when it is held for a second: with a pointer, or with Enter or Space while it has the focus. */
function HoldButton({ onHeld, onShort, children, ...props }: HoldProps) {
  const [holding, setHolding] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const start = () => {
    if (props.disabled || props["aria-disabled" as never] || timer.current !== undefined) return;
    setHolding(true);
    timer.current = setTimeout(() => {
      stop();
      onHeld();
    }, HELD);
  };
  const stop = () => {
    clearTimeout(timer.current);
    timer.current = undefined;
    setHolding(false);
  };
  const release = () => {
    if (timer.current !== undefined) onShort();
    stop();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (
      isDeliberatePress({
        ...event.nativeEvent,
        repeat: event.repeat,
        isComposing: event.nativeEvent.isComposing,
      })
    )
      start();
  };
  return (
    <Button
      {...props}
      className={css.hold}
      data-holding={holding || undefined}
      onPointerDown={(event) => event.button === 0 && start()}
      onPointerUp={release}
      onPointerLeave={stop}
      onPointerCancel={stop}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={onKeyDown}
      onKeyUp={release}
      onBlur={stop}
    >
      {children}
    </Button>
  );
}
