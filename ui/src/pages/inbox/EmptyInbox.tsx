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
import * as messages from "./messages";

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
  if (loading && !isIndexBehind) return <Loading label={messages.loadingRequests} />;
  if (isIndexBehind) return <EmptyState title={messages.noResultsYet}>{messages.searchIsBehind}</EmptyState>;
  if (feed.next !== null)
    return (
      <EmptyState title={messages.noMatchesSoFar}>
        {messages.noneFoundSoFar}{" "}
        <Button size="xs" variant="default" mt="xs" onClick={onMore}>
          {messages.searchFurther}
        </Button>
      </EmptyState>
    );
  if (activeFilters(filters).length)
    return (
      <EmptyState title={messages.noRequestsMatch}>
        <Button size="xs" variant="default" mt="xs" onClick={onClearFilters}>
          {messages.clearAllFilters}
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
      {messages.connectAgent}
    </Button>
  );
}

const NOTHING: Record<ReturnType<typeof viewOf>, [title: string, text: string]> = {
  everyone: [messages.noOpenRequests, messages.openRequestsAppearHere],
  mine: [messages.nothingNeedsYourApproval, messages.requestsForYouAppearHere],
  decided: [messages.nothingDecidedYet, messages.decidedRequestsAppearHere],
  all: [messages.noRequestsYet, messages.requestsAppearHere],
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
      <EmptyState title={isFiltered ? messages.noMoreRequestsMatch : messages.allDone}>
        {isFiltered && pending > 0 && messages.othersWait(pending)}
        {waiting > 0 && (
          <Button mt="xs" onClick={onReveal}>
            {newRequestsLabel(waiting)}
          </Button>
        )}
        {isFiltered && (
          <Button size="xs" variant="default" mt="xs" onClick={onClearFilters}>
            {messages.clearAllFilters}
          </Button>
        )}
        {!waiting && !isFiltered && messages.noRequestNeedsYourDecision}
      </EmptyState>
    </div>
  );
}
