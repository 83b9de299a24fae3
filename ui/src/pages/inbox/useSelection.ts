import { useCallback, useMemo, useRef, useState } from "react";
import type { Feed, Row } from "./feed";
import { hindrance, range } from "./selection";

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
        const found = range(feed.ids, feed.rows, anchor.current, id, chosen);
        setPicked([...picked, ...found.added]);
        return say(summary(chosen.length + found.added.length, found.refused, found.why));
      }
      if (picked.includes(id)) {
        setPicked(picked.filter((each) => each !== id));
        return say(summary(chosen.length - 1, 0, ""));
      }
      const why = hindrance(row, chosen);
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

function rowsOf(feed: Feed, ids: readonly string[]): Row[] {
  return ids.map((id) => feed.rows.get(id)).filter((row) => row?.status === "pending") as Row[];
}

function summary(count: number, refused: number, why: string): string {
  return `${count} selected.${refused ? ` ${refused} left out: ${why}` : ""}`;
}
