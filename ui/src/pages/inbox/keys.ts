import { useEffect, useRef } from "react";

export type InboxAction =
  | "next"
  | "previous"
  | "open"
  | "select"
  | "approve"
  | "reject"
  | "respond"
  | "edit"
  | "undo"
  | "filter"
  | "help"
  | "leave";

/** The keys of the inbox and what they do, in the order in which the help lists them. */
export const KEY_DESCRIPTIONS: readonly [keys: string, does: string][] = [
  ["J or ↓", "Next request"],
  ["K or ↑", "Previous request"],
  ["O or Enter", "Open the request and focus its card"],
  ["A", "Approve"],
  ["R", "Reject"],
  ["C", "Respond to the agent"],
  ["E or Ctrl+E", "Edit"],
  ["Z", "Undo your last rejection, within the undo window"],
  ["X", "Select for a bulk decision"],
  ["/", "Search"],
  ["Esc", "Close, or clear the selection"],
  ["?", "Show keyboard shortcuts"],
];

const SINGLE: Record<string, InboxAction> = {
  j: "next",
  k: "previous",
  o: "open",
  x: "select",
  a: "approve",
  r: "reject",
  c: "respond",
  e: "edit",
  z: "undo",
  "/": "filter",
  "?": "help",
  Escape: "leave",
};
const ARROWS: Record<string, InboxAction> = { ArrowDown: "next", ArrowUp: "previous" };
const REPEATED: readonly InboxAction[] = ["next", "previous"];

type Press = Pick<
  KeyboardEvent,
  "key" | "ctrlKey" | "metaKey" | "altKey" | "repeat" | "isComposing" | "defaultPrevented" | "target"
>;

/** What a key means here; nothing while somebody types, and nothing twice by a key that is held down. */
export function actionForKey(press: Press): InboxAction | null {
  if (press.defaultPrevented || press.isComposing || press.altKey) return null;
  const target = press.target instanceof Element ? press.target : null;
  if (target?.closest(TYPING)) return null;
  const action = press.ctrlKey || press.metaKey ? withControl(press.key) : alone(press.key, target);
  return action && press.repeat && !REPEATED.includes(action) ? null : action;
}

const TYPING =
  "input:not([type=checkbox]), textarea, select, [contenteditable]:not([contenteditable=false]), dialog";
const ELSEWHERE = "article, nav, header, [role=menu]"; // where arrows have a meaning of their own

const withControl = (key: string): InboxAction | null => (key.toLowerCase() === "e" ? "edit" : null);

function alone(key: string, target: Element | null): InboxAction | null {
  if (key in ARROWS) return target?.closest(ELSEWHERE) ? null : (ARROWS[key] ?? null);
  return SINGLE[key.length === 1 ? key.toLowerCase() : key] ?? null;
}

/** The keys of the inbox, wherever the focus is on the page. */
export function useInboxKeys(does: Record<InboxAction, () => void>): void {
  const now = useRef(does);
  now.current = does;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = actionForKey(event);
      if (!action) return;
      if (action !== "leave") event.preventDefault();
      now.current[action]();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
