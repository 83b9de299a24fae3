import { useCallback, useEffect, useMemo, useRef, useState, type RefCallback, type RefObject } from "react";
import type { CardHandle } from "../../card/ApprovalCard";
import { isOpen, nextOpen, type Feed } from "./feed";
import type { FeedStore } from "./feedStore";
import type { InboxListHandle } from "./InboxList";
import type { InboxLocation } from "./useInboxLocation";

export interface Flow {
  card: RefObject<CardHandle | null>;
  /** For the card: it takes the focus if a decision led to it. */
  attachCard: RefCallback<CardHandle>;
  /** The last open request of the list was decided, and all of the list was read. */
  isDone: boolean;
  /** Opens the next open request after a decided one, wherever the list continues. */
  advance: (from: string) => void;
  /** Opens a request with the focus on its card. */
  openCard: (id: string) => void;
  /** Gives the focus to the open card, as soon as it is there. */
  focusCard: () => void;
}

interface FlowContext {
  store: FeedStore;
  feed: Feed;
  location: InboxLocation;
  list: RefObject<InboxListHandle | null>;
  /** Whether a decided request is left: not in a list of decided requests. */
  isListOfOpen: boolean;
}

/** From one decision to the next: the following open request is there, with the focus on its card. */
export function useFlow({ store, feed, location, list, isListOfOpen }: FlowContext): Flow {
  const card = useRef<CardHandle>(null);
  const focusWanted = useRef("");
  const now = useRef(location);
  now.current = location;
  const [doneAt, setDoneAt] = useState<FeedStore | null>(null);

  const attachCard = useCallback((handle: CardHandle | null) => {
    card.current = handle;
    if (!handle || focusWanted.current !== now.current.id) return;
    focusWanted.current = "";
    handle.focus();
  }, []);
  const openCard = useCallback(
    (id: string) => {
      focusWanted.current = id;
      now.current.advance(id);
      list.current?.show(id);
    },
    [list],
  );
  const focusCard = useCallback(() => {
    if (card.current) card.current.focus();
    else focusWanted.current = now.current.id;
  }, []);
  const advance = useCallback(
    (from: string) => {
      void findNext(store, from).then((next) => {
        if (now.current.id !== from) return; // the user has moved on meanwhile
        if (next) return openCard(next);
        if (!isListOfOpen) return focusCard();
        if (store.get().feed.next === null) setDoneAt(store);
        now.current.close();
      });
    },
    [store, isListOfOpen, openCard, focusCard],
  );
  useResumeAfterBulk(location, (id) => {
    if (isOpen(store.get().feed.rows.get(id))) focusCard();
    else advance(id);
  });
  const isDone = doneAt === store && !location.id && !location.bulk && !nextOpen(feed, "");
  return useMemo(
    () => ({ card, attachCard, isDone, advance, openCard, focusCard }),
    [attachCard, isDone, advance, openCard, focusCard],
  );
}

/** The card that was open before a bulk decision, or the next one if it was among them. */
function useResumeAfterBulk({ id, bulk }: InboxLocation, onResume: (id: string) => void): void {
  const was = useRef(bulk);
  useEffect(() => {
    if (was.current && !bulk && id) onResume(id);
    was.current = bulk;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the newest callback, once for each bulk decision
  }, [bulk]);
}

const MAX_PAGES = 10; // that are searched for the next open request

/** The list may have more pages than are loaded. */
async function findNext(store: FeedStore, from: string): Promise<string> {
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { feed } = store.get();
    const found = nextOpen(feed, from);
    if (found || feed.next === null) return found;
    await store.more();
    if (store.get().feed.next === feed.next) return ""; // it could not be loaded
  }
  return nextOpen(store.get().feed, from);
}
