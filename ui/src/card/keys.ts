import type { KeyboardEvent } from "react";

/** A key press, from React or the DOM. */
export interface KeyStroke {
  key: string;
  repeat: boolean;
  isComposing: boolean;
  keyCode?: number;
  altKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
}

/** The stroke of a React event, which lacks what the browser's own event knows of compositions. */
export function toKeyStroke(event: KeyboardEvent): KeyStroke {
  const { key, repeat, keyCode, altKey, ctrlKey, metaKey, shiftKey } = event;
  const { isComposing } = event.nativeEvent;
  return { key, repeat, keyCode, altKey, ctrlKey, metaKey, shiftKey, isComposing };
}

/** The card's state for keyboard decisions. */
export interface CardKeyState {
  /** The card itself has the focus, not a control in it. */
  focused: boolean;
  /** The user may approve, and all findings are checked. */
  ready: boolean;
  risk: string;
}

const COMPOSING_KEY_CODE = 229; // reported instead of isComposing for the key that ends a composition

export function isApproveKey(stroke: KeyStroke, { focused, ready, risk }: CardKeyState): boolean {
  const plain = !stroke.altKey && !stroke.ctrlKey && !stroke.metaKey && !stroke.shiftKey;
  return stroke.key === "Enter" && plain && isDeliberatePress(stroke) && focused && ready && risk !== "high";
}

export function isEditKey(stroke: KeyStroke): boolean {
  return (
    stroke.key.toLowerCase() === "e" &&
    (stroke.ctrlKey || stroke.metaKey) &&
    !stroke.altKey &&
    isDeliberatePress(stroke)
  );
}

/** A is held for high risk. */
export function isHoldKey(stroke: KeyStroke): boolean {
  const plain = !stroke.altKey && !stroke.ctrlKey && !stroke.metaKey && !stroke.shiftKey;
  return stroke.key.toLowerCase() === "a" && plain && isDeliberatePress(stroke);
}

/** Ctrl+Enter sends an edit. */
export function isSendKey(stroke: KeyStroke): boolean {
  return (
    stroke.key === "Enter" &&
    (stroke.ctrlKey || stroke.metaKey) &&
    !stroke.altKey &&
    !stroke.shiftKey &&
    isDeliberatePress(stroke)
  );
}

export function isDeliberatePress(stroke: Pick<KeyStroke, "repeat" | "isComposing" | "keyCode">): boolean {
  return !stroke.repeat && !stroke.isComposing && stroke.keyCode !== COMPOSING_KEY_CODE;
}
