import type { ServerEvent } from "./sse";

/** One step along the ledger: from which place to which, with the event if there was one. */
export interface LedgerStep {
  after: string;
  at: string;
  sent?: ServerEvent;
}

export const RESET_EVENT: ServerEvent = { id: "", event: "reset", data: "{}" };

/** Where a tab stands. What is told twice is dropped; what was missed makes it load everything anew. */
export class LedgerPosition {
  at = "";

  /** What the step brings for this tab. */
  take({ after, at, sent }: LedgerStep): ServerEvent[] {
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
