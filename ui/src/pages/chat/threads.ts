import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { call, type Shapes } from "../../api/client";
import { live } from "../../live/live";

export type ThreadInfo = Shapes["ThreadInfo"];

const SOON = 400; // a thread at work changes many times a second
const MOVES = new Set(["thread_said", "thread_asked", "thread_ended", "thread_erased"]);

/** One's own conversations, the newest first, as it is now. Looked for by words, a page may be empty and not the last. */
export function useThreads(words: string) {
  const found = useInfiniteQuery({
    queryKey: ["threads", words],
    queryFn: ({ pageParam, signal }) =>
      call("get", "/api/threads", { query: { q: words, cursor: pageParam, limit: 30 }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
  useFresh();
  const items = unique(found.data?.pages.flatMap((page) => page.items) ?? []);
  const { hasNextPage, isFetching, fetchNextPage } = found;
  const isEmptySoFar = items.length === 0;
  useEffect(() => {
    if (isEmptySoFar && hasNextPage && !isFetching) void fetchNextPage();
  }, [isEmptySoFar, hasNextPage, isFetching, fetchNextPage]);
  return { ...found, items };
}

function useFresh(): void {
  const queries = useQueryClient();
  useEffect(() => {
    let waiting: ReturnType<typeof setTimeout> | undefined;
    const leave = live.subscribe(({ kind }) => {
      if (MOVES.has(kind))
        waiting ??= setTimeout(() => {
          waiting = undefined;
          void queries.invalidateQueries({ queryKey: ["threads"] });
        }, SOON);
    });
    return () => {
      leave();
      clearTimeout(waiting);
    };
  }, [queries]);
}

/** One that moved up between two pages is on both. */
function unique(items: ThreadInfo[]): ThreadInfo[] {
  return [...new Map(items.map((item) => [item.id, item])).values()];
}
