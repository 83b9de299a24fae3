import type { Schemas } from "./api/client";
import { isAdmin, type CurrentUser } from "./api/currentUser";

const SKIPPED = "interlock-first-run-skipped";

/** No agent made a call yet, and this admin did not put off connecting one. */
export function isFirstRun(me: CurrentUser, stats: Schemas["WorkspaceStats"]): boolean {
  const calls = Object.values(stats.by_status).some((count) => count > 0);
  return isAdmin(me) && !calls && stats.allowed_reads === 0 && localStorage.getItem(SKIPPED) === null;
}

/** From now on this browser opens on the usual page. */
export function skipFirstRun(): void {
  localStorage.setItem(SKIPPED, new Date().toISOString());
}
