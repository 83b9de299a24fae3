import { Button, Text, Title } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link } from "wouter";
import { useActivity, useCallsOf, type AgentActivity } from "../../api/activity";
import { useApproval } from "../../api/approvals";
import { sendRequest } from "../../api/client";
import css from "./Connect.module.css";
import * as messages from "./messages";

const POLL_INTERVAL = 3_000; // also without live events

interface FirstCallProps {
  agent: string;
  /** The agent's key while it is shown; empty after a reload. */
  secret: string;
  onCall: () => void;
}

/** Waits for the agent's first call with its key, and leads to its card. */
export function FirstCall({ agent, secret, onCall }: FirstCallProps) {
  useCallsOf(agent);
  const now = useActivity(POLL_INTERVAL).data?.items.find(({ name }) => name === agent);
  const [before] = useState(now); // of an agent that was known already
  const bound = now?.last_bound_approval_id; // another program could claim the agent's name
  const id = bound && bound !== before?.last_bound_approval_id ? bound : "";
  const hasCalled = id !== "";
  useEffect(() => {
    if (hasCalled) onCall();
  }, [hasCalled, onCall]);
  return (
    <section
      className={css.first}
      aria-label={messages.firstCall}
      aria-live="polite"
      data-first-call={hasCalled || undefined}
    >
      <span className={css.pulse} aria-hidden="true" />
      {hasCalled ? (
        <Arrived id={id} agent={agent} />
      ) : (
        <>
          <Waiting agent={agent} {...progress(now, before)} />
          {secret && <TestRequest agent={agent} secret={secret} />}
        </>
      )}
    </section>
  );
}

/** What the agent did with its key short of a call that can be decided. */
function progress(now: AgentActivity | undefined, before: AgentActivity | undefined) {
  const hasConnected = Boolean(now?.key_used_at) && now?.key_used_at !== before?.key_used_at;
  return { isDenied: hasConnected && (now?.denied ?? 0) > (before?.denied ?? 0), hasConnected };
}

function Waiting({
  agent,
  isDenied,
  hasConnected,
}: {
  agent: string;
  isDenied: boolean;
  hasConnected: boolean;
}) {
  if (isDenied) return <Words title={messages.policyRefusedFirstCall}>{messages.changeTheRule(agent)}</Words>;
  if (hasConnected)
    return <Words title={messages.agentHasConnected(agent)}>{messages.readsRunWithoutAsking}</Words>;
  return <Words title={messages.waitingForFirstCall}>{messages.runYourProgram}</Words>;
}

/** A call in the agent's name, made by this page with the agent's key: it shows the way without a program. */
function TestRequest({ agent, secret }: { agent: string; secret: string }) {
  const send = useMutation({
    mutationFn: () =>
      sendRequest("post", "/api/calls", {
        headers: { authorization: `Bearer ${secret}` },
        body: {
          run_id: `${agent}-test`,
          call_id: crypto.randomUUID(),
          agent,
          tool: "test_request",
          args: { message: messages.helloFrom(agent) },
          effect: "write",
          expires_in: "1h",
          decisions: ["approve", "reject"],
          agent_says: messages.testRequestFromPage,
        },
      }),
  });
  return (
    <>
      <Button variant="default" loading={send.isPending || send.isSuccess} onClick={() => send.mutate()}>
        {messages.sendTestRequest}
      </Button>
      {send.error && (
        <Text size="sm" role="alert" c="red">
          {send.error.message}
        </Text>
      )}
    </>
  );
}

function Arrived({ id, agent }: { id: string; agent: string }) {
  const approval = useApproval(id).data;
  const isPending = approval?.status === "pending";
  return (
    <>
      <Words title={isPending ? messages.firstCallNeedsYourApproval : messages.firstCallIsHere}>
        {approval ? approval.sentence : messages.callFromAgent(agent)}
      </Words>
      <Button component={Link} href={`/a/${id}`}>
        {isPending ? messages.openRequest : messages.openCall}
      </Button>
    </>
  );
}

function Words({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div className={css.words}>
      <Title order={2} size="h5">
        {title}
      </Title>
      <Text size="sm" c="dimmed">
        {children}
      </Text>
    </div>
  );
}
