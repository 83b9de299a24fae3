import { Button } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useCallback, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { mayDecide, useMe } from "../../api/me";
import type { CardHandle } from "../../card/Card";
import { Empty, Loading } from "../../components/States";
import { FilterBar } from "./FilterBar";
import { readFilters, writeFilters, type Filters } from "./filters";
import { Head, Instead, Selected } from "./Head";
import css from "./Inbox.module.css";
import { List, type ListHandle } from "./List";
import { focusCard, useActions } from "./useActions";
import { useDecided } from "./useDecided";
import { useFeed } from "./useFeed";
import { useKeys } from "./useKeys";
import { usePlace } from "./usePlace";
import { useSelection } from "./useSelection";

const Bulk = lazy(() => import("./Bulk"));
const Help = lazy(() => import("./Help"));
const Pane = lazy(() => import("./Pane"));
const NONE: Partial<Filters> = {
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
  const place = usePlace();
  const [note, say] = useState("");
  const [helps, setHelps] = useState(false);
  const isNarrow = useMediaQuery("(max-width: 48em)", undefined, { getInitialValueInEffect: false });
  const list = useRef<ListHandle>(null);
  const card = useRef<CardHandle>(null);
  const words = useRef<HTMLInputElement>(null);
  const decides = mayDecide(useMe().data);
  const { feed } = listing;
  const selection = useSelection(feed, say);
  const { moved, movedMany, undo } = useDecided(store, say);

  const narrow = (changed: Partial<Filters>) =>
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
  useKeys(
    useActions({
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
          <Head listing={listing} onReveal={reveal} />
          <FilterBar filters={filters} feed={feed} onChange={narrow} search={words} />
        </div>
        <Instead
          listing={listing}
          filters={filters}
          onAll={() => narrow(NONE)}
          onMore={() => void store.more()}
          onAgain={() => void store.load()}
        />
        <List
          ref={list}
          feed={feed}
          current={place.id}
          chosen={selection.set}
          onNearEnd={store.more}
          onLook={store.look}
          onToggle={decides ? selection.toggle : null}
          onOpen={openRow}
        />
        <Selected count={selection.ids.length} onCompare={place.compare} onClear={selection.clear} />
        <div className={css.note}>
          <span role="status">{note}</span>
          {!isNarrow && (
            <Button variant="default" size="compact-sm" onClick={() => setHelps(true)}>
              Keys
            </Button>
          )}
        </div>
      </section>
      <section className={css.card} aria-label="Request" data-open={covers || undefined}>
        <Suspense fallback={<Loading />}>
          {place.bulk && <Bulk ids={selection.ids} onClose={close} onDone={movedMany} undo={undo} />}
          {!place.bulk && place.id && <Pane id={place.id} card={card} onMoved={moved} onBack={close} />}
          {!place.bulk && !place.id && (
            <Empty title="Nothing is open">
              Choose a request in the list, or press J. The key ? shows all keys.
            </Empty>
          )}
        </Suspense>
      </section>
      {helps && (
        <Suspense>
          <Help onClose={() => setHelps(false)} />
        </Suspense>
      )}
    </div>
  );
}
