import type { Schemas } from "./api/client";
import { isAdmin, type CurrentUser } from "./api/currentUser";

const SKIPPED = "interlock-first-run-skipped";

/** No agent made a call yet, and this admin did not put off connecting one. */
export function isFirstRun(me: CurrentUser, stats: Schemas["WorkspaceStats"]): boolean {
  return isAdmin(me) && !hasCalls(stats) && localStorage.getItem(SKIPPED) === null;
}

export function hasCalls(stats: Schemas["WorkspaceStats"]): boolean {
  return stats.allowed_reads > 0 || Object.values(stats.by_status).some((count) => count > 0);
}

/** From now on this browser opens on the usual page. */
export function skipFirstRun(): void {
  localStorage.setItem(SKIPPED, new Date().toISOString());
}
