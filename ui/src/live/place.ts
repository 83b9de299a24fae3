import type { Sent } from "./sse";

/** One step along the ledger: from which place to which, with the event if there was one. */
export interface Step {
  after: string;
  at: string;
  sent?: Sent;
}

export const RESET: Sent = { id: "", event: "reset", data: "{}" };

/** Where a tab stands. What is told twice is dropped; what was missed makes it load everything anew. */
export class Place {
  at = "";

  /** What the step brings for this tab. */
  take({ after, at, sent }: Step): Sent[] {
    if (sent?.event === "reset") {
      this.at = at;
      return [sent];
    }
    if (this.at && Number(at) <= Number(this.at)) return [];
    const missed = this.at && Number(after) > Number(this.at);
    this.at = at;
    if (missed) return [RESET];
    return sent ? [sent] : [];
  }
}
