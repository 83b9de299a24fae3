/** What a key stroke says, wherever it comes from. */
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

/** How the card stands for somebody who presses a key. */
export interface CardKeyState {
  /** The card itself has the focus, nothing in it. */
  focused: boolean;
  /** Nothing appeared or changed just now. */
  settled: boolean;
  /** One may approve, and looked at all that wants a look. */
  ready: boolean;
  risk: string;
}

const COMPOSING = 229; // what browsers give instead of isComposing for the key that ends a composition

export function isApproveKey(stroke: KeyStroke, { focused, settled, ready, risk }: CardKeyState): boolean {
  const plain = !stroke.altKey && !stroke.ctrlKey && !stroke.metaKey && !stroke.shiftKey;
  return (
    stroke.key === "Enter" &&
    plain &&
    isDeliberatePress(stroke) &&
    focused &&
    settled &&
    ready &&
    risk !== "high"
  );
}

export function isEditKey(stroke: KeyStroke): boolean {
  return (
    stroke.key.toLowerCase() === "e" &&
    (stroke.ctrlKey || stroke.metaKey) &&
    !stroke.altKey &&
    isDeliberatePress(stroke)
  );
}

export function isDeliberatePress(stroke: Pick<KeyStroke, "repeat" | "isComposing" | "keyCode">): boolean {
  return !stroke.repeat && !stroke.isComposing && stroke.keyCode !== COMPOSING;
}
