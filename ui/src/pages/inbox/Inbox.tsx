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
const NONE: Partial<InboxFilters> = {
  mine: false,
  q: "",
  tool: "",
  agent: "",
  user: "",
  team: "",
  priority: "",
  thread: "",
};

/** What waits for people, for somebody with hundreds of requests: a list, and the card of the one that is open. */
export default function Inbox() {
  const [search, setSearch] = useSearchParams();
  const filters = readFilters(search);
  const { store, listing } = useFeed(filters);
  const place = useInboxLocation();
  const [note, say] = useState("");
  const [helps, setHelps] = useState(false);
  const isNarrow = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false });
  const list = useRef<InboxListHandle>(null);
  const card = useRef<CardHandle>(null);
  const words = useRef<HTMLInputElement>(null);
  const decides = mayDecide(useMe().data);
  const { feed } = listing;
  const selection = useSelection(feed, say);
  const { moved, movedMany, undo } = useDecisionFeedback(store, say);

  const narrow = (changed: Partial<InboxFilters>) =>
    setSearch((old) => writeFilters(old, changed), { replace: true });
  const { open, close } = place;
  const choose = useCallback((id: string) => open(id, isNarrow ? "push" : "replace"), [open, isNarrow]);
  const openRow = useCallback(
    (id: string) => (id === place.id ? focusCard() : choose(id)),
    [place.id, choose],
  );
  const reveal = () => {
    const first = [...feed.waiting].sort((one, other) => one.place - other.place)[0];
    say(`${feed.waiting.length} new shown.`);
    store.reveal();
    if (first) requestAnimationFrame(() => list.current?.goTo(first.id));
  };
  useInboxKeys(
    useInboxActions({
      feed,
      place,
      selection,
      decides,
      list,
      card,
      words,
      say,
      choose,
      undo: undo.last,
      help: setHelps,
    }),
  );
  const covers = Boolean(isNarrow && (place.id || place.bulk));

  return (
    <div className={css.inbox}>
      <section className={css.list} aria-label="List" aria-busy={listing.loading} inert={covers}>
        <div className={css.head}>
          <InboxHead listing={listing} onReveal={reveal} />
          <FilterBar filters={filters} feed={feed} onChange={narrow} search={words} />
        </div>
        <EmptyInbox
          listing={listing}
          filters={filters}
          onAll={() => narrow(NONE)}
          onMore={() => void store.more()}
          onAgain={() => void store.load()}
        />
        <InboxList
          ref={list}
          feed={feed}
          current={place.id}
          chosen={selection.set}
          onNearEnd={store.more}
          onLook={store.look}
          onToggle={decides ? selection.toggle : null}
          onOpen={openRow}
        />
        <SelectionBar count={selection.ids.length} onCompare={place.compare} onClear={selection.clear} />
        <div className={css.note}>
          <span role="status">{note}</span>
          {!isNarrow && (
            <Button variant="default" size="compact-sm" onClick={() => setHelps(true)}>
              {" "}
              Keyboard shortcuts{" "}
            </Button>
          )}
        </div>
      </section>
      <section className={css.card} aria-label="Request" data-open={covers || undefined}>
        <Suspense fallback={<Loading />}>
          {place.bulk && <BulkDecision ids={selection.ids} onClose={close} onDone={movedMany} undo={undo} />}
          {!place.bulk && place.id && <CardPane id={place.id} card={card} onMoved={moved} onBack={close} />}
          {!place.bulk && !place.id && (
            <EmptyState title="No request selected">
              Select a request in the list, or press J. Press ? for all keyboard shortcuts.
            </EmptyState>
          )}
        </Suspense>
      </section>
      {helps && (
        <Suspense>
          <KeyHelp onClose={() => setHelps(false)} />
        </Suspense>
      )}
    </div>
  );
}

/** The page's name and how much there is, as far as it is known. */
function InboxHead({ listing: { feed, loading }, onReveal }: { listing: FeedListing; onReveal: () => void }) {
  const count = `${feed.ids.length.toLocaleString()}${feed.next === null ? "" : " or more"}`;
  return (
    <div className={css.title}>
      <Title order={1} size="h3">
        Inbox
      </Title>
      <News count={feed.waiting.length} onReveal={onReveal} />
      {!loading && feed.ids.length > 0 && (
        <Text size="sm" data-count>
          {count} {feed.ids.length === 1 ? "request" : "requests"}
        </Text>
      )}
    </div>
  );
}

/** What is new waits here until somebody wants to see it. */
function News({ count, onReveal }: { count: number; onReveal: () => void }) {
  if (!count) return null;
  return (
    <button type="button" className={css.news} onClick={onReveal}>
      Show {count.toLocaleString()} new
    </button>
  );
}

interface SelectedProps {
  count: number;
  onCompare: () => void;
  onClear: () => void;
}

/** How many are selected, and the way on. */
function SelectionBar({ count, onCompare, onClear }: SelectedProps) {
  if (!count) return null;
  return (
    <div className={css.bar}>
      <Text size="sm" fw={600}>
        {count} selected
      </Text>
      <Button size="compact-md" mih={36} onClick={onCompare}>
        Decide together
      </Button>
      <Button size="compact-md" mih={36} variant="default" onClick={onClear}>
        Clear
      </Button>
    </div>
  );
}

interface InsteadProps {
  listing: FeedListing;
  filters: InboxFilters;
  onAll: () => void;
  onMore: () => void;
  onAgain: () => void;
}

/** What stands where no rows are. */
function EmptyInbox({
  listing: { feed, loading, error, behind },
  filters,
  onAll,
  onMore,
  onAgain,
}: InsteadProps) {
  if (error) return <ErrorMessage error={error} again={onAgain} />;
  if (feed.ids.length) return null;
  if (loading && !behind) return <Loading what="Loading requests" />;
  if (behind)
    return (
      <EmptyState title="No results yet">Recent changes are not searchable yet. Searching again…</EmptyState>
    );
  if (feed.next !== null)
    return (
      <EmptyState title="Nothing yet">
        None of the requests searched so far is waiting for you.{" "}
        <Button size="xs" variant="default" mt="xs" onClick={onMore}>
          Search further
        </Button>
      </EmptyState>
    );
  if (activeFilters(filters).length)
    return (
      <EmptyState title="No requests match these filters">
        <Button size="xs" variant="default" mt="xs" onClick={onAll}>
          Clear all filters
        </Button>
      </EmptyState>
    );
  if (filters.status === "all")
    return (
      <EmptyState title="No requests yet">Requests from your agents appear here, newest first.</EmptyState>
    );
  return (
    <EmptyState title="No pending requests">
      New requests appear here automatically. Decided requests are in the history.
    </EmptyState>
  );
}
