import { Button, Group, Paper, Text, Title } from "@mantine/core";
import { useState } from "react";
import { AgentForm } from "./AboutForm";
import css from "./Agents.module.css";
import type { AgentInfo } from "./data";

/** What an agent is told and may spend; admins change it. */
export function About({ agent, mayEdit }: { agent: AgentInfo; mayEdit: boolean }) {
  const [editing, setEditing] = useState(false);
  if (agent.source === "calls")
    return (
      <Text size="sm">
        It runs elsewhere and is known from its calls. Which of its tools ask can be said here all the same.
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
    ["Limits of a message", limits.join(", ") || "the usual: 30 turns, 500,000 tokens, 15 minutes"],
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
