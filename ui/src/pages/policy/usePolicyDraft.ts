import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useLeaveWarning } from "../../components/useDraft";
import type { StoredPolicy } from "./queries";

/** A text that is not in force, and its base. */
export interface PolicyDraft {
  text: string;
  base: StoredPolicy;
}

export interface PolicyDraftState {
  inForce: StoredPolicy;
  draft: PolicyDraft | null;
  /** The draft, or else the policy in force. */
  text: string;
  change: (text: string) => void;
  discard: () => void;
  /** Accepts a newer version in force as the base. */
  rebase: () => void;
}

const KEY = ["draft", "policy"];

/** One draft per tab: it survives navigation, and leaving the site asks first. */
export function usePolicyDraft(inForce: StoredPolicy): PolicyDraftState {
  const queries = useQueryClient();
  const stored = useQuery<PolicyDraft | null>({
    queryKey: KEY,
    queryFn: () => null,
    enabled: false,
    initialData: null,
    gcTime: Infinity,
  });
  const draft = stored.data;
  const setDraft = (next: PolicyDraft | null) => queries.setQueryData(KEY, next);
  useLeaveWarning(draft !== null);
  return {
    inForce,
    draft,
    text: draft?.text ?? inForce.text,
    change: (text) => setDraft(makePolicyDraft(draft, inForce, text)),
    discard: () => setDraft(null),
    rebase: () => setDraft(draft && makePolicyDraft({ ...draft, base: inForce }, inForce, draft.text)),
  };
}

/** A text equal to its base in force is not a draft. */
export function makePolicyDraft(
  draft: PolicyDraft | null,
  inForce: StoredPolicy,
  text: string,
): PolicyDraft | null {
  const base = draft?.base ?? inForce;
  return text === base.text && base.version === inForce.version ? null : { text, base };
}
