import { useEffect, useMemo, useSyncExternalStore } from "react";
import { ApiError, callApi } from "../../api/client";
import { live, type LedgerEntry } from "../../live/live";
import { readEventStream } from "../../live/sse";
import {
  addEarlierLines,
  addUserMessage,
  applyEvent,
  applyThread,
  EMPTY_THREAD,
  firstLine,
  lastLine,
  type ThreadDetails,
  type ThreadState,
} from "./threadState";

const LINES = 400; // in one read; earlier ones when somebody wants them
const PAUSES = [300, 1_000, 2_000, 5_000];
const QUIET = 1_000; // after which it is asked whether there is anything to wait for
const PATIENT = 5_000; // and asked again, while it is at work and says nothing
const DEAD = 40_000; // the server gives a sign of life every 15 seconds
const FRAME = 40;
const BESIDE_THE_STREAM = new Set(["thread_said", "thread_failed"]); // which the stream does not tell

export interface ThreadSnapshot {
  story: ThreadState;
  /** Whose it is, with whom, and what about; null before it was read. */
  thread: Omit<ThreadDetails, "lines"> | null;
  /** Whether lines before those that are shown may be there. */
  hasEarlier: boolean;
  /** The last line that was said on this page. */
  saidHere: number;
  refused: ApiError | null;
}

/**
 * Reads one thread while it is on the screen. A stream is open only while the thread is at work; otherwise the browser's
 * one live connection says when to look again. What breaks is taken up where it stood.
 */
export class ThreadReader {
  private reading: ThreadSnapshot = {
    story: EMPTY_THREAD,
    thread: null,
    hasEarlier: false,
    saidHere: 0,
    refused: null,
  };
  private watchers = new Set<() => void>();
  private ending = new AbortController();
  private stream: AbortController | null = null;
  private heard = 0;
  private asked = 0;
  private news = false;
  private telling: ReturnType<typeof setTimeout> | undefined;
  private wakeUp: () => void = () => undefined;

  constructor(readonly id: string) {}

  start(): () => void {
    const ending = (this.ending = new AbortController());
    const wake = () => this.wake();
    const unsubscribe = [live.subscribe((entry) => this.hear(entry)), live.watch(wake)];
    document.addEventListener("visibilitychange", wake);
    void this.run(ending.signal);
    return () => {
      ending.abort();
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

  now = (): ThreadSnapshot => this.reading;

  /** There may be something new, or it may be time to stop reading. */
  wake(): void {
    this.news = true;
    if (this.stream && !this.isFollowed()) this.stream.abort();
    this.wakeUp();
  }

  said(line: number, text: string): void {
    if (line) this.tell({ story: addUserMessage(this.reading.story, line, text), saidHere: line });
    this.works();
  }

  /** Something was begun that will show. */
  works(): void {
    this.tell({ story: { ...this.reading.story, status: "working" } });
    this.wake();
  }

  async earlier(): Promise<void> {
    const before = firstLine(this.reading.story);
    const thread = await this.get({ before, last: LINES });
    const story = addEarlierLines(this.reading.story, thread.lines);
    this.tell({ story, hasEarlier: thread.lines.length > 0 && firstLine(story) > 1 });
  }

  private async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      this.news = false;
      const went = (await this.look(signal)) && (!this.isFollowed() || (await this.follow(signal)));
      failures = went ? 0 : failures + 1;
      if (signal.aborted) return;
      if (!went && !this.isGone()) await this.rest(PAUSES[Math.min(failures, PAUSES.length) - 1]);
      else if (!this.news && !this.isFollowed()) await this.rest();
    }
  }

  /** A stream is worth its connection while words may come; with no live connection also while somebody is asked. */
  private isFollowed(): boolean {
    const { status } = this.reading.story;
    if (status === "idle" || document.hidden || this.reading.refused) return false;
    return status === "working" || live.state !== "live";
  }

  private isGone(): boolean {
    const status = this.reading.refused?.status ?? 0;
    return status >= 400 && status < 500 && status !== 429;
  }

  private async look(signal: AbortSignal): Promise<boolean> {
    const known = this.reading.thread !== null;
    const after = known ? lastLine(this.reading.story) : 0;
    try {
      const thread = await this.get(known ? { after } : { last: LINES }, signal);
      const story = applyThread(this.reading.story, thread, after, this.stream ? "followed" : "resting");
      const hasEarlier = known ? this.reading.hasEarlier : firstLine(story) > 1;
      const { lines: _, ...rest } = thread;
      this.tell({ story, hasEarlier, thread: rest, refused: null });
      return true;
    } catch (error) {
      if (!signal.aborted && error instanceof ApiError) this.tell({ refused: error });
      return false;
    }
  }

  private get(
    query: { after?: number; before?: number; last?: number },
    signal?: AbortSignal,
  ): Promise<ThreadDetails> {
    return callApi("get", "/api/threads/{thread_id}", { path: { thread_id: this.id }, query, signal });
  }

  /** To the end of the stream; false if it broke. */
  private async follow(signal: AbortSignal): Promise<boolean> {
    const stream = (this.stream = new AbortController());
    const asking = setInterval(() => void this.ask(signal, stream), QUIET);
    this.heard = performance.now();
    try {
      const status = await readEventStream({
        url: `/api/threads/${encodeURIComponent(this.id)}/events`,
        after: `${this.reading.story.place.line}.${this.reading.story.place.n}`,
        signal: stream.signal,
        onOpen: () => (this.heard = performance.now()),
        onEvent: (sent) => {
          this.heard = performance.now();
          this.tell({ story: applyEvent(this.reading.story, sent, performance.now()) });
          if (!this.isFollowed()) stream.abort();
        },
        onPlace: () => (this.heard = performance.now()),
      });
      if (status === 400) this.forget();
      return status < 400 && stream.signal.aborted;
    } catch {
      return stream.signal.aborted && !this.isDead();
    } finally {
      clearInterval(asking);
      this.stream = null;
    }
  }

  /** Where nothing comes, perhaps somebody is asked, and nothing will; or the connection is dead and does not say so. */
  private async ask(signal: AbortSignal, stream: AbortController): Promise<void> {
    if (this.isDead()) return stream.abort();
    const waits = this.asked > this.heard ? PATIENT : QUIET;
    if (performance.now() - Math.max(this.heard, this.asked) < waits) return;
    this.asked = performance.now();
    await this.look(signal);
    if (this.stream === stream && !this.isFollowed()) stream.abort();
  }

  private isDead(): boolean {
    return performance.now() - this.heard > DEAD;
  }

  private hear(entry: LedgerEntry): void {
    if (entry.kind === "reset") return this.wake();
    const data = (entry.data ?? {}) as { thread_id?: string; line?: number };
    if (data.thread_id !== this.id) return;
    if (entry.kind === "thread_erased") this.forget();
    else if ((data.line ?? 0) <= lastLine(this.reading.story)) return;
    if (!this.stream) this.wake();
    else if (BESIDE_THE_STREAM.has(entry.kind)) void this.look(this.ending.signal);
  }

  private forget(): void {
    this.tell({ story: EMPTY_THREAD, thread: null });
  }

  /** Watchers are told a few times a second, however fast words come. */
  private tell(changed: Partial<ThreadSnapshot>): void {
    this.reading = { ...this.reading, ...changed };
    this.telling ??= setTimeout(() => {
      this.telling = undefined;
      for (const watcher of this.watchers) watcher();
    }, FRAME);
  }

  private rest(milliseconds?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = milliseconds === undefined ? undefined : setTimeout(resolve, milliseconds);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

const NOTHING = () => () => undefined;
const NULL = () => null;

/** The thread of this address, read while it is on the screen. */
export function useThreadReader(thread: string | undefined): [ThreadReader | null, ThreadSnapshot | null] {
  const reader = useMemo(() => (thread ? new ThreadReader(thread) : null), [thread]);
  useEffect(() => reader?.start(), [reader]);
  return [reader, useSyncExternalStore(reader?.watch ?? NOTHING, reader?.now ?? NULL)];
}
