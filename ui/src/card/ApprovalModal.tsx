import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { readApproval } from "../api/approvals";
import { callApi } from "../api/client";
import { live, type LedgerEntry } from "../live/live";

const ApprovalDialog = lazy(() => import("./ApprovalDialog"));

/** Shows urgent approvals that need the user's decision on any page. Closing it decides nothing. */
export function ApprovalModal() {
  const [path] = useLocation();
  const { ids, total, next } = useApprovalQueue(!listsApprovals(path));
  const id = ids[0];
  if (!id || listsApprovals(path)) return null;
  return (
    <Suspense fallback={null}>
      <ApprovalDialog key={id} id={id} position={total - ids.length + 1} total={total} onClose={next} />
    </Suspense>
  );
}

/** Pages that already show pending approvals. */
function listsApprovals(path: string): boolean {
  return path.startsWith("/a/") || path.startsWith("/inbox");
}

interface Queue {
  ids: string[];
  /** Number of approvals since the queue was empty. */
  total: number;
}

const EMPTY_QUEUE: Queue = { ids: [], total: 0 };
const QUEUE_EVENTS = new Set(["proposed", "escalated", "delegated", "undone"]);
const LOAD_INTERVAL = 1_000;
const MAX_QUEUED = 20; // in the queue; the rest is in the inbox
const TYPING_PAUSE = 2_000; // without a key press in a text field, so that typing is not interrupted
const SEEN_KEY = "interlock-asked";
const MAX_REMEMBERED = 300;

/** Urgent approvals that arrived while the page is open and that the user may decide; each once per browser. */
function useApprovalQueue(isOn: boolean): Queue & { next: () => void } {
  const [queue, setQueue] = useState(EMPTY_QUEUE);
  const on = useRef(isOn);
  useEffect(() => {
    on.current = isOn;
  }, [isOn]);
  useEffect(() => {
    const typing = watchTyping();
    const changedIds = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const loadUrgent = async () => {
      timer = undefined;
      if (typing.ago() < TYPING_PAUSE) return schedule();
      const found = await findUrgent(changedIds);
      changedIds.clear();
      if (found.length) setQueue((previous) => enqueue(previous, found));
    };
    const schedule = () => {
      timer ??= setTimeout(() => void loadUrgent().catch(() => undefined), LOAD_INTERVAL);
    };
    const stop = live.subscribe((entry) => {
      if (entry.approval_id && entry.data.status !== "pending")
        setQueue((previous) => removeDecided(previous, entry));
      if (!QUEUE_EVENTS.has(entry.kind) || document.hidden || !on.current) return;
      changedIds.add(entry.approval_id);
      schedule();
    });
    return () => {
      stop();
      typing.stop();
      clearTimeout(timer);
    };
  }, []);
  return { ...queue, next: () => setQueue(dropFirst) };
}

/** At most one list request per second; returns only approvals not shown in this browser yet. */
async function findUrgent(changedIds: ReadonlySet<string>): Promise<string[]> {
  const ids = [...changedIds].filter(isUnseen);
  if (!ids.length) return [];
  const { items } = await callApi("get", "/api/approvals/pending", {
    query: { priority: "high", limit: 100 },
  });
  const found: string[] = [];
  for (const { id } of items.filter((item) => ids.includes(item.id)).slice(0, MAX_QUEUED)) {
    const { may_decide } = await readApproval(id);
    if (!may_decide.length || !isUnseen(id) || isOnPage(id)) continue;
    markSeen(id);
    found.push(id);
  }
  return found;
}

function isOnPage(id: string): boolean {
  return document.querySelector(`article[data-approval="${CSS.escape(id)}"]`) !== null;
}

function enqueue({ ids, total }: Queue, found: string[]): Queue {
  const fresh = found.filter((id) => !ids.includes(id)).slice(0, MAX_QUEUED - ids.length);
  return { ids: [...ids, ...fresh], total: total + fresh.length };
}

/** Removes an approval that somebody else decided, unless it is the open one. */
function removeDecided(queue: Queue, { approval_id }: LedgerEntry): Queue {
  if (queue.ids.indexOf(approval_id) < 1) return queue;
  return { ids: queue.ids.filter((id) => id !== approval_id), total: queue.total - 1 };
}

function dropFirst({ ids, total }: Queue): Queue {
  return ids.length > 1 ? { ids: ids.slice(1), total } : EMPTY_QUEUE;
}

function watchTyping() {
  let last = -Infinity;
  const onKeyDown = ({ target }: KeyboardEvent) => {
    if (target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]"))
      last = performance.now();
  };
  document.addEventListener("keydown", onKeyDown, { capture: true });
  return {
    ago: () => performance.now() - last,
    stop: () => document.removeEventListener("keydown", onKeyDown, { capture: true }),
  };
}

/** Whether this browser has not shown the approval yet. */
export function isUnseen(id: string): boolean {
  return !readSeenIds().includes(id);
}

export function markSeen(id: string): void {
  try {
    localStorage.setItem(
      SEEN_KEY,
      JSON.stringify([...readSeenIds().filter((each) => each !== id), id].slice(-MAX_REMEMBERED)),
    );
  } catch {
    // without storage the approval is shown again, which is better than not at all
  }
}

function readSeenIds(): string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(SEEN_KEY) ?? "[]");
    return Array.isArray(stored) ? stored.map(String) : [];
  } catch {
    return [];
  }
}
