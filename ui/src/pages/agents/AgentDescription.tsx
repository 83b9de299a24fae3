import { Button, Group, Paper, SimpleGrid, Stack, Text, Textarea, TextInput, Title } from "@mantine/core";
import { useState } from "react";
import { ApiError } from "../../api/client";
import { ErrorMessage } from "../../components/States";
import { makeAgentChange, type AgentFields } from "./agentChange";
import css from "./Agents.module.css";
import { useChangeAgent, type AgentInfo } from "./queries";

/** An agent's instructions and limits; admins can change them. */
export function AgentDescription({ agent, mayEdit }: { agent: AgentInfo; mayEdit: boolean }) {
  const [editing, setEditing] = useState(false);
  if (agent.source === "calls")
    return (
      <Text size="sm">
        This agent runs outside Interlock and is known from its calls. You can still set here which of its
        tools require approval.
      </Text>
    );
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="about">
      <Group justify="space-between">
        <Title order={2} size="h4" id="about">
          About
        </Title>
        {mayEdit && !editing && (
          <Button variant="default" size="xs" onClick={() => setEditing(true)}>
            Edit
          </Button>
        )}
      </Group>
      {editing ? <AgentForm agent={agent} onClose={() => setEditing(false)} /> : <Facts agent={agent} />}
    </Paper>
  );
}

function Facts({ agent }: { agent: AgentInfo }) {
  const limits = Object.entries(agent.limits).map(([name, value]) => `${name} ${String(value)}`);
  const facts: [string, string][] = [
    ["Model", agent.model || "the default model"],
    ["Instructions", agent.instructions || "none"],
    ["Tools", agent.tools.join(", ") || "none"],
    ["Agents it may call", agent.agents.join(", ") || "none"],
    ["Limits per message", limits.join(", ") || "default: 30 turns, 500,000 tokens, 15 minutes"],
  ];
  return (
    <dl className={css.facts}>
      {facts.map(([name, value]) => (
        <Fact key={name} name={name} value={value} />
      ))}
    </dl>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

/** Sends only changed fields: the others keep following the configuration file. */
function AgentForm({ agent, onClose }: { agent: AgentInfo; onClose: () => void }) {
  const [values, setValues] = useState(() => initialValues(agent));
  const [reason, setReason] = useState("");
  const change = useChangeAgent(agent.name);
  const set = (name: keyof AgentFormValues) => (event: { currentTarget: { value: string } }) =>
    setValues({ ...values, [name]: event.currentTarget.value });
  const problem = (pointer: string) => problemAt(change.error, pointer);
  const save = () =>
    change.mutate(makeAgentChange(agent, changedFields(values, agent), reason), { onSuccess: onClose });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Model"
          description="provider:name; empty for the default model"
          value={values.model}
          onChange={set("model")}
          error={problem("/model")}
        />
        <Textarea
          label="Instructions"
          autosize={false}
          rows={5}
          value={values.instructions}
          onChange={set("instructions")}
        />
        <Textarea
          label="Tools"
          description="One per line: names, patterns such as cms_list_*, packs such as cms, mcp:server, or *"
          rows={4}
          value={values.tools}
          onChange={set("tools")}
          error={problem("/tools")}
        />
        <Textarea
          label="Agents it may call"
          description="One per line"
          rows={2}
          value={values.agents}
          onChange={set("agents")}
          error={problem("/agents")}
        />
        <SimpleGrid cols={{ base: 1, sm: 3 }}>
          {AGENT_LIMITS.map(({ name, label, placeholder }) => (
            <TextInput
              key={name}
              label={label}
              placeholder={placeholder}
              value={values[name]}
              onChange={set(name)}
              error={problem(`/limits/${name}`)}
            />
          ))}
        </SimpleGrid>
        <TextInput label="Reason" value={reason} onChange={(event) => setReason(event.currentTarget.value)} />
        {change.error && <ErrorMessage error={change.error} />}
        <Text size="sm" c="dimmed">
          Takes effect from the next call. The change is recorded with your name.
        </Text>
        <Group>
          <Button type="submit" loading={change.isPending}>
            Save
          </Button>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function problemAt(error: Error | null, pointer: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  return error.problems.find((problem) => problem.pointer.startsWith(pointer))?.message;
}

interface AgentFormValues {
  model: string;
  instructions: string;
  tools: string;
  agents: string;
  turns: string;
  tokens: string;
  time: string;
}

const AGENT_LIMITS = [
  { name: "turns", label: "Turns", placeholder: "30" },
  { name: "tokens", label: "Tokens", placeholder: "500000" },
  { name: "time", label: "Time", placeholder: "15m" },
] as const;

export function initialValues(agent: AgentInfo): AgentFormValues {
  const limit = (name: string) => String(agent.limits[name] ?? "");
  return {
    model: agent.model,
    instructions: agent.instructions,
    tools: agent.tools.join("\n"),
    agents: agent.agents.join("\n"),
    turns: limit("turns"),
    tokens: limit("tokens"),
    time: limit("time"),
  };
}

/** The changed fields, as the API names them. */
export function changedFields(values: AgentFormValues, agent: AgentInfo): AgentFields {
  const before = initialValues(agent);
  const differs = (...names: (keyof AgentFormValues)[]) =>
    names.some((name) => values[name] !== before[name]);
  return {
    ...(differs("model") && { model: values.model.trim() }),
    ...(differs("instructions") && { instructions: values.instructions }),
    ...(differs("tools") && { tools: splitLines(values.tools) }),
    ...(differs("agents") && { agents: splitLines(values.agents) }),
    ...(differs("turns", "tokens", "time") && { limits: toLimits(values) }),
  };
}

function splitLines(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter(Boolean);
}

/** Integers are converted; the server validates everything else. */
function toLimits(values: AgentFormValues): Record<string, unknown> {
  const number = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text);
  const limitValues = { turns: number(values.turns), tokens: number(values.tokens), time: values.time };
  return Object.fromEntries(Object.entries(limitValues).filter(([, value]) => value !== ""));
}
