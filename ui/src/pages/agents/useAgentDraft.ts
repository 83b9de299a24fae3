import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
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
  const [stored, setStored] = useState(() => queries.getQueryData<AgentDraft>(queryKey) ?? null);
  const draft = stored ?? initial;
  const isDirty = stored !== null && isChanged(stored, initial);
  useLeaveWarning(isDirty);
  const replace = (next: AgentDraft | null) => {
    setStored(next); // at once: a field whose value comes later loses the position in its text
    queries.setQueryDefaults(queryKey, { gcTime: Infinity });
    queries.setQueryData(queryKey, next);
  };
  return {
    draft,
    isDirty,
    change: (fields) => replace({ ...draft, ...fields }),
    replace,
    discard: () => replace(null),
  };
}
