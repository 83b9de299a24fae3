import { Anchor } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { callApi } from "../../api/client";
import type { CurrentUser } from "../../api/currentUser";
import { Section } from "../../components/Section";
import { ErrorMessage, Loading } from "../../components/States";
import { formatDateTime } from "../../components/TimeAgo";
import * as messages from "./messages";
import css from "./Settings.module.css";

/** Version, database, retention, and the head of the ledger. */
export default function AboutTab({ me }: { me: CurrentUser }) {
  const about = useQuery({
    queryKey: ["about"],
    queryFn: async ({ signal }) => {
      const [installed, workspace, head] = await Promise.all([
        callApi("get", "/api/about", { signal }),
        callApi("get", "/api/workspaces/current", { signal }),
        callApi("get", "/api/audit/head", { signal }),
      ]);
      return { ...installed, since: workspace.created_at, head };
    },
  });
  if (about.isPending) return <Loading />;
  if (!about.data) return <ErrorMessage error={about.error} onRetry={() => void about.refetch()} />;
  const { version, database, retention, provider, workspace, since, head } = about.data;
  const facts: [string, ReactNode][] = [
    [messages.version, version],
    [messages.workspace, messages.workspaceSince(workspace, formatDateTime(since))],
    [messages.you, `${me.name}, ${me.role}`],
    [messages.database, database],
    [messages.retention, retention === "forever" ? messages.forever : messages.afterEndOfCall(retention)],
    [messages.signIn, provider ? messages.signInWithProvider : messages.passwordOrLink],
    [messages.ledger, messages.entriesAndNewest(head.seq, formatDateTime(head.at))],
    [messages.ledgerHead, <code key="end">{head.link}</code>],
  ];
  return (
    <Section title={messages.about} about={messages.ledgerHeadHint}>
      <dl className={css.facts}>
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
      <Anchor href="/docs" size="sm">
        {messages.httpApiReference}
      </Anchor>
    </Section>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
