import { Button, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { mayDecide, useMe } from "../../api/currentUser";
import { usePageTitle } from "../../components/PageTitle";
import { EmptyState, Loading } from "../../components/States";
import { useFocusKeeper } from "../../components/useFocusKeeper";
import { AllDone, EmptyInbox } from "./EmptyInbox";
import { nextOpen } from "./feed";
import { useFeed } from "./feedStore";
import { FilterBar } from "./FilterBar";
import { readFilters, writeFilters, type InboxFilters } from "./filters";
import css from "./Inbox.module.css";
import { InboxHead } from "./InboxHead";
import { InboxList, type InboxListHandle } from "./InboxList";
import { oneLine } from "./InboxRow";
import { useInboxKeys } from "./keys";
import * as messages from "./messages";
import { Toasts } from "./Toasts";
import { useAnnouncements } from "./useAnnouncements";
import { useDecisionFeedback } from "./useDecisionFeedback";
import { useFlow } from "./useFlow";
import { focusCard, ONE_MOMENT, useInboxActions } from "./useInboxActions";
import { useInboxLocation } from "./useInboxLocation";
import { useSelection } from "./useSelection";

const BulkDecision = lazy(() => import("./BulkDecision"));
const KeyHelp = lazy(() => import("./KeyHelp"));
const CardPane = lazy(() => import("./CardPane"));
const NO_FILTERS: Partial<InboxFilters> = {
  q: "",
  tool: "",
  agent: "",
  user: "",
  team: "",
  priority: "",
  thread: "",
};

/** Open requests, for people with hundreds of them: a list, and the card of the current one. */
export default function Inbox() {
  const [search, setSearch] = useSearchParams();
  const filters = readFilters(search);
  const me = useMe().data;
  const { store, listing } = useFeed(filters, me?.name ?? "");
  const location = useInboxLocation();
  const announcements = useAnnouncements();
  const { announce } = announcements;
  const [isHelpOpen, setHelpOpen] = useState(false);
  const isNarrow = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false });
  const root = useRef<HTMLDivElement>(null);
  const list = useRef<InboxListHandle>(null);
  const searchInput = useRef<HTMLInputElement>(null);
  const canDecide = mayDecide(me);
  const { feed } = listing;
  const selection = useSelection(feed, announce);
  const flow = useFlow({ store, feed, location, list, isListOfOpen: filters.status === "pending" });
  const { handleDecision, handleBulk, undo } = useDecisionFeedback({
    store,
    isMine: filters.mine,
    announcements,
    onDecided: flow.advance,
    onUndone: flow.openCard,
  });
  usePageTitle(oneLine(feed.rows.get(location.id)?.sentence ?? ""));

  const changeFilters = (changed: Partial<InboxFilters>) =>
    setSearch((old) => writeFilters(old, changed), { replace: true });
  const { open, close } = location;
  const openRequest = useCallback((id: string) => open(id, isNarrow ? "push" : "replace"), [open, isNarrow]);
  const openRow = useCallback(
    (id: string) => (id === location.id ? focusCard() : openRequest(id)),
    [location.id, openRequest],
  );
  const goTo = (id: string) => {
    if (!isNarrow) openRequest(id);
    list.current?.goTo(id);
  };
  const goToList = () => {
    const id = feed.ids.includes(location.id) ? location.id : feed.ids[0];
    if (id) list.current?.goTo(id);
    else focusTitle();
  };
  const goToResult = useFirstResult(filters.q, listing, (id) =>
    id ? goTo(id) : announce(messages.noResults),
  );
  const reveal = () => {
    const first = [...feed.waiting].sort((one, other) => one.sortKey - other.sortKey)[0];
    store.reveal();
    if (first) requestAnimationFrame(() => (flow.isDone ? flow.openCard(first.id) : goTo(first.id)));
  };
  useFocusKeeper(root, () => {
    if (location.id && !location.bulk) flow.focusCard();
    else goToList();
  });
  useInboxKeys(
    useInboxActions({
      feed,
      location,
      selection,
      canDecide,
      list,
      card: flow.card,
      searchInput,
      announce,
      openRequest,
      undo: undo.last,
      reveal,
      help: setHelpOpen,
    }),
  );
  const isCardFullscreen = Boolean(isNarrow && (location.id || location.bulk));

  return (
    <div ref={root} className={css.inbox}>
      <section
        className={css.list}
        aria-label={messages.list}
        aria-busy={listing.loading}
        inert={isCardFullscreen}
      >
        <div className={css.head}>
          <InboxHead listing={listing} filters={filters} onChange={changeFilters} onReveal={reveal} />
          <FilterBar
            filters={filters}
            feed={feed}
            onChange={changeFilters}
            search={searchInput}
            onLeave={goToList}
            onResults={goToResult}
          />
        </div>
        <EmptyInbox
          listing={listing}
          filters={filters}
          onClearFilters={() => changeFilters(NO_FILTERS)}
          onMore={() => void store.more()}
          onRetry={() => void store.load()}
        />
        <InboxList
          ref={list}
          feed={feed}
          current={location.id}
          selected={selection.set}
          onNearEnd={store.more}
          onVisible={store.setVisible}
          onToggle={canDecide ? selection.toggle : null}
          onOpen={openRow}
        />
        <SelectionBar count={selection.ids.length} onCompare={location.compare} onClear={selection.clear} />
        {!isNarrow && <KeyBar onHelp={() => setHelpOpen(true)} />}
      </section>
      <Toasts {...announcements} isRaised={selection.ids.length > 0} onUndo={() => void undo.last()} />
      <section className={css.card} aria-label={messages.request} data-open={isCardFullscreen || undefined}>
        <Suspense fallback={<Loading />}>
          {location.bulk && (
            <BulkDecision ids={selection.ids} onClose={close} onDone={handleBulk} undo={undo} />
          )}
          {!location.bulk && location.id && (
            <CardPane
              id={location.id}
              nextId={canDecide ? nextOpen(feed, location.id) : ""}
              card={flow.attachCard}
              onChanged={handleDecision}
              onTooEarly={() => announce(ONE_MOMENT)}
              onBack={close}
            />
          )}
          {!location.bulk && !location.id && flow.isDone && (
            <AllDone
              filters={filters}
              waiting={feed.waiting.length}
              onReveal={reveal}
              onClearFilters={() => changeFilters(NO_FILTERS)}
            />
          )}
          {!location.bulk && !location.id && !flow.isDone && (
            <EmptyState title={messages.noRequestSelected}>{messages.selectARequest}</EmptyState>
          )}
        </Suspense>
      </section>
      {isHelpOpen && (
        <Suspense>
          <KeyHelp onClose={() => setHelpOpen(false)} />
        </Suspense>
      )}
    </div>
  );
}

function focusTitle(): void {
  document.getElementById("inbox-title")?.focus();
}

/** Goes to the first result of a search, as soon as the list has it: "" if there is none. */
function useFirstResult(
  q: string,
  { feed, loading, isIndexBehind }: ReturnType<typeof useFeed>["listing"],
  onResult: (id: string) => void,
): (q: string) => void {
  const wanted = useRef<string | null>(null);
  const first = feed.ids[0] ?? "";
  const goIfLoaded = () => {
    if (wanted.current !== q || loading || (isIndexBehind && !first)) return;
    wanted.current = null;
    onResult(first);
  };
  useEffect(goIfLoaded);
  return (words) => {
    wanted.current = words;
    goIfLoaded(); // nothing may change: the words were already searched for
  };
}

interface SelectionBarProps {
  count: number;
  onCompare: () => void;
  onClear: () => void;
}

/** The number of selected requests, and the bulk actions. */
function SelectionBar({ count, onCompare, onClear }: SelectionBarProps) {
  if (!count) return null;
  return (
    <div className={css.bar}>
      <Text size="sm" fw={600}>
        {messages.selectedCount(count)}
      </Text>
      <Button size="compact-md" mih={36} onClick={onCompare}>
        {messages.bulkDecisionButton}
      </Button>
      <Button size="compact-md" mih={36} variant="default" onClick={onClear}>
        {messages.clear}
      </Button>
    </div>
  );
}

function KeyBar({ onHelp }: { onHelp: () => void }) {
  return (
    <div className={css.keyBar}>
      {messages.COMMON_KEYS.map(([keys, text]) => (
        <span key={text}>
          {keys.map((key) => (
            <kbd key={key}>{key}</kbd>
          ))}
          {text}
        </span>
      ))}
      <button type="button" onClick={onHelp}>
        <kbd aria-hidden>?</kbd>
        {messages.allKeys}
      </button>
    </div>
  );
}
