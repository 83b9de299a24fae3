import { Button, Group, Stack, Text, Textarea, Title } from "@mantine/core";
import { useEffect, useId, useRef, useState } from "react";
import { ApiError } from "../../api/client";
import { ErrorMessage } from "../../components/States";
import { describeCallCounts, liftsGate, makeGateChange, remainingRules } from "./agentChange";
import css from "./Agents.module.css";
import * as messages from "./detailMessages";
import { COUNTED_DAYS, useChangeAgent, useToolCalls, type AgentInfo, type ToolInfo } from "./queries";

/** Before approval is turned off: what will run without it, how often it was called, and the reason. */
export default function GateOffForm({
  agent,
  tool,
  onClose,
}: {
  agent: AgentInfo;
  tool: ToolInfo;
  onClose: () => void;
}) {
  const title = useId();
  const [reason, setReason] = useState("");
  const change = useChangeAgent(agent.name);
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  return (
    <section className={css.panel} aria-labelledby={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate(makeGateChange(agent, tool, false, reason.trim()), { onSuccess: onClose });
        }}
      >
        <Stack gap="sm">
          <Title order={3} size="h5" id={title} ref={head} tabIndex={-1}>
            {messages.turnOffApprovalFor(tool.name)}
          </Title>
          <Consequences agent={agent} tool={tool} />
          <Textarea
            label={messages.reason}
            description={messages.recordedInLedger}
            required
            maxLength={1000}
            rows={2}
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {change.error && <ErrorMessage error={explainConflict(change.error)} />}
          <Group>
            <Button type="submit" color="red.9" disabled={!reason.trim()} loading={change.isPending}>
              {messages.turnOffApproval}
            </Button>
            <Button variant="default" onClick={onClose}>
              {messages.keepApproval}
            </Button>
          </Group>
        </Stack>
      </form>
    </section>
  );
}

function Consequences({ agent, tool }: { agent: AgentInfo; tool: ToolInfo }) {
  const calls = useToolCalls(agent.name, tool.name);
  const remaining = remainingRules(tool);
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600}>
        {liftsGate(tool)
          ? messages.runsWithoutApprovalFromThenOn(agent.name, tool.name, remaining.length)
          : messages.ruleDecidesEveryCall}
      </Text>
      {remaining.map((each) => (
        <Text size="sm" key={each.rule}>
          {messages.ruleStillDecides(each.verdict, each.rule)}
          {each.conditional && messages.dependingOnArguments}.
        </Text>
      ))}
      <Text size="sm" aria-live="polite">
        {calls.data && describeCallCounts(calls.data, agent.name, COUNTED_DAYS)}
        {calls.isPending && messages.countingCalls}
        {calls.error && messages.callsCouldNotBeCounted(calls.error.message)}
      </Text>
    </Stack>
  );
}

function explainConflict(error: Error): Error {
  if (error instanceof ApiError && error.code === "stale")
    return new Error(messages.changedMeanwhileReasonKept);
  return error;
}
