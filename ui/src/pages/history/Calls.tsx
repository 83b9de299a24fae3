import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { lazy, Suspense, useEffect, useRef } from "react";
import { Link } from "wouter";
import type { ApprovalItem } from "../../api/approvals";
import { callApi } from "../../api/client";
import { isAdmin, useMe } from "../../api/currentUser";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { escapeInvisible } from "../../components/escapeInvisible";
import { beginsWithToolName } from "../../components/beginsWithToolName";
import { endOfDay, startOfDay, useAddressFilters } from "../../components/useAddressFilters";
import { live } from "../../live/live";
import css from "./History.module.css";
import { FILTERS, HistoryFilters } from "./HistoryFilters";
import * as messages from "./messages";
import { StatusBadge } from "./StatusBadge";

/** The list does without it. */
const CallDetail = lazy(async () => ({ default: (await import("./CallDetail")).CallDetail }));
const MAX_REFRESHED_PAGES = 4; // pages; further down, the list is not refreshed
const ROW_HEIGHT = 68;

/** The search on the left, the details of a call on the right; on a phone one after the other. */
export function Calls() {
  const [get, set] = useAddressFilters();
  const id = get("id");
  const found = useCalls(get);
  const items = found.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className={css.panes} data-open={id || undefined}>
      <div className={css.found}>
        <HistoryFilters />
        {found.isPending && <Loading label={messages.searching} />}
        {found.error && <ErrorMessage error={found.error} onRetry={() => void found.refetch()} />}
        {found.data && items.length === 0 && <NoCalls isFiltered={FILTERS.some(get)} />}
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
        <Suspense fallback={<Loading label={messages.loadingCall} />}>
          <CallDetail id={id} close={() => set({}, undefined)} />
        </Suspense>
      ) : (
        <div className={css.nothing}>
          <EmptyState title={messages.noCallSelected}>{messages.selectACall}</EmptyState>
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
    since: startOfDay(get("since")),
    until: endOfDay(get("until")),
    limit: 50,
  };
  const found = useInfiniteQuery({
    queryKey: ["approvals", "history", query],
    queryFn: ({ pageParam, signal }) =>
      callApi("get", "/api/approvals", { query: { ...query, cursor: pageParam }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next,
  });
  useRefresh(() => (found.data?.pages.length ?? 0) <= MAX_REFRESHED_PAGES && void found.refetch());
  return found;
}

/** Reloads after changes, at most every two seconds: the search index is behind by less than that. */
function useRefresh(refresh: () => void) {
  const newest = useRef(refresh);
  useEffect(() => {
    newest.current = refresh;
  });
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = live.subscribe((entry) => {
      if (!entry.approval_id) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        newest.current();
      }, 2_000);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
}

function NoCalls({ isFiltered }: { isFiltered: boolean }) {
  const me = useMe().data;
  if (isFiltered)
    return <EmptyState title={messages.noCallsFound}>{messages.tryFewerKeywordsOrFilters}</EmptyState>;
  return (
    <EmptyState
      title={messages.noCallsYet}
      action={
        isAdmin(me) && (
          <Button component={Link} href="/connect">
            {messages.connectAgent}
          </Button>
        )
      }
    >
      {messages.everyCallOfAgentAppears}
    </EmptyState>
  );
}

/** A virtual list; more rows are loaded near the end. */
function CallList({ items, open, more }: { items: ApprovalItem[]; open: string; more?: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 10,
  });
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more && last >= items.length - 10) more();
  }, [more, last, items.length]);
  return (
    <div className={css.list} ref={box} tabIndex={-1}>
      <ol className={css.rows} aria-label={messages.calls} style={{ height: rows.getTotalSize() }}>
        {shown.map(({ index, start, key }) => {
          const item = items[index];
          return (
            item && (
              <li
                key={key}
                ref={rows.measureElement}
                data-index={index}
                style={{ transform: `translateY(${start}px)` }}
              >
                <Row item={item} isOpen={item.id === open} />
              </li>
            )
          );
        })}
      </ol>
    </div>
  );
}

function Row({ item, isOpen }: { item: ApprovalItem; isOpen: boolean }) {
  return (
    <Link
      href={urlOf(item.id)}
      className={css.row}
      aria-current={isOpen ? "true" : undefined}
      data-row={item.id}
    >
      <span className={css.small}>
        <StatusBadge status={item.status} />
        <TimeAgo at={item.created_at} />
      </span>
      <div className={css.sentence} title={item.sentence}>
        {item.sentence}
      </div>
      <span className={css.small}>
        {!beginsWithToolName(item.sentence, item.tool) && <span>{escapeInvisible(item.tool)}</span>}
        {item.agent && <span>{escapeInvisible(item.agent)}</span>}
        {item.requester && <span>{messages.forRequesterPlain(escapeInvisible(item.requester))}</span>}
        {item.decision && (
          <span>
            {escapeInvisible(item.decision.by)}, <TimeAgo at={item.decision.at} />
          </span>
        )}
      </span>
    </Link>
  );
}

/** The same list with this call open. */
function urlOf(id: string): string {
  const params = new URLSearchParams(location.search);
  params.set("id", id);
  return `/history?${params}`;
}
