import type { ApprovalSnapshot } from "../api/approvals";

type TimedApproval = Pick<ApprovalSnapshot, "seconds_left" | "read_at">;
type ApprovalLifetime = Pick<ApprovalSnapshot, "created_at" | "expires_at">;

export const SETTLE_MS = 600; // milliseconds in which a key press or click was meant for the previous content

/** By the server's count and this browser's monotonic clock. */
export function secondsLeft({ seconds_left, read_at }: TimedApproval, now: number): number | null {
  return seconds_left === null ? null : Math.max(0, seconds_left - Math.max(0, now - read_at) / 1_000);
}

/** In the last fifth of the lifetime. */
export function isNearExpiry(left: number, { created_at, expires_at }: ApprovalLifetime): boolean {
  return left <= (Date.parse(expires_at) - Date.parse(created_at)) / 5_000;
}

/** The part of the lifetime that is left, from 0 to 1. */
export function shareLeft(left: number, { created_at, expires_at }: ApprovalLifetime): number {
  const whole = (Date.parse(expires_at) - Date.parse(created_at)) / 1_000;
  return whole > 0 ? Math.min(1, Math.max(0, left / whole)) : 0;
}

/** Seconds in which a rejection can still be undone; the server decides. */
export function undoSecondsLeft(
  approval: Pick<ApprovalSnapshot, "status" | "decision" | "release_at" | "server_at" | "read_at">,
  now: number,
): number {
  if (approval.status !== "rejected" || !approval.release_at) return 0;
  const { server_at, read_at, release_at, decision } = approval;
  const clock = server_at === undefined ? Date.now() : server_at + (now - read_at);
  const window = decision ? Date.parse(release_at) - Date.parse(decision.at) : Infinity;
  return Math.max(0, Math.min(window, Date.parse(release_at) - clock)) / 1_000;
}
