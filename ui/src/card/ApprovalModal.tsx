import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { readApproval } from "../api/approvals";
import { callApi } from "../api/client";
import { live, type LedgerEntry } from "../live/live";

const ApprovalDialog = lazy(() => import("./ApprovalDialog"));

/** On any page: what is urgent and waits for this person comes to them. Closing it decides nothing. */
export function ApprovalModal() {
  const [path] = useLocation();
  const { ids, total, next } = useApprovalQueue(!isSeenAnyway(path));
  const id = ids[0];
  if (!id || isSeenAnyway(path)) return null;
  return (
    <Suspense fallback={null}>
      <ApprovalDialog key={id} id={id} place={total - ids.length + 1} total={total} onClose={next} />
    </Suspense>
  );
}

/** Where people look at what waits in any case. */
function isSeenAnyway(path: string): boolean {
  return path.startsWith("/a/") || path.startsWith("/inbox");
}

interface Queue {
  ids: string[];
  /** How many there were since the first of them came. */
  total: number;
}

const NONE: Queue = { ids: [], total: 0 };
const BRINGS = new Set(["proposed", "escalated", "delegated", "undone"]);
const AT_MOST_EVERY = 1_000;
const MAX_QUEUED = 20; // that queue up: whoever has more goes to the inbox
const PAUSE = 2_000; // without a key in a text field: nobody is torn out of a word
const SEEN_KEY = "interlock-asked";
const MAX_REMEMBERED = 300;

/** What came up while one was here, is urgent, and one may decide; each once in this browser. */
function useApprovalQueue(isOn: boolean): Queue & { next: () => void } {
  const [queue, setQueue] = useState(NONE);
  const on = useRef(isOn);
  useEffect(() => {
    on.current = isOn;
  }, [isOn]);
  useEffect(() => {
    const typed = watchTyping();
    const heard = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      timer = undefined;
      if (typed.ago() < PAUSE) return later();
      const found = await urgentAmong(heard);
      heard.clear();
      if (found.length) setQueue((before) => joined(before, found));
    };
    const later = () => {
      timer ??= setTimeout(() => void look().catch(() => undefined), AT_MOST_EVERY);
    };
    const stop = live.subscribe((entry) => {
      if (entry.approval_id && entry.data.status !== "pending") setQueue((before) => without(before, entry));
      if (!BRINGS.has(entry.kind) || document.hidden || !on.current) return;
      heard.add(entry.approval_id);
      later();
    });
    return () => {
      stop();
      typed.stop();
      clearTimeout(timer);
    };
  }, []);
  return { ...queue, next: () => setQueue(rest) };
}

/** One list a second at most, however much is proposed; then only what is new to this browser. */
async function urgentAmong(heard: ReadonlySet<string>): Promise<string[]> {
  const ids = [...heard].filter(isUnseen);
  if (!ids.length) return [];
  const { items } = await callApi("get", "/api/approvals/pending", {
    query: { priority: "high", limit: 100 },
  });
  const found: string[] = [];
  for (const { id } of items.filter((item) => ids.includes(item.id)).slice(0, MAX_QUEUED)) {
    const { may_decide } = await readApproval(id);
    if (!may_decide.length || !isUnseen(id) || isOnThePage(id)) continue;
    markSeen(id);
    found.push(id);
  }
  return found;
}

function isOnThePage(id: string): boolean {
  return document.querySelector(`article[data-approval="${CSS.escape(id)}"]`) !== null;
}

function joined({ ids, total }: Queue, found: string[]): Queue {
  const fresh = found.filter((id) => !ids.includes(id)).slice(0, MAX_QUEUED - ids.length);
  return { ids: [...ids, ...fresh], total: total + fresh.length };
}

/** What somebody else decided need not come up any more; the one that is open shows what was decided. */
function without(queue: Queue, { approval_id }: LedgerEntry): Queue {
  if (queue.ids.indexOf(approval_id) < 1) return queue;
  return { ids: queue.ids.filter((id) => id !== approval_id), total: queue.total - 1 };
}

function rest({ ids, total }: Queue): Queue {
  return ids.length > 1 ? { ids: ids.slice(1), total } : NONE;
}

function watchTyping() {
  let last = -Infinity;
  const note = ({ target }: KeyboardEvent) => {
    if (target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]"))
      last = performance.now();
  };
  document.addEventListener("keydown", note, { capture: true });
  return {
    ago: () => performance.now() - last,
    stop: () => document.removeEventListener("keydown", note, { capture: true }),
  };
}

/** Whether this browser has not brought it up yet. */
export function isUnseen(id: string): boolean {
  return !known().includes(id);
}

export function markSeen(id: string): void {
  try {
    localStorage.setItem(
      SEEN_KEY,
      JSON.stringify([...known().filter((each) => each !== id), id].slice(-MAX_REMEMBERED)),
    );
  } catch {
    // a browser that keeps nothing asks again, which is better than not at all
  }
}

function known(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(SEEN_KEY) ?? "[]");
    return Array.isArray(kept) ? kept.map(String) : [];
  } catch {
    return [];
  }
}
