import { Button, Loader, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { Problem } from "../../components/States";
import { Ago } from "../../components/Time";
import css from "./ThreadList.module.css";
import { useThreads, type ThreadInfo } from "./threads";

const SAYS: Record<string, string> = { waiting: "waits for you", running: "at work", ready: "at work" };

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
        <Ago at={thread.updated_at} />
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
  if (threads.error) return <Problem error={threads.error} again={() => void threads.refetch()} />;
  return (
    <div ref={end}>
      {(threads.isPending || isFetchingNextPage) && <Loader size="sm" m="sm" />}
      {!threads.isPending && !hasNextPage && threads.items.length === 0 && (
        <Text size="sm" p="xs">
          {sought ? "No conversation has these words in its title." : "You have no conversations yet."}
        </Text>
      )}
    </div>
  );
}
