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

const DEFAULT_WINDOW = 8_000; // ms; the actual window is read from the rejection

interface DecisionFeedback {
  handleDecision: (now: ApprovalSnapshot) => void;
  handleBulk: (kind: "approve" | "reject", results: BulkResult[]) => void;
  undo: PendingUndo;
}

/** After a decision: updates the list, announces the result, and remembers rejections for undo. */
export function useDecisionFeedback(store: FeedStore, announce: (text: string) => void): DecisionFeedback {
  const me = useMe().data?.name;
  const undo = useUndo(announce, store.read);
  const { remember } = undo;
  const handleDecision = useCallback(
    (now: ApprovalSnapshot) => {
      store.read(now);
      if (now.status === "rejected" && now.decision?.by === me) remember([now.id], undoWindow(now));
      announce(describeDecision(now));
    },
    [store, me, remember, announce],
  );
  const handleBulk = useCallback(
    (kind: "approve" | "reject", results: BulkResult[]) => {
      const succeeded = results.filter(({ ok }) => ok).map(({ id }) => id);
      announce(
        `${succeeded.length} of ${results.length} ${kind === "approve" ? "approved" : "rejected. Press Z to undo"}.`,
      );
      if (kind !== "reject" || !succeeded[0]) return;
      remember(succeeded, DEFAULT_WINDOW);
      const startedAt = performance.now();
      void readApproval(succeeded[0]).then(
        (one) => remember(succeeded, undoWindow(one) - (performance.now() - startedAt)),
        () => undefined,
      );
    },
    [remember, announce],
  );
  return { handleDecision, handleBulk, undo };
}

function undoWindow({ release_at, decision }: ApprovalItem): number {
  return release_at && decision ? Date.parse(release_at) - Date.parse(decision.at) : DEFAULT_WINDOW;
}

function describeDecision({ status, quorum }: ApprovalItem): string {
  if (status === "rejected") return "Rejected. Press Z to undo.";
  if (status === "pending" && quorum.need > 1) return `Approved: ${quorum.have} of ${quorum.need} approvals.`;
  return status === "pending"
    ? "Undone. The approval is pending again."
    : `${status.charAt(0).toUpperCase()}${status.slice(1)}.`;
}

interface RecentRejection {
  ids: readonly string[];
  until: number;
}

export interface PendingUndo {
  /** `milliseconds` until the agent is told. */
  remember: (ids: readonly string[], milliseconds: number) => void;
  /** Undoes the user's last rejection, including a bulk rejection. */
  last: () => Promise<void>;
  /** Milliseconds left to undo. */
  left: () => number;
}

const MAX_PARALLEL = 5;

/** The user's rejections are stored at once and sent to the agent later: until then they can be undone. */
function useUndo(announce: (text: string) => void, read: (item: ApprovalItem) => void): PendingUndo {
  const queries = useQueryClient();
  const rejected = useRef<RecentRejection[]>([]);
  const remember = useCallback((ids: readonly string[], milliseconds: number) => {
    const others = rejected.current.filter((each) => each.ids !== ids);
    rejected.current = [...others, { ids, until: performance.now() + milliseconds }];
  }, []);
  const last = useCallback(async () => {
    const found = rejected.current.pop();
    if (!found) return announce("Nothing to undo.");
    if (found.until < performance.now()) return announce("Too late to undo. The agent already knows.");
    const problems: string[] = [];
    for (let from = 0; from < found.ids.length; from += MAX_PARALLEL) {
      const batch = found.ids.slice(from, from + MAX_PARALLEL).map(async (id) => {
        const path = { path: { approval_id: id }, body: {}, idempotencyKey: crypto.randomUUID() };
        const approval = (await callApi("post", "/api/approvals/{approval_id}/undo", path)) as ApprovalJson;
        queries.setQueryData(approvalKey(id), { ...approval, read_at: performance.now() });
        read(approval);
      });
      const ends = await Promise.allSettled(batch);
      for (const end of ends) if (end.status === "rejected") problems.push((end.reason as Error).message);
    }
    announce(describeUndo(found.ids.length - problems.length, problems));
  }, [queries, read, announce]);
  const left = useCallback(() => (rejected.current.at(-1)?.until ?? 0) - performance.now(), []);
  return useMemo(() => ({ remember, last, left }), [remember, last, left]);
}

function describeUndo(count: number, problems: string[]): string {
  const done =
    count === 1
      ? "Undone. The approval is pending again."
      : `${count} undone. The approvals are pending again.`;
  if (!problems.length) return done;
  return `${count ? `${done} ` : ""}${problems.length} could not be undone: ${problems[0]}`;
}
