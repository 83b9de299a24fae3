import { Button, Text, TextInput, type ButtonProps } from "@mantine/core";
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import css from "./ApprovalCard.module.css";
import { isDeliberatePress } from "./keys";
import type { ApprovalCardState } from "./useApprovalCard";

const HOLD_TIME = 1_000;

/** A high-risk call needs a one-second hold of the button or the typed tool name. */
export function HighRiskApproval({
  state: { approval, ready, settled, sending, decide },
}: {
  state: ApprovalCardState;
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
        onReleasedEarly={() => setHint(true)}
      >
        Hold to approve
      </HoldButton>
      {hint && ready && (
        <form
          className={css.typed}
          onSubmit={(event) => {
            event.preventDefault();
            if (typed.trim() === approval.tool) approve();
          }}
        >
          <Text size="sm">Hold the button for one second, or type the tool’s name:</Text>
          <TextInput
            aria-label={`Type ${approval.card.tool} to approve`}
            placeholder={approval.card.tool}
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            rightSectionWidth={96}
            rightSection={
              <Button type="submit" size="compact-sm" disabled={typed.trim() !== approval.tool}>
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
  /** Released too early: show how it works. */
  onReleasedEarly: () => void;
  children: ReactNode;
}

/** Fires only after a one-second hold, by pointer or by Enter or Space with the focus. */
function HoldButton({ onHeld, onReleasedEarly, children, ...props }: HoldProps) {
  const [holding, setHolding] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const start = () => {
    if (props.disabled || props["aria-disabled" as never] || timer.current !== undefined) return;
    setHolding(true);
    timer.current = setTimeout(() => {
      stop();
      onHeld();
    }, HOLD_TIME);
  };
  const stop = () => {
    clearTimeout(timer.current);
    timer.current = undefined;
    setHolding(false);
  };
  const onRelease = () => {
    if (timer.current !== undefined) onReleasedEarly();
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
      onPointerUp={onRelease}
      onPointerLeave={stop}
      onPointerCancel={stop}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={onKeyDown}
      onKeyUp={onRelease}
      onBlur={stop}
    >
      {children}
    </Button>
  );
}
