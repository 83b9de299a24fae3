import { Button, Loader, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { callApi, type Schemas } from "../../api/client";
import { ErrorMessage } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { live } from "../../live/live";
import css from "./ThreadList.module.css";

const SAYS: Record<string, string> = { waiting: "waiting for you", running: "working", ready: "working" };

/** Conversations, the newest first; more of them come as one scrolls down. */
export function ThreadList({ current }: { current: string | undefined }) {
  const [words, setWords] = useState("");
  const [sought] = useDebouncedValue(words.trim(), 200);
  const threads = useThreads(sought);
  return (
    <>
      <div className={css.search}>
        <Button component={Link} href="/chat" variant="light" mih={44}>
          New conversation
        </Button>
        <TextInput
          type="search"
          size="md"
          aria-label="Search conversations"
          placeholder="Search"
          value={words}
          onChange={(event) => setWords(event.currentTarget.value)}
        />
      </div>
      <ul className={css.list}>
        {threads.items.map((thread) => (
          <li key={thread.id}>
            <Row thread={thread} isCurrent={thread.id === current} />
          </li>
        ))}
        <li>
          <End threads={threads} sought={sought} />
        </li>
      </ul>
    </>
  );
}

function Row({ thread, isCurrent }: { thread: ThreadInfo; isCurrent: boolean }) {
  return (
    <Link href={`/chat/${thread.id}`} className={css.thread} aria-current={isCurrent ? "page" : undefined}>
      <span className={css.name}>{thread.title || "Erased"}</span>
      <span className={css.about}>
        <TimeAgo at={thread.updated_at} />
        {SAYS[thread.status] && <span>· {SAYS[thread.status]}</span>}
      </span>
    </Link>
  );
}

function End({ threads, sought }: { threads: ReturnType<typeof useThreads>; sought: string }) {
  const end = useRef<HTMLDivElement>(null);
  const { hasNextPage, fetchNextPage, isFetchingNextPage } = threads;
  useEffect(() => {
    const seen = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting && hasNextPage && !isFetchingNextPage) void fetchNextPage();
    });
    if (end.current) seen.observe(end.current);
    return () => seen.disconnect();
  }, [hasNextPage, fetchNextPage, isFetchingNextPage]);
  if (threads.error) return <ErrorMessage error={threads.error} again={() => void threads.refetch()} />;
  return (
    <div ref={end}>
      {(threads.isPending || isFetchingNextPage) && <Loader size="sm" m="sm" />}
      {!threads.isPending && !hasNextPage && threads.items.length === 0 && (
        <Text size="sm" p="xs">
          {sought ? "No conversation title matches." : "You have no conversations yet."}
        </Text>
      )}
    </div>
  );
}

type ThreadInfo = Schemas["ThreadInfo"];

const SOON = 400; // a thread at work changes many times a second
const MOVES = new Set(["thread_said", "thread_asked", "thread_ended", "thread_erased"]);

/** One's own conversations, the newest first, as it is now. Looked for by words, a page may be empty and not the last. */
function useThreads(words: string) {
  const found = useInfiniteQuery({
    queryKey: ["threads", words],
    queryFn: ({ pageParam, signal }) =>
      callApi("get", "/api/threads", { query: { q: words, cursor: pageParam, limit: 30 }, signal }),
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
