import type { QueryClient } from "@tanstack/react-query";
import { approvalKey } from "../api/approvals";
import { live } from "./live";

const AT_MOST_EVERY = 1_000;
const ABOUT: [beginning: string, key: string][] = [
  ["policy_", "policy"],
  ["grant", "grants"],
  ["agent_", "agents"],
  ["user_", "users"],
  ["away_", "users"],
  ["key_", "keys"],
  ["frozen", "freezes"],
  ["unfrozen", "freezes"],
];

/** What was read is read again when the live connection says that it changed; counts once a second at most. */
export function followWith(queries: QueryClient): () => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const again = (...queryKey: string[]) => void queries.invalidateQueries({ queryKey });
  const countAgain = () => {
    waiting ??= setTimeout(() => {
      waiting = undefined;
      again("stats");
      again("grants"); // a call may have used one
    }, AT_MOST_EVERY);
  };
  const unsubscribe = live.subscribe(({ kind, approval_id }) => {
    if (kind === "reset") void queries.invalidateQueries();
    else if (approval_id) {
      again(...approvalKey(approval_id));
      countAgain();
    } else for (const [, key] of ABOUT.filter(([beginning]) => kind.startsWith(beginning))) again(key);
  });
  const unwatch = live.watch(() => {
    if (live.state === "live" || live.state === "signed out") again("me");
  });
  return () => {
    unsubscribe();
    unwatch();
    clearTimeout(waiting);
  };
}
