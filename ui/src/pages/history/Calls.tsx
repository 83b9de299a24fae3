import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { call } from "../../api/client";
import { live } from "../../live/live";
import { Empty, Loading, Problem } from "../../components/States";
import { dayBegins, dayEnds, useAddressed } from "./addressed";
import { CallList } from "./CallList";
import { Detail } from "./Detail";
import { Filters } from "./Filters";
import css from "./History.module.css";

const FEW = 4; // pages: whoever has scrolled further reads, and is not interrupted

/** Search on the left, the story of one call on the right; on a phone one after the other. */
export function Calls() {
  const [get, set] = useAddressed();
  const id = get("id");
  const found = useCalls(get);
  const items = found.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className={css.panes} data-open={id || undefined}>
      <div className={css.found}>
        <Filters />
        {found.isPending && <Loading what="Searching" />}
        {found.error && <Problem error={found.error} again={() => void found.refetch()} />}
        {found.data && items.length === 0 && (
          <Empty title="Nothing found">No call fits. Try fewer words or filters.</Empty>
        )}
        {items.length > 0 && (
          <CallList
            items={items}
            open={id}
            more={
              found.hasNextPage && !found.isFetchingNextPage ? () => void found.fetchNextPage() : undefined
            }
          />
        )}
      </div>
      {id ? (
        <Detail id={id} close={() => set({}, undefined)} />
      ) : (
        <div className={css.nothing}>
          <Empty title="Choose a call">
            Its story stands here: who asked, who decided, and what came of it.
          </Empty>
        </div>
      )}
    </div>
  );
}

function useCalls(get: (name: string) => string) {
  const query = {
    q: get("q"),
    status: get("status"),
    tool: get("tool"),
    agent: get("agent"),
    user: get("user"),
    thread_id: get("thread_id"),
    since: dayBegins(get("since")),
    until: dayEnds(get("until")),
    limit: 50,
  };
  const found = useInfiniteQuery({
    queryKey: ["approvals", "history", query],
    queryFn: ({ pageParam, signal }) =>
      call("get", "/api/approvals", { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });
  useFresh(() => (found.data?.pages.length ?? 0) <= FEW && void found.refetch());
  return found;
}

/** Looks again when something happened, every two seconds at most: searches are behind by less than that. */
function useFresh(look: () => void) {
  const newest = useRef(look);
  useEffect(() => {
    newest.current = look;
  });
  useEffect(() => {
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const stop = live.subscribe((entry) => {
      if (!entry.approval_id) return;
      waiting ??= setTimeout(() => {
        waiting = undefined;
        newest.current();
      }, 2_000);
    });
    return () => {
      stop();
      clearTimeout(waiting);
    };
  }, []);
}
