import { Alert, Button, Group, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useEffect, useRef } from "react";
import { ApiError, fieldProblem } from "../../api/client";
import { ChangedElsewhere, ErrorMessage } from "../../components/States";
import {
  draftChange,
  MAX_AGENT_NAME,
  nameProblem,
  rebase,
  relaxedTools,
  type AgentDraft,
} from "./agentDraft";
import css from "./Agents.module.css";
import * as messages from "./editorMessages";
import { LimitFields } from "./LimitFields";
import { ModelField } from "./ModelField";
import { useChangeAgent, type AgentInfo } from "./queries";
import { SubagentPicker } from "./SubagentPicker";
import { ToolPicker } from "./ToolPicker";
import { useAgentDraft } from "./useAgentDraft";

/** The form of an agent, or of a new one. `initial` is what it shows before anything is changed. */
export default function AgentEditor({
  agent,
  draftKey,
  initial,
  onSaved,
  onClose,
}: {
  agent: AgentInfo | null;
  /** Of a new agent: a copy has a draft of its own. */
  draftKey?: string;
  initial: AgentDraft;
  onSaved: (agent: AgentInfo) => void;
  onClose: () => void;
}) {
  const state = useAgentDraft(agent ? `agent ${agent.name}` : `new ${draftKey ?? ""}`, initial);
  const { draft, change } = state;
  const saving = useChangeAgent(draft.name);
  const form = useRef<HTMLFormElement>(null);
  useFocusOnError(form, saving.error);
  const relaxed = relaxedTools(draft);
  const nameError = agent ? "" : nameProblem(draft.name);
  const isStale = agent !== null && draft.base !== null && draft.base.version !== agent.version;
  const canSave = !nameError && !isStale && !(relaxed.length > 0 && !draft.reason.trim());
  const problem = (pointer: string) => fieldProblem(saving.error, pointer);
  const save = () =>
    saving.mutate(draftChange(draft), {
      onSuccess: (saved) => {
        state.discard();
        onSaved(saved);
      },
    });
  return (
    <form
      ref={form}
      aria-label={agent ? messages.editAgentNamed(agent.name) : messages.newAgent}
      onSubmit={(event) => {
        event.preventDefault();
        if (canSave) save();
      }}
    >
      <Stack gap="md">
        {!agent && (
          <TextInput
            label={messages.name}
            description={messages.nameRule(MAX_AGENT_NAME)}
            required
            maxLength={MAX_AGENT_NAME}
            value={draft.name}
            onChange={(event) => change({ name: event.currentTarget.value })}
            error={(draft.name && nameError) || nameConflict(saving.error) || problem("/name")}
          />
        )}
        <ModelField value={draft.model} onChange={(model) => change({ model })} error={problem("/model")} />
        <Textarea
          label={messages.instructions}
          description={messages.instructionsHint}
          rows={5}
          maxLength={100_000}
          classNames={{ input: css.growing }}
          value={draft.instructions}
          onChange={(event) => change({ instructions: event.currentTarget.value })}
          error={problem("/instructions")}
        />
        <ToolPicker
          entries={draft.tools}
          switches={draft.tool_approvals}
          onChange={change}
          error={problem("/tools") ?? problem("/tool_approvals")}
        />
        <SubagentPicker
          name={agent?.name ?? draft.name}
          chosen={draft.agents}
          switches={draft.tool_approvals}
          onChange={change}
          error={problem("/agents")}
        />
        <LimitFields draft={draft} onChange={change} problem={problem} />
        {relaxed.length > 0 && <RelaxedNotice name={draft.name} tools={relaxed} />}
        <TextInput
          label={messages.reason}
          description={messages.recordedInLedger}
          required={relaxed.length > 0}
          maxLength={500}
          value={draft.reason}
          onChange={(event) => change({ reason: event.currentTarget.value })}
        />
        {isStale && (
          <ChangedElsewhere
            action={messages.applyMyChanges}
            onAction={() => state.replace(rebase(draft, agent))}
          >
            {messages.changedWhileEditing(agent.changed_by, agent.version)}
          </ChangedElsewhere>
        )}
        {saving.error && !isStale && <ErrorMessage error={saving.error} />}
        <Text size="sm" c="dimmed">
          {messages.takesEffectFromNextCall}
          {state.isDirty && messages.youHaveUnsavedChanges}
        </Text>
        <Group>
          <Button type="submit" loading={saving.isPending} disabled={!canSave}>
            {agent ? messages.save : messages.createAgent}
          </Button>
          <Button
            variant="default"
            onClick={() => {
              state.discard();
              onClose();
            }}
          >
            {state.isDirty ? messages.discardChanges : messages.cancel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function RelaxedNotice({ name, tools }: { name: string; tools: string[] }) {
  return (
    <Alert color="red" title={messages.approvalWillBeOff(tools.length)}>
      <Text size="sm">{messages.toolsRunWithoutApproval(name, tools.join(", "))}</Text>
    </Alert>
  );
}

/** An agent of this name exists already. */
function nameConflict(error: Error | null): string | undefined {
  return error instanceof ApiError && error.code === "conflict" ? error.message : undefined;
}

/** Moves the focus to the first field that the server refused. */
function useFocusOnError(form: { current: HTMLFormElement | null }, error: Error | null): void {
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [form, error]);
}
