import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import {
  approvalKey,
  readApproval,
  type ApprovalAction,
  type ApprovalItem,
  type ApprovalJson,
  type ApprovalSnapshot,
} from "../../api/approvals";
import { ApiError, callApi } from "../../api/client";
import { useMe } from "../../api/currentUser";
import { changePendingCount } from "../../api/stats";
import type { BulkResult } from "./BulkDecision";
import type { FeedStore } from "./feedStore";
import { oneLine } from "./InboxRow";
import * as messages from "./messages";
import type { Announcements, Toast } from "./useAnnouncements";

const DEFAULT_WINDOW = 8_000; // ms; the actual window is read from the rejection

interface DecisionFeedback {
  handleDecision: (now: ApprovalSnapshot, action: ApprovalAction) => void;
  handleBulk: (kind: "approve" | "reject", results: BulkResult[]) => void;
  undo: PendingUndo;
}

interface FeedbackContext {
  store: FeedStore;
  /** Whether a request leaves the list as soon as the user's vote is counted, though it needs more. */
  isMine: boolean;
  announcements: Announcements;
  /** Opens the next request after one that was decided or voted on. */
  onDecided: (id: string) => void;
  /** A rejection was undone: its request is open again. */
  onUndone: (id: string) => void;
}

/** After a decision: updates the list and the counts, says what happened, and remembers rejections for undo. */
export function useDecisionFeedback(context: FeedbackContext): DecisionFeedback {
  const { store, isMine, announcements, onDecided, onUndone } = context;
  const queries = useQueryClient();
  const me = useMe().data?.name;
  const { showToast } = announcements;
  const undo = useUndo(announcements, store, onUndone);
  const { remember } = undo;
  const handleDecision = useCallback(
    (now: ApprovalSnapshot, action: ApprovalAction) => {
      if (action === "undo") {
        store.putBack(now);
        changePendingCount(queries, 1);
        return showToast({ kind: "info", text: messages.UNDONE });
      }
      store.read(now);
      if (now.status !== "pending") changePendingCount(queries, -1);
      if (now.status !== "pending" || isMine) store.leave([now.id]);
      const isUndoable = now.status === "rejected" && now.decision?.by === me;
      if (isUndoable) remember([now.id], undoWindow(now));
      showToast(describeDecision(now, isUndoable ? undoWindow(now) : 0));
      onDecided(now.id);
    },
    [store, queries, me, isMine, remember, showToast, onDecided],
  );
  const handleBulk = useCallback(
    (kind: "approve" | "reject", results: BulkResult[]) => {
      const succeeded = results.filter(({ ok }) => ok).map(({ id }) => id);
      const over = results.filter(({ ok, status }) => ok && status !== "pending").map(({ id }) => id);
      store.leave(isMine ? succeeded : over);
      changePendingCount(queries, -over.length);
      const text = messages.resultsOf(succeeded.length, results.length, kind);
      if (kind !== "reject" || !succeeded[0]) return showToast({ kind: "info", text });
      remember(succeeded, DEFAULT_WINDOW);
      showToast({ kind: "rejected", text, undoMilliseconds: DEFAULT_WINDOW });
      const startedAt = performance.now();
      void readApproval(succeeded[0]).then(
        (one) => remember(succeeded, undoWindow(one) - (performance.now() - startedAt)),
        () => undefined,
      );
    },
    [store, queries, isMine, remember, showToast],
  );
  return { handleDecision, handleBulk, undo };
}

function undoWindow({ release_at, decision }: ApprovalItem): number {
  return release_at && decision ? Date.parse(release_at) - Date.parse(decision.at) : DEFAULT_WINDOW;
}

function describeDecision(now: ApprovalSnapshot, undoMilliseconds: number): Toast {
  const { status, quorum } = now;
  const subject = oneLine(now.card.sentence);
  if (status === "rejected") return { kind: "rejected", text: messages.rejected, subject, undoMilliseconds };
  if (status === "responded") return { kind: "info", text: messages.answered, subject };
  if (status === "pending")
    return { kind: "approved", text: messages.approvedMoreNeeded(neededLabel(quorum.need - quorum.have)) };
  return { kind: "approved", text: messages.approved, subject };
}

const neededLabel = (count: number) => messages.morePeople(count);

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
export function useUndo(
  { announce, showToast }: Announcements,
  { putBack }: FeedStore,
  onUndone: (id: string) => void,
): PendingUndo {
  const queries = useQueryClient();
  const rejected = useRef<RecentRejection[]>([]);
  const remember = useCallback((ids: readonly string[], milliseconds: number) => {
    const others = rejected.current.filter((each) => each.ids !== ids);
    rejected.current = [...others, { ids, until: performance.now() + milliseconds }];
  }, []);
  const last = useCallback(async () => {
    const found = rejected.current.pop();
    if (!found) return announce(messages.nothingToUndo);
    if (found.until < performance.now()) return announce(messages.tooLateToUndo);
    const problems: string[] = [];
    const unanswered: string[] = [];
    for (let from = 0; from < found.ids.length; from += MAX_PARALLEL) {
      const batch = found.ids.slice(from, from + MAX_PARALLEL).map(async (id) => {
        const path = { path: { approval_id: id }, body: {}, idempotencyKey: crypto.randomUUID() };
        const approval = (await callApi("post", "/api/approvals/{approval_id}/undo", path)) as ApprovalJson;
        queries.setQueryData(approvalKey(id), { ...approval, read_at: performance.now() });
        putBack(approval);
        changePendingCount(queries, 1);
      });
      const ends = await Promise.allSettled(batch);
      for (const [index, end] of ends.entries()) {
        if (end.status !== "rejected") continue;
        problems.push((end.reason as Error).message);
        if (isUnanswered(end.reason)) unanswered.push(found.ids[from + index]!);
      }
    }
    if (unanswered.length)
      rejected.current = [...rejected.current, { ids: unanswered, until: found.until }].sort(
        (one, other) => one.until - other.until,
      );
    const count = found.ids.length - problems.length;
    showToast({ kind: "info", text: describeUndo(count, problems) });
    if (count === 1 && found.ids[0]) onUndone(found.ids[0]);
  }, [queries, putBack, announce, showToast, onUndone]);
  const left = useCallback(() => (rejected.current.at(-1)?.until ?? 0) - performance.now(), []);
  return useMemo(() => ({ remember, last, left }), [remember, last, left]);
}

/** The same request may succeed when it is sent again. */
const isUnanswered = (problem: unknown) =>
  !(problem instanceof ApiError) || problem.status === 0 || problem.status >= 500;

function describeUndo(count: number, problems: string[]): string {
  const done = count === 1 ? messages.UNDONE : messages.undoneRequestsAreOpenAgain(count);
  if (!problems.length) return done;
  return messages.couldNotBeUndone(count ? `${done} ` : "", problems.length, problems[0]);
}
