import { useEffect, useRef } from "react";
import * as messages from "./messages";

export type InboxAction =
  | "next"
  | "previous"
  | "open"
  | "select"
  | "approve"
  | "reject"
  | "rejectWithReason"
  | "respond"
  | "edit"
  | "ask"
  | "undo"
  | "news"
  | "filter"
  | "help"
  | "leave";

/** The keyboard shortcuts, in the order of the help. */
export const KEY_DESCRIPTIONS: readonly [keys: string, description: string][] = [
  ["A", messages.approveAndNext],
  ["R", messages.rejectAndNext],
  ["Shift+R", messages.rejectWithReason],
  ["C", messages.respondToAgent],
  [messages.eOrCtrlE, messages.edit],
  ["Q", messages.askAgentHelp],
  ["Z", messages.undoYourLastRejectionWhile],
  [messages.jOrDown, messages.nextRequest],
  [messages.kOrUp, messages.previousRequest],
  [messages.oOrEnter, messages.openAndFocus],
  ["X", messages.selectForBulkDecision],
  ["N", messages.showNewRequestsKey],
  ["/", messages.searchHelp],
  [messages.ctrlEnterOrCmdEnter, messages.sendWhatIsWrittenInForm],
  [messages.escKey, messages.closeOrClearSelection],
  ["?", messages.showAllKeys],
];

const SINGLE_KEYS: Record<string, InboxAction> = {
  j: "next",
  k: "previous",
  o: "open",
  x: "select",
  a: "approve",
  r: "reject",
  c: "respond",
  e: "edit",
  q: "ask",
  n: "news",
  z: "undo",
  "/": "filter",
  "?": "help",
  Escape: "leave",
};
const ARROWS: Record<string, InboxAction> = { ArrowDown: "next", ArrowUp: "previous" };
const REPEATABLE: readonly InboxAction[] = ["next", "previous"];

type KeyPress = Pick<
  KeyboardEvent,
  | "key"
  | "ctrlKey"
  | "metaKey"
  | "altKey"
  | "shiftKey"
  | "repeat"
  | "isComposing"
  | "defaultPrevented"
  | "target"
>;

/** The action of a key; none while typing, and no repeats while a key is held down. */
export function actionForKey(press: KeyPress): InboxAction | null {
  if (press.defaultPrevented || press.isComposing || press.altKey) return null;
  const target = press.target instanceof Element ? press.target : null;
  if (target?.closest(`${TYPING}, ${OVERLAYS}`)) return null;
  const action = press.ctrlKey || press.metaKey ? withControl(press.key) : withoutControl(press, target);
  return action && press.repeat && !REPEATABLE.includes(action) ? null : action;
}

const TYPING =
  "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]:not([contenteditable=false]), dialog";
const OVERLAYS = "[role=menu], [role=dialog], [role=listbox]"; // opened above the page: their keys are their own
const OWN_ARROWS = "article, nav, header, [role=menu]"; // elements that handle the arrow keys themselves

const withControl = (key: string): InboxAction | null => (key.toLowerCase() === "e" ? "edit" : null);

function withoutControl(
  { key, shiftKey }: Pick<KeyPress, "key" | "shiftKey">,
  target: Element | null,
): InboxAction | null {
  if (shiftKey && key.toLowerCase() === "r") return "rejectWithReason";
  if (key in ARROWS) return target?.closest(OWN_ARROWS) ? null : (ARROWS[key] ?? null);
  return SINGLE_KEYS[key.length === 1 ? key.toLowerCase() : key] ?? null;
}

/** The keyboard shortcuts, wherever the focus is on the page. */
export function useInboxKeys(actions: Record<InboxAction, () => void>): void {
  const now = useRef(actions);
  now.current = actions;
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
