import { Button, Loader, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { callApi, type Schemas } from "../../api/client";
import { IconPlus, IconSearch } from "../../components/icons";
import { ErrorMessage } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { live } from "../../live/live";
import * as messages from "./messages";
import css from "./ThreadList.module.css";

/** Conversations, newest first; more are loaded while scrolling. */
export function ThreadList({ current }: { current: string | undefined }) {
  const [query, setQuery] = useState("");
  const [search] = useDebouncedValue(query.trim(), 200);
  const threads = useThreads(search);
  return (
    <>
      <div className={css.search}>
        <Button component={Link} href="/chat" variant="default" leftSection={<IconPlus size={16} />}>
          {messages.newChat}
        </Button>
        <TextInput
          type="search"
          aria-label={messages.searchChats}
          placeholder={messages.searchChats}
          leftSection={<IconSearch size={16} />}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
        />
      </div>
      <ul className={css.list}>
        {threads.items.map((thread) => (
          <li key={thread.id}>
            <Row thread={thread} isCurrent={thread.id === current} />
          </li>
        ))}
        <li>
          <ListEnd threads={threads} search={search} />
        </li>
      </ul>
    </>
  );
}

function Row({ thread, isCurrent }: { thread: ThreadInfo; isCurrent: boolean }) {
  return (
    <Link href={`/chat/${thread.id}`} className={css.thread} aria-current={isCurrent ? "page" : undefined}>
      <span className={css.name}>{thread.title || messages.erased}</span>
      <span className={css.about}>
        {messages.STATUS_LABELS[thread.status] ? (
          <span data-status={thread.status}>{messages.STATUS_LABELS[thread.status]}</span>
        ) : (
          <TimeAgo at={thread.updated_at} />
        )}
      </span>
    </Link>
  );
}

function ListEnd({ threads, search }: { threads: ReturnType<typeof useThreads>; search: string }) {
  const end = useRef<HTMLDivElement>(null);
  const { hasNextPage, fetchNextPage, isFetchingNextPage } = threads;
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting && hasNextPage && !isFetchingNextPage) void fetchNextPage();
    });
    if (end.current) observer.observe(end.current);
    return () => observer.disconnect();
  }, [hasNextPage, fetchNextPage, isFetchingNextPage]);
  if (threads.error) return <ErrorMessage error={threads.error} onRetry={() => void threads.refetch()} />;
  return (
    <div ref={end}>
      {(threads.isPending || isFetchingNextPage) && <Loader size="sm" m="sm" />}
      {!threads.isPending && !hasNextPage && threads.items.length === 0 && (
        <Text size="sm" p="xs">
          {search ? messages.noChatFound : messages.noChatsYetWriteMessage}
        </Text>
      )}
    </div>
  );
}

type ThreadInfo = Schemas["ThreadInfo"];

const REFRESH_DELAY = 400; // a working thread changes many times a second
const REFRESH_EVENTS = new Set(["thread_said", "thread_asked", "thread_ended", "thread_erased"]);

/** The user's conversations, newest first. In a search, a page can be empty without being the last. */
function useThreads(query: string) {
  const found = useInfiniteQuery({
    queryKey: ["threads", query],
    queryFn: ({ pageParam, signal }) =>
      callApi("get", "/api/threads", { query: { q: query, cursor: pageParam, limit: 30 }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
  });
  useRefresh();
  const items = unique(found.data?.pages.flatMap((page) => page.items) ?? []);
  const { hasNextPage, isFetching, fetchNextPage } = found;
  const isEmptySoFar = items.length === 0;
  useEffect(() => {
    if (isEmptySoFar && hasNextPage && !isFetching) void fetchNextPage();
  }, [isEmptySoFar, hasNextPage, isFetching, fetchNextPage]);
  return { ...found, items };
}

function useRefresh(): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unsubscribe = live.subscribe(({ kind }) => {
      if (REFRESH_EVENTS.has(kind))
        timer ??= setTimeout(() => {
          timer = undefined;
          void queries.invalidateQueries({ queryKey: ["threads"] });
        }, REFRESH_DELAY);
    });
    return () => {
      unsubscribe();
      clearTimeout(timer);
    };
  }, [queries]);
}

/** A thread that moved up between two pages is on both. */
function unique(items: ThreadInfo[]): ThreadInfo[] {
  return [...new Map(items.map((item) => [item.id, item])).values()];
}
