import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import {
  approvalKey,
  readApproval,
  type ApprovalItem,
  type ApprovalJson,
  type ApprovalSnapshot,
} from "../../api/approvals";
import { callApi } from "../../api/client";
import { useMe } from "../../api/currentUser";
import type { BulkResult } from "./BulkDecision";
import type { FeedStore } from "./feedStore";

const USUAL = 8_000; // ms; the workspace's own window is read from what was rejected

interface Decided {
  moved: (now: ApprovalSnapshot) => void;
  movedMany: (kind: "approve" | "reject", results: BulkResult[]) => void;
  undo: PendingUndo;
}

/** What was decided here shows in the list at once, is said aloud, and can be taken back if it was a no. */
export function useDecisionFeedback(store: FeedStore, say: (text: string) => void): Decided {
  const me = useMe().data?.name;
  const undo = useUndo(say, store.read);
  const { remember } = undo;
  const moved = useCallback(
    (now: ApprovalSnapshot) => {
      store.read(now);
      if (now.status === "rejected" && now.decision?.by === me) remember([now.id], windowOf(now));
      say(describeDecision(now));
    },
    [store, me, remember, say],
  );
  const movedMany = useCallback(
    (kind: "approve" | "reject", results: BulkResult[]) => {
      const taken = results.filter(({ ok }) => ok).map(({ id }) => id);
      say(
        `${taken.length} of ${results.length} ${kind === "approve" ? "approved" : "rejected. Press Z to undo"}.`,
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

function windowOf({ release_at, decision }: ApprovalItem): number {
  return release_at && decision ? Date.parse(release_at) - Date.parse(decision.at) : USUAL;
}

function describeDecision({ status, quorum }: ApprovalItem): string {
  if (status === "rejected") return "Rejected. Press Z to undo.";
  if (status === "pending" && quorum.need > 1) return `Approved: ${quorum.have} of ${quorum.need} approvals.`;
  return status === "pending"
    ? "Undone. The request is open again."
    : `${status.charAt(0).toUpperCase()}${status.slice(1)}.`;
}

interface Rejected {
  ids: readonly string[];
  until: number;
}

export interface PendingUndo {
  /** `milliseconds`: how long the agent does not hear of it. */
  remember: (ids: readonly string[], milliseconds: number) => void;
  /** Takes back the last rejection of one's own, all of it if it was of many. */
  last: () => Promise<void>;
  /** Milliseconds in which that is still possible. */
  left: () => number;
}

const AT_ONCE = 5;

/** Rejections of one's own are stored at once and told to the agent later: until then they can be taken back. */
function useUndo(say: (text: string) => void, read: (item: ApprovalItem) => void): PendingUndo {
  const queries = useQueryClient();
  const rejected = useRef<Rejected[]>([]);
  const remember = useCallback((ids: readonly string[], milliseconds: number) => {
    const others = rejected.current.filter((each) => each.ids !== ids);
    rejected.current = [...others, { ids, until: performance.now() + milliseconds }];
  }, []);
  const last = useCallback(async () => {
    const found = rejected.current.pop();
    if (!found) return say("Nothing to undo.");
    if (found.until < performance.now()) return say("Too late to undo. The agent already knows.");
    const problems: string[] = [];
    for (let from = 0; from < found.ids.length; from += AT_ONCE) {
      const lot = found.ids.slice(from, from + AT_ONCE).map(async (id) => {
        const path = { path: { approval_id: id }, body: {}, once: crypto.randomUUID() };
        const shown = (await callApi("post", "/api/approvals/{approval_id}/undo", path)) as ApprovalJson;
        queries.setQueryData(approvalKey(id), { ...shown, read_at: performance.now() });
        read(shown);
      });
      const ends = await Promise.allSettled(lot);
      for (const end of ends) if (end.status === "rejected") problems.push((end.reason as Error).message);
    }
    say(describeUndo(found.ids.length - problems.length, problems));
  }, [queries, read, say]);
  const left = useCallback(() => (rejected.current.at(-1)?.until ?? 0) - performance.now(), []);
  return useMemo(() => ({ remember, last, left }), [remember, last, left]);
}

function describeUndo(count: number, problems: string[]): string {
  const done =
    count === 1 ? "Undone. The request is open again." : `${count} undone. The requests are open again.`;
  if (!problems.length) return done;
  return `${count ? `${done} ` : ""}${problems.length} could not be undone: ${problems[0]}`;
}
