import { span } from "../../../components/Time";
import type { GrantInfo } from "../data";

/** "office may call it if args.to == "bob"" */
export function covers(grant: Pick<GrantInfo, "agent" | "when">): string {
  const who = grant.agent === "*" ? "Every agent" : grant.agent;
  return grant.when ? `${who} may call it if ${grant.when}` : `${who} may call it, whatever the arguments`;
}

/** What was used of what there is, and when it ends. */
export function limits(grant: GrantInfo, now = Date.now()): string[] {
  const uses = grant.max_uses === null ? `${grant.uses} uses` : `${grant.uses} of ${grant.max_uses} uses`;
  const budget =
    grant.budget === null ? [] : [`${grant.spent ?? "0"} of ${grant.budget} of ${grant.budget_of}`];
  return [uses, ...budget, ending(grant, now)];
}

function ending({ state, expires_at }: GrantInfo, now: number): string {
  const left = (Date.parse(expires_at) - now) / 1_000;
  if (state === "revoked") return "revoked";
  if (left <= 0) return `ended ${span(-left)} ago`;
  return state === "used up" ? "nothing left" : `ends in ${span(left)}`;
}
