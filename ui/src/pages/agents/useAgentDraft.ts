import { useDraftPlace, useStoredDraft } from "../../components/storedDraft";
import { useLeaveWarning } from "../../components/useLeaveWarning";
import { isChanged, type AgentDraft } from "./agentDraft";

export interface AgentDraftState {
  draft: AgentDraft;
  isDirty: boolean;
  change: (fields: Partial<AgentDraft>) => void;
  replace: (draft: AgentDraft) => void;
  discard: () => void;
}

/** One draft per agent and tab: it survives navigation and a reload, and closing the tab asks first. */
export function useAgentDraft(key: string, initial: AgentDraft): AgentDraftState {
  const [stored, store] = useStoredDraft<AgentDraft | null>(
    useDraftPlace(`agent:${key}`),
    (found) => readAgentDraft(found, initial),
    (draft) => draft !== null && isChanged(draft, initial),
  );
  const draft = stored ?? initial;
  const isDirty = stored !== null && isChanged(stored, initial);
  useLeaveWarning(isDirty);
  return {
    draft,
    isDirty,
    change: (fields) => store((now) => ({ ...(now ?? initial), ...fields })),
    replace: (next) => store(() => next),
    discard: () => store(() => null),
  };
}

/** Null if a field is missing, or of another type. */
function readAgentDraft(found: unknown, initial: AgentDraft): AgentDraft | null {
  const draft = { ...(found as Partial<AgentDraft> | null) };
  const names = Object.keys(initial) as (keyof AgentDraft)[];
  const isWhole = names.every(
    (name) =>
      typeof draft[name] === typeof initial[name] &&
      Array.isArray(draft[name]) === Array.isArray(initial[name]),
  );
  return isWhole ? (draft as AgentDraft) : null;
}
