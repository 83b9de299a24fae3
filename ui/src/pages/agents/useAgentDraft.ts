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

const BASE_FIELDS = [
  "name",
  "version",
  "model",
  "instructions",
  "tools",
  "tool_approvals",
  "agents",
  "limits",
  "stored",
] as const;

/** Null if a field is missing or of another type, also of those that are read of its base. */
function readAgentDraft(found: unknown, initial: AgentDraft): AgentDraft | null {
  const isWhole =
    hasFields(found, initial, Object.keys(initial) as (keyof AgentDraft)[]) &&
    (!initial.base || hasFields((found as AgentDraft).base, initial.base, BASE_FIELDS));
  return isWhole ? (found as AgentDraft) : null;
}

function hasFields<T extends object>(found: unknown, example: T, names: readonly (keyof T)[]): boolean {
  const fields = (found ?? {}) as Partial<T>;
  return names.every((name) => kindOf(fields[name]) === kindOf(example[name]));
}

const kindOf = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "list" : typeof value);
