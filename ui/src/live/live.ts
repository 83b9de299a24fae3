import { useSyncExternalStore } from "react";
import type { Schemas } from "../api/client";
import { parseJson } from "../api/json";
import { makeLeaderElection, type LeaderElection } from "./leaderElection";
import { LedgerPosition, RESET_EVENT, type LedgerStep } from "./ledgerPosition";
import { readEventStream, type ServerEvent } from "./sse";

/** One line of the ledger, as it happened. `kind` "reset" means: load everything anew. */
export type LedgerEntry = Schemas["TimelineEntryJson"];
export type StreamState = "connecting" | "live" | "offline" | "signed out";
type Told = { step: LedgerStep } | { state: StreamState } | { hello: true };

const NAME = "interlock-live";
const PAUSES = [500, 1_000, 2_000, 5_000, 10_000];
const STEADY = 5_000; // a connection that lasted for this long was a good one
const SILENT = 40_000; // the server gives a sign of life every 15 seconds
const LOST = 60_000; // without a word from the leader, somebody else leads
const UNANSWERED = 10_000; // the same for a tab that has just said hello
const LOOKS = 5_000;

/**
 * One live connection per browser: the tab that leads reads the stream and tells the others, which take over where it
 * stood when it closes, sleeps or falls silent.
 */
class Live {
  private listeners = new Set<(entry: LedgerEntry) => void>();
  private watchers = new Set<() => void>();
  private channel: BroadcastChannel | undefined;
  private office: LeaderElection | undefined;
  private place = new LedgerPosition();
  private heardAt = 0;
  private rests = false;
  private cut: () => void = () => undefined;
  private wakeUp: () => void = () => undefined;
  state: StreamState = "connecting";
  leads = false;

  /** When somebody is signed in, and again after a session that ended; `who` keeps two people's tabs apart. */
  start(who: string): void {
    this.office ??= this.open(`${NAME} ${who}`);
    if (this.office.stands) return;
    if (this.state === "signed out") this.become("connecting", "heard");
    this.office.stand();
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
    this.channel.addEventListener("message", ({ data }: MessageEvent<Told>) => this.hear(data));
    this.sayHello();
    setInterval(this.look, LOOKS);
    document.addEventListener("visibilitychange", this.look);
    document.addEventListener("freeze", this.rest);
    document.addEventListener("resume", this.rise);
    addEventListener("pagehide", this.rest);
    addEventListener("pageshow", this.rise);
    addEventListener("online", this.hurry);
    addEventListener("offline", this.unplugged);
    return makeLeaderElection(name, (term) => this.lead(term));
  }

  private sayHello(): void {
    this.heardAt = Date.now() - LOST + UNANSWERED;
    this.say({ hello: true });
  }

  private async lead(term: AbortSignal): Promise<void> {
    this.leads = true;
    this.heardAt = Date.now();
    try {
      await this.keepReading(term);
    } finally {
      this.leads = false;
    }
  }

  private async keepReading(term: AbortSignal): Promise<void> {
    let failures = 0;
    while (!term.aborted) {
      const began = Date.now();
      const status = await this.read(term).catch(() => 0);
      if (term.aborted) return;
      if (status === 401 || status === 403) return this.become("signed out");
      failures = Date.now() - began > STEADY ? 0 : failures + 1;
      this.become(failures > 1 || !navigator.onLine ? "offline" : "connecting");
      await this.pause(PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 0, term);
    }
  }

  private read(term: AbortSignal): Promise<number> {
    const fresh = !this.place.at;
    const cut = new AbortController();
    this.cut = () => cut.abort();
    this.heardAt = Date.now();
    return readEventStream({
      url: "/api/events",
      after: this.place.at,
      signal: AbortSignal.any([term, cut.signal]),
      onOpen: () => {
        this.become("live");
        if (fresh) this.tell({ after: "", at: "", sent: RESET_EVENT });
      },
      onEvent: (sent) => this.tell({ after: this.place.at, at: sent.id, sent }),
      onPlace: (at) => this.tell({ after: this.place.at, at }),
    });
  }

  private tell(step: LedgerStep): void {
    this.heardAt = Date.now();
    this.say({ step });
    this.take(step);
  }

  private say(told: Told): void {
    this.channel?.postMessage(told);
  }

  private hear(told: Told): void {
    if ("hello" in told) return this.answer();
    this.heardAt = Date.now();
    if ("step" in told) this.take(told.step);
    else if (!this.leads) this.become(told.state, "heard");
  }

  private answer(): void {
    if (!this.leads) return;
    this.say({ state: this.state });
    if (this.place.at) this.say({ step: { after: this.place.at, at: this.place.at } });
  }

  private take(step: LedgerStep): void {
    for (const sent of this.place.take(step)) this.pass(sent);
  }

  private pass(sent: ServerEvent): void {
    const entry = { kind: sent.event, ...(parseJson(sent.data) as object) } as LedgerEntry;
    for (const listener of this.listeners) {
      try {
        listener(entry);
      } catch (error) {
        reportError(error); // one that fails must not keep it from the others
      }
    }
  }

  private become(state: StreamState, how: "led" | "heard" = "led"): void {
    if (how === "led") this.say({ state });
    if (state === this.state) return;
    this.state = state;
    for (const watcher of this.watchers) watcher();
  }

  /** By the wall clock, which goes on while a laptop sleeps; one that was set counts as silence. */
  private look = (): void => {
    const silent = Math.abs(Date.now() - this.heardAt);
    if (this.rests || !this.office?.stands) return;
    if (this.leads && silent > SILENT) this.cut();
    else if (!this.leads && !document.hidden && silent > LOST) {
      this.heardAt = Date.now();
      this.office.stand("by force");
    }
  };

  /** A tab that is frozen, or kept for the back button, must not hold up the others. */
  private rest = (): void => {
    this.rests = true;
    this.office?.leave();
  };

  /** What was told meanwhile may not have been heard. */
  private rise = (): void => {
    if (!this.rests) return;
    this.rests = false;
    this.pass(RESET_EVENT);
    this.sayHello();
    this.office?.stand();
  };

  private hurry = (): void => {
    this.cut();
    this.wakeUp();
  };

  private unplugged = (): void => {
    if (this.leads) this.become("offline");
    this.cut();
  };

  private pause(milliseconds: number, term: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
      term.addEventListener("abort", this.wakeUp, { once: true });
    });
  }
}

export const live = new Live();

/** Whether what is on the screen is what is so now. */
export function useLiveState(): StreamState {
  return useSyncExternalStore(live.watch, () => live.state);
}
