import type { ApprovalItem, ApprovalStatus } from "../../api/approvals";
import type { LedgerEntry } from "../../live/live";

/** `read_at` is this browser's clock at the time of reading; `sortKey` is its fixed position in the list. */
export type FeedRow = ApprovalItem & { read_at: number; sortKey: number; news?: true; leaving?: true };
type FeedOrder = "time left" | "newest";

/**
 * The list as displayed: rows never move or disappear by themselves. New rows are held back until they are revealed,
 * rows decided by others stay with their decision, and only what the user decided in this list leaves it.
 */
export interface Feed {
  order: FeedOrder;
  rows: ReadonlyMap<string, FeedRow>;
  ids: readonly string[];
  /** Decided by the user here, and no longer displayed. */
  gone: ReadonlySet<string>;
  /** New rows that are not displayed yet. */
  waiting: readonly FeedRow[];
  /** Proposed since the list was loaded; whether they match the filters is not known yet. */
  heardOf: ReadonlySet<string>;
  /** Rows with a change that the event does not contain. */
  stale: ReadonlySet<string>;
  /** The cursor of the next page; null at the end. */
  next: string | null;
}

export const makeEmptyFeed = (order: FeedOrder): Feed => ({
  order,
  rows: new Map(),
  ids: [],
  gone: new Set(),
  waiting: [],
  heardOf: new Set(),
  stale: new Set(),
  next: null,
});

/** Appends a page and updates known rows. */
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

/** Updates a row that was read again. */
export function updateItem(feed: Feed, item: ApprovalItem, now: number): Feed {
  const stale = without(feed.stale, [item.id]);
  const known = feed.rows.get(item.id);
  if (!known || known.version > item.version) return { ...feed, stale };
  return { ...feed, stale, rows: new Map(feed.rows).set(item.id, rowOf(item, feed.order, now, known)) };
}

/** Holds back the new items that match the filters, and forgets the others. */
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

/** Displays the new rows. */
export function revealNews(feed: Feed): Feed {
  const rows = new Map(feed.rows);
  const fresh = feed.waiting.map((row): FeedRow => ({ ...row, news: true }));
  for (const row of fresh) rows.set(row.id, row);
  return { ...feed, rows, ids: merged(feed.ids, fresh, rows), waiting: [] };
}

/** Marks rows that the user decided: they fade before they are taken out. */
export function markLeaving(feed: Feed, ids: readonly string[]): Feed {
  const rows = new Map(feed.rows);
  for (const id of ids) {
    const row = rows.get(id);
    if (row) rows.set(id, { ...row, leaving: true });
  }
  return { ...feed, rows };
}

/** Removes the rows that are still marked as leaving: an undo may have come first. */
export function takeOut(feed: Feed, ids: readonly string[]): Feed {
  const leaving = ids.filter((id) => feed.rows.get(id)?.leaving);
  if (!leaving.length) return feed;
  const gone = new Set([...feed.gone, ...leaving]);
  return { ...feed, gone, ids: feed.ids.filter((id) => !gone.has(id)) };
}

/** Displays a row again at its place, after an undo. */
export function putBack(feed: Feed, item: ApprovalItem, now: number): Feed {
  const row = { ...rowOf(item, feed.order, now, feed.rows.get(item.id)), leaving: undefined };
  const rows = new Map(feed.rows).set(item.id, row);
  const gone = without(feed.gone, [item.id]);
  const waiting = feed.waiting.filter(({ id }) => id !== item.id);
  const ids = feed.ids.includes(item.id) ? feed.ids : merged(feed.ids, [row], rows);
  return { ...feed, rows, gone, waiting, ids };
}

/** Whether the row is open, and the user may decide it. */
export function isOpen(row: FeedRow | undefined): boolean {
  return row?.status === "pending" && !row.leaving && row.may_decide.length > 0;
}

/** The open request after this one, or else the first one of the list; "" if none is left. */
export function nextOpen(feed: Feed, after: string): string {
  const wanted = (id: string) => id !== after && isOpen(feed.rows.get(id));
  const start = positionAfter(feed, after);
  return feed.ids.slice(start).find(wanted) ?? feed.ids.slice(0, start).find(wanted) ?? "";
}

/** Where the list continues after a row, which may have left it. */
function positionAfter(feed: Feed, id: string): number {
  const index = feed.ids.indexOf(id);
  if (index >= 0) return index + 1;
  const row = feed.rows.get(id);
  if (!row) return 0;
  const next = feed.ids.findIndex((each) => isBefore(row, feed.rows.get(each)));
  return next < 0 ? feed.ids.length : next;
}

/** The request that J or K goes to: rows that are already decided are skipped. */
export function neighbour(feed: Feed, id: string, step: 1 | -1): string | undefined {
  const at = feed.ids.indexOf(id);
  let index = at >= 0 ? at + step : positionAfter(feed, id) - (step > 0 ? 0 : 1);
  if (at < 0 && !feed.rows.has(id)) index = 0;
  const skips = feed.order === "time left";
  for (; index >= 0 && index < feed.ids.length; index += step) {
    const row = feed.rows.get(feed.ids[index] ?? "");
    if (row && (!skips || row.status === "pending")) return row.id;
  }
  return undefined;
}

/** Displayed requests that are open, whoever may decide them. */
export function countOpen(feed: Feed): number {
  let count = 0;
  for (const id of feed.ids) if (feed.rows.get(id)?.status === "pending") count += 1;
  return count;
}

/** Applies a batch of events, with one copy per batch. */
export function applyEvents(feed: Feed, entries: readonly LedgerEntry[]): Feed {
  const about = entries.filter((entry) => entry.approval_id);
  if (!about.length) return feed;
  const now = {
    rows: new Map(feed.rows),
    gone: new Set(feed.gone),
    stale: new Set(feed.stale),
    heardOf: new Set(feed.heardOf),
  };
  const over = new Set<string>();
  for (const entry of about) {
    const row = now.rows.get(entry.approval_id);
    const status = statusOf(entry);
    if (status === "pending" && now.gone.has(entry.approval_id)) {
      // undone in another place: it comes again like a new one
      now.gone.delete(entry.approval_id);
      now.rows.delete(entry.approval_id);
      now.heardOf.add(entry.approval_id);
    } else if (row) {
      now.rows.set(row.id, patched(row, entry, status));
      if (!TELLING.has(entry.kind)) now.stale.add(row.id);
    } else if (status === "pending") now.heardOf.add(entry.approval_id);
    else if (status) over.add(entry.approval_id);
  }
  for (const id of over) now.heardOf.delete(id);
  return { ...feed, ...now, waiting: feed.waiting.filter((row) => !over.has(row.id)) };
}

/** By time left in seconds, then by risk, as the server sorts; or newest first. */
function sortKey(item: Pick<ApprovalItem, "expires_at" | "created_at" | "risk">, order: FeedOrder): number {
  if (order === "newest") return -Date.parse(item.created_at);
  return Math.floor(Date.parse(item.expires_at) / 1_000) * 10 + (RISKS[item.risk] ?? 1);
}

const RISKS: Record<string, number> = { high: 0, medium: 1, low: 2 };

/** Kinds whose event contains everything that a row shows. */
const TELLING = new Set([
  ...["approved", "rejected", "responded", "expired", "cancelled", "lapsed"],
  ...["started", "succeeded", "failed", "lost", "finished_late", "resolved"],
  ...["claimed", "released", "commented", "reminded", "decision_refused"],
  ...["delivered", "delivery_parked", "delivery_again"],
]);
const DECIDING = new Set(["approved", "edited", "rejected", "responded", "expired", "cancelled"]);

function rowOf(item: ApprovalItem, order: FeedOrder, now: number, known?: FeedRow): FeedRow {
  const { news, leaving } = known ?? {};
  return { ...item, read_at: now, sortKey: known?.sortKey ?? sortKey(item, order), news, leaving };
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

/** Requests of one second are in the order of their ids, which is that of their creation. */
function isBefore(row: FeedRow, other: FeedRow | undefined): boolean {
  const sortKey = other?.sortKey ?? 0;
  return row.sortKey < sortKey || (row.sortKey === sortKey && row.id < (other?.id ?? ""));
}

/** Both are sorted, so one pass is enough. */
function merged(
  ids: readonly string[],
  fresh: readonly FeedRow[],
  rows: ReadonlyMap<string, FeedRow>,
): string[] {
  const sorted = [...fresh].sort((one, other) => one.sortKey - other.sortKey);
  const all: string[] = [];
  let next = 0;
  for (const id of ids) {
    for (let row = sorted[next]; row && isBefore(row, rows.get(id)); row = sorted[next]) {
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
