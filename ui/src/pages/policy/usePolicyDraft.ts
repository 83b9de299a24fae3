import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useMe } from "../../api/currentUser";
import { loadDraft, storeDraft } from "../../components/draftStorage";
import type { StoredPolicy } from "./queries";

/** A text that is not in force, its base, and the reason as far as it is typed. */
export interface PolicyDraft {
  text: string;
  base: StoredPolicy;
  reason?: string;
}

export interface PolicyDraftState {
  inForce: StoredPolicy;
  draft: PolicyDraft | null;
  /** The draft, or else the policy in force. */
  text: string;
  change: (text: string) => void;
  setReason: (reason: string) => void;
  discard: () => void;
  /** Accepts a newer version in force as the base. */
  rebase: () => void;
}

const KEY = ["draft", "policy"];

/**
 * The draft of this person: it survives navigation, a reload and a closed tab, since the browser stores it until it is
 * in force or discarded. Tabs that are open at once keep their own.
 */
export function usePolicyDraft(inForce: StoredPolicy): PolicyDraftState {
  const queries = useQueryClient();
  const me = useMe().data;
  const place = `interlock-policy-draft:${me?.workspace ?? ""}:${me?.name ?? ""}`;
  const stored = useQuery<PolicyDraft | null>({
    queryKey: KEY,
    queryFn: () => null,
    enabled: false,
    initialData: () => loadPolicyDraft(place),
    gcTime: Infinity,
  });
  const draft = stored.data;
  const setDraft = (next: PolicyDraft | null) => {
    queries.setQueryData(KEY, next);
    storeDraft(place, next, "localStorage");
  };
  return {
    inForce,
    draft,
    text: draft?.text ?? inForce.text,
    change: (text) => setDraft(makePolicyDraft(draft, inForce, text)),
    setReason: (reason) => draft && setDraft({ ...draft, reason }),
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
  return text === base.text && base.version === inForce.version ? null : { ...draft, text, base };
}

/** What is stored may be of an older page, or damaged: then there is no draft. */
export function loadPolicyDraft(place: string): PolicyDraft | null {
  const { text, base, reason } = (loadDraft(place, "localStorage") ?? {}) as Partial<PolicyDraft>;
  if (typeof text !== "string" || typeof base?.text !== "string" || typeof base.version !== "number")
    return null;
  return { text, base, reason: typeof reason === "string" ? reason : "" };
}
