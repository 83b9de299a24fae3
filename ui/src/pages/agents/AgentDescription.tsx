import { Button, Group, Paper, Text, Title } from "@mantine/core";
import { lazy, Suspense, useRef } from "react";
import { useSearchParams } from "wouter";
import { Loading } from "../../components/States";
import css from "./Agents.module.css";
import * as messages from "./detailMessages";
import type { AgentInfo } from "./queries";

const EditAgent = lazy(() => import("./EditAgent"));

/** An agent's instructions and limits; admins can change them. Whether the form is open is in the URL. */
export function AgentDescription({ agent, mayEdit }: { agent: AgentInfo; mayEdit: boolean }) {
  const [params, setParams] = useSearchParams();
  const isEditing = mayEdit && params.has("edit");
  const title = useRef<HTMLHeadingElement>(null);
  const setEditing = (on: boolean) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (on) after.set("edit", "1");
      else after.delete("edit");
      return after;
    });
  const close = () => {
    setEditing(false);
    title.current?.focus();
  };
  if (agent.source === "calls") return <Text size="sm">{messages.youCanSetApprovals}</Text>;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="about">
      <Group justify="space-between">
        <Title order={2} size="h4" id="about" ref={title} tabIndex={-1}>
          {messages.about}
        </Title>
        {mayEdit && !isEditing && (
          <Button variant="default" size="xs" onClick={() => setEditing(true)}>
            {messages.edit}
          </Button>
        )}
      </Group>
      {isEditing ? (
        <Suspense fallback={<Loading label={messages.loadingForm} />}>
          <EditAgent agent={agent} onClose={close} />
        </Suspense>
      ) : (
        <Facts agent={agent} />
      )}
    </Paper>
  );
}

function Facts({ agent }: { agent: AgentInfo }) {
  const limits = Object.entries(agent.limits).map(([name, value]) => `${name} ${String(value)}`);
  const facts: [string, string][] = [
    [messages.model, agent.model || messages.theDefaultModel],
    [messages.instructions, agent.instructions || messages.none],
    [messages.tools, agent.tools.join(", ") || messages.none],
    [messages.agentsItMayCall, agent.agents.join(", ") || messages.none],
    [messages.limitsPerMessage, limits.join(", ") || messages.defaultLimits],
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
