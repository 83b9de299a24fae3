import { Anchor, Badge, Button, Paper, Text, TextInput } from "@mantine/core";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { useActivity, type AgentActivity } from "../../api/activity";
import { isAdmin, useMe } from "../../api/currentUser";
import { useFreezes } from "../../components/FreezeBanner";
import { IconAgents, IconFreeze, IconPlus } from "../../components/icons";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { countText, findFreeze, mergeAgents, type ListedAgent } from "./activity";
import { nameSource } from "./agentChange";
import css from "./Agents.module.css";
import { DeclaredTools } from "./DeclaredTools";
import * as messages from "./messages";
import { MissingModel } from "./MissingModel";
import { COUNTED_DAYS, useAgents, type AgentInfo } from "./queries";

const SEARCH_FROM = 9; // agents: below that the list is seen at once

/** All agents with what they do: those that were active last come first. */
export default function AgentList() {
  const agents = useAgents();
  const activity = useActivity();
  const me = useMe().data;
  const [q, setQ] = useState("");
  const listed = mergeAgents(agents.data?.items ?? [], activity.data?.items ?? []);
  const shown = listed.filter(({ name }) => name.toLowerCase().includes(q.trim().toLowerCase()));
  return (
    <Page
      title={messages.agents}
      actions={
        isAdmin(me) && (
          <>
            <Button variant="default" component={Link} href="/agents?new=1">
              {messages.newAgent}
            </Button>
            <Button component={Link} href="/connect" leftSection={<IconPlus size={16} aria-hidden="true" />}>
              {messages.connectAgent}
            </Button>
          </>
        )
      }
    >
      <MissingModel />
      {agents.isPending && <Loading />}
      {agents.error && <ErrorMessage error={agents.error} onRetry={() => void agents.refetch()} />}
      {activity.error && <ErrorMessage error={activity.error} onRetry={() => void activity.refetch()} />}
      {agents.data && listed.length === 0 && (
        <EmptyState
          title={messages.noAgentsYet}
          action={
            isAdmin(me) && (
              <Button component={Link} href="/connect">
                {messages.connectYourFirstAgent}
              </Button>
            )
          }
        >
          {messages.agentAppearsWithFirstCall}
          {!isAdmin(me) && messages.adminsConnectAgents}
        </EmptyState>
      )}
      {listed.length >= SEARCH_FROM && (
        <TextInput
          label={messages.searchAgents}
          type="search"
          value={q}
          maxLength={200}
          onChange={(event) => setQ(event.currentTarget.value)}
        />
      )}
      {listed.length > 0 && (
        <Paper withBorder component="ul" className={css.agents} aria-label={messages.agents}>
          {shown.map((agent) => (
            <Row key={agent.name} agent={agent} isAllCounted={!activity.data?.left_out} />
          ))}
          {shown.length === 0 && (
            <Text size="sm" p="md" component="li">
              {messages.noAgentWithThisName}
            </Text>
          )}
        </Paper>
      )}
      {activity.data && activity.data.left_out > 0 && (
        <Text size="sm" c="dimmed" mt="xs">
          {messages.agentsLeftOut(activity.data.left_out)}
        </Text>
      )}
      {isAdmin(me) && <DeclaredTools />}
    </Page>
  );
}

function Row({
  agent: { name, info, activity },
  isAllCounted,
}: {
  agent: ListedAgent;
  /** Whether no activity is left out: then an agent without one made no calls. */
  isAllCounted: boolean;
}) {
  const freeze = findFreeze(useFreezes().data?.items ?? [], name);
  const href = info ? `/agents/${encodeURIComponent(name)}` : `/connect?agent=${encodeURIComponent(name)}`;
  return (
    <li className={css.agent} data-agent={name}>
      <span className={css.face} aria-hidden="true">
        <IconAgents size={18} stroke={1.75} />
      </span>
      <div className={css.who}>
        <Anchor component={Link} href={href} fw={600} c="inherit" className={css.way}>
          {name}
        </Anchor>
        <Text size="sm" c="dimmed" component="div">
          <Facts parts={describeAgent(info, activity, isAllCounted)} />
        </Text>
      </div>
      <div className={css.marks}>
        {freeze && (
          <Badge color="red" variant="light" leftSection={<IconFreeze size={12} aria-hidden="true" />}>
            {messages.frozen}
          </Badge>
        )}
        {info && info.warnings.length > 0 && (
          <Badge variant="outline" color="orange" className={css.warned}>
            {countText(info.warnings.length, messages.warning)}
          </Badge>
        )}
        {info && <Badge variant="default">{nameSource(info)}</Badge>}
      </div>
    </li>
  );
}

/** "2 pending · last seen 6 min ago · 384 calls in 30 days" */
function describeAgent(
  info: AgentInfo | undefined,
  activity: AgentActivity | undefined,
  isAllCounted: boolean,
): ReactNode[] {
  if (!activity)
    return [isAllCounted || info?.source !== "calls" ? messages.noCallsYet : messages.activityNotCounted];
  const { pending, calls, denied, last_seen_at, complete } = activity;
  const more = complete ? "" : messages.orMoreSuffix;
  return [
    pending > 0 && <strong key="pending">{messages.pendingCount(pending)}</strong>,
    last_seen_at ? (
      <span key="seen">
        {messages.lastSeen} <TimeAgo at={last_seen_at} />
      </span>
    ) : (
      messages.waitingForFirstCall
    ),
    (info || calls > 0) && messages.callsInLastDays(countText(calls, messages.call), more, COUNTED_DAYS),
    denied > 0 && messages.refusedByPolicyCount(denied),
  ].filter(Boolean);
}

function Facts({ parts }: { parts: ReactNode[] }) {
  return parts.map((part, index) => (
    <span key={index}>
      {index > 0 && " · "}
      {part}
    </span>
  ));
}
