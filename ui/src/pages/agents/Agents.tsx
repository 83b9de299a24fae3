import { Anchor, Badge, Button, Group, List, Paper, Stack, Text, Title } from "@mantine/core";
import { Link, useLocation, useSearchParams } from "wouter";
import { isAdmin, useMe } from "../../api/currentUser";
import { Page } from "../../components/Page";
import { EmptyState, ErrorMessage, Loading } from "../../components/States";
import { TimeAgo } from "../../components/TimeAgo";
import { AgentActions, TryIt } from "./AgentActions";
import { describeOrigin, nameSource } from "./agentChange";
import { AgentDescription } from "./AgentDescription";
import css from "./Agents.module.css";
import { DeclaredTools } from "./DeclaredTools";
import { NewAgent } from "./NewAgent";
import { useAgent, useAgentChanges, useAgents, type AgentInfo } from "./queries";
import { ToolList } from "./ToolList";

/** All agents, one agent with its tools, or the form of a new one. */
export default function Agents() {
  useLocation(); // rerenders for another agent
  useAgentChanges();
  const [params] = useSearchParams();
  const me = useMe().data;
  const name = decodeURIComponent(location.pathname.split("/")[2] ?? ""); // the router decodes only a part of it
  if (name) return <AgentDetails key={name} name={name} />;
  const isNew = params.has("new") || params.has("copy");
  return isNew && isAdmin(me) ? <NewAgent copied={params.get("copy") ?? ""} /> : <AgentList />;
}

function AgentList() {
  const agents = useAgents();
  const me = useMe().data;
  return (
    <Page
      title="Agents"
      actions={
        isAdmin(me) && (
          <Button component={Link} href="/agents?new=1">
            New agent
          </Button>
        )
      }
    >
      {agents.isPending && <Loading />}
      {agents.error && <ErrorMessage error={agents.error} onRetry={() => void agents.refetch()} />}
      {agents.data?.items.length === 0 && (
        <EmptyState title="No agents">
          Agents appear here once they are configured or have made a call.
        </EmptyState>
      )}
      <Stack gap="sm" component="ul" className={css.plain} aria-label="Agents">
        {agents.data?.items.map((agent) => (
          <Row key={agent.name} agent={agent} />
        ))}
      </Stack>
      {isAdmin(me) && <DeclaredTools />}
    </Page>
  );
}

function Row({ agent }: { agent: AgentInfo }) {
  const gates = Object.values(agent.tool_approvals);
  return (
    <Paper withBorder p="md" component="li">
      <Group justify="space-between" gap="xs">
        <Anchor
          component={Link}
          href={`/agents/${encodeURIComponent(agent.name)}`}
          fw={600}
          className={css.way}
        >
          {agent.name}
        </Anchor>
        <Group gap="xs">
          {agent.warnings.length > 0 && (
            <Badge variant="outline" color="orange" className={css.warned}>
              {agent.warnings.length === 1 ? "1 warning" : `${agent.warnings.length} warnings`}
            </Badge>
          )}
          <Badge variant="default">{nameSource(agent)}</Badge>
        </Group>
      </Group>
      <Text size="sm" c="dimmed">
        {agent.source === "calls" ? "Known from its calls" : agent.model || "The default model"}
        {agent.tools.length > 0 && ` · tools: ${shortList(agent.tools)}`}
        {gates.length > 0 && ` · ${gates.length === 1 ? "1 switch" : `${gates.length} switches`} set`}
        {agent.version > 0 && ` · version ${agent.version}`}
      </Text>
    </Paper>
  );
}

function shortList(names: string[]): string {
  return names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", ");
}

/** One agent: its description, its warnings, and its tools. */
function AgentDetails({ name }: { name: string }) {
  const agent = useAgent(name);
  return (
    <Page title={name} actions={agent.data && <AgentActions agent={agent.data} />}>
      <Anchor component={Link} href="/agents" size="sm" w="fit-content">
        All agents
      </Anchor>
      {agent.isPending && <Loading />}
      {agent.error && !agent.data && (
        <ErrorMessage error={agent.error} onRetry={() => void agent.refetch()} />
      )}
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
          Tools
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
          (version {agent.version}, by {agent.changed_by}, <TimeAgo at={agent.changed_at} />)
        </>
      )}
      . The ledger records every <LedgerLink kind="agent_changed">change</LedgerLink> and{" "}
      <LedgerLink kind="agent_deleted">deletion</LedgerLink> of an agent.
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
        Settings that are overridden
      </Title>
      <List size="sm">
        {lines.map((line) => (
          <List.Item key={line}>{line}</List.Item>
        ))}
      </List>
    </Paper>
  );
}
