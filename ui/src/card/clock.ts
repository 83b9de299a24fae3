import type { ApprovalSnapshot } from "../api/approvals";

type Timed = Pick<ApprovalSnapshot, "seconds_left" | "read_at">;
type Lived = Pick<ApprovalSnapshot, "created_at" | "expires_at">;

export const SETTLE_MS = 600; // milliseconds in which a key or click was meant for what stood there before

/** By the server's count and this browser's steady clock, whatever its date. */
export function secondsLeft({ seconds_left, read_at }: Timed, now: number): number | null {
  return seconds_left === null ? null : Math.max(0, seconds_left - Math.max(0, now - read_at) / 1_000);
}

/** In the last fifth of the time that there was. */
export function isNearExpiry(left: number, { created_at, expires_at }: Lived): boolean {
  return left <= (Date.parse(expires_at) - Date.parse(created_at)) / 5_000;
}

/** How long a rejection can still be taken back; the server has the last word. */
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
