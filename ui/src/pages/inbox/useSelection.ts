import { useCallback, useMemo, useRef, useState } from "react";
import type { Feed, FeedRow } from "./feed";

export interface Selection {
  /** Those that can be decided together still, in the order in which they were chosen. */
  ids: readonly string[];
  set: ReadonlySet<string>;
  toggle: (id: string, withRange: boolean) => void;
  clear: () => void;
}

/** What is selected for one decision about all; what does not fit is refused in a sentence. */
export function useSelection(feed: Feed, say: (text: string) => void): Selection {
  const [picked, setPicked] = useState<readonly string[]>([]);
  const anchor = useRef("");
  const now = useRef({ feed, picked });
  now.current = { feed, picked };
  const ids = useMemo(
    () => picked.filter((id) => feed.rows.get(id)?.status === "pending"),
    [picked, feed.rows],
  );
  const set = useMemo(() => new Set(ids), [ids]);

  const toggle = useCallback(
    (id: string, withRange: boolean) => {
      const { feed, picked } = now.current;
      const chosen = rowsOf(feed, picked);
      const row = feed.rows.get(id);
      if (!row) return;
      if (withRange && anchor.current) {
        const found = selectRange(feed.ids, feed.rows, anchor.current, id, chosen);
        setPicked([...picked, ...found.added]);
        return say(summary(chosen.length + found.added.length, found.refused, found.why));
      }
      if (picked.includes(id)) {
        setPicked(picked.filter((each) => each !== id));
        return say(summary(chosen.length - 1, 0, ""));
      }
      const why = blockedReason(row, chosen);
      if (why) return say(`Not selected. ${why}`);
      anchor.current = id;
      setPicked([...picked, id]);
      say(summary(chosen.length + 1, 0, ""));
    },
    [say],
  );
  const clear = useCallback(() => setPicked([]), []);
  return useMemo(() => ({ ids, set, toggle, clear }), [ids, set, toggle, clear]);
}

function rowsOf(feed: Feed, ids: readonly string[]): FeedRow[] {
  return ids.map((id) => feed.rows.get(id)).filter((row) => row?.status === "pending") as FeedRow[];
}

function summary(count: number, refused: number, why: string): string {
  return `${count} selected.${refused ? ` ${refused} left out: ${why}` : ""}`;
}

export const MAX_SELECTED = 100; // more than a person compares, and each is read whole

/** Why this row cannot be decided together with the others; "" if it can. */
export function blockedReason(row: FeedRow, chosen: readonly FeedRow[]): string {
  const first = chosen[0];
  if (row.status !== "pending") return "This request is already decided.";
  if (row.risk === "high") return "High-risk requests are decided one by one.";
  if (row.alarms.length) return "It has findings. Review it individually.";
  if (!row.may_decide.length) return "You may not decide this request.";
  if (!row.may_decide.some((kind) => kind === "approve" || kind === "reject"))
    return "This is a question. Answer it individually.";
  if (first && first.tool !== row.tool) return `One tool at a time: you selected ${first.tool}.`;
  if (chosen.length >= MAX_SELECTED) return `At most ${MAX_SELECTED} at once.`;
  return "";
}

/** Everything from one row to another, as far as it can be selected; with the first reason why something cannot. */
export function selectRange(
  ids: readonly string[],
  rows: ReadonlyMap<string, FeedRow>,
  from: string,
  to: string,
  chosen: readonly FeedRow[],
): { added: string[]; refused: number; why: string } {
  const [start, end] = [ids.indexOf(from), ids.indexOf(to)].sort((one, other) => one - other) as [
    number,
    number,
  ];
  const all = [...chosen];
  let [refused, why] = [0, ""];
  for (const id of ids.slice(Math.max(start, 0), end + 1)) {
    const row = rows.get(id);
    if (!row || all.some((each) => each.id === id)) continue;
    const hindered = blockedReason(row, all);
    if (!hindered) all.push(row);
    else {
      refused += 1;
      why ||= hindered;
    }
  }
  return { added: all.slice(chosen.length).map((row) => row.id), refused, why };
}
