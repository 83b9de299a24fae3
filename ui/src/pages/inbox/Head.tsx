import { Button, Text, Title } from "@mantine/core";
import { Empty, Loading, Problem } from "../../components/States";
import { inUse, type Filters } from "./filters";
import css from "./Inbox.module.css";
import type { Listing } from "./store";

/** The page's name and how much there is, as far as it is known. */
export function Head({ listing: { feed, loading }, onReveal }: { listing: Listing; onReveal: () => void }) {
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
      {count.toLocaleString()} new
    </button>
  );
}

interface SelectedProps {
  count: number;
  onCompare: () => void;
  onClear: () => void;
}

/** How many are selected, and the way on. */
export function Selected({ count, onCompare, onClear }: SelectedProps) {
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
  listing: Listing;
  filters: Filters;
  onAll: () => void;
  onMore: () => void;
  onAgain: () => void;
}

/** What stands where no rows are. */
export function Instead({
  listing: { feed, loading, error, behind },
  filters,
  onAll,
  onMore,
  onAgain,
}: InsteadProps) {
  if (error) return <Problem error={error} again={onAgain} />;
  if (feed.ids.length) return null;
  if (loading && !behind) return <Loading what="Loading the requests" />;
  if (behind)
    return (
      <Empty title="Nothing found yet">
        What changed a moment ago cannot be searched yet. It is looked for again.
      </Empty>
    );
  if (feed.next !== null)
    return (
      <Empty title="Nothing yet">
        None of the requests that were looked through waits for you.{" "}
        <Button size="xs" variant="default" mt="xs" onClick={onMore}>
          Look further
        </Button>
      </Empty>
    );
  if (inUse(filters).length)
    return (
      <Empty title="Nothing fits these filters">
        <Button size="xs" variant="default" mt="xs" onClick={onAll}>
          Take all filters away
        </Button>
      </Empty>
    );
  if (filters.status === "all")
    return <Empty title="Nobody asked yet">What agents ask people for stands here, newest first.</Empty>;
  return (
    <Empty title="Nothing waits">
      New requests appear here by themselves. What was decided is in the history.
    </Empty>
  );
}
