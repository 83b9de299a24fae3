import type { RefObject } from "react";
import type { DecisionKind } from "../../api/approvals";
import type { CardHandle } from "../../card/ApprovalCard";
import type { Feed, FeedRow } from "./feed";
import type { InboxListHandle } from "./InboxList";
import type { InboxAction } from "./keys";
import type { InboxLocation } from "./useInboxLocation";
import type { Selection } from "./useSelection";

interface Given {
  feed: Feed;
  place: InboxLocation;
  selection: Selection;
  decides: boolean;
  list: RefObject<InboxListHandle | null>;
  card: RefObject<CardHandle | null>;
  words: RefObject<HTMLInputElement | null>;
  say: (text: string) => void;
  choose: (id: string) => void;
  undo: () => Promise<void>;
  help: (open: boolean) => void;
}

/** What each key does. Deciding is the card's own: its rules hold however one asks for it. */
export function useInboxActions(given: Given): Record<InboxAction, () => void> {
  const { feed, place, selection, decides, list, card, words, say, choose, undo, help } = given;
  const go = (step: 1 | -1) => {
    const id = neighbour(feed.ids, place.id, step);
    if (!id) return say(feed.ids.length ? "No more requests in this direction." : "The list is empty.");
    choose(id);
    list.current?.goTo(id);
  };
  const decide = (kind: DecisionKind) => {
    if (!decides) return say(LOOKS);
    if (!card.current) return say("Open a request first: press J for the next one.");
    const row = feed.rows.get(place.id);
    say(row ? hindered(row, kind) : "");
    card.current[kind]();
  };
  const decideAll = (kind: "approve" | "reject") =>
    decides && selection.ids.length && !place.bulk ? place.compare() : decide(kind);
  return {
    next: () => go(1),
    previous: () => go(-1),
    open: () => (place.id ? focusCard() : go(1)),
    select: () => {
      if (!decides) return say(LOOKS);
      if (!place.id) return say("Go to a request first: press J for the next one.");
      selection.toggle(place.id, false);
    },
    approve: () => decideAll("approve"),
    reject: () => decideAll("reject"),
    respond: () => decide("respond"),
    edit: () => decide("edit"),
    undo: () => void undo(),
    filter: () => words.current?.focus(),
    help: () => help(true),
    leave: () => {
      if (place.bulk) place.close();
      else if (selection.ids.length) selection.clear();
    },
  };
}

const LOOKS = "Your role can view requests but not decide them.";

/** Why a key may not be enough; the card shows the rest. */
function hindered(row: FeedRow, kind: DecisionKind): string {
  if (row.status !== "pending") return `This request is already ${row.status}.`;
  if (!row.may_decide.includes(kind))
    return `You cannot ${kind === "respond" ? "respond to" : kind} this request.`;
  if (kind !== "approve") return "";
  if (row.alarms.length) return "Check each finding in the card first.";
  return row.risk === "high" ? "High risk: hold the Approve button in the card." : "";
}

function neighbour(ids: readonly string[], id: string, step: 1 | -1): string | undefined {
  const at = ids.indexOf(id);
  return at < 0 ? ids[0] : ids[at + step];
}

/** The card takes the focus only when it is asked to. */
export function focusCard(): void {
  document.querySelector<HTMLElement>("article[data-approval]")?.focus();
}
