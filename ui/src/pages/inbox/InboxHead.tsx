import { Text, Title } from "@mantine/core";
import { IconUp } from "../../components/icons";
import { usePendingCount } from "../../api/stats";
import { countOpen } from "./feed";
import type { FeedListing } from "./feedStore";
import { activeFilters, VIEW_FILTERS, viewOf, type InboxFilters, type InboxView } from "./filters";
import css from "./Inbox.module.css";
import * as messages from "./messages";

interface Props {
  listing: FeedListing;
  filters: InboxFilters;
  onChange: (changed: Partial<InboxFilters>) => void;
  onReveal: () => void;
}

/** The title, the new requests, and whose requests are listed, with their number as far as it is known. */
export function InboxHead({ listing, filters, onChange, onReveal }: Props) {
  const pending = usePendingCount();
  const { feed, loading } = listing;
  const view = viewOf(filters);
  const isFiltered = activeFilters(filters).length > 0;
  const found = countOpen(feed) + feed.waiting.length;
  const isMineCounted = view === "mine" && !isFiltered && !loading && feed.next === null;
  const counts: Partial<Record<InboxView, number>> = {
    everyone: pending,
    mine: isMineCounted ? found : undefined,
  };
  return (
    <>
      <div className={css.title}>
        <Title order={1} id="inbox-title" tabIndex={-1}>
          {messages.inbox}
        </Title>
        {isFiltered && !loading && (
          <Text size="sm" c="dimmed" data-count>
            {messages.foundCount(feed.ids.length, feed.next)}
          </Text>
        )}
        <NewRequestsButton count={feed.waiting.length} onReveal={onReveal} />
      </div>
      <div className={css.tabs} role="group" aria-label={messages.show}>
        {messages.VIEWS.map(([each, label]) => (
          <button
            key={each}
            type="button"
            aria-pressed={each === view}
            onClick={() => onChange(VIEW_FILTERS[each])}
          >
            {label}{" "}
            {counts[each] !== undefined && (
              <span className={css.total} data-total={each}>
                {counts[each].toLocaleString()}
              </span>
            )}
          </button>
        ))}
      </div>
    </>
  );
}

/** New requests are held back until they are revealed. */
function NewRequestsButton({ count, onReveal }: { count: number; onReveal: () => void }) {
  if (!count) return null;
  return (
    <button type="button" className={css.news} onClick={onReveal}>
      <IconUp size={14} stroke={2} aria-hidden />
      {newRequestsLabel(count)}
      <kbd aria-hidden>N</kbd>
    </button>
  );
}

export function newRequestsLabel(count: number): string {
  return messages.showNewRequests(count);
}
