import { describe, expect, it } from "vitest";
import type { ApprovalItem } from "../../api/approvals";
import type { LedgerEntry } from "../../live/live";
import {
  addNews,
  addPage,
  applyEvents,
  countOpen,
  makeEmptyFeed,
  markLeaving,
  neighbour,
  nextOpen,
  putBack,
  revealNews,
  takeOut,
  updateItem,
  type Feed,
} from "./feed";

const START = Date.parse("2026-11-15T10:00:00Z");

function item(id: string, seconds: number, more: Partial<ApprovalItem> = {}): ApprovalItem {
  const expires_at = new Date(START + seconds * 1_000).toISOString();
  const created_at = new Date(START).toISOString();
  const rest = {
    status: "pending",
    risk: "medium",
    version: 1,
    may_decide: ["approve"],
    seconds_left: seconds,
  };
  return { id, expires_at, created_at, ...rest, ...more } as ApprovalItem;
}

function entry(kind: string, approval_id: string, status?: string, actor = "bob"): LedgerEntry {
  const at = "2026-11-15T10:00:09Z";
  return {
    kind,
    approval_id,
    actor,
    at,
    data: status ? { status } : {},
    seq: 1,
    content: null,
    digest: null,
  };
}

const listOf = (...items: ApprovalItem[]): Feed => addPage(makeEmptyFeed("time left"), items, null, 0);

describe("pages", () => {
  it("are sorted by time left, and by risk within one second", () => {
    const feed = listOf(item("b", 20), item("a", 10), item("c", 10.5, { risk: "high" }));
    expect(feed.ids).toEqual(["c", "a", "b"]);
  });

  it("are appended; a repeated item is kept once, up to date", () => {
    const first = addPage(makeEmptyFeed("time left"), [item("a", 10), item("b", 20)], "more", 0);
    const both = addPage(first, [item("b", 20, { sentence: "now" }), item("c", 30)], null, 5);
    expect([both.ids, both.next, both.rows.get("b")?.sentence]).toEqual([["a", "b", "c"], null, "now"]);
  });

  it("are sorted newest first when all statuses are shown", () => {
    const later = new Date(START + 5_000).toISOString();
    const feed = addPage(
      makeEmptyFeed("newest"),
      [item("a", 1), item("b", 2, { created_at: later })],
      null,
      0,
    );
    expect(feed.ids).toEqual(["b", "a"]);
  });
});

describe("new rows", () => {
  const before = applyEvents(listOf(item("a", 10), item("z", 90)), [
    entry("proposed", "n", "pending"),
    entry("proposed", "other", "pending"),
  ]);
  const waiting = addNews(before, before.heardOf, [item("n", 50), item("unasked", 1)], 0);

  it("are held back if they match the filters, and move no row", () => {
    expect([...before.heardOf]).toEqual(["n", "other"]);
    expect(waiting.waiting.map((row) => row.id)).toEqual(["n"]);
    expect([waiting.ids, waiting.heardOf.size]).toEqual([["a", "z"], 0]);
  });

  it("are inserted in order when they are revealed", () => {
    const shown = revealNews(waiting);
    expect([shown.ids, shown.waiting, shown.rows.get("n")?.news]).toEqual([["a", "n", "z"], [], true]);
  });

  it("are dropped if they are decided before", () => {
    expect(applyEvents(waiting, [entry("approved", "n", "approved")]).waiting).toEqual([]);
    const both = [entry("proposed", "m", "pending"), entry("cancelled", "m", "cancelled")];
    expect(applyEvents(before, both).heardOf.has("m")).toBe(false);
  });

  it("are listed once, also when a page includes them", () => {
    expect(addPage(waiting, [item("n", 50)], null, 0).waiting).toEqual([]);
  });
});

describe("an event for a row", () => {
  it("decided elsewhere keeps the row, with who decided and when", () => {
    const feed = applyEvents(listOf(item("a", 10), item("b", 20)), [
      entry("rejected", "a", "rejected", "eve"),
    ]);
    expect(feed.ids).toEqual(["a", "b"]);
    const row = feed.rows.get("a");
    expect([row?.status, row?.decision?.by, row?.decision?.at]).toEqual([
      "rejected",
      "eve",
      "2026-11-15T10:00:09Z",
    ]);
    expect([row?.may_decide, feed.stale.size]).toEqual([[], 0]);
  });

  it("shows claims and releases at once, and marks votes and edits as stale", () => {
    const feed = applyEvents(listOf(item("a", 10)), [entry("claimed", "a")]);
    expect(feed.rows.get("a")?.claimed_by).toBe("bob");
    expect(applyEvents(feed, [entry("released", "a")]).rows.get("a")?.claimed_by).toBe("");
    expect([...applyEvents(feed, [entry("voted", "a", "pending")]).stale]).toEqual(["a"]);
  });

  it("undone makes the row pending again", () => {
    const rejected = applyEvents(listOf(item("a", 10)), [entry("rejected", "a", "rejected")]);
    const undone = applyEvents(rejected, [entry("undone", "a", "pending")]);
    expect([undone.rows.get("a")?.status, undone.rows.get("a")?.decision]).toEqual(["pending", null]);
    expect(undone.stale.has("a")).toBe(true);
  });

  it("keeps its position when read again, and never gets an older version", () => {
    const feed = listOf(item("a", 10, { version: 3 }), item("b", 20));
    const edited = updateItem(feed, item("a", 10, { version: 4, risk: "high", sentence: "new" }), 7);
    expect([edited.ids, edited.rows.get("a")?.sentence]).toEqual([["a", "b"], "new"]);
    expect(
      updateItem(edited, item("a", 10, { version: 2, sentence: "old" }), 8).rows.get("a")?.sentence,
    ).toBe("new");
  });

  it("without an approval changes nothing", () => {
    const feed = listOf(item("a", 10));
    expect(applyEvents(feed, [entry("policy_changed", "")])).toBe(feed);
  });
});

describe("the user's own decisions", () => {
  const all = () => listOf(item("a", 10), item("b", 20), item("c", 30));
  const decided = (feed: Feed, id: string) =>
    takeOut(markLeaving(updateItem(feed, item(id, 10, { status: "approved", version: 2 }), 1), [id]), [id]);

  it("leave the list, and an undo puts them back to their place", () => {
    const left = decided(all(), "b");
    expect([left.ids, countOpen(left)]).toEqual([["a", "c"], 2]);
    const back = putBack(left, item("b", 20, { version: 3 }), 2);
    expect([back.ids, back.rows.get("b")?.leaving, back.gone.size]).toEqual([["a", "b", "c"], undefined, 0]);
  });

  it("stay if the undo was faster than their leaving", () => {
    const undone = putBack(markLeaving(all(), ["b"]), item("b", 20, { version: 3 }), 2);
    expect(takeOut(undone, ["b"]).ids).toEqual(["a", "b", "c"]);
  });

  it("keep their place among requests of the same second", () => {
    const same = listOf(item("a", 10), item("b", 10), item("c", 10));
    expect(putBack(decided(same, "a"), item("a", 10, { version: 3 }), 2).ids).toEqual(["a", "b", "c"]);
    expect(nextOpen(decided(same, "b"), "b")).toBe("c");
  });

  it("come again like new ones when they are undone elsewhere", () => {
    const undone = applyEvents(decided(all(), "b"), [entry("undone", "b", "pending")]);
    expect([undone.heardOf.has("b"), undone.rows.has("b"), undone.gone.size]).toEqual([true, false, 0]);
  });

  it("are not brought back by a page from before", () => {
    expect(addPage(decided(all(), "b"), [item("b", 20), item("d", 40)], null, 3).ids).toEqual([
      "a",
      "c",
      "d",
    ]);
  });
});

describe("moving", () => {
  const over: Partial<ApprovalItem> = { status: "rejected", may_decide: [] };
  const feed = listOf(item("a", 10), item("b", 20, over), item("c", 30, { may_decide: [] }), item("d", 40));

  it("skips rows that are decided", () => {
    expect([neighbour(feed, "a", 1), neighbour(feed, "c", -1), neighbour(feed, "d", 1)]).toEqual([
      "c",
      "a",
      undefined,
    ]);
    expect([neighbour(feed, "", 1), neighbour(feed, "b", 1), neighbour(feed, "unknown", 1)]).toEqual([
      "a",
      "c",
      "a",
    ]);
  });

  it("after a decision goes to what the user may decide, first after it, then before it", () => {
    expect([nextOpen(feed, "a"), nextOpen(feed, "d"), nextOpen(feed, "")]).toEqual(["d", "a", "a"]);
    expect(nextOpen(listOf(item("a", 10)), "a")).toBe("");
  });

  it("reaches every row of a list of decided requests", () => {
    const newest = addPage(makeEmptyFeed("newest"), [item("a", 1, over), item("b", 2, over)], null, 0);
    expect(neighbour(newest, newest.ids[0] ?? "", 1)).toBe(newest.ids[1]);
  });
});
