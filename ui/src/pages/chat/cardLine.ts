import type { ApprovalSnapshot } from "../../api/approvals";
import { countChanges, readEdits } from "../../card/ArgumentEdits";
import * as messages from "./transcriptMessages";

/** How a decided request is told in one line: what was decided, by whom and when, and what came of it. */
export interface DecidedLine {
  tone: "good" | "bad" | "unknown" | "over" | "working";
  decision: string;
  by: string;
  at: string;
  outcome: string;
}

type Status = ApprovalSnapshot["status"];

const TONES: Record<Exclude<Status, "pending">, DecidedLine["tone"]> = {
  approved: "working",
  running: "working",
  succeeded: "good",
  responded: "good",
  failed: "bad",
  rejected: "bad",
  unknown: "unknown",
  expired: "over",
  cancelled: "over",
};

const OUTCOMES: Partial<Record<Status, string>> = {
  approved: messages.starting,
  running: messages.running,
  succeeded: messages.done,
  failed: messages.failed,
  unknown: messages.checkOutcome,
};

/** Null for a request that is still open. */
export function describeDecided(approval: ApprovalSnapshot): DecidedLine | null {
  const { status, decision } = approval;
  if (status === "pending") return null;
  return {
    tone: TONES[status],
    decision: nameDecision(approval),
    by: decision?.by ?? "",
    at: decision?.at ?? "",
    outcome: withDuration(OUTCOMES[status] ?? "", approval),
  };
}

function nameDecision({ status, decision, timeline }: ApprovalSnapshot): string {
  switch (status) {
    case "rejected":
      return messages.rejected;
    case "responded":
      return messages.answered;
    case "cancelled":
      return messages.withdrawn;
    case "expired":
      return decision && decision.kind !== "expire" ? messages.approvedNotStartedInTime : messages.expired;
    default: {
      const edits = readEdits(timeline);
      return edits.length ? messages.approvedWith(countChanges(edits)) : messages.approved;
    }
  }
}

const SHORTEST = 50; // ms; below that it would be "0.0 s"

/** "Done in 1.2 s"; nothing of a call that took no time. */
function withDuration(outcome: string, { timeline, status }: ApprovalSnapshot): string {
  const started = timeline.findLast(({ kind }) => kind === "started");
  const ended = timeline.findLast(({ kind }) => kind === status);
  if (!started || !ended || (status !== "succeeded" && status !== "failed")) return outcome;
  const took = Date.parse(ended.at) - Date.parse(started.at);
  if (took < SHORTEST) return outcome;
  return messages.outcomeInDuration(outcome, status, duration(took));
}

function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1_000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return messages.minutes(Math.round(seconds / 60));
}

/** A result in a few words: "3 found" of a list, "pages: 3" of an object with one list, nothing of anything else. */
export function summarizeResult(result: unknown): string {
  if (Array.isArray(result)) return messages.foundCount(result.length);
  if (typeof result !== "object" || result === null) return "";
  const lists = Object.entries(result).filter((entry): entry is [string, unknown[]] =>
    Array.isArray(entry[1]),
  );
  return lists.length === 1 ? `${lists[0]![0].replaceAll("_", " ")}: ${lists[0]![1].length}` : "";
}
