import { useCallback } from "react";
import { readApproval, type Item, type Read } from "../../api/approvals";
import { useMe } from "../../api/me";
import type { Result } from "./Bulk";
import type { FeedStore } from "./store";
import { useUndo, type Undo } from "./useUndo";

const USUAL = 8_000; // ms; the workspace's own window is read from what was rejected

interface Decided {
  moved: (now: Read) => void;
  movedMany: (kind: "approve" | "reject", results: Result[]) => void;
  undo: Undo;
}

/** What was decided here shows in the list at once, is said aloud, and can be taken back if it was a no. */
export function useDecided(store: FeedStore, say: (text: string) => void): Decided {
  const me = useMe().data?.name;
  const undo = useUndo(say, store.read);
  const { remember } = undo;
  const moved = useCallback(
    (now: Read) => {
      store.read(now);
      if (now.status === "rejected" && now.decision?.by === me) remember([now.id], windowOf(now));
      say(told(now));
    },
    [store, me, remember, say],
  );
  const movedMany = useCallback(
    (kind: "approve" | "reject", results: Result[]) => {
      const taken = results.filter(({ ok }) => ok).map(({ id }) => id);
      say(
        `${taken.length} of ${results.length} ${kind === "approve" ? "approved" : "rejected. Z takes them back"}.`,
      );
      if (kind !== "reject" || !taken[0]) return;
      remember(taken, USUAL);
      const begun = performance.now();
      void readApproval(taken[0]).then(
        (one) => remember(taken, windowOf(one) - (performance.now() - begun)),
        () => undefined,
      );
    },
    [remember, say],
  );
  return { moved, movedMany, undo };
}

function windowOf({ release_at, decision }: Item): number {
  return release_at && decision ? Date.parse(release_at) - Date.parse(decision.at) : USUAL;
}

function told({ status, quorum }: Item): string {
  if (status === "rejected") return "Rejected. Z takes it back.";
  if (status === "pending" && quorum.need > 1) return `Your yes counts: ${quorum.have} of ${quorum.need}.`;
  return status === "pending" ? "It waits again." : `${status.charAt(0).toUpperCase()}${status.slice(1)}.`;
}
