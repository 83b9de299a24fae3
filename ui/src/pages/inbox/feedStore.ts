import { useEffect, useMemo, useSyncExternalStore } from "react";
import { readApproval, type ApprovalItem } from "../../api/approvals";
import { callApi } from "../../api/client";
import { live, type LedgerEntry } from "../../live/live";
import { addNews, addPage, applyEvents, makeEmptyFeed, revealNews, updateItem, type Feed } from "./feed";
import { toQuery, type InboxFilters } from "./filters";

export interface FeedListing {
  feed: Feed;
  loading: boolean;
  error: Error | null;
  /** What changed a moment ago cannot be searched yet: it is looked for again. */
  behind: boolean;
}

const PAGE = 100;
const ENOUGH = 20; // rows of what waits for oneself, which the server finds page by page
const TURNS = 10; // pages at one go, at most
const LOT = 250; // ms: what happens within is shown together
const NEWS = 1_000; // ms between two looks for what is new
const AGAIN = 5_000; // ms, where live events do not come through
const SOON = 1_500; // ms until what could not be searched yet is looked for again
const AT_ONCE = 10; // rows read again together

/** One list of approvals with its filters: pages as one scrolls, and what happens meanwhile. */
export class FeedStore {
  private listing: FeedListing;
  private watchers = new Set<() => void>();
  private ending = new AbortController();
  private heard: LedgerEntry[] = [];
  private visible: readonly string[] = [];
  private turning = false;
  private lot: Timer;
  private news: Timer;
  private later: Timer;
  private reading = false;

  constructor(private readonly filters: InboxFilters) {
    const feed = makeEmptyFeed(filters.status === "all" ? "newest" : "time left");
    this.listing = { feed, loading: true, error: null, behind: false };
  }

  get = (): FeedListing => this.listing;

  subscribe = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  /** Events are collected before the list is read, so nothing falls between. */
  start = (): (() => void) => {
    this.ending = new AbortController();
    const leave = live.subscribe((entry) => this.hear(entry));
    const again = setInterval(() => live.state !== "live" && void this.lookAgain(), AGAIN);
    void this.load();
    return () => {
      this.ending.abort();
      leave();
      clearInterval(again);
      clearTimeout(this.lot);
      clearTimeout(this.news);
      clearTimeout(this.later);
      this.lot = this.news = undefined;
    };
  };

  /** From the beginning; rows that were decided meanwhile are gone then. */
  load = async (): Promise<void> => {
    const { signal } = this.ending;
    const wanted = Math.min(this.listing.feed.ids.length, PAGE * TURNS);
    clearTimeout(this.later);
    this.set({ loading: true, error: null });
    await this.tryTo(signal, async () => {
      const empty = makeEmptyFeed(this.listing.feed.order);
      const found = await this.turned(empty, Math.max(wanted, 1), signal);
      this.set({ ...found, loading: false });
      if (found.behind) this.later = setTimeout(() => void this.load(), SOON);
    });
  };

  /** The next page, once at a time. */
  more = async (): Promise<void> => {
    const { feed, error } = this.listing;
    if (this.turning || error || feed.next === null) return;
    this.turning = true;
    const { signal } = this.ending;
    await this.tryTo(signal, async () => {
      const found = await this.page({ cursor: feed.next ?? "" });
      this.change((now) => addPage(now, found.items, found.next, performance.now()));
    });
    this.turning = false;
  };

  reveal = (): void => this.change(revealNews);

  /** Somebody decided here, or read one again. */
  read = (item: ApprovalItem): void => this.change((feed) => updateItem(feed, item, performance.now()));

  /** Which rows are on the screen: only those are read again when something changed that no event tells. */
  look = (ids: readonly string[]): void => {
    this.visible = ids;
    if (this.listing.feed.stale.size) void this.readStale();
  };

  private hear(entry: LedgerEntry): void {
    if (entry.kind === "reset") return void this.load();
    this.heard.push(entry);
    this.lot ??= setTimeout(() => {
      this.lot = undefined;
      const heard = this.heard.splice(0);
      this.change((feed) => applyEvents(feed, heard));
      void this.readStale();
      this.lookSoon();
    }, LOT);
  }

  private lookSoon(): void {
    if (!this.listing.feed.heardOf.size) return;
    this.news ??= setTimeout(() => {
      this.news = undefined;
      void this.lookForNews().then(() => this.lookSoon());
    }, NEWS);
  }

  /** What was heard of is among the newest; the filters are the server's work. */
  private async lookForNews(): Promise<void> {
    const names = [...this.listing.feed.heardOf];
    const { signal } = this.ending;
    await this.tryTo(signal, async () => {
      let cursor = "";
      const found: ApprovalItem[] = [];
      for (let turn = 0; turn < TURNS && turn * PAGE < names.length * 2; turn += 1) {
        const page = await this.page({ cursor, status: "" });
        found.push(...page.items);
        if (!page.next) break;
        cursor = page.next;
      }
      this.change((feed) => addNews(feed, names, found, performance.now()));
    });
  }

  /** Without live events: the first page says what is new and what changed. */
  private async lookAgain(): Promise<void> {
    const { signal } = this.ending;
    await this.tryTo(signal, async () => {
      const { items } = await this.page({});
      const now = performance.now();
      const all = items.map((item) => item.id);
      this.change((feed) =>
        items.reduce((so, item) => updateItem(so, item, now), addNews(feed, all, items, now)),
      );
    });
  }

  private async readStale(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    for (;;) {
      const { stale } = this.listing.feed;
      const next = this.visible.filter((id) => stale.has(id)).slice(0, AT_ONCE);
      if (!next.length || this.ending.signal.aborted) break;
      const read = await Promise.allSettled(next.map((id) => readApproval(id, this.ending.signal)));
      if (read.every(({ status }) => status === "rejected")) break;
      for (const each of read) if (each.status === "fulfilled") this.read(each.value);
    }
    this.reading = false;
  }

  private async turned(feed: Feed, wanted: number, signal: AbortSignal) {
    let cursor = "";
    let behind = false;
    for (let turn = 0; turn < TURNS; turn += 1) {
      const page = await this.page({ cursor });
      signal.throwIfAborted();
      behind ||= page.behind;
      feed = addPage(feed, page.items, page.next, performance.now());
      const short = feed.ids.length < wanted || (this.filters.mine && feed.ids.length < ENOUGH);
      if (!page.next || !short) break;
      cursor = page.next;
    }
    return { feed, behind };
  }

  private page(which: { cursor?: string; status?: "" }) {
    const query = toQuery(this.filters, { ...which, limit: PAGE });
    return callApi("get", "/api/approvals", { query, signal: this.ending.signal });
  }

  private async tryTo(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      if (this.listing.error) this.set({ error: null });
    } catch (error) {
      if (!signal.aborted) this.set({ error: error as Error, loading: false });
    }
  }

  private change(how: (feed: Feed) => Feed): void {
    const feed = how(this.listing.feed);
    if (feed !== this.listing.feed) this.set({ feed });
  }

  private set(changed: Partial<FeedListing>): void {
    this.listing = { ...this.listing, ...changed };
    for (const watcher of this.watchers) watcher();
  }
}

type Timer = ReturnType<typeof setTimeout> | undefined;

/** The list for these filters; other filters make another list. */
export function useFeed(filters: InboxFilters): { store: FeedStore; listing: FeedListing } {
  const key = JSON.stringify(filters);
  const store = useMemo(() => new FeedStore(JSON.parse(key) as InboxFilters), [key]);
  useEffect(() => store.start(), [store]);
  const listing = useSyncExternalStore(store.subscribe, store.get);
  return { store, listing };
}
