import type { RefObject } from "react";
import type { CardHandle } from "../../card/ApprovalCard";
import { neighbour, type Feed, type FeedRow } from "./feed";
import type { InboxListHandle } from "./InboxList";
import type { InboxAction } from "./keys";
import * as messages from "./messages";
import type { InboxLocation } from "./useInboxLocation";
import type { Selection } from "./useSelection";

interface InboxContext {
  feed: Feed;
  location: InboxLocation;
  selection: Selection;
  canDecide: boolean;
  list: RefObject<InboxListHandle | null>;
  card: RefObject<CardHandle | null>;
  searchInput: RefObject<HTMLInputElement | null>;
  announce: (text: string) => void;
  openRequest: (id: string) => void;
  undo: () => Promise<void>;
  /** Shows the new requests. */
  reveal: () => void;
  help: (open: boolean) => void;
}

type CardAction = "approve" | "reject" | "rejectWithReason" | "respond" | "edit";

/** The actions of the shortcuts. Decisions are made by the card, with all of its checks. */
export function useInboxActions(context: InboxContext): Record<InboxAction, () => void> {
  const { feed, location, selection, canDecide, list, card, searchInput, announce, openRequest } = context;
  const moveBy = (step: 1 | -1) => {
    const id = neighbour(feed, location.id, step);
    if (!id) return announce(feed.ids.length ? messages.noMoreRequests : messages.listIsEmpty);
    openRequest(id);
    list.current?.goTo(id);
  };
  const decide = (action: CardAction) => {
    if (!canDecide) return announce(messages.VIEW_ONLY);
    if (!location.id) return announce(messages.openARequestFirst);
    const problem = blockedHint(feed.rows.get(location.id), action);
    if (problem) return announce(problem);
    if (card.current?.sending) return;
    if (!card.current?.settled) return announce(ONE_MOMENT);
    announce(action === "approve" ? approveHint(card.current, feed.rows.get(location.id)) : "");
    card.current[action]();
  };
  const decideAll = (action: CardAction) =>
    canDecide && selection.ids.length && !location.bulk ? location.compare() : decide(action);
  return {
    next: () => moveBy(1),
    previous: () => moveBy(-1),
    open: () => (location.id ? focusCard() : moveBy(1)),
    select: () => {
      if (!canDecide) return announce(messages.VIEW_ONLY);
      if (!location.id) return announce(messages.goToARequestFirst);
      selection.toggle(location.id, false);
    },
    approve: () => decideAll("approve"),
    reject: () => decideAll("reject"),
    rejectWithReason: () => decideAll("rejectWithReason"),
    respond: () => decide("respond"),
    edit: () => decide("edit"),
    ask: () => {
      if (!canDecide) return announce(messages.VIEW_ONLY);
      if (!location.id || location.bulk) return announce(messages.openARequestFirst);
      if (feed.rows.get(location.id)?.status !== "pending") return announce(messages.thisRequestIsClosed);
      announce("");
      card.current?.ask();
    },
    undo: () => void context.undo(),
    news: () => (feed.waiting.length ? context.reveal() : announce(messages.noNewRequests)),
    filter: () => {
      searchInput.current?.focus();
      searchInput.current?.select();
    },
    help: () => context.help(true),
    leave: () => {
      if (location.bulk) location.close();
      else if (selection.ids.length) selection.clear();
    },
  };
}

/** A key that was meant for what was there before: it does nothing. */
export const ONE_MOMENT = messages.oneMoment;

const VERBS: Record<CardAction, string> = {
  approve: "approve",
  reject: "reject",
  rejectWithReason: "reject",
  respond: messages.respondTo,
  edit: "edit",
};

/** Why the user cannot decide this way; "" if they can. */
function blockedHint(row: FeedRow | undefined, action: CardAction): string {
  if (!row) return "";
  if (row.status !== "pending") return messages.requestIsAlready(row.status);
  const kind = action === "rejectWithReason" ? "reject" : action;
  if (row.may_decide.includes(kind)) return "";
  if (row.may_decide.length === 1 && row.may_decide[0] === "respond") return messages.questionPressC;
  return messages.cannotDecideThisWay(VERBS[action]);
}

/** What is needed besides the key. */
function approveHint({ unchecked }: CardHandle, row: FeedRow | undefined): string {
  if (unchecked === 1) return messages.checkMarkedPlace;
  if (unchecked) return messages.checkMarkedPlaces(unchecked);
  return row?.risk === "high" ? messages.holdA : "";
}

/** The card takes the focus only on request. */
export function focusCard(): void {
  document.querySelector<HTMLElement>("article[data-approval]")?.focus();
}
