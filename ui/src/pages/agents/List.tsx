import { Anchor, Badge, Group, Paper, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { isAdmin, useMe } from "../../api/me";
import { Page } from "../../components/Page";
import { Empty, Loading, Problem } from "../../components/States";
import css from "./Agents.module.css";
import { useAgents, type AgentInfo } from "./data";
import { Declared } from "./Declared";
import { sourceOf } from "./switching";

export function AgentList() {
  const agents = useAgents();
  const me = useMe().data;
  return (
    <Page title="Agents">
      {agents.isPending && <Loading />}
      {agents.error && <Problem error={agents.error} again={() => void agents.refetch()} />}
      {agents.data?.items.length === 0 && (
        <Empty title="No agents">An agent shows up here once it is configured, or has made a call.</Empty>
      )}
      <Stack gap="sm" component="ul" className={css.plain} aria-label="Agents">
        {agents.data?.items.map((agent) => (
          <Row key={agent.name} agent={agent} />
        ))}
      </Stack>
      {isAdmin(me) && <Declared />}
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
          <Badge variant="default">{sourceOf(agent)}</Badge>
        </Group>
      </Group>
      <Text size="sm" c="dimmed">
        {agent.source === "calls" ? "Known from its calls" : agent.model || "The default model"}
        {agent.tools.length > 0 && ` · tools: ${few(agent.tools)}`}
        {gates.length > 0 && ` · ${gates.length === 1 ? "1 switch" : `${gates.length} switches`} set`}
        {agent.version > 0 && ` · version ${agent.version}`}
      </Text>
    </Paper>
  );
}

function few(names: string[]): string {
  return names.length > 6 ? `${names.slice(0, 6).join(", ")} and ${names.length - 6} more` : names.join(", ");
}
