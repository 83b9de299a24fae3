import type { KeyboardEvent } from "react";
import { isApproveKey, isEditKey, isHoldKey, toKeyStroke } from "./keys";
import type { ApprovalCardState } from "./useApprovalCard";

/** Keys of a card that has the focus, or a control in it. */
export function handleCardKey(event: KeyboardEvent<HTMLElement>, state: ApprovalCardState): void {
  const focused = event.target === event.currentTarget;
  const stroke = toKeyStroke(event);
  if (
    isApproveKey(stroke, {
      focused,
      ready: state.ready && !state.opened,
      risk: state.approval.card.risk,
    })
  ) {
    event.preventDefault();
    if (state.settled) state.decide("approve");
    else state.tooEarly();
  } else if (focused && isHoldKey(stroke) && mayHold(state)) {
    pressHold(event);
  } else if (isEditKey(stroke) && mayEdit(state)) {
    event.preventDefault();
    state.open("edit");
  }
}

function pressHold(event: KeyboardEvent<HTMLElement>): void {
  event.preventDefault();
  event.stopPropagation(); // the page has a shortcut of the same key
  event.nativeEvent.stopImmediatePropagation();
  startHold(event.currentTarget);
}

function mayHold(state: ApprovalCardState): boolean {
  return state.approval.card.risk === "high" && state.ready && state.settled && !state.opened;
}

export function mayEdit(state: ApprovalCardState): boolean {
  return state.may("edit") && !state.opened && !state.newEdits && !state.sending;
}

/** A key is held like the button itself, which begins and ends the hold. */
export function startHold(article: HTMLElement | null): void {
  const button = article?.querySelector<HTMLElement>("[data-hold]");
  button?.focus({ preventScroll: true });
  button?.dispatchEvent(new CustomEvent("hold"));
}
