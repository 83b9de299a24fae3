/** Until the signal says that another tab took over, or that this one rests. */
type LeaderTask = (term: AbortSignal) => Promise<void>;

/** Of all tabs of a browser one leads; the others wait for their turn. */
export interface LeaderElection {
  /** From now on this tab waits for its turn, or takes it from a leader that is silent. */
  stand(how?: "in turn" | "by force"): void;
  leave(): void;
  /** Whether it leads or waits for its turn. */
  readonly stands: boolean;
}

/** Locks exist where the page came by https or from this machine; elsewhere a note in the storage has to do. */
export function makeLeaderElection(name: string, lead: LeaderTask): LeaderElection {
  return navigator.locks ? new ByLock(name, lead) : new ByNote(name, lead);
}

class ByLock implements LeaderElection {
  private term: AbortController | null = null;

  constructor(
    private readonly name: string,
    private readonly lead: LeaderTask,
  ) {}

  get stands(): boolean {
    return this.term !== null;
  }

  stand(how: "in turn" | "by force" = "in turn"): void {
    this.leave();
    const term = (this.term = new AbortController());
    const options = how === "by force" ? { steal: true } : { signal: term.signal };
    navigator.locks
      .request(this.name, options, () => (term.signal.aborted ? undefined : this.lead(term.signal)))
      .then(
        () => this.isOver(term),
        () => this.wasTaken(term),
      );
  }

  leave(): void {
    this.term?.abort();
    this.term = null;
  }

  private isOver(term: AbortController): void {
    if (this.term === term) this.term = null;
  }

  private wasTaken(term: AbortController): void {
    if (this.term === term) this.stand();
  }
}

const SETTLES = 80; // milliseconds in which two tabs that write at the same time see who was last

class ByNote implements LeaderElection {
  private readonly id = Math.random().toString(36).slice(2);
  private term: AbortController | null = null;
  private leads = false;

  constructor(
    private readonly name: string,
    private readonly lead: LeaderTask,
  ) {
    addEventListener("storage", ({ key }) => {
      if (key === name) this.look();
    });
  }

  get stands(): boolean {
    return this.term !== null;
  }

  stand(how: "in turn" | "by force" = "in turn"): void {
    this.leave();
    const term = (this.term = new AbortController());
    if (how === "by force" || !this.read()) void this.run(term, how);
  }

  leave(): void {
    this.term?.abort();
    this.term = null;
    this.leads = false;
    if (this.read() === this.id) this.write(null);
  }

  /** Somebody wrote: the place is free, or it is not ours any more. */
  private look(): void {
    const holder = this.read();
    if (this.leads && holder !== this.id) this.stand();
    else if (this.term && !this.leads && !holder) void this.run(this.term, "in turn");
  }

  private async run(term: AbortController, how: "in turn" | "by force"): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * SETTLES));
    const isTaken = how === "in turn" && this.read();
    if (term.signal.aborted || this.leads || isTaken) return;
    this.write(this.id);
    await new Promise((resolve) => setTimeout(resolve, SETTLES));
    if (term.signal.aborted || this.leads || this.read() !== this.id) return;
    this.leads = true;
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
