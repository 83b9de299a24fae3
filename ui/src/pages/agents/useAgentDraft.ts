import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useLeaveWarning } from "../../components/useLeaveWarning";
import { isChanged, type AgentDraft } from "./agentDraft";

export interface AgentDraftState {
  draft: AgentDraft;
  isDirty: boolean;
  change: (fields: Partial<AgentDraft>) => void;
  replace: (draft: AgentDraft) => void;
  discard: () => void;
}

/** One draft per agent and tab: it survives navigation, and leaving the site asks first. */
export function useAgentDraft(key: string, initial: AgentDraft): AgentDraftState {
  const queries = useQueryClient();
  const queryKey = ["draft", "agent", key];
  const stored = useQuery<AgentDraft | null>({
    queryKey,
    queryFn: () => null,
    enabled: false,
    initialData: null,
    gcTime: Infinity,
  });
  const draft = stored.data ?? initial;
  const isDirty = stored.data !== null && isChanged(stored.data, initial);
  useLeaveWarning(isDirty);
  const replace = (next: AgentDraft | null) => queries.setQueryData(queryKey, next);
  return {
    draft,
    isDirty,
    change: (fields) => replace({ ...draft, ...fields }),
    replace,
    discard: () => replace(null),
  };
}
