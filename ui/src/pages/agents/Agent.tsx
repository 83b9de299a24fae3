import { Anchor, List, Paper, Stack, Text, Title } from "@mantine/core";
import { Link } from "wouter";
import { isAdmin, useMe } from "../../api/me";
import { Page } from "../../components/Page";
import { Loading, Problem } from "../../components/States";
import { Ago } from "../../components/Time";
import { About } from "./About";
import css from "./Agents.module.css";
import { useAgent, type AgentInfo } from "./data";
import { Declared } from "./Declared";
import { originOf } from "./switching";
import { Tools } from "./Tools";

/** One agent: what it is, what is odd about it, and which of its tools ask. */
export function Agent({ name }: { name: string }) {
  const agent = useAgent(name);
  return (
    <Page title={name}>
      <Anchor component={Link} href="/agents" size="sm" w="fit-content">
        All agents
      </Anchor>
      {agent.isPending && <Loading />}
      {agent.error && !agent.data && <Problem error={agent.error} again={() => void agent.refetch()} />}
      {agent.data && <Shown agent={agent.data} />}
    </Page>
  );
}

function Shown({ agent }: { agent: AgentInfo }) {
  const me = useMe().data;
  return (
    <Stack gap="md">
      <Origin agent={agent} />
      {agent.warnings.length > 0 && <Warnings lines={agent.warnings} />}
      <About key={agent.version} agent={agent} mayEdit={isAdmin(me)} />
      <Paper withBorder p="md" component="section" aria-labelledby="tools">
        <Title order={2} size="h4" id="tools">
          Tools
        </Title>
        <Tools agent={agent} role={me?.role ?? "viewer"} />
      </Paper>
      {isAdmin(me) && <Declared agent={agent.name} />}
    </Stack>
  );
}

function Origin({ agent }: { agent: AgentInfo }) {
  return (
    <Text size="sm" c="dimmed">
      {originOf(agent)}
      {agent.changed_by && agent.changed_at && (
        <>
          {" "}
          (version {agent.version}, by {agent.changed_by}, <Ago at={agent.changed_at} />)
        </>
      )}
      . Every change is in the{" "}
      <Anchor component={Link} href="/history?tab=ledger&kind=agent_changed" inherit underline="always">
        record
      </Anchor>
      .
    </Text>
  );
}

function Warnings({ lines }: { lines: string[] }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="warnings" className={css.warnings}>
      <Title order={2} size="h5" id="warnings">
        What has no effect
      </Title>
      <List size="sm">
        {lines.map((line) => (
          <List.Item key={line}>{line}</List.Item>
        ))}
      </List>
    </Paper>
  );
}
