import { useCallback, useMemo, useRef, useState } from "react";
import type { Feed, FeedRow } from "./feed";
import * as messages from "./messages";

export interface Selection {
  /** The ids that can still be decided together, in the order of selection. */
  ids: readonly string[];
  set: ReadonlySet<string>;
  toggle: (id: string, withRange: boolean) => void;
  clear: () => void;
}

/** The selection for a bulk decision; refusals are announced. */
export function useSelection(feed: Feed, announce: (text: string) => void): Selection {
  const [pickedIds, setPickedIds] = useState<readonly string[]>([]);
  const anchor = useRef("");
  const now = useRef({ feed, pickedIds });
  now.current = { feed, pickedIds };
  const ids = useMemo(
    () => pickedIds.filter((id) => feed.rows.get(id)?.status === "pending"),
    [pickedIds, feed.rows],
  );
  const set = useMemo(() => new Set(ids), [ids]);

  const toggle = useCallback(
    (id: string, withRange: boolean) => {
      const { feed, pickedIds } = now.current;
      const selected = rowsOf(feed, pickedIds);
      const row = feed.rows.get(id);
      if (!row) return;
      if (withRange && anchor.current) {
        const found = selectRange(feed.ids, feed.rows, anchor.current, id, selected);
        setPickedIds([...pickedIds, ...found.added]);
        return announce(summary(selected.length + found.added.length, found.refused, found.why));
      }
      if (pickedIds.includes(id)) {
        setPickedIds(pickedIds.filter((each) => each !== id));
        return announce(summary(selected.length - 1, 0, ""));
      }
      const why = blockedReason(row, selected);
      if (why) return announce(messages.notSelectedBecause(why));
      anchor.current = id;
      setPickedIds([...pickedIds, id]);
      announce(summary(selected.length + 1, 0, ""));
    },
    [announce],
  );
  const clear = useCallback(() => setPickedIds([]), []);
  return useMemo(() => ({ ids, set, toggle, clear }), [ids, set, toggle, clear]);
}

function rowsOf(feed: Feed, ids: readonly string[]): FeedRow[] {
  return ids.map((id) => feed.rows.get(id)).filter((row) => row?.status === "pending") as FeedRow[];
}

function summary(count: number, refused: number, why: string): string {
  return messages.selectedAndLeftOut(count, refused, why);
}

export const MAX_SELECTED = 100; // more than a person can compare

/** The reason why this row cannot be decided with the others; "" if it can. */
export function blockedReason(row: FeedRow, selected: readonly FeedRow[]): string {
  const first = selected[0];
  if (row.status !== "pending") return messages.alreadyDecided;
  if (row.risk === "high") return messages.highRiskOneByOne;
  if (row.alarms.length) return messages.hasFindings;
  if (!row.may_decide.length) return messages.youMayNotDecide;
  if (!row.may_decide.some((kind) => kind === "approve" || kind === "reject"))
    return messages.questionOneByOne;
  if (first && first.tool !== row.tool) return messages.oneToolAtATime(first.tool);
  if (selected.length >= MAX_SELECTED) return messages.atMostAtOnce(MAX_SELECTED);
  return "";
}

/** Selects a range as far as possible, with the first reason for a refusal. */
export function selectRange(
  ids: readonly string[],
  rows: ReadonlyMap<string, FeedRow>,
  from: string,
  to: string,
  selected: readonly FeedRow[],
): { added: string[]; refused: number; why: string } {
  const [start, end] = [ids.indexOf(from), ids.indexOf(to)].sort((one, other) => one - other) as [
    number,
    number,
  ];
  const all = [...selected];
  let [refused, why] = [0, ""];
  for (const id of ids.slice(Math.max(start, 0), end + 1)) {
    const row = rows.get(id);
    if (!row || all.some((each) => each.id === id)) continue;
    const reason = blockedReason(row, all);
    if (!reason) all.push(row);
    else {
      refused += 1;
      why ||= reason;
    }
  }
  return { added: all.slice(selected.length).map((row) => row.id), refused, why };
}
