import type { ServerEvent } from "./sse";

/** One step of the ledger position, with its event if there is one. */
export interface LedgerStep {
  after: string;
  at: string;
  sent?: ServerEvent;
}

export const RESET_EVENT: ServerEvent = { id: "", event: "reset", data: "{}" };

/** A tab's position in the ledger. Repeated events are dropped; after missed events it resets. */
export class LedgerPosition {
  at = "";

  /** The events of this step for this tab. */
  advance({ after, at, sent }: LedgerStep): ServerEvent[] {
    if (sent?.event === "reset") {
      this.at = at;
      return [sent];
    }
    if (this.at && Number(at) <= Number(this.at)) return [];
    const missed = this.at && Number(after) > Number(this.at);
    this.at = at;
    if (missed) return [RESET_EVENT];
    return sent ? [sent] : [];
  }
}
