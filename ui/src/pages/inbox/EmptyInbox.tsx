import { Button } from "@mantine/core";
import { useEffect, useRef } from "react";
import { Link } from "wouter";
import { isAdmin, useMe } from "../../api/currentUser";
import { usePendingCount, useStats } from "../../api/stats";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { hasCalls } from "../../firstRun";
import type { FeedListing } from "./feedStore";
import { activeFilters, viewOf, type InboxFilters } from "./filters";
import css from "./Inbox.module.css";
import { newRequestsLabel } from "./InboxHead";

interface EmptyInboxProps {
  listing: FeedListing;
  filters: InboxFilters;
  onClearFilters: () => void;
  onMore: () => void;
  onRetry: () => void;
}

/** Shown instead of an empty list. */
export function EmptyInbox({ listing, filters, onClearFilters, onMore, onRetry }: EmptyInboxProps) {
  const { feed, loading, error, isIndexBehind } = listing;
  if (error) return <ErrorMessage error={error} onRetry={onRetry} />;
  if (feed.ids.length) return null;
  if (loading && !isIndexBehind) return <Loading label="Loading requests" />;
  if (isIndexBehind)
    return (
      <EmptyState title="No results yet">Recent changes are not searchable yet. Searching again…</EmptyState>
    );
  if (feed.next !== null)
    return (
      <EmptyState title="No matches so far">
        None of the requests searched so far is in this list.{" "}
        <Button size="xs" variant="default" mt="xs" onClick={onMore}>
          Search further
        </Button>
      </EmptyState>
    );
  if (activeFilters(filters).length)
    return (
      <EmptyState title="No requests match these filters">
        <Button size="xs" variant="default" mt="xs" onClick={onClearFilters}>
          Clear all filters
        </Button>
      </EmptyState>
    );
  const [title, text] = NOTHING[viewOf(filters)];
  return (
    <EmptyState title={title}>
      {text}
      <ConnectLink />
    </EmptyState>
  );
}

/** The next step where there has been no call at all; only admins make keys for agents. */
function ConnectLink() {
  const stats = useStats();
  if (!isAdmin(useMe().data) || !stats || hasCalls(stats)) return null;
  return (
    <Button component={Link} href="/connect" size="xs" variant="default" mt="xs">
      Connect an agent
    </Button>
  );
}

const NOTHING: Record<ReturnType<typeof viewOf>, [title: string, text: string]> = {
  everyone: ["No open requests", "New requests from your agents appear here."],
  mine: ["Nothing needs your approval", "New requests that you can decide appear here."],
  decided: ["You have not decided anything yet", "Requests that you decide appear here, newest first."],
  all: ["No requests yet", "Requests from your agents appear here."],
};

interface AllDoneProps {
  filters: InboxFilters;
  waiting: number;
  onReveal: () => void;
  onClearFilters: () => void;
}

/** The last open request of the list was decided. It takes the focus, as a card would. */
export function AllDone({ filters, waiting, onReveal, onClearFilters }: AllDoneProps) {
  const place = useRef<HTMLDivElement>(null);
  const pending = usePendingCount();
  useEffect(() => place.current?.focus(), []);
  const isFiltered = activeFilters(filters).length > 0;
  return (
    <div ref={place} className={css.done} tabIndex={-1} data-all-done>
      <EmptyState title={isFiltered ? "No more requests match" : "All done"}>
        {isFiltered &&
          pending > 0 &&
          `${pending.toLocaleString("en")} ${pending === 1 ? "other waits" : "others wait"}. `}
        {waiting > 0 && (
          <Button mt="xs" onClick={onReveal}>
            {newRequestsLabel(waiting)}
          </Button>
        )}
        {isFiltered && (
          <Button size="xs" variant="default" mt="xs" onClick={onClearFilters}>
            Clear all filters
          </Button>
        )}
        {!waiting && !isFiltered && "No request needs your decision."}
      </EmptyState>
    </div>
  );
}
