import type { ApprovalItem, ApprovalStatus } from "../../api/approvals";
import type { LedgerEntry } from "../../live/live";

/** `read_at` is this browser's clock when it was read; `place` is where it stands, whatever becomes of it. */
export type FeedRow = ApprovalItem & { read_at: number; place: number; news?: true };
type FeedOrder = "time left" | "newest";

/**
 * The list as a person sees it: rows never move and never go away by themselves. What is new waits until it is wanted,
 * what somebody else decided stays and says so.
 */
export interface Feed {
  order: FeedOrder;
  rows: ReadonlyMap<string, FeedRow>;
  ids: readonly string[];
  /** New, and not shown yet. */
  waiting: readonly FeedRow[];
  /** Proposed since the list was read; whether the filters let them through is not known yet. */
  heardOf: ReadonlySet<string>;
  /** Changed in a way that the event does not tell. */
  stale: ReadonlySet<string>;
  /** The cursor of what follows; null when that is all. */
  next: string | null;
}

export const makeEmptyFeed = (order: FeedOrder): Feed => ({
  order,
  rows: new Map(),
  ids: [],
  waiting: [],
  heardOf: new Set(),
  stale: new Set(),
  next: null,
});

/** A page behind those that are there; what is known already is brought up to date. */
export function addPage(feed: Feed, items: readonly ApprovalItem[], next: string | null, now: number): Feed {
  const rows = new Map(feed.rows);
  const fresh: FeedRow[] = [];
  for (const item of items) {
    const known = rows.get(item.id);
    const row = rowOf(item, feed.order, now, known);
    rows.set(item.id, row);
    if (!known) fresh.push(row);
  }
  const waiting = feed.waiting.filter((row) => !rows.has(row.id));
  return { ...feed, rows, ids: merged(feed.ids, fresh, rows), waiting, next };
}

/** One that was read again. */
export function updateItem(feed: Feed, item: ApprovalItem, now: number): Feed {
  const stale = without(feed.stale, [item.id]);
  const known = feed.rows.get(item.id);
  if (!known || known.version > item.version) return { ...feed, stale };
  return { ...feed, stale, rows: new Map(feed.rows).set(item.id, rowOf(item, feed.order, now, known)) };
}

/** Those of what was heard of that the filters let through; the rest is none of this list's. */
export function addNews(
  feed: Feed,
  asked: Iterable<string>,
  found: readonly ApprovalItem[],
  now: number,
): Feed {
  const names = new Set(asked);
  const fresh = found
    .filter((item) => names.has(item.id) && !feed.rows.has(item.id) && item.status === "pending")
    .map((item) => rowOf(item, feed.order, now));
  const kept = feed.waiting.filter((row) => !names.has(row.id));
  return { ...feed, heardOf: without(feed.heardOf, names), waiting: [...kept, ...fresh] };
}

/** Shows what waited; only now do rows make room. */
export function revealNews(feed: Feed): Feed {
  const rows = new Map(feed.rows);
  const fresh = feed.waiting.map((row): FeedRow => ({ ...row, news: true }));
  for (const row of fresh) rows.set(row.id, row);
  return { ...feed, rows, ids: merged(feed.ids, fresh, rows), waiting: [] };
}

/** What happened meanwhile, many events at a time: copying is for each lot, not for each event. */
export function applyEvents(feed: Feed, entries: readonly LedgerEntry[]): Feed {
  const about = entries.filter((entry) => entry.approval_id);
  if (!about.length) return feed;
  const now = { rows: new Map(feed.rows), stale: new Set(feed.stale), heardOf: new Set(feed.heardOf) };
  const over = new Set<string>();
  for (const entry of about) {
    const row = now.rows.get(entry.approval_id);
    const status = statusOf(entry);
    if (row) {
      now.rows.set(row.id, patched(row, entry, status));
      if (!TELLING.has(entry.kind)) now.stale.add(row.id);
    } else if (status === "pending") now.heardOf.add(entry.approval_id);
    else if (status) over.add(entry.approval_id);
  }
  for (const id of over) now.heardOf.delete(id);
  return { ...feed, ...now, waiting: feed.waiting.filter((row) => !over.has(row.id)) };
}

/** By time left to the second, then by risk, as the pages come; or the newest first. */
function sortKey(item: Pick<ApprovalItem, "expires_at" | "created_at" | "risk">, order: FeedOrder): number {
  if (order === "newest") return -Date.parse(item.created_at);
  return Math.floor(Date.parse(item.expires_at) / 1_000) * 10 + (RISKS[item.risk] ?? 1);
}

const RISKS: Record<string, number> = { high: 0, medium: 1, low: 2 };

/** Kinds whose event says all that a row shows of them. */
const TELLING = new Set([
  ...["approved", "rejected", "responded", "expired", "cancelled", "lapsed"],
  ...["started", "succeeded", "failed", "lost", "finished_late", "resolved"],
  ...["claimed", "released", "commented", "reminded", "decision_refused"],
  ...["delivered", "delivery_parked", "delivery_again"],
]);
const DECIDING = new Set(["approved", "edited", "rejected", "responded", "expired", "cancelled"]);

function rowOf(item: ApprovalItem, order: FeedOrder, now: number, known?: FeedRow): FeedRow {
  return { ...item, read_at: now, place: known?.place ?? sortKey(item, order), news: known?.news };
}

function patched(row: FeedRow, entry: LedgerEntry, status: ApprovalStatus | undefined): FeedRow {
  if (entry.kind === "claimed") return { ...row, claimed_by: entry.actor };
  if (entry.kind === "released") return { ...row, claimed_by: "" };
  if (!status || status === row.status) return row;
  const decision = DECIDING.has(entry.kind)
    ? { kind: entry.kind, by: entry.actor, at: entry.at, via: "", reason: "", comment: "" }
    : row.decision;
  if (status === "pending") return { ...row, status, decision: null };
  return { ...row, status, decision, seconds_left: null, may_decide: [] };
}

function statusOf(entry: LedgerEntry): ApprovalStatus | undefined {
  return typeof entry.data.status === "string" ? (entry.data.status as ApprovalStatus) : undefined;
}

/** Both are in order, so one walk is enough. */
function merged(
  ids: readonly string[],
  fresh: readonly FeedRow[],
  rows: ReadonlyMap<string, FeedRow>,
): string[] {
  const sorted = [...fresh].sort((one, other) => one.place - other.place);
  const all: string[] = [];
  let next = 0;
  for (const id of ids) {
    const place = rows.get(id)?.place ?? 0;
    for (let row = sorted[next]; row && row.place < place; row = sorted[next]) {
      all.push(row.id);
      next += 1;
    }
    all.push(id);
  }
  return [...all, ...sorted.slice(next).map((row) => row.id)];
}

function without<T>(set: ReadonlySet<T>, gone: Iterable<T>): ReadonlySet<T> {
  const left = new Set(set);
  for (const each of gone) left.delete(each);
  return left;
}
