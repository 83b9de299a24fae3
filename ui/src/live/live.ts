import { useSyncExternalStore } from "react";
import type { Schemas } from "../api/client";
import { parseJson } from "../api/json";
import { makeLeaderElection, type LeaderElection } from "./leaderElection";
import { LedgerPosition, RESET_EVENT, type LedgerStep } from "./ledgerPosition";
import { readEventStream, type ServerEvent } from "./sse";

/** A ledger entry from the stream. `kind` "reset" means: reload everything. */
export type LedgerEntry = Schemas["TimelineEntryJson"];
export type StreamState = "connecting" | "live" | "offline" | "signed out";
type TabMessage = { step: LedgerStep } | { state: StreamState } | { hello: true };

const CHANNEL_NAME = "interlock-live";
const RETRY_DELAYS = [500, 1_000, 2_000, 5_000, 10_000];
const STABLE_AFTER = 5_000; // a connection that lasted this long counts as stable
const STREAM_TIMEOUT = 40_000; // the server sends a keep-alive every 15 seconds
const LEADER_TIMEOUT = 60_000; // without a message from the leader, another tab takes over
const HELLO_TIMEOUT = 10_000; // the same after a hello that nobody answered
const CHECK_INTERVAL = 5_000;

/**
 * One live connection per browser: the leading tab reads the stream and forwards events to the others, which take
 * over at its position when it closes, sleeps or stops responding.
 */
class Live {
  private listeners = new Set<(entry: LedgerEntry) => void>();
  private watchers = new Set<() => void>();
  private channel: BroadcastChannel | undefined;
  private election: LeaderElection | undefined;
  private position = new LedgerPosition();
  private lastMessageAt = 0;
  private isSuspended = false;
  private abortStream: () => void = () => undefined;
  private endPause: () => void = () => undefined;
  state: StreamState = "connecting";
  isLeader = false;

  /** Called after a sign-in; `user` keeps the tabs of different users apart. */
  start(user: string): void {
    this.election ??= this.open(`${CHANNEL_NAME} ${user}`);
    if (this.election.isCandidate) return;
    if (this.state === "signed out") this.setState("connecting", "broadcast");
    this.election.join();
  }

  subscribe = (listener: (entry: LedgerEntry) => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  private open(name: string): LeaderElection {
    this.channel = new BroadcastChannel(name);
    this.channel.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => this.receive(data));
    this.requestState();
    setInterval(this.checkLeader, CHECK_INTERVAL);
    document.addEventListener("visibilitychange", this.checkLeader);
    document.addEventListener("freeze", this.suspend);
    document.addEventListener("resume", this.resume);
    addEventListener("pagehide", this.suspend);
    addEventListener("pageshow", this.resume);
    addEventListener("online", this.reconnect);
    addEventListener("offline", this.goOffline);
    return makeLeaderElection(name, (term) => this.lead(term));
  }

  private requestState(): void {
    this.lastMessageAt = Date.now() - LEADER_TIMEOUT + HELLO_TIMEOUT;
    this.broadcast({ hello: true });
  }

  private async lead(term: AbortSignal): Promise<void> {
    this.isLeader = true;
    this.lastMessageAt = Date.now();
    try {
      await this.readUntilAborted(term);
    } finally {
      this.isLeader = false;
    }
  }

  private async readUntilAborted(term: AbortSignal): Promise<void> {
    let failures = 0;
    while (!term.aborted) {
      const startedAt = Date.now();
      const status = await this.read(term).catch(() => 0);
      if (term.aborted) return;
      if (status === 401 || status === 403) return this.setState("signed out");
      failures = Date.now() - startedAt > STABLE_AFTER ? 0 : failures + 1;
      this.setState(failures > 1 || !navigator.onLine ? "offline" : "connecting");
      await this.pause(RETRY_DELAYS[Math.min(failures, RETRY_DELAYS.length - 1)] ?? 0, term);
    }
  }

  private read(term: AbortSignal): Promise<number> {
    const isFirstRead = !this.position.at;
    const abortStream = new AbortController();
    this.abortStream = () => abortStream.abort();
    this.lastMessageAt = Date.now();
    return readEventStream({
      url: "/api/events",
      after: this.position.at,
      signal: AbortSignal.any([term, abortStream.signal]),
      onOpen: () => {
        this.setState("live");
        if (isFirstRead) this.publish({ after: "", at: "", sent: RESET_EVENT });
      },
      onEvent: (sent) => this.publish({ after: this.position.at, at: sent.id, sent }),
      onPosition: (at) => this.publish({ after: this.position.at, at }),
    });
  }

  private publish(step: LedgerStep): void {
    this.lastMessageAt = Date.now();
    this.broadcast({ step });
    this.apply(step);
  }

  private broadcast(message: TabMessage): void {
    this.channel?.postMessage(message);
  }

  private receive(message: TabMessage): void {
    if ("hello" in message) return this.sendState();
    this.lastMessageAt = Date.now();
    if ("step" in message) this.apply(message.step);
    else if (!this.isLeader) this.setState(message.state, "broadcast");
  }

  private sendState(): void {
    if (!this.isLeader) return;
    this.broadcast({ state: this.state });
    if (this.position.at) this.broadcast({ step: { after: this.position.at, at: this.position.at } });
  }

  private apply(step: LedgerStep): void {
    for (const sent of this.position.advance(step)) this.notifyListeners(sent);
  }

  private notifyListeners(sent: ServerEvent): void {
    const entry = { kind: sent.event, ...(parseJson(sent.data) as object) } as LedgerEntry;
    for (const listener of this.listeners) {
      try {
        listener(entry);
      } catch (error) {
        reportError(error); // a failing listener must not block the others
      }
    }
  }

  private setState(state: StreamState, source: "leader" | "broadcast" = "leader"): void {
    if (source === "leader") this.broadcast({ state });
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher();
  }

  /** By the wall clock, which continues while a laptop sleeps; a changed clock counts as silence. */
  private checkLeader = (): void => {
    const silentFor = Math.abs(Date.now() - this.lastMessageAt);
    if (this.isSuspended || !this.election?.isCandidate) return;
    if (this.isLeader && silentFor > STREAM_TIMEOUT) this.abortStream();
    else if (!this.isLeader && !document.hidden && silentFor > LEADER_TIMEOUT) {
      this.lastMessageAt = Date.now();
      this.election.join("steal");
    }
  };

  /** A frozen tab, or one in the back-forward cache, must not block the others. */
  private suspend = (): void => {
    this.isSuspended = true;
    this.election?.leave();
  };

  /** Events may have been missed in the meantime. */
  private resume = (): void => {
    if (!this.isSuspended) return;
    this.isSuspended = false;
    this.notifyListeners(RESET_EVENT);
    this.requestState();
    this.election?.join();
  };

  private reconnect = (): void => {
    this.abortStream();
    this.endPause();
  };

  private goOffline = (): void => {
    if (this.isLeader) this.setState("offline");
    this.abortStream();
  };

  private pause(milliseconds: number, term: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
      term.addEventListener("abort", this.endPause, { once: true });
    });
  }
}

export const live = new Live();

/** The state of the live connection. */
export function useLiveState(): StreamState {
  return useSyncExternalStore(live.watch, () => live.state);
}
