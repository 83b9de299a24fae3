import { Anchor, Paper } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Link, useLocation } from "wouter";
import { Page } from "../../components/Page";
import { ErrorMessage, Loading } from "../../components/States";
import { newDraft } from "./agentDraft";
import * as messages from "./editorMessages";
import { useAgents } from "./queries";

const AgentEditor = lazy(() => import("./AgentEditor"));

/** The form of a new agent; `copied` is the name of the agent whose settings it begins with. */
export default function NewAgent({ copied }: { copied: string }) {
  const [, navigate] = useLocation();
  const agents = useAgents();
  const known = agents.data?.items;
  const source = known?.find((agent) => agent.name === copied);
  const taken = known?.map((agent) => agent.name);
  return (
    <Page title={copied ? messages.copyAgent(copied) : messages.newAgent}>
      <Anchor component={Link} href="/agents" size="sm" w="fit-content">
        {messages.allAgents}
      </Anchor>
      {agents.isPending && <Loading />}
      {agents.error && !known && <ErrorMessage error={agents.error} onRetry={() => void agents.refetch()} />}
      {known && copied && !source && <ErrorMessage error={new Error(messages.thereIsNoAgent(copied))} />}
      {known && (source || !copied) && (
        <Paper withBorder p="md">
          <Suspense fallback={<Loading label={messages.loadingForm} />}>
            <AgentEditor
              key={copied}
              agent={null}
              draftKey={copied ? `copy of ${copied}` : ""}
              initial={newDraft(source, taken)}
              onSaved={(saved) => navigate(`/agents/${encodeURIComponent(saved.name)}`)}
              onClose={() => navigate(source ? `/agents/${encodeURIComponent(copied)}` : "/agents")}
            />
          </Suspense>
        </Paper>
      )}
    </Page>
  );
}
