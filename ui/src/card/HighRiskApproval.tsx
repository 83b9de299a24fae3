import { Button, Text, TextInput, type ButtonProps } from "@mantine/core";
import { useReducedMotion } from "@mantine/hooks";
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import css from "./ApprovalCard.module.css";
import type { ApproveButtonProps } from "./ApproveButton";
import { isDeliberatePress, isHoldKey, toKeyStroke } from "./keys";
import * as messages from "./messages";

const HOLD_TIME = 1_000;
const COUNT = 3;

/** A high-risk call needs a one-second hold of the button or the typed tool name. */
export function HighRiskApproval({
  approval,
  what = "",
  ready,
  settled,
  sending,
  onApprove,
  onTooEarly,
}: ApproveButtonProps) {
  const [hint, setHint] = useState(false);
  const approve = () => ready && settled && onApprove();
  return (
    <>
      <HoldButton
        data-answer="approve"
        disabled={!ready && !sending}
        aria-disabled={!settled || undefined}
        loading={sending}
        onTooEarly={onTooEarly}
        onHeld={approve}
        onReleasedEarly={() => setHint(true)}
      >
        {messages.holdToApprove(what)}
        {!what && (
          <span className={css.holdKey} aria-hidden>
            {messages.keyA}
          </span>
        )}
      </HoldButton>
      {hint && ready && <TypedName approval={approval} onApprove={approve} />}
    </>
  );
}

/** What was typed is gone as soon as the call cannot be approved any more: it was typed for what was shown then. */
function TypedName({ approval, onApprove }: Pick<ApproveButtonProps, "approval" | "onApprove">) {
  const [typed, setTyped] = useState("");
  const isTyped = typed.trim() === approval.tool;
  return (
    <form
      className={css.typed}
      onSubmit={(event) => {
        event.preventDefault();
        if (isTyped) onApprove();
      }}
    >
      <Text size="sm">{messages.holdOrTypeName}</Text>
      <TextInput
        aria-label={messages.typeToApprove(approval.card.tool)}
        placeholder={approval.card.tool}
        autoComplete="off"
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        rightSectionWidth={96}
        rightSection={
          <Button type="submit" size="compact-sm" disabled={!isTyped}>
            {messages.approve}
          </Button>
        }
      />
    </form>
  );
}

interface HoldProps extends ButtonProps {
  onHeld: () => void;
  onTooEarly?: () => void;
  /** Released too early: show how it works. */
  onReleasedEarly: () => void;
  children: ReactNode;
}

/** Fires only after a one-second hold, by pointer or by Enter, Space or A with the focus. */
function HoldButton({ onHeld, onTooEarly, onReleasedEarly, children, ...props }: HoldProps) {
  const [holding, setHolding] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const held = useRef(onHeld);
  held.current = onHeld; // at the end of the hold the card may have changed
  useEffect(() => () => clearTimeout(timer.current), []);
  const start = () => {
    if (props.disabled || timer.current !== undefined) return;
    if (props["aria-disabled" as never]) return onTooEarly?.();
    setHolding(true);
    timer.current = setTimeout(() => {
      stop();
      held.current();
    }, HOLD_TIME);
  };
  const stop = () => {
    clearTimeout(timer.current);
    timer.current = undefined;
    setHolding(false);
  };
  const startNow = useRef(start);
  startNow.current = start;
  useEffect(() => {
    const element = button.current;
    const onHold = () => startNow.current(); // the card hands on its key
    element?.addEventListener("hold", onHold);
    return () => element?.removeEventListener("hold", onHold);
  }, []);
  const onRelease = () => {
    if (timer.current !== undefined) onReleasedEarly();
    stop();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const stroke = toKeyStroke(event);
    const isLetter = event.key.toLowerCase() === "a" && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key !== "Enter" && event.key !== " " && !isLetter) return;
    event.preventDefault();
    event.nativeEvent.stopImmediatePropagation(); // the page has a shortcut of the same key
    if (isLetter ? isHoldKey(stroke) : isDeliberatePress(stroke)) start();
  };
  return (
    <Button
      {...props}
      ref={button}
      className={css.hold}
      data-hold
      data-key="A"
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
      {holding && <HoldCount />}
      {children}
    </Button>
  );
}

/** Where nothing may move: 3 · 2 · 1. */
function HoldCount() {
  const [left, setLeft] = useState(COUNT);
  const isStill = useReducedMotion(false, { getInitialValueInEffect: false });
  useEffect(() => {
    const timer = setInterval(() => setLeft((count) => Math.max(1, count - 1)), HOLD_TIME / COUNT);
    return () => clearInterval(timer);
  }, []);
  return isStill ? (
    <span className={css.count} data-count>
      {left}
    </span>
  ) : null;
}
