import { Anchor, Button, List, Paper, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import { useAgentActivity, useCallsOf } from "../../api/activity";
import { ApiError } from "../../api/client";
import { isAdmin, useMe } from "../../api/currentUser";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { Activity, Seen } from "./Activity";
import { AgentActions, TryIt } from "./AgentActions";
import { describeOrigin } from "./agentChange";
import { AgentDescription } from "./AgentDescription";
import css from "./Agents.module.css";
import { DeclaredTools } from "./DeclaredTools";
import * as messages from "./detailMessages";
import { FreezeAgent } from "./FreezeAgent";
import { useAgent, type AgentInfo } from "./queries";
import { ToolList } from "./ToolList";

/** One agent: its description, its warnings, and its tools. */
export default function AgentDetails({ name }: { name: string }) {
  const agent = useAgent(name);
  const activity = useAgentActivity(name);
  useCallsOf(name);
  const isUnknown = !agent.data && agent.error instanceof ApiError && agent.error.status === 404;
  return (
    <Page
      title={name}
      actions={
        <>
          {agent.data && <AgentActions agent={agent.data} />}
          {agent.data && (
            <Button variant="default" component={Link} href={`/history?agent=${encodeURIComponent(name)}`}>
              {messages.calls}
            </Button>
          )}
          {activity.data && <FreezeAgent agent={name} pending={activity.data.pending} />}
        </>
      }
    >
      <Text size="sm" c="dimmed">
        <Anchor component={Link} href="/agents" inherit underline="always">
          {messages.allAgents}
        </Anchor>
        {activity.data && (
          <>
            {" "}
            · <Seen activity={activity.data} />
          </>
        )}
      </Text>
      {agent.isPending && <Loading />}
      {isUnknown && (
        <EmptyState title={messages.thereIsNoAgent(name)}>
          <Anchor component={Link} href="/agents" inherit underline="always">
            {messages.seeAllAgents}
          </Anchor>
        </EmptyState>
      )}
      {agent.error && !agent.data && !isUnknown && (
        <ErrorMessage error={agent.error} onRetry={() => void agent.refetch()} />
      )}
      {agent.data && activity.error && !activity.data && (
        <ErrorMessage error={activity.error} onRetry={() => void activity.refetch()} />
      )}
      {activity.data && <Activity activity={activity.data} />}
      {agent.data && <AgentSections agent={agent.data} />}
    </Page>
  );
}

function AgentSections({ agent }: { agent: AgentInfo }) {
  const me = useMe().data;
  return (
    <Stack gap="md">
      <Origin agent={agent} />
      {agent.warnings.length > 0 && <Warnings lines={agent.warnings} />}
      <AgentDescription agent={agent} mayEdit={isAdmin(me)} />
      <TryIt agent={agent} />
      <Paper withBorder p="md" component="section" aria-labelledby="tools">
        <Title order={2} size="h4" id="tools">
          {messages.tools}
        </Title>
        <ToolList agent={agent} role={me?.role ?? "viewer"} />
      </Paper>
      {isAdmin(me) && <DeclaredTools agent={agent.name} />}
    </Stack>
  );
}

/** Where the agent comes from, and where its changes are recorded. */
export function Origin({ agent }: { agent: AgentInfo }) {
  return (
    <Text size="sm" c="dimmed">
      {describeOrigin(agent)}
      {agent.changed_by && agent.changed_at && (
        <>
          {" "}
          {messages.versionBy(agent.version, agent.changed_by)} <TimeAgo at={agent.changed_at} />)
        </>
      )}
      {messages.ledgerRecordsEvery} <LedgerLink kind="agent_changed">{messages.change}</LedgerLink>{" "}
      {messages.andWord} <LedgerLink kind="agent_deleted">{messages.deletion}</LedgerLink> {messages.ofAgent}
    </Text>
  );
}

/** The ledger's entries of one kind: its filter takes one. */
function LedgerLink({ kind, children }: { kind: string; children: string }) {
  return (
    <Anchor component={Link} href={`/history?tab=ledger&kind=${kind}`} inherit underline="always">
      {children}
    </Anchor>
  );
}

function Warnings({ lines }: { lines: string[] }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="warnings" className={css.warnings}>
      <Title order={2} size="h5" id="warnings">
        {messages.settingsThatAreOverridden}
      </Title>
      <List size="sm">
        {lines.map((line) => (
          <List.Item key={line}>{line}</List.Item>
        ))}
      </List>
    </Paper>
  );
}
