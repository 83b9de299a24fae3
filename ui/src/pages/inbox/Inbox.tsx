import { Button, Text, Title } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useCallback, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { mayDecide, useMe } from "../../api/currentUser";
import type { CardHandle } from "../../card/ApprovalCard";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { useFeed, type FeedListing } from "./feedStore";
import { FilterBar } from "./FilterBar";
import { activeFilters, readFilters, writeFilters, type InboxFilters } from "./filters";
import css from "./Inbox.module.css";
import { InboxList, type InboxListHandle } from "./InboxList";
import { useInboxKeys } from "./keys";
import { useDecisionFeedback } from "./useDecisionFeedback";
import { focusCard, useInboxActions } from "./useInboxActions";
import { useInboxLocation } from "./useInboxLocation";
import { useSelection } from "./useSelection";

const BulkDecision = lazy(() => import("./BulkDecision"));
const KeyHelp = lazy(() => import("./KeyHelp"));
const CardPane = lazy(() => import("./CardPane"));
const NO_FILTERS: Partial<InboxFilters> = {
  mine: false,
  q: "",
  tool: "",
  agent: "",
  user: "",
  team: "",
  priority: "",
  thread: "",
};

/** Pending requests, for people with hundreds of them: a list, and the card of the open one. */
export default function Inbox() {
  const [search, setSearch] = useSearchParams();
  const filters = readFilters(search);
  const { store, listing } = useFeed(filters);
  const location = useInboxLocation();
  const [announcement, announce] = useState("");
  const [isHelpOpen, setHelpOpen] = useState(false);
  const isNarrow = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false });
  const list = useRef<InboxListHandle>(null);
  const card = useRef<CardHandle>(null);
  const searchInput = useRef<HTMLInputElement>(null);
  const canDecide = mayDecide(useMe().data);
  const { feed } = listing;
  const selection = useSelection(feed, announce);
  const { handleDecision, handleBulk, undo } = useDecisionFeedback(store, announce);

  const changeFilters = (changed: Partial<InboxFilters>) =>
    setSearch((old) => writeFilters(old, changed), { replace: true });
  const { open, close } = location;
  const openRequest = useCallback((id: string) => open(id, isNarrow ? "push" : "replace"), [open, isNarrow]);
  const openRow = useCallback(
    (id: string) => (id === location.id ? focusCard() : openRequest(id)),
    [location.id, openRequest],
  );
  const reveal = () => {
    const first = [...feed.waiting].sort((one, other) => one.sortKey - other.sortKey)[0];
    announce(`${feed.waiting.length} new shown.`);
    store.reveal();
    if (first) requestAnimationFrame(() => list.current?.goTo(first.id));
  };
  useInboxKeys(
    useInboxActions({
      feed,
      location,
      selection,
      canDecide,
      list,
      card,
      searchInput,
      announce,
      openRequest,
      undo: undo.last,
      help: setHelpOpen,
    }),
  );
  const isCardFullscreen = Boolean(isNarrow && (location.id || location.bulk));

  return (
    <div className={css.inbox}>
      <section className={css.list} aria-label="List" aria-busy={listing.loading} inert={isCardFullscreen}>
        <div className={css.head}>
          <InboxHead listing={listing} onReveal={reveal} />
          <FilterBar filters={filters} feed={feed} onChange={changeFilters} search={searchInput} />
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
        <div className={css.note}>
          <span role="status">{announcement}</span>
          {!isNarrow && (
            <Button variant="default" size="compact-sm" onClick={() => setHelpOpen(true)}>
              {" "}
              Keyboard shortcuts{" "}
            </Button>
          )}
        </div>
      </section>
      <section className={css.card} aria-label="Approval" data-open={isCardFullscreen || undefined}>
        <Suspense fallback={<Loading />}>
          {location.bulk && (
            <BulkDecision ids={selection.ids} onClose={close} onDone={handleBulk} undo={undo} />
          )}
          {!location.bulk && location.id && (
            <CardPane id={location.id} card={card} onChanged={handleDecision} onBack={close} />
          )}
          {!location.bulk && !location.id && (
            <EmptyState title="No approval selected">
              Select an approval in the list, or press J. Press ? for all keyboard shortcuts.
            </EmptyState>
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

/** The title and the number of requests, as far as it is known. */
function InboxHead({ listing: { feed, loading }, onReveal }: { listing: FeedListing; onReveal: () => void }) {
  const count = `${feed.ids.length.toLocaleString()}${feed.next === null ? "" : " or more"}`;
  return (
    <div className={css.title}>
      <Title order={1} size="h3">
        Inbox
      </Title>
      <NewRequestsButton count={feed.waiting.length} onReveal={onReveal} />
      {!loading && feed.ids.length > 0 && (
        <Text size="sm" data-count>
          {count} {feed.ids.length === 1 ? "approval" : "approvals"}
        </Text>
      )}
    </div>
  );
}

/** New requests are held back until they are revealed. */
function NewRequestsButton({ count, onReveal }: { count: number; onReveal: () => void }) {
  if (!count) return null;
  return (
    <button type="button" className={css.news} onClick={onReveal}>
      Show {count.toLocaleString()} new
    </button>
  );
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
        {count} selected
      </Text>
      <Button size="compact-md" mih={36} onClick={onCompare}>
        Bulk decision…
      </Button>
      <Button size="compact-md" mih={36} variant="default" onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}

interface EmptyInboxProps {
  listing: FeedListing;
  filters: InboxFilters;
  onClearFilters: () => void;
  onMore: () => void;
  onRetry: () => void;
}

/** Shown instead of an empty list. */
function EmptyInbox({
  listing: { feed, loading, error, isIndexBehind },
  filters,
  onClearFilters,
  onMore,
  onRetry,
}: EmptyInboxProps) {
  if (error) return <ErrorMessage error={error} onRetry={onRetry} />;
  if (feed.ids.length) return null;
  if (loading && !isIndexBehind) return <Loading label="Loading approvals" />;
  if (isIndexBehind)
    return (
      <EmptyState title="No results yet">Recent changes are not searchable yet. Searching again…</EmptyState>
    );
  if (feed.next !== null)
    return (
      <EmptyState title="No matches so far">
        None of the approvals searched so far is waiting for you.{" "}
        <Button size="xs" variant="default" mt="xs" onClick={onMore}>
          Search further
        </Button>
      </EmptyState>
    );
  if (activeFilters(filters).length)
    return (
      <EmptyState title="No approvals match these filters">
        <Button size="xs" variant="default" mt="xs" onClick={onClearFilters}>
          Clear all filters
        </Button>
      </EmptyState>
    );
  if (filters.status === "all")
    return (
      <EmptyState title="No approvals yet">
        Approvals requested by your agents appear here, newest first.
      </EmptyState>
    );
  return (
    <EmptyState title="No pending approvals">
      New approvals appear here automatically. Decided calls are in the history.
    </EmptyState>
  );
}
