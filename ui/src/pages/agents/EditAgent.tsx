import { draftOf } from "./agentDraft";
import AgentEditor from "./AgentEditor";
import type { AgentInfo } from "./queries";

/** The form of an agent with its current settings. Loaded on demand. */
export default function EditAgent({ agent, onClose }: { agent: AgentInfo; onClose: () => void }) {
  return <AgentEditor agent={agent} initial={draftOf(agent)} onSaved={onClose} onClose={onClose} />;
}
