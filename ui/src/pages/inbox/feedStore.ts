import { useEffect, useMemo, useSyncExternalStore } from "react";
import { readApproval, type ApprovalItem } from "../../api/approvals";
import { callApi } from "../../api/client";
import { live, type LedgerEntry } from "../../live/live";
import {
  addNews,
  addPage,
  applyEvents,
  makeEmptyFeed,
  markLeaving,
  putBack,
  revealNews,
  takeOut,
  updateItem,
  type Feed,
} from "./feed";
import { toQuery, type InboxFilters } from "./filters";

export interface FeedListing {
  feed: Feed;
  loading: boolean;
  error: Error | null;
  /** The search index does not have the latest changes yet: the list is reloaded. */
  isIndexBehind: boolean;
}

const PAGE_SIZE = 100;
const MIN_MINE = 20; // minimum rows of lists that are filtered page by page: "for me", "decided by you"
const MAX_PAGES = 10; // maximum pages per load
const BATCH_TIME = 250; // ms: events within are applied together
const NEWS_INTERVAL = 1_000; // ms between two searches for new items
const POLL_INTERVAL = 5_000; // ms, without live events
const SEARCH_RETRY = 1_500; // ms until an outdated search is repeated
const MAX_PARALLEL = 10; // rows read in parallel
const LEAVE_TIME = 160; // ms in which a decided row fades; InboxRow.module.css has the same

/** A filtered list of approvals: loads pages and applies events. */
export class FeedStore {
  private listing: FeedListing;
  private watchers = new Set<() => void>();
  private abort = new AbortController();
  private events: LedgerEntry[] = [];
  private visible: readonly string[] = [];
  private loadingMore: Promise<void> | null = null;
  private batchTimer: Timer;
  private newsTimer: Timer;
  private retryTimer: Timer;
  private isReadingStale = false;

  constructor(
    private readonly filters: InboxFilters,
    private readonly me: string,
  ) {
    const feed = makeEmptyFeed(filters.status === "pending" ? "time left" : "newest");
    this.listing = { feed, loading: true, error: null, isIndexBehind: false };
  }

  get = (): FeedListing => this.listing;

  subscribe = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  /** Subscribes before the list is loaded, so that no event is missed. */
  start = (): (() => void) => {
    this.abort = new AbortController();
    const leave = live.subscribe((entry) => this.receive(entry));
    const pollTimer = setInterval(() => live.state !== "live" && void this.poll(), POLL_INTERVAL);
    void this.load();
    return () => {
      this.abort.abort();
      leave();
      clearInterval(pollTimer);
      clearTimeout(this.batchTimer);
      clearTimeout(this.newsTimer);
      clearTimeout(this.retryTimer);
      this.batchTimer = this.newsTimer = undefined;
    };
  };

  /** Reloads from the beginning; decided rows are dropped. */
  load = async (): Promise<void> => {
    const { signal } = this.abort;
    const minRows = Math.min(this.listing.feed.ids.length, PAGE_SIZE * MAX_PAGES);
    clearTimeout(this.retryTimer);
    this.set({ loading: true, error: null });
    await this.attempt(signal, async () => {
      const empty = makeEmptyFeed(this.listing.feed.order);
      const found = await this.loadPages(empty, Math.max(minRows, 1), signal);
      this.set({ ...found, loading: false });
      if (found.behind) this.retryTimer = setTimeout(() => void this.load(), SEARCH_RETRY);
    });
  };

  /** Loads the next page, one at a time. */
  more = (): Promise<void> => {
    if (this.listing.error || this.listing.feed.next === null) return Promise.resolve();
    this.loadingMore ??= this.loadNextPage().finally(() => (this.loadingMore = null));
    return this.loadingMore;
  };

  reveal = (): void => this.change(revealNews);

  /** Updates one item. */
  read = (item: ApprovalItem): void => this.change((feed) => updateItem(feed, item, performance.now()));

  /** The user decided these: they leave a list of open requests, and stay in one of decided requests. */
  leave = (ids: readonly string[]): void => {
    if (this.filters.status !== "pending") return;
    this.change((feed) => markLeaving(feed, ids));
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    setTimeout(() => this.change((feed) => takeOut(feed, ids)), isStill ? 0 : LEAVE_TIME);
  };

  /** The user undid a rejection. */
  putBack = (item: ApprovalItem): void => this.change((feed) => putBack(feed, item, performance.now()));

  /** The visible rows: only these are read again after a change that no event contains. */
  setVisible = (ids: readonly string[]): void => {
    this.visible = ids;
    if (this.listing.feed.stale.size) void this.readStale();
  };

  private async loadNextPage(): Promise<void> {
    const { signal } = this.abort;
    await this.attempt(signal, async () => {
      const found = await this.page({ cursor: this.listing.feed.next ?? "" });
      this.change((now) => addPage(now, found.items, found.next, performance.now()));
    });
  }

  private receive(entry: LedgerEntry): void {
    if (entry.kind === "reset") return void this.load();
    this.events.push(entry);
    this.batchTimer ??= setTimeout(() => {
      this.batchTimer = undefined;
      const events = this.events.splice(0);
      this.change((feed) => applyEvents(feed, events));
      void this.readStale();
      this.scheduleNews();
    }, BATCH_TIME);
  }

  private scheduleNews(): void {
    if (!this.listing.feed.heardOf.size) return;
    this.newsTimer ??= setTimeout(() => {
      this.newsTimer = undefined;
      void this.loadNews().then(() => this.scheduleNews());
    }, NEWS_INTERVAL);
  }

  /** New items are among the newest; the server applies the filters. */
  private async loadNews(): Promise<void> {
    const names = [...this.listing.feed.heardOf];
    const { signal } = this.abort;
    await this.attempt(signal, async () => {
      let cursor = "";
      const found: ApprovalItem[] = [];
      for (let turn = 0; turn < MAX_PAGES && turn * PAGE_SIZE < names.length * 2; turn += 1) {
        const page = await this.page({ cursor, status: "" });
        found.push(...page.items);
        if (!page.next) break;
        cursor = page.next;
      }
      this.change((feed) => addNews(feed, names, found, performance.now()));
    });
  }

  /** Without live events: the first page shows new and changed items. */
  private async poll(): Promise<void> {
    const { signal } = this.abort;
    await this.attempt(signal, async () => {
      const { items } = await this.page({});
      const now = performance.now();
      const all = items.map((item) => item.id);
      this.change((feed) =>
        items.reduce((so, item) => updateItem(so, item, now), addNews(feed, all, items, now)),
      );
    });
  }

  private async readStale(): Promise<void> {
    if (this.isReadingStale) return;
    this.isReadingStale = true;
    for (;;) {
      const { stale } = this.listing.feed;
      const next = this.visible.filter((id) => stale.has(id)).slice(0, MAX_PARALLEL);
      if (!next.length || this.abort.signal.aborted) break;
      const read = await Promise.allSettled(next.map((id) => readApproval(id, this.abort.signal)));
      if (read.every(({ status }) => status === "rejected")) break;
      for (const each of read) if (each.status === "fulfilled") this.read(each.value);
    }
    this.isReadingStale = false;
  }

  private async loadPages(feed: Feed, minRows: number, signal: AbortSignal) {
    let cursor = "";
    let behind = false;
    for (let turn = 0; turn < MAX_PAGES; turn += 1) {
      const page = await this.page({ cursor });
      signal.throwIfAborted();
      behind ||= page.behind;
      feed = addPage(feed, page.items, page.next, performance.now());
      const isSifted = this.filters.mine || this.filters.status === "decided";
      const short = feed.ids.length < minRows || (isSifted && feed.ids.length < MIN_MINE);
      if (!page.next || !short) break;
      cursor = page.next;
    }
    return { feed, behind };
  }

  private async page(which: { cursor?: string; status?: "" }) {
    const query = toQuery(this.filters, { ...which, limit: PAGE_SIZE, me: this.me });
    const found = await callApi("get", "/api/approvals", { query, signal: this.abort.signal });
    if (this.filters.status !== "decided") return found;
    return { ...found, items: found.items.filter(({ decision }) => decision?.by === this.me) };
  }

  private async attempt(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      if (this.listing.error) this.set({ error: null });
    } catch (error) {
      if (!signal.aborted) this.set({ error: error as Error, loading: false });
    }
  }

  private change(update: (feed: Feed) => Feed): void {
    const feed = update(this.listing.feed);
    if (feed !== this.listing.feed) this.set({ feed });
  }

  private set(changed: Partial<FeedListing>): void {
    this.listing = { ...this.listing, ...changed };
    for (const watcher of this.watchers) watcher();
  }
}

type Timer = ReturnType<typeof setTimeout> | undefined;

/** The list for these filters; other filters create another list. */
export function useFeed(filters: InboxFilters, me: string): { store: FeedStore; listing: FeedListing } {
  const key = JSON.stringify(filters);
  const store = useMemo(() => new FeedStore(JSON.parse(key) as InboxFilters, me), [key, me]);
  useEffect(() => store.start(), [store]);
  const listing = useSyncExternalStore(store.subscribe, store.get);
  return { store, listing };
}
