import { useCallback, useMemo, useRef } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { approvalKey, type Item, type Shown } from "../../api/approvals";
import { call } from "../../api/client";

interface Rejected {
  ids: readonly string[];
  until: number;
}

export interface Undo {
  /** `milliseconds`: how long the agent does not hear of it. */
  remember: (ids: readonly string[], milliseconds: number) => void;
  /** Takes back the last rejection of one's own, all of it if it was of many. */
  last: () => Promise<void>;
  /** Milliseconds in which that is still possible. */
  left: () => number;
}

const AT_ONCE = 5;

/** Rejections of one's own are stored at once and told to the agent later: until then they can be taken back. */
export function useUndo(say: (text: string) => void, read: (item: Item) => void): Undo {
  const queries = useQueryClient();
  const rejected = useRef<Rejected[]>([]);
  const remember = useCallback((ids: readonly string[], milliseconds: number) => {
    const others = rejected.current.filter((each) => each.ids !== ids);
    rejected.current = [...others, { ids, until: performance.now() + milliseconds }];
  }, []);
  const last = useCallback(async () => {
    const found = rejected.current.pop();
    if (!found) return say("There is no rejection of yours to take back.");
    if (found.until < performance.now()) return say("Too late: the agent has heard of your last rejection.");
    const problems: string[] = [];
    for (let from = 0; from < found.ids.length; from += AT_ONCE) {
      const lot = found.ids.slice(from, from + AT_ONCE).map(async (id) => {
        const path = { path: { approval_id: id }, body: {}, once: crypto.randomUUID() };
        const shown = (await call("post", "/api/approvals/{approval_id}/undo", path)) as Shown;
        queries.setQueryData(approvalKey(id), { ...shown, read_at: performance.now() });
        read(shown);
      });
      const ends = await Promise.allSettled(lot);
      for (const end of ends) if (end.status === "rejected") problems.push((end.reason as Error).message);
    }
    say(told(found.ids.length - problems.length, problems));
  }, [queries, read, say]);
  const left = useCallback(() => (rejected.current.at(-1)?.until ?? 0) - performance.now(), []);
  return useMemo(() => ({ remember, last, left }), [remember, last, left]);
}

function told(count: number, problems: string[]): string {
  const done = count === 1 ? "Taken back: it waits again." : `${count} taken back: they wait again.`;
  if (!problems.length) return done;
  return `${count ? `${done} ` : ""}${problems.length} could not be taken back: ${problems[0]}`;
}
