import { Button, Group, Stack, Text, Textarea, Title } from "@mantine/core";
import { useEffect, useId, useRef, useState } from "react";
import { Refused } from "../../api/client";
import { Problem } from "../../components/States";
import css from "./Agents.module.css";
import { DAYS, useChange, useToolCalls, type AgentInfo, type ToolInfo } from "./data";
import { howOften, setsFree, stillHolding, switched } from "./switching";

/** Before a gate is switched off: what will run unasked then, how often that was, and why it is wanted. */
export function GateOff({ agent, tool, onClose }: { agent: AgentInfo; tool: ToolInfo; onClose: () => void }) {
  const title = useId();
  const [reason, setReason] = useState("");
  const change = useChange(agent.name);
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  return (
    <section className={css.panel} aria-labelledby={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate(switched(agent, tool, false, reason.trim()), { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          <Title order={3} size="h5" id={title} ref={head} tabIndex={-1}>
            Switch off the question for {tool.name}?
          </Title>
          <Consequences agent={agent} tool={tool} />
          <Textarea
            label="Why?"
            description="Your reason is kept in the record, with your name and the time."
            required
            maxLength={1000}
            rows={2}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {change.error && <Problem error={inWords(change.error)} />}
          <Group>
            <Button type="submit" color="red" disabled={!reason.trim()} loading={change.isPending}>
              Switch the question off
            </Button>
            <Button variant="default" onClick={onClose}>
              Keep asking
            </Button>
          </Group>
        </Stack>
      </form>
    </section>
  );
}

function Consequences({ agent, tool }: { agent: AgentInfo; tool: ToolInfo }) {
  const calls = useToolCalls(agent.name, tool.name);
  const holding = stillHolding(tool);
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600}>
        {setsFree(tool)
          ? `From then on ${agent.name} runs ${tool.name} without asking anybody${holding.length ? ", except where a rule says otherwise" : ""}.`
          : "Nothing will run unasked: a rule decides about every call."}
      </Text>
      {holding.map((each) => (
        <Text size="sm" key={each.rule}>
          A rule still {each.verdict === "ask" ? "asks" : "denies"}: “{each.rule}”
          {each.conditional && ", depending on the arguments"}.
        </Text>
      ))}
      <Text size="sm" aria-live="polite">
        {calls.data && howOften(calls.data, agent.name, DAYS)}
        {calls.isPending && "Counting how often it was called …"}
        {calls.error && `How often it was called cannot be said: ${calls.error.message}`}
      </Text>
    </Stack>
  );
}

function inWords(error: Error): Error {
  if (error instanceof Refused && error.code === "stale")
    return new Error(
      "Somebody else changed this agent meanwhile. What is shown now is how it is; your reason is still here. Try again.",
    );
  return error;
}
