import type { RefObject } from "react";
import type { DecisionKind } from "../../api/approvals";
import type { CardHandle } from "../../card/ApprovalCard";
import type { Feed, FeedRow } from "./feed";
import type { InboxListHandle } from "./InboxList";
import type { InboxAction } from "./keys";
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
  help: (open: boolean) => void;
}

/** The actions of the shortcuts. Decisions are made by the card, with all of its checks. */
export function useInboxActions(context: InboxContext): Record<InboxAction, () => void> {
  const { feed, location, selection, canDecide, list, card, searchInput, announce, openRequest, undo, help } =
    context;
  const moveBy = (step: 1 | -1) => {
    const id = neighbour(feed.ids, location.id, step);
    if (!id) return announce(feed.ids.length ? "No more approvals in this direction." : "The list is empty.");
    openRequest(id);
    list.current?.goTo(id);
  };
  const decide = (kind: DecisionKind) => {
    if (!canDecide) return announce(VIEW_ONLY);
    if (!card.current) return announce("Open an approval first: press J for the next one.");
    const row = feed.rows.get(location.id);
    announce(row ? keyHint(row, kind) : "");
    card.current[kind]();
  };
  const decideAll = (kind: "approve" | "reject") =>
    canDecide && selection.ids.length && !location.bulk ? location.compare() : decide(kind);
  return {
    next: () => moveBy(1),
    previous: () => moveBy(-1),
    open: () => (location.id ? focusCard() : moveBy(1)),
    select: () => {
      if (!canDecide) return announce(VIEW_ONLY);
      if (!location.id) return announce("Go to an approval first: press J for the next one.");
      selection.toggle(location.id, false);
    },
    approve: () => decideAll("approve"),
    reject: () => decideAll("reject"),
    respond: () => decide("respond"),
    edit: () => decide("edit"),
    undo: () => void undo(),
    filter: () => searchInput.current?.focus(),
    help: () => help(true),
    leave: () => {
      if (location.bulk) location.close();
      else if (selection.ids.length) selection.clear();
    },
  };
}

const VIEW_ONLY = "Your role can view approvals but not decide them.";

/** Why a shortcut may not be enough. */
function keyHint(row: FeedRow, kind: DecisionKind): string {
  if (row.status !== "pending") return `This approval is already ${row.status}.`;
  if (!row.may_decide.includes(kind))
    return `You cannot ${kind === "respond" ? "respond to" : kind} this approval.`;
  if (kind !== "approve") return "";
  if (row.alarms.length) return "Check each finding in the card first.";
  return row.risk === "high" ? "High risk: hold the Approve button in the card." : "";
}

function neighbour(ids: readonly string[], id: string, step: 1 | -1): string | undefined {
  const at = ids.indexOf(id);
  return at < 0 ? ids[0] : ids[at + step];
}

/** The card takes the focus only on request. */
export function focusCard(): void {
  document.querySelector<HTMLElement>("article[data-approval]")?.focus();
}
