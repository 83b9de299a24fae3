import { useEffect, useMemo, useSyncExternalStore } from "react";
import { ApiError, callApi } from "../../api/client";
import { live, type LedgerEntry } from "../../live/live";
import { readEventStream } from "../../live/sse";
import type { ThreadDetails } from "./threadEntries";
import {
  addEarlierLines,
  addUserMessage,
  applyEvent,
  applyThread,
  EMPTY_THREAD,
  firstLine,
  lastLine,
  type ThreadState,
} from "./threadState";

const LINES_PER_READ = 400; // per request; earlier ones are loaded on demand
const RETRY_DELAYS = [300, 1_000, 2_000, 5_000];
const CHECK_AFTER = 1_000; // after which the reader checks whether the agent is still working
const RECHECK_AFTER = 5_000; // the same, after a check without a change
const STREAM_TIMEOUT = 40_000; // the server sends a keep-alive every 15 seconds
const NOTIFY_INTERVAL = 40;
const NOT_IN_STREAM = new Set(["thread_said", "thread_failed"]); // not in the thread's own stream

export interface ThreadSnapshot {
  state: ThreadState;
  /** Owner, agent and title; null before the first read. */
  thread: Omit<ThreadDetails, "lines"> | null;
  /** Whether there are lines before the displayed ones. */
  hasEarlier: boolean;
  /** The last line sent from this page. */
  sentHere: number;
  refused: ApiError | null;
}

/**
 * Reads one thread while it is displayed. A stream is open only while the agent is working; otherwise the live
 * connection reports changes. After an error it continues at the same position.
 */
export class ThreadReader {
  private snapshot: ThreadSnapshot = {
    state: EMPTY_THREAD,
    thread: null,
    hasEarlier: false,
    sentHere: 0,
    refused: null,
  };
  private watchers = new Set<() => void>();
  private abort = new AbortController();
  private stream: AbortController | null = null;
  private lastEventAt = 0;
  private lastCheckAt = 0;
  private hasNews = false;
  private notifyTimer: ReturnType<typeof setTimeout> | undefined;
  private endPause: () => void = () => undefined;

  constructor(readonly id: string) {}

  start(): () => void {
    const abort = (this.abort = new AbortController());
    const wake = () => this.wake();
    const unsubscribe = [live.subscribe((entry) => this.receive(entry)), live.watch(wake)];
    document.addEventListener("visibilitychange", wake);
    void this.run(abort.signal);
    return () => {
      abort.abort();
      this.stream?.abort();
      this.wake();
      document.removeEventListener("visibilitychange", wake);
      for (const leave of unsubscribe) leave();
    };
  }

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  now = (): ThreadSnapshot => this.snapshot;

  /** There may be new lines, or the stream may be closed. */
  wake(): void {
    this.hasNews = true;
    if (this.stream && !this.shouldStream()) this.stream.abort();
    this.endPause();
  }

  addSent(line: number, text: string): void {
    if (line) this.update({ state: addUserMessage(this.snapshot.state, line, text), sentHere: line });
    this.markWorking();
  }

  /** Work has started whose result will appear. */
  markWorking(): void {
    this.update({ state: { ...this.snapshot.state, status: "working" } });
    this.wake();
  }

  async loadEarlier(): Promise<void> {
    const before = firstLine(this.snapshot.state);
    const thread = await this.get({ before, last: LINES_PER_READ });
    const state = addEarlierLines(this.snapshot.state, thread.lines);
    this.update({ state, hasEarlier: thread.lines.length > 0 && firstLine(state) > 1 });
  }

  private async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      this.hasNews = false;
      const succeeded =
        (await this.load(signal)) && (!this.shouldStream() || (await this.followStream(signal)));
      failures = succeeded ? 0 : failures + 1;
      if (signal.aborted) return;
      if (!succeeded && !this.isRejected())
        await this.pause(RETRY_DELAYS[Math.min(failures, RETRY_DELAYS.length) - 1]);
      else if (!this.hasNews && !this.shouldStream()) await this.pause();
    }
  }

  /** A stream is open while a reply may come; without a live connection also while an approval is pending. */
  private shouldStream(): boolean {
    const { status } = this.snapshot.state;
    if (status === "idle" || document.hidden || this.snapshot.refused) return false;
    return status === "working" || live.state !== "live";
  }

  private isRejected(): boolean {
    const status = this.snapshot.refused?.status ?? 0;
    return status >= 400 && status < 500 && status !== 429;
  }

  private async load(signal: AbortSignal): Promise<boolean> {
    const known = this.snapshot.thread !== null;
    const after = known ? lastLine(this.snapshot.state) : 0;
    try {
      const thread = await this.get(known ? { after } : { last: LINES_PER_READ }, signal);
      const state = applyThread(this.snapshot.state, thread, after, this.stream ? "followed" : "resting");
      const hasEarlier = known ? this.snapshot.hasEarlier : firstLine(state) > 1;
      const { lines: _, ...pause } = thread;
      this.update({ state, hasEarlier, thread: pause, refused: null });
      return true;
    } catch (error) {
      if (!signal.aborted && error instanceof ApiError) this.update({ refused: error });
      return false;
    }
  }

  private get(
    query: { after?: number; before?: number; last?: number },
    signal?: AbortSignal,
  ): Promise<ThreadDetails> {
    return callApi("get", "/api/threads/{thread_id}", { path: { thread_id: this.id }, query, signal });
  }

  /** Reads to the end of the stream; false if it broke. */
  private async followStream(signal: AbortSignal): Promise<boolean> {
    const stream = (this.stream = new AbortController());
    const checkTimer = setInterval(() => void this.checkIdle(signal, stream), CHECK_AFTER);
    this.lastEventAt = performance.now();
    try {
      const status = await readEventStream({
        url: `/api/threads/${encodeURIComponent(this.id)}/events`,
        after: `${this.snapshot.state.position.line}.${this.snapshot.state.position.n}`,
        signal: stream.signal,
        onOpen: () => (this.lastEventAt = performance.now()),
        onEvent: (sent) => {
          this.lastEventAt = performance.now();
          this.update({ state: applyEvent(this.snapshot.state, sent, performance.now()) });
          if (!this.shouldStream()) stream.abort();
        },
        onPosition: () => (this.lastEventAt = performance.now()),
      });
      if (status === 400) this.reset();
      return status < 400 && stream.signal.aborted;
    } catch {
      return stream.signal.aborted && !this.isTimedOut();
    } finally {
      clearInterval(checkTimer);
      this.stream = null;
    }
  }

  /** Without events, checks whether the agent waits for an approval, or the connection is dead. */
  private async checkIdle(signal: AbortSignal, stream: AbortController): Promise<void> {
    if (this.isTimedOut()) return stream.abort();
    const checkAfter = this.lastCheckAt > this.lastEventAt ? RECHECK_AFTER : CHECK_AFTER;
    if (performance.now() - Math.max(this.lastEventAt, this.lastCheckAt) < checkAfter) return;
    this.lastCheckAt = performance.now();
    await this.load(signal);
    if (this.stream === stream && !this.shouldStream()) stream.abort();
  }

  private isTimedOut(): boolean {
    return performance.now() - this.lastEventAt > STREAM_TIMEOUT;
  }

  private receive(entry: LedgerEntry): void {
    if (entry.kind === "reset") return this.wake();
    const data = (entry.data ?? {}) as { thread_id?: string; line?: number };
    if (data.thread_id !== this.id) return;
    if (entry.kind === "thread_erased") this.reset();
    else if ((data.line ?? 0) <= lastLine(this.snapshot.state)) return;
    if (!this.stream) this.wake();
    else if (NOT_IN_STREAM.has(entry.kind)) void this.load(this.abort.signal);
  }

  private reset(): void {
    this.update({ state: EMPTY_THREAD, thread: null });
  }

  /** Notifies watchers a few times a second at most. */
  private update(changed: Partial<ThreadSnapshot>): void {
    this.snapshot = { ...this.snapshot, ...changed };
    this.notifyTimer ??= setTimeout(() => {
      this.notifyTimer = undefined;
      for (const watcher of this.watchers) watcher();
    }, NOTIFY_INTERVAL);
  }

  private pause(milliseconds?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = milliseconds === undefined ? undefined : setTimeout(resolve, milliseconds);
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

const NO_SUBSCRIPTION = () => () => undefined;
const NO_SNAPSHOT = () => null;

/** The thread in the URL, read while it is displayed. */
export function useThreadReader(thread: string | undefined): [ThreadReader | null, ThreadSnapshot | null] {
  const reader = useMemo(() => (thread ? new ThreadReader(thread) : null), [thread]);
  useEffect(() => reader?.start(), [reader]);
  return [reader, useSyncExternalStore(reader?.watch ?? NO_SUBSCRIPTION, reader?.now ?? NO_SNAPSHOT)];
}
