import { Button, type ButtonProps } from "@mantine/core";
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import css from "./Card.module.css";
import { isDeliberate } from "./keys";

const HELD = 1_000;

interface HoldProps extends ButtonProps {
  onHeld: () => void;
  /** It was only pressed: time to say how it works. */
  onShort: () => void;
  children: ReactNode;
}

/** Counts only when it is held for a second: with a pointer, or with Enter or Space while it has the focus. */
export function HoldButton({ onHeld, onShort, children, ...props }: HoldProps) {
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
      isDeliberate({ ...event.nativeEvent, repeat: event.repeat, isComposing: event.nativeEvent.isComposing })
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
