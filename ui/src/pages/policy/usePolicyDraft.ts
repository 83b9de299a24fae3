import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { StoredPolicy } from "./queries";

/** A text that is not in force, and what it was made from. */
export interface PolicyDraft {
  text: string;
  base: StoredPolicy;
}

export interface PolicyDraftState {
  inForce: StoredPolicy;
  draft: PolicyDraft | null;
  /** The draft, or what is in force without one. */
  text: string;
  change: (text: string) => void;
  discard: () => void;
  /** Somebody else put another version in force meanwhile, and one knows it now. */
  rebase: () => void;
}

const KEY = ["draft", "policy"];

/** One draft for the whole page: it outlives a look at other pages, and leaving the browser's page asks first. */
export function usePolicyDraft(inForce: StoredPolicy): PolicyDraftState {
  const queries = useQueryClient();
  const kept = useQuery<PolicyDraft | null>({
    queryKey: KEY,
    queryFn: () => null,
    enabled: false,
    initialData: null,
    gcTime: Infinity,
  });
  const draft = kept.data;
  const keep = (next: PolicyDraft | null) => queries.setQueryData(KEY, next);
  useLeavingAsks(draft !== null);
  return {
    inForce,
    draft,
    text: draft?.text ?? inForce.text,
    change: (text) => keep(makePolicyDraft(draft, inForce, text)),
    discard: () => keep(null),
    rebase: () => keep(draft && makePolicyDraft({ ...draft, base: inForce }, inForce, draft.text)),
  };
}

/** A text that is what it was made from, and still in force, is no draft. */
export function makePolicyDraft(
  draft: PolicyDraft | null,
  inForce: StoredPolicy,
  text: string,
): PolicyDraft | null {
  const base = draft?.base ?? inForce;
  return text === base.text && base.version === inForce.version ? null : { text, base };
}

function useLeavingAsks(on: boolean): void {
  useEffect(() => {
    if (!on) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [on]);
}
