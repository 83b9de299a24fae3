/** Runs until the signal aborts: another tab took over, or this one was suspended. */
type LeaderTask = (term: AbortSignal) => Promise<void>;

/** Elects one leader among the tabs of a browser. */
export interface LeaderElection {
  /** Makes this tab a candidate, or takes over from a silent leader. */
  join(mode?: "queue" | "steal"): void;
  leave(): void;
  /** Whether it leads or is queued. */
  readonly isCandidate: boolean;
}

/** Web Locks need HTTPS or localhost; elsewhere the election uses the local storage. */
export function makeLeaderElection(name: string, lead: LeaderTask): LeaderElection {
  return navigator.locks ? new LockElection(name, lead) : new StorageElection(name, lead);
}

class LockElection implements LeaderElection {
  private term: AbortController | null = null;

  constructor(
    private readonly name: string,
    private readonly lead: LeaderTask,
  ) {}

  get isCandidate(): boolean {
    return this.term !== null;
  }

  join(mode: "queue" | "steal" = "queue"): void {
    this.leave();
    const term = (this.term = new AbortController());
    const options = mode === "steal" ? { steal: true } : { signal: term.signal };
    navigator.locks
      .request(this.name, options, () => (term.signal.aborted ? undefined : this.lead(term.signal)))
      .then(
        () => this.onReleased(term),
        () => this.onStolen(term),
      );
  }

  leave(): void {
    this.term?.abort();
    this.term = null;
  }

  private onReleased(term: AbortController): void {
    if (this.term === term) this.term = null;
  }

  private onStolen(term: AbortController): void {
    if (this.term === term) this.join();
  }
}

const SETTLE_TIME = 80; // milliseconds in which concurrent writers see which write was last

class StorageElection implements LeaderElection {
  private readonly id = Math.random().toString(36).slice(2);
  private term: AbortController | null = null;
  private isLeader = false;

  constructor(
    private readonly name: string,
    private readonly lead: LeaderTask,
  ) {
    addEventListener("storage", ({ key }) => {
      if (key === name) this.onStorageChange();
    });
  }

  get isCandidate(): boolean {
    return this.term !== null;
  }

  join(mode: "queue" | "steal" = "queue"): void {
    this.leave();
    const term = (this.term = new AbortController());
    if (mode === "steal" || !this.read()) void this.campaign(term, mode);
  }

  leave(): void {
    this.term?.abort();
    this.term = null;
    this.isLeader = false;
    if (this.read() === this.id) this.write(null);
  }

  /** The stored leader changed: the leadership is free, or this tab lost it. */
  private onStorageChange(): void {
    const holder = this.read();
    if (this.isLeader && holder !== this.id) this.join();
    else if (this.term && !this.isLeader && !holder) void this.campaign(this.term, "queue");
  }

  private async campaign(term: AbortController, mode: "queue" | "steal"): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * SETTLE_TIME));
    const isTaken = mode === "queue" && this.read();
    if (term.signal.aborted || this.isLeader || isTaken) return;
    this.write(this.id);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_TIME));
    if (term.signal.aborted || this.isLeader || this.read() !== this.id) return;
    this.isLeader = true;
    await this.lead(term.signal);
    if (this.term === term) this.leave();
  }

  private read(): string | null {
    return localStorage.getItem(this.name);
  }

  private write(holder: string | null): void {
    if (holder === null) localStorage.removeItem(this.name);
    else localStorage.setItem(this.name, holder);
  }
}
